"""Read the period of circular variables, such as wind directions, and refuse unsuitable calls."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

PERIOD = "circular_period"
"""Name of the attribute with the period of a circular variable, in the unit of the variable. The
name is not ``period``, because that could mean the length of time of an average."""


def read_period(value: Any, name: Hashable) -> float:
    """Return the period of a variable as a float, from an argument or an attribute.

    Raises
    ------
    ValueError
        If the period is not a positive number.
    """
    number = isinstance(value, (int, float, np.number))
    number &= not isinstance(value, (bool, np.timedelta64))
    if not number or not 0 < value < np.inf:
        raise ValueError(
            f"the period of {name!r} must be a positive number in its unit, such as 360 degrees, "
            f"got {value!r}"
        )
    return float(value)


def refuse_circular(period: float | None, name: Hashable, what: str) -> None:
    """Raise ValueError if a variable is circular; ``what`` is the reason in the message."""
    if period is not None:
        raise ValueError(
            f"{name!r} is circular (period {period:g}), and {what}; its "
            "forecasts have only members, mean direction, standard deviation and CRPS"
        )


def check_period(given: float, fitted: float | None, name: str) -> None:
    """Raise ValueError if a forecast has another period than the hindcast that was fitted."""
    if given != fitted:
        raise ValueError(
            f"{name} has the {PERIOD} {given:g}, but the hindcast of the model "
            + ("was not circular" if fitted is None else f"had {fitted:g}")
            + f"; fit again with period={given:g}, or drop the attribute"
        )
