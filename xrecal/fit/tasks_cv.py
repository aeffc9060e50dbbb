"""What one Dask task does to cross-validate: for each split fit, predict, reduce, forget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.inputs.dims import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import N_QUANTILES, Cases, NewCases, equal_mass_levels
from xrecal.typing import FloatArray, IntArray

from .state import cases_of

if TYPE_CHECKING:
    from xrecal.arrays.distributions.distribution import Distribution
    from xrecal.arrays.distributions.forms import Forecasts
    from xrecal.inputs.pool import Pool

SEED = 0
"""Of the random numbers that place an observation within a jump of the forecast's CDF."""


class HeldOut(NamedTuple):
    """What a fit says of cases that it has not seen, and what is known of them."""

    distribution: Distribution
    """(L, T)"""
    observed: FloatArray
    """(L, T) what verified"""
    uniform: FloatArray
    """(L, T) numbers in (0, 1)"""
    issued: Forecasts
    """(L, T, m) forecasts as they were"""


Score: TypeAlias = Callable[[HeldOut], FloatArray]
"""To an array (L, T, ...)."""


class Fold(NamedTuple):
    """One split: which cases, by their position in time, and the method as it suits them.

    Where cases are pooled, which dates.
    """

    method: Method
    train: IntArray
    test: IntArray
    pool: Pool | None = None
    """Positions whose cases are learned from together, as many as so many dates leave."""

    @property
    def n_cases(self) -> int:
        """Cases to learn from, with those of all pooled positions."""
        return self.train.size * (1 if self.pool is None else len(self.pool.taken))


@dataclass(frozen=True)
class SplitTask:
    """What every task that cross-validates is told."""

    folds: Sequence[Fold]
    parts: tuple[str, ...]
    axis: CaseAxis
    periods: Mapping[str, float | None]
    score: Score
    size: int | None
    """Numbers a case; None for one, without an axis of its own"""
    min_samples: int


@dataclass(frozen=True)
class CrossValidationTask(SplitTask):
    """A chunk of locations in, what a method says about cases it was not fitted on out.

    Arguments of the call are the parts of the forecasts (..., n, m), observations and covariates
    (..., n). Each fit gets the training cases and nothing else, as if a user had selected them:
    whatever a method chooses, it cannot have seen the others. Distances that are reused
    were computed among all cases together, so the others reach them in their rounding.
    """

    reuse_distances: bool

    def __call__(self, *args: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Run the task on one chunk."""
        from xrecal.arrays.blocks import location_blocks
        from xrecal.arrays.distributions.pairwise import pairwise_distances

        parts = dict(zip(self.parts, args[: len(self.parts)], strict=True))
        lead, cases, _ = cases_of(parts, args[len(self.parts) :], self.periods, self.axis)
        assert cases.forecasts is not None
        shape = cases.observations.shape
        own = () if self.size is None else (self.size,)
        result = np.full((*shape, *own), np.nan, cases.forecasts.loc.dtype)
        for block in location_blocks(shape[0], self._bytes_each(shape[1])):
            here = cases.take(block)
            if self.reuse_distances:
                assert here.forecasts is not None
                here = replace(here, squared=pairwise_distances(here.forecasts))
            for fold in self.folds:
                result[block, fold.test] = self._predict(here, fold)
        return result.reshape((*lead, shape[1], *own))

    def _predict(self, cases: Cases, fold: Fold) -> FloatArray:
        """Scores (L, T, ...) of the cases that a split tests."""
        from xrecal.arrays.distributions.draws import hash_uniform

        train, new = select_cases(cases, fold.train), as_new(cases, fold)
        fitted = fold.method.fit_locations(train, self.min_samples)
        distribution = fold.method.predict_locations(new, train, fitted)
        observed = cases.observations[:, fold.test]
        uniform = hash_uniform(SEED, np.zeros(1, np.int64), cases.observations.shape[1])
        uniform = np.broadcast_to(uniform[:, fold.test], observed.shape)
        return self.score(HeldOut(distribution, observed, uniform, new.forecasts))

    def _bytes_each(self, n: int) -> int:
        """Of the largest arrays of a location: distances, and weights of the tested forecasts."""
        rows = max(
            fold.test.size
            * fold.method.slots(fold.train.size)[0].size
            * (1 if fold.method.shares_members else 2)
            for fold in self.folds
        )
        return 8 * (rows + (n * n if self.reuse_distances else 0))


def select_cases(cases: Cases, which: IntArray) -> Cases:
    """Some of the cases, as if there were no others."""
    from xrecal.arrays.distributions.forms import Forecasts

    assert cases.forecasts is not None
    parts = (None if part is None else part[:, which] for part in cases.forecasts)
    return Cases(
        Forecasts(*parts),  # type: ignore[arg-type]
        cases.observations[:, which],
        cases.covariates.take((slice(None), which)),
        cases.axis.take(which),
        _distances(cases, which, which),
    )


def as_new(cases: Cases, fold: Fold) -> NewCases:
    """The cases that a split tests as forecasts, with their distances to those it trains on."""
    new = replace(cases, squared=None).as_new(fold.test)
    return replace(new, across=_distances(cases, fold.test, fold.train))


def _distances(cases: Cases, rows: IntArray, columns: IntArray) -> FloatArray | None:
    if cases.squared is None:
        return None
    return np.ascontiguousarray(cases.squared[:, rows[:, np.newaxis], columns])


def quantiles_from(held: HeldOut, levels: FloatArray) -> FloatArray:
    """Quantiles (L, T, k)."""
    return held.distribution.quantile(levels)


def crps_from(held: HeldOut) -> FloatArray:
    """CRPS (L, T)."""
    return held.distribution.crps(held.observed)


def pit_from(held: HeldOut) -> FloatArray:
    """Probability integral transform (L, T)."""
    return held.distribution.pit(held.observed, held.uniform)


def evidence_from(held: HeldOut, levels: FloatArray) -> FloatArray:
    """CRPS, probability integral transform and quantiles (L, T, 2 + k)."""
    return np.concatenate(
        [
            crps_from(held)[..., np.newaxis],
            pit_from(held)[..., np.newaxis],
            quantiles_from(held, levels),
        ],
        axis=-1,
    )


def parts_from(held: HeldOut) -> FloatArray:
    """CRPS as issued, CRPS as predicted, half their squared distance (L, T, 3)."""
    from xrecal.arrays.distributions.distribution import Empirical, distribution_of
    from xrecal.arrays.scores.decomposition import half_squared_distance

    issued, predicted = distribution_of(held.issued), held.distribution
    if not isinstance(predicted, Empirical):
        predicted = Empirical(predicted.quantile(equal_mass_levels(N_QUANTILES)))
    distance = half_squared_distance(issued, predicted)
    scores = issued.crps(held.observed), held.distribution.crps(held.observed)
    return np.stack([*scores, distance], axis=-1)
