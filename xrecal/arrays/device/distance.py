"""Ensembles to squared energy distances; see :mod:`xrecal.arrays.distributions.distance`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace

from .ensembles import Ensembles, across, among, arrange

__all__ = ["squared_energy_distance"]


def squared_energy_distance(
    x: Any, y: Any | None = None, *, x_weights: Any | None = None, y_weights: Any | None = None
) -> Any:
    """See :func:`xrecal.arrays.squared_energy_distance`."""
    if y is None and y_weights is not None:
        raise ValueError("y_weights is given without y; pass x_weights for the weights of x")
    ones = _checked("x", x, x_weights)
    if y is None:
        return among(ones)[0, ...]
    return across(ones, _checked("y", y, y_weights))[0, ...]


def _checked(name: str, values: Any, weights: Any | None) -> Ensembles:
    xp = namespace(values)
    if values.ndim != 2:
        raise ValueError(
            f"{name} needs shape (ensemble, member), got {tuple(values.shape)}; "
            f"a single ensemble is {name}[None, :]"
        )
    if bool(xp.any(xp.isinf(values))):
        raise ValueError(f"{name} holds infinite members; set them to NaN to leave them out")
    if weights is None:
        return arrange(values[None, ...], None)
    if tuple(weights.shape) != tuple(values.shape):
        raise ValueError(
            f"{name}_weights has shape {tuple(weights.shape)}, but {name} has "
            f"{tuple(values.shape)}; every member needs its weight"
        )
    sound = xp.isfinite(weights) | xp.isnan(values)
    if not bool(xp.all(sound)) or bool(xp.any(weights < 0)):
        raise ValueError(f"{name}_weights must be finite and >= 0")
    return arrange(values[None, ...], weights[None, ...])
