"""Circular variables, such as wind directions: their period, and what can be said of them."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .reductions import (
    Reduction,
    crps_of,
    mean_of,
    members_of,
    observations_of,
    std_of,
    vectors_of,
    weights_of,
)
from .typing import FloatArray

if TYPE_CHECKING:
    from .arrays.distributions import Empirical

PERIOD = "circular_period"
"""Attribute of a circular variable, in its unit. A mere ``period`` may be that of an average."""

DEFINED = (crps_of, mean_of, members_of, observations_of, std_of, vectors_of, weights_of)
"""What is made of a distribution on a circle; all else needs an order of values."""


def read_period(value: Any, name: Hashable) -> float | None:
    """The period of a variable; None for one on a line.

    Raises
    ------
    ValueError
        If it is no positive number.
    """
    if value is None:
        return None
    number = isinstance(value, (int, float, np.number))
    number &= not isinstance(value, (bool, np.timedelta64))
    if not number or not 0 < value < np.inf:
        raise ValueError(
            f"the period of {name!r} must be a positive number in its unit, such as 360 degrees, "
            f"got {value!r}"
        )
    return float(value)


def refuse_circular(period: float | None, name: Hashable, what: str) -> None:
    """Raise ValueError for a variable that is circular."""
    if period is not None:
        raise ValueError(
            f"{name!r} is circular (period {period:g}), and {what}; its "
            "forecasts have members, a mean direction, a standard deviation and a CRPS"
        )


def check_period(given: float | None, fitted: float | None, name: str) -> None:
    """Raise ValueError if a forecast has another period than the hindcast of the fit."""
    if given is not None and given != fitted:
        raise ValueError(
            f"{name} has the {PERIOD} {given:g}, but the hindcast of the model "
            + ("was on a line" if fitted is None else f"had {fitted:g}")
            + f"; fit again with period={given:g}, or drop the attribute"
        )


def on_circle(reduction: Reduction, period: float | None, name: Hashable, kind: str) -> Reduction:
    """A reduction of ensembles as it is for a circular variable; ValueError if there is none."""
    if period is None:
        return reduction
    if kind not in ("ensemble", "weighted"):
        refuse_circular(period, name, f"has the form {kind!r}, which has no members")
    require_defined(reduction, period, name)
    return partial(_as_circular, reduction=reduction, period=period)


def require_defined(reduction: Reduction, period: float | None, name: Hashable) -> None:
    """Raise ValueError for a reduction that a circular variable does not have."""
    function = reduction.func if isinstance(reduction, partial) else reduction
    if function not in DEFINED:
        refuse_circular(period, name, "values on a circle have no order")


def _as_circular(
    distribution: Empirical, *args: Any, reduction: Reduction, period: float
) -> tuple[FloatArray, ...]:
    from .arrays.circular_forecasts import Circular

    return reduction(Circular(*distribution, period), *args)
