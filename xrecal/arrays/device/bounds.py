"""Bounds of a variable at many locations; see :mod:`xrecal.arrays.distributions.forms`."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import FEWEST_AT_BOUND as FEWEST
from xrecal.arrays.distributions.forms import SHARE_AT_BOUND as SHARE

from .namespace import doubled

__all__ = ["find_bounds"]


def find_bounds(
    observations: Any, bounds: str | tuple[float | None, float | None] | None
) -> tuple[Any, Any, Any]:
    """Lower and upper bounds (L,), and whether given ones are violated (L,)."""
    xp = namespace(observations)
    infinity = xp.full((observations.shape[0],), float("inf"), dtype=xp.float64)
    observations = doubled(xp, observations)
    if bounds is None:
        return -infinity, infinity, infinity < 0.0
    known = xp.isfinite(observations)
    least = xp.min(xp.where(known, observations, float("inf")), axis=-1)
    most = xp.max(xp.where(known, observations, -float("inf")), axis=-1)
    if not isinstance(bounds, str):
        start = -float("inf") if bounds[0] is None else float(bounds[0])
        end = float("inf") if bounds[1] is None else float(bounds[1])
        violated = (least < start) | (most > end)
        low, high = xp.full_like(infinity, start), xp.full_like(infinity, end)
        return xp.where(violated, -infinity, low), xp.where(violated, infinity, high), violated
    below, above = _is_bound(xp, observations, least), _is_bound(xp, -observations, -most)
    low, high = xp.where(below, least, -infinity), xp.where(above, most, infinity)
    return low, high, infinity < 0.0


def _is_bound(xp: Any, observations: Any, least: Any) -> Any:
    """Whether the least observation (L,) of each location is a lower bound."""
    known = xp.isfinite(observations)
    above = known & (observations > least[:, None])
    following = xp.min(xp.where(above, observations, float("inf")), axis=-1)
    at_least = xp.sum(doubled(xp, observations == least[:, None]), axis=-1)
    at_following = xp.sum(doubled(xp, observations == following[:, None]), axis=-1)
    enough = SHARE * xp.sum(doubled(xp, known), axis=-1)
    enough = xp.where(enough > FEWEST, enough, float(FEWEST))
    return xp.any(above, axis=-1) & (at_least >= enough) & (at_least > 2 * at_following)
