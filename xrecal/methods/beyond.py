"""Members beyond the observed range: tails, and past errors that replace past observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.continuous import Tailed
from xrecal.arrays.distributions.forms import Empirical
from xrecal.inputs.between import TAIL
from xrecal.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from xrecal.arrays.distributions.tails import Tails


SPIKES = 0.025
"""Share of the past observations that :func:`shares_left` treats as exceptional: this share of the
lowest and this share of the highest observations."""


def shares_left(
    past: FloatArray,
    beside: Empirical,
    of_observations: FloatArray,
    own: FloatArray,
    novelty: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return two factors (L, T, 1): for the weights of past observations, and of other members.

    Past observations (L, n) have weights that sum to ``of_observations`` (L,). The other members,
    ``beside``, get the weight ``own`` (L,) and the weight that past observations lose. Past
    observations keep the smaller of two shares of their weight. The first share is one minus the
    ``novelty`` (L, T), if it is known. The second share is the part of the other members' mass that
    lies in the observed range. Novelty alone reacts late: a forecast as extreme as the most extreme
    past forecast has a small novelty, although half of the possible values may lie outside the
    observed range. A few exceptional observations must not define the observed range, so the range
    excludes the share :data:`SPIKES` of the observations on each side.
    """
    members, mass = beside
    assert mass is not None
    xp = namespace(members)
    low, high = (edge[:, :, None] for edge in _outermost(past))
    total = xp.sum(mass, axis=-1)
    there = total > 0
    total = xp.where(there, total, 1.0)
    inside = xp.sum(xp.where((members >= low) & (members <= high), mass, 0.0), axis=-1) / total
    familiar = xp.where(xp.isnan(novelty), 1.0, 1.0 - novelty)
    keeps = xp.where(there, xp.where(inside < familiar, inside, familiar), 1.0)
    lost = of_observations[:, None] * (1.0 - keeps)
    gets = xp.where(there, (own[:, None] + lost) / total, 1.0)
    return keeps[..., None], gets[..., None]


def _outermost(past: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both ends (L, 1) of the range of past observations (L, n) that are not exceptional."""
    xp = namespace(past)
    known = xp.isfinite(past)
    ascending = xp.sort(xp.where(known, past, float("inf")), axis=-1)
    n = xp.sum(known, axis=-1, keepdims=True)
    beyond = (SPIKES * n).astype(np.int64)
    last = xp.maximum(n - 1 - beyond, 0)
    low, high = (xp.take_along_axis(ascending, at, axis=-1) for at in (beyond, last))
    return low, xp.where(n > 0, high, -float("inf"))


def joined(
    past: FloatArray, observed: FloatArray, beside: Empirical, gets: FloatArray
) -> Empirical:
    """Return ensembles of two groups of members: past observations (L, n) and ``beside``.

    ``observed`` (L, T, n) has the weights of the past observations. The function multiplies the
    weights of the members ``beside`` by ``gets`` (L, T, 1).
    """
    members, mass = beside
    assert mass is not None
    xp = namespace(members)
    past = xp.where(xp.isnan(observed[..., :1]), float("nan"), past[:, None, :])
    both = (
        xp.concatenate([past.astype(members.dtype), members], axis=-1),
        xp.concatenate([observed, mass * gets], axis=-1).astype(mass.dtype),
    )
    return Tailed(*both, beside.shape) if isinstance(beside, Tailed) else Empirical(*both)


FITTED = {
    "tail_excess": "mean distance from the threshold of a tail, in standard deviations",
    "tail_shape": "shape of the generalised Pareto distribution of a tail",
}
"""Names and descriptions of the parameters of tails in the state."""

COPIES = 12
"""Number of arrays, each as large as the weighted ensembles, that :func:`tailed` needs in
memory."""

CACHED = 300_000
"""Largest size in bytes of arrays on which many operations run one after another. An array of this
size stays in the cache of the processor, which saves time."""


def with_tail_slots(cases: IntArray, components: Sequence[str]) -> tuple[IntArray, Sequence[str]]:
    """Append the members of tails, which have no case (-1), to the cases and components."""
    from xrecal.arrays.distributions.tails import POINTS

    n_tail = 2 * POINTS
    return np.concatenate([cases, np.full(n_tail, -1)]), [*components, *[TAIL] * n_tail]


def tailed(issued: Empirical, tails: Tails, bounds: Any) -> Tailed:
    """Add tails to weighted ensembles (L, T, n) of variables with bounds (L, 2)."""
    from xrecal.arrays.distributions.tails import POINTS, Tails, with_tails
    from xrecal.arrays.rows import WORKSPACE, location_blocks

    given_members, given_weights = issued
    assert given_weights is not None
    n_locations, n_new, n = given_members.shape
    shape = n_locations, n_new, n + 2 * POINTS
    xp = namespace(given_members)
    members = xp.empty(shape, dtype=given_members.dtype)
    weights = xp.empty(shape, dtype=given_weights.dtype)
    step = max(1, WORKSPACE // (8 * COPIES * max(n, 1)))
    for block in location_blocks(n_locations, 8 * COPIES * n * min(n_new, step)):
        for start in range(0, n_new, step):
            at = block, slice(start, start + step)
            some = Tails(*(part[block] for part in tails))
            members[at], weights[at] = with_tails(
                given_members[at], given_weights[at], some, bounds[block]
            )
    sides = tails.shape[:, None, :] + xp.zeros((n_locations, n_new, 1))
    return Tailed(members, weights, sides)


def tails_of_mixture(
    quantiles: FloatArray, weight: FloatArray, observations: FloatArray, bounds: FloatArray
) -> Tails:
    """Learn the tails of a pool's mixture from observations in the tails of held-out forecasts.

    ``observations`` (L, n) are those of the held-out cases. Each of the n held-out forecasts is a
    mixture of the pool's C components, with weights (L, C). ``quantiles`` (L, C, n, Q) has Q
    quantiles of each component for each forecast.
    """
    from xrecal.arrays.distributions.tails import mass_of, with_exceedances, without_outer

    n_locations, _, n, q = quantiles.shape
    mass = mass_of(np.isfinite(observations).sum(-1))
    beyond, spread = np.full((n_locations, 2, n), np.nan), np.ones((n_locations, 1, n))
    for cell in range(n_locations):
        counts = np.flatnonzero(weight[cell] > 0)
        if counts.size == 0:
            continue
        share = np.repeat(weight[cell, counts], q) / q
        step = max(1, CACHED // (8 * max(share.size, 1)))
        wanted, between = np.full((1, 2), mass[cell]), bounds[cell : cell + 1]
        for start in range(0, n, step):
            some = slice(start, start + step)
            mixed = np.moveaxis(quantiles[cell, counts, some], 0, 1)
            mixed = mixed.reshape(mixed.shape[0], -1)
            known = np.isfinite(mixed).all(-1)
            y, mixed = np.where(known, observations[cell, some], np.nan), mixed[known][np.newaxis]
            outer = without_outer(mixed, np.broadcast_to(share, mixed.shape), wanted, between)
            inside = (y > between[0, 0]) & (y < between[0, 1])
            low, high = outer.threshold[0].T
            far = np.stack([low - y[known], y[known] - high])
            with np.errstate(divide="ignore", invalid="ignore"):  # forecasts without spread
                far = far / outer.spread[0]
            far = np.where((far > 0) & np.isfinite(far) & inside[known], far, np.nan)
            beyond[cell, :, np.flatnonzero(known) + start] = far.T
            spread[cell, 0, np.flatnonzero(known) + start] = outer.spread[0]
    return with_exceedances(mass, beyond, np.isinf(bounds), spread)
