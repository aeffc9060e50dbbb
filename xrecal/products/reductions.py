"""What is made of predicted distributions inside a task: statistics, products, scores."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from xrecal.inputs.circular import refuse_circular
from xrecal.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import (
        Distribution,
        Empirical,
        Normal,
    )

Reduction: TypeAlias = Callable[..., tuple[FloatArray, ...]]
"""Distributions (L, T) and, where given, arrays (L, T, ...), to arrays (L, T, ...)."""


def name_of(reduction: Reduction) -> str:
    """What a reduction makes, for messages."""
    function = getattr(reduction, "func", reduction)
    name = getattr(function, "__name__", type(function).__name__)
    return str(name).removesuffix("_of").replace("_", " ")


def reduction_on_device(reduction: Reduction) -> bool:
    """Whether a reduction takes CuPy arrays."""
    return getattr(reduction, "func", reduction) in ON_DEVICE


def weights_of(distribution: Empirical) -> tuple[FloatArray, ...]:
    """Weights (L, T, n) of a weighted ensemble."""
    assert distribution.weights is not None
    return (distribution.weights,)


def members_and_weights(distribution: Empirical) -> tuple[FloatArray, ...]:
    """Members and weights (L, T, n) of weighted ensembles with members of their own."""
    assert distribution.weights is not None
    return distribution.members, distribution.weights


def normal_parameters(distribution: Normal) -> tuple[FloatArray, ...]:
    """Location and scale (L, T) of normal distributions."""
    return distribution.loc[..., 0], distribution.scale[..., 0]


def quantiles_of(distribution: Distribution, levels: FloatArray) -> tuple[FloatArray, ...]:
    """Quantiles (L, T, k)."""
    return (distribution.quantile(levels),)


def crps_of(distribution: Distribution, observations: FloatArray) -> tuple[FloatArray, ...]:
    """CRPS (L, T)."""
    return (distribution.crps(observations),)


def pit_of(
    distribution: Distribution,
    observations: FloatArray,
    cases: IntArray,
    *places: IntArray,
    seed: int,
    augmented: bool = False,
) -> tuple[FloatArray, ...]:
    """Probability integral transforms (L, T), within jumps by the numbers of case and location.

    ``places`` (L, T) sum up to the number of the location. Augmented: in plain ensembles that the
    observation has joined.
    """
    from xrecal.arrays import uniform_at
    from xrecal.arrays.distributions.forms import Empirical

    if augmented:
        assert isinstance(distribution, Empirical)
        joined = [distribution.members, observations[..., np.newaxis]]
        distribution = Empirical(np.concatenate(joined, axis=-1))
    uniform = uniform_at(seed, sum(places, np.zeros_like(cases)), cases)
    return (distribution.pit(observations, uniform),)


def quantile_pit_of(
    distribution: Empirical,
    observations: FloatArray,
    cases: IntArray,
    *places: IntArray,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Transforms (L, T) of quantiles at levels (m,), by the same random numbers as ``pit_of``."""
    from xrecal.arrays import quantile_pit, uniform_at

    uniform = uniform_at(seed, sum(places, np.zeros_like(cases)), cases)
    return (quantile_pit(distribution.members, levels, observations, uniform),)


def evidence_of(
    distribution: Distribution,
    observations: FloatArray,
    cases: IntArray,
    *places: IntArray,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """CRPS (L, T), probability integral transforms (L, T), and quantiles (L, T, k)."""
    return (
        *crps_of(distribution, observations),
        *pit_of(distribution, observations, cases, *places, seed=seed),
        *quantiles_of(distribution, levels),
    )


def exceedance_of(distribution: Distribution, thresholds: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k) of more than thresholds (L, T, k)."""
    return (distribution.exceedance(thresholds),)


def cdf_of(distribution: Distribution, thresholds: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k) of at most thresholds (L, T, k)."""
    return (1.0 - distribution.exceedance(thresholds),)


def categories_of(distribution: Distribution, edges: FloatArray) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k + 1) of the categories between edges (L, T, k)."""
    from xrecal.arrays import category_probabilities

    return (category_probabilities(distribution.exceedance(edges), edges),)


def members_of(
    distribution: Distribution, cases: IntArray, *places: IntArray, levels: FloatArray, seed: int
) -> tuple[FloatArray, ...]:
    """Quantiles (L, T, n) in an order drawn by the numbers of the case and of the location.

    ``places`` (L, T) sum up to the number of the location.
    """
    from xrecal.arrays import shuffled_members

    members = distribution.quantile(levels)
    return (shuffled_members(members, seed, sum(places, np.zeros_like(cases)), cases),)


def members_like(
    distribution: Distribution,
    cases: IntArray,
    template: FloatArray,
    *,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Quantiles (L, T, n) in the order of a template (L, T, n)."""
    from xrecal.arrays.distributions.members import reordered_members

    return (reordered_members(distribution.quantile(levels), template, seed, cases),)


def members_like_past(
    distribution: Distribution,
    cases: IntArray,
    slots: IntArray,
    observations: FloatArray,
    *,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Quantiles (L, T, n) in the order of past observations (L, T, N) in slots (L, T, n)."""
    template = np.take_along_axis(observations, slots, axis=-1)
    return members_like(distribution, cases, template, levels=levels, seed=seed)


def observations_of(
    distribution: Empirical, slots: IntArray, observations: FloatArray
) -> tuple[FloatArray, ...]:
    """Past observations (L, T, N) in slots (L, T, n); NaN for slot -1 or without a forecast."""
    assert distribution.weights is not None
    found = np.take_along_axis(observations, np.maximum(slots, 0), axis=-1)
    unknown = np.isnan(distribution.weights).any(-1, keepdims=True)
    return (np.where(unknown | (slots < 0), np.nan, found),)


def vectors_of(
    distribution: Empirical, cases: IntArray, *places: IntArray, n: int, seed: int
) -> tuple[FloatArray, ...]:
    """Past observations (L, T, n), drawn by weights and the numbers of the case and location.

    They are the same cases for all variables that share the weights.
    """
    from xrecal.arrays.distributions.members import systematic_draws, whole_weights

    assert distribution.weights is not None
    at = cases, sum(places, np.zeros_like(cases))
    slots = systematic_draws(whole_weights(distribution.weights), n, seed, *at)
    past = np.broadcast_to(distribution.members[:, np.newaxis], distribution.weights.shape)
    return observations_of(distribution, slots, past)


def mean_of(distribution: Distribution) -> tuple[FloatArray, ...]:
    """Means (L, T)."""
    return (distribution.mean(),)


def std_of(distribution: Distribution) -> tuple[FloatArray, ...]:
    """Standard deviations (L, T)."""
    return (distribution.std(),)


def fair_crps_of(distribution: Empirical, observations: FloatArray) -> tuple[FloatArray, ...]:
    """Fair CRPS (L, T) of plain ensembles."""
    return (distribution.fair_crps(observations),)


def crps_between(
    distribution: Distribution, observations: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, ...]:
    """CRPS (L, T) of what is between thresholds (L, T)."""
    return (distribution.threshold_weighted_crps(observations, lower, upper),)


def quantile_crps_of(
    distribution: Empirical, observations: FloatArray, emphasis: str
) -> tuple[FloatArray, ...]:
    """CRPS (L, T) with more weight on some levels."""
    return (distribution.quantile_weighted_crps(observations, emphasis),)


def quantile_scores_of(
    distribution: Distribution, observations: FloatArray, levels: FloatArray
) -> tuple[FloatArray, ...]:
    """Quantile scores (L, T, k)."""
    from xrecal.arrays.scores.quantile_scores import quantile_score

    return (quantile_score(observations, distribution.quantile(levels), levels),)


def brier_of(
    distribution: Distribution, observations: FloatArray, thresholds: FloatArray, fair: bool
) -> tuple[FloatArray, ...]:
    """Brier scores (L, T, k) of exceeding thresholds (L, T, k)."""
    from xrecal.arrays.scores.event_scores import brier_score

    n_members = distribution.n_members() if fair else None
    probability = distribution.exceedance(thresholds)
    return (brier_score(observations, probability, thresholds, n_members),)


def rank_of(
    distribution: Empirical,
    observations: FloatArray,
    cases: IntArray,
    *places: IntArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Ranks (L, T) among members; ties by the numbers of case and location, as in ``pit_of``."""
    from xrecal.arrays.calibration.ranks import observation_ranks
    from xrecal.arrays.distributions.draws import uniform_at

    uniform = uniform_at(seed, sum(places, np.zeros_like(cases)), cases)
    return (observation_ranks(observations, distribution.members, uniform)[0],)


ON_DEVICE = frozenset(
    [
        categories_of,
        cdf_of,
        crps_of,
        exceedance_of,
        mean_of,
        members_and_weights,
        members_of,
        pit_of,
        quantile_pit_of,
        quantiles_of,
        std_of,
        weights_of,
    ]
)
"""Reductions of weighted ensembles that take CuPy arrays."""


DEFINED = (crps_of, mean_of, members_of, observations_of, std_of, vectors_of, weights_of)
"""What is made of a distribution on a circle; all else needs an order of values."""


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
    from xrecal.arrays.distributions.circular import Circular

    return reduction(Circular(*distribution, period), *args)
