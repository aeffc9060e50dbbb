"""Reductions of distributions; marks show which ones accept GPU arrays or circular variables.

A reduction computes arrays, such as quantiles, from distributions. The module of a product defines
its reduction. In shapes, L counts locations and T counts the forecasts of a location.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from xrecal.arrays.distributions.forms import Empirical
from xrecal.inputs.circular import refuse_circular
from xrecal.inputs.forms import TRAITS, Kind
from xrecal.typing import FloatArray

Reduction: TypeAlias = Callable[..., tuple[FloatArray, ...]]
"""Function that takes distributions (L, T) and perhaps arrays, and returns arrays (L, T, ...)."""
F = TypeVar("F", bound=Reduction)

ON_DEVICE: set[Reduction] = set()
"""Reductions of weighted ensembles that accept CuPy arrays."""
ON_CIRCLE: set[Reduction] = set()
"""Reductions for circular variables; all other reductions need ordered values."""


def on_device(reduction: F) -> F:
    """Mark a reduction of weighted ensembles that accepts CuPy arrays."""
    ON_DEVICE.add(reduction)
    return reduction


def on_circle(reduction: F) -> F:
    """Mark a reduction that supports circular variables."""
    ON_CIRCLE.add(reduction)
    return reduction


def name_of(reduction: Reduction) -> str:
    """Name of the product of a reduction, for messages."""
    function = getattr(reduction, "func", reduction)
    name = getattr(function, "__name__", type(function).__name__)
    return str(name).removesuffix("_of").replace("_", " ")


def takes_device_arrays(reduction: Reduction) -> bool:
    """Return whether a reduction accepts CuPy arrays."""
    return getattr(reduction, "func", reduction) in ON_DEVICE


def require_on_circle(reduction: Reduction, period: float, name: Hashable) -> None:
    """Raise ValueError for a reduction that does not support a circular variable."""
    if getattr(reduction, "func", reduction) not in ON_CIRCLE:
        refuse_circular(period, name, "values on a circle have no order")


def of_circular(reduction: Reduction, period: float, name: Hashable, kind: Kind) -> Reduction:
    """Return a reduction for ensembles of a circular variable; raise ValueError for other forms."""
    if not TRAITS[kind].has_members:
        refuse_circular(period, name, f"has the form {kind!r}, which has no members")
    require_on_circle(reduction, period, name)
    return partial(_on_its_circle, reduction=reduction, period=period)


def _on_its_circle(
    distribution: Empirical, *args: Any, reduction: Reduction, period: float
) -> tuple[FloatArray, ...]:
    from xrecal.arrays.distributions.circular import Circular

    return reduction(Circular(*distribution, period), *args)
