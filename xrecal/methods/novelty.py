"""How past observations give way to other members where forecasts are novel."""

from __future__ import annotations

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Empirical
from xrecal.typing import FloatArray


def shares_left(
    past: FloatArray,
    beside: Empirical,
    of_observations: FloatArray,
    own: FloatArray,
    novelty: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Factors (L, T, 1) for the weights of past observations (L, n), and of others beside them.

    Observations, of which the weights sum to ``of_observations`` (L,), keep the smaller of one
    minus the ``novelty`` (L, T), where it is known, and of the mass that the others have between
    the smallest and largest of them: these, whose share is ``own`` (L,), get the rest. Novelty
    alone is late: it is small for a forecast at the record of the forecasts, while half of what may
    happen lies beyond the observations.
    """
    members, mass = beside
    assert mass is not None
    xp = namespace(members)
    known = xp.isfinite(past)
    low = xp.min(xp.where(known, past, float("inf")), axis=-1)[:, None, None]
    high = xp.max(xp.where(known, past, -float("inf")), axis=-1)[:, None, None]
    total = xp.sum(mass, axis=-1)
    there = total > 0
    total = xp.where(there, total, 1.0)
    inside = xp.sum(xp.where((members >= low) & (members <= high), mass, 0.0), axis=-1) / total
    familiar = xp.where(xp.isnan(novelty), 1.0, 1.0 - novelty)
    keeps = xp.where(there, xp.where(inside < familiar, inside, familiar), 1.0)
    lost = of_observations[:, None] * (1.0 - keeps)
    gets = xp.where(there, (own[:, None] + lost) / total, 1.0)
    return keeps[..., None], gets[..., None]


def joined(
    past: FloatArray, observed: FloatArray, beside: Empirical, gets: FloatArray
) -> Empirical:
    """Past observations (L, n) with weights (L, T, n), and behind them others by a share."""
    members, mass = beside
    assert mass is not None
    xp = namespace(members)
    past = xp.where(xp.isnan(observed[..., :1]), float("nan"), past[:, None, :])
    return Empirical(
        xp.concatenate([past.astype(members.dtype), members], axis=-1),
        xp.concatenate([observed, mass * gets], axis=-1).astype(mass.dtype),
    )
