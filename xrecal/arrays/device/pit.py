"""PIT values of ensembles; see :mod:`xrecal.arrays.baselines.pit_recalibration`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace, only_on_host
from xrecal.arrays.distributions.forms import Forecasts

from .case_groups import valid
from .namespace import doubled

__all__ = ["pit_values"]


def pit_values(forecasts: Forecasts, observations: Any, uniform: Any) -> Any:
    """See :func:`xrecal.arrays.pit_values`; of ensembles alone."""
    shape = tuple(forecasts.check("forecasts", 3))
    if forecasts.scale is not None:
        raise TypeError(only_on_host("the probability integral transform of normal distributions"))
    for name, array in {"observations": observations, "uniform": uniform}.items():
        if tuple(array.shape) != shape[:2]:
            raise ValueError(
                f"{name} have shape {tuple(array.shape)}, but forecasts need {shape[:2]}"
            )
    xp = namespace(observations)
    loc, y = doubled(xp, forecasts.loc), doubled(xp, observations)
    mass = xp.ones_like(loc) if forecasts.weights is None else doubled(xp, forecasts.weights)
    left_out = xp.isnan(loc) | xp.isnan(mass) | ~valid(forecasts)[0][..., None]
    mass = xp.where(left_out, 0.0, mass)
    y = xp.where(xp.isfinite(y), y, float("nan"))
    below = xp.sum(xp.where(loc < y[..., None], mass, 0.0), axis=-1)
    jump = xp.sum(xp.where(loc == y[..., None], mass, 0.0), axis=-1)
    total = xp.sum(mass, axis=-1)
    known = (total > 0.0) & ~xp.isnan(y)
    found = (below + doubled(xp, uniform) * jump) / xp.where(total > 0.0, total, 1.0)
    found = xp.where(found < 0.0, 0.0, xp.where(found > 1.0, 1.0, found))
    return xp.where(known, found, float("nan"))
