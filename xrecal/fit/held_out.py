"""What one Dask task does to cross-validate: for each split fit, predict, reduce, forget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.inputs.dates import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import N_QUANTILES, Cases, NewCases, equal_mass_levels
from xrecal.typing import FloatArray, IntArray

from .pooling import PooledTask
from .state import cases_of

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution, Forecasts
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
        from xrecal.arrays.distributions.distance import pairwise_distances
        from xrecal.arrays.rows import location_blocks

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
    from xrecal.arrays.distributions.forms import Empirical, distribution_of
    from xrecal.arrays.scores.decomposition import half_squared_distance

    issued, predicted = distribution_of(held.issued), held.distribution
    if not isinstance(predicted, Empirical):
        predicted = Empirical(predicted.quantile(equal_mass_levels(N_QUANTILES)))
    distance = half_squared_distance(issued, predicted)
    scores = issued.crps(held.observed), held.distribution.crps(held.observed)
    return np.stack([*scores, distance], axis=-1)


class PooledCrossValidationTask(SplitTask):
    """A chunk of locations in, what pooled fits say about dates they were not fitted on out.

    Arguments of the call are the parts of the forecasts (..., pooled dimensions, n, m),
    observations and covariates (..., pooled dimensions, n). Each fit gets the pooled cases of the
    training dates, as ``fit`` pools them if a user has selected these dates, so no location gives
    away what verified at another one. Its own distances, too: which positions are pooled may
    depend on the number of dates.
    """

    def __call__(self, *args: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Run the task on one chunk."""
        n_core = [2] * len(self.parts) + [1] * (len(args) - len(self.parts))
        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - n] for a, n in zip(args, n_core, strict=True))
        )
        own = () if self.size is None else (self.size,)
        dtype = args[self.parts.index("loc")].dtype
        result = np.full((*lead, args[-1].shape[-1], *own), np.nan, dtype)
        dated = np.moveaxis(result, len(lead), 0)
        for fold in self.folds:
            assert fold.pool is not None
            given = [
                np.take(a, dates, axis=-n)
                for dates in (fold.train, fold.test)
                for a, n in zip(args, n_core, strict=True)
            ]
            predict = partial(self._predict, fold)
            task = PooledTask(predict, fold.pool, (*n_core, *n_core), n_served=len(args))
            dated[fold.test] = np.moveaxis(np.asarray(task(*given)), len(lead), 0)
        return result

    def _predict(self, fold: Fold, *args: npt.NDArray[Any]) -> FloatArray:
        """Scores (B, t, T, ...) of the tested dates at the t positions that each of B fits is for.

        Weights exist for a block of fits at a time, and for a part of the forecasts of one fit.
        """
        from xrecal.arrays.distributions.forms import sort_members
        from xrecal.arrays.rows import WORKSPACE, location_blocks

        assert fold.pool is not None
        cut, shape = len(args) // 2, args[-1].shape
        axis = fold.pool.axis(self.axis.take(fold.train), fold.train.size)
        train = self._cases(args[:cut], axis)
        new = self._cases([a.reshape(len(a), -1, *a.shape[3:]) for a in args[cut:]], CaseAxis())
        fitted = fold.method.fit_locations(train, self.min_samples)
        assert train.forecasts is not None
        train = replace(train, forecasts=sort_members(train.forecasts))  # as a model keeps them
        n_fits, n_new = new.observations.shape
        row = 8 * fold.method.slots(train.observations.shape[1])[0].size
        row *= 1 if fold.method.shares_members else 2
        step = max(1, 4 * WORKSPACE // max(row, 1))
        scores = []
        for block in location_blocks(n_fits, row * min(n_new, step)):
            state = {name: values[block] for name, values in fitted.items()}
            here, past = new.take(block), train.take(block)
            pieces = np.split(np.arange(n_new), range(step, n_new, step))
            scored = [self._score(fold, here, which, past, state) for which in pieces]
            scores.append(np.concatenate(scored, axis=1))
        found = np.concatenate(scores)
        return found.reshape(*shape, *found.shape[2:])

    def _score(
        self,
        fold: Fold,
        held_out: Cases,
        which: IntArray,
        train: Cases,
        fitted: Mapping[str, npt.NDArray[Any]],
    ) -> FloatArray:
        """Scores (B, p, ...) of some of the cases held out, which are by position and date."""
        from xrecal.arrays.distributions.draws import uniform_at

        new, observed = held_out.as_new(which), held_out.observations[:, which]
        distribution = fold.method.predict_locations(new, train, fitted)
        uniform = uniform_at(SEED, 0, fold.test[which % fold.test.size])
        uniform = np.broadcast_to(uniform, observed.shape)
        return self.score(HeldOut(distribution, observed, uniform, new.forecasts))

    def _cases(self, args: Sequence[npt.NDArray[Any]], axis: CaseAxis) -> Cases:
        parts = dict(zip(self.parts, args[: len(self.parts)], strict=True))
        return cases_of(parts, args[len(self.parts) :], self.periods, axis)[1]
