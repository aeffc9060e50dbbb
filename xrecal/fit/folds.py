"""The Dask task that cross-validates: for each split it fits, predicts, reduces and forgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.inputs.dates import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import Cases, NewCases
from xrecal.typing import FloatArray, IntArray

from .pooling import Arrays, PooledTask
from .state import cases_of

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution, Forecasts
    from xrecal.inputs.pool import Pool


class Known(NamedTuple):
    """Values that belong to the cases that a split tests, besides their distributions."""

    observed: FloatArray
    """(L, T) what verified"""
    cases: IntArray
    """(L, T) numbers of the cases in the order of time"""
    issued: Forecasts
    """(L, T, m) forecasts as they were"""
    learned: FloatArray
    """(L, N) observations of the location itself that the fit has learned from"""


KnownName: TypeAlias = Literal["observed", "cases", "issued", "learned"]
"""A field of :class:`Known`."""


@dataclass(frozen=True)
class HeldOutReduction:
    """A reduction of held-out distributions, what it takes and what it returns."""

    reduction: Callable[..., tuple[FloatArray, ...]]
    takes: tuple[KnownName | int, ...]
    """After the distributions: fields of :class:`Known`, or arrays with so many axes of their own
    after that of the cases."""
    sizes: tuple[tuple[int, ...], ...]
    """Lengths of the last axes of each result."""
    dtypes: tuple[npt.DTypeLike, ...]

    @property
    def n_axes(self) -> tuple[int, ...]:
        """Axes of each array from that of the cases on."""
        return tuple(1 + own for own in self.takes if isinstance(own, int))

    def empty(self, shape: tuple[int, ...]) -> list[FloatArray]:
        """Results for cases of a shape, all missing."""
        kinds = zip(self.sizes, self.dtypes, strict=True)
        return [np.full((*shape, *own), np.nan, dtype) for own, dtype in kinds]

    def __call__(
        self, distribution: Distribution, known: Known, arrays: Sequence[npt.NDArray[Any]]
    ) -> tuple[FloatArray, ...]:
        """Results (L, T, ...)."""
        rest = iter(arrays)
        args = (next(rest) if isinstance(one, int) else getattr(known, one) for one in self.takes)
        return self.reduction(distribution, *args)


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
    """Splits and settings of a task that cross-validates.

    Arguments of the call are the parts of the forecasts, observations, covariates, and arrays that
    the reduction takes.
    """

    folds: Sequence[Fold]
    parts: tuple[str, ...]
    axis: CaseAxis
    periods: Mapping[str, float | None]
    reduction: HeldOutReduction
    min_samples: int

    @property
    def n_learned(self) -> int:
        """Number of the arguments that fits learn from."""
        return len(self.parts) + 1 + len(self.periods)


@dataclass(frozen=True)
class CrossValidationTask(SplitTask):
    """A chunk of locations in, a reduction of what a method predicts for cases held out, out.

    Parts are (..., n, m), other arguments (..., n, ...). Each fit gets the training cases and
    nothing else, as if a user had selected them: whatever a method chooses, it cannot have seen the
    others. Distances that are reused were computed among all cases together, so the others reach
    them in their rounding.
    """

    reuse_distances: bool

    def __call__(self, *args: npt.NDArray[Any]) -> Arrays:
        """Run the task on one chunk."""
        from xrecal.arrays.distributions.distance import pairwise_distances
        from xrecal.arrays.rows import location_blocks

        parts = dict(zip(self.parts, args, strict=False))
        others, extras = args[len(parts) : self.n_learned], args[self.n_learned :]
        lead, cases, _ = cases_of(parts, others, self.periods, self.axis)
        n_axes = self.reduction.n_axes
        rows = [_rows(a, lead, n) for a, n in zip(extras, n_axes, strict=True)]
        shape = cases.observations.shape
        results = self.reduction.empty(shape)
        for block in location_blocks(shape[0], self._bytes_each(shape[1])):
            here = cases.take(block)
            if self.reuse_distances:
                assert here.forecasts is not None
                here = replace(here, squared=pairwise_distances(here.forecasts))
            for fold in self.folds:
                arrays = [a[block][:, fold.test] for a in rows]
                for result, values in zip(results, self._predict(here, fold, arrays), strict=True):
                    result[block, fold.test] = values
        return as_arrays(r.reshape((*lead, *r.shape[1:])) for r in results)

    def _predict(
        self, cases: Cases, fold: Fold, arrays: Sequence[npt.NDArray[Any]]
    ) -> tuple[FloatArray, ...]:
        """Results (L, T, ...) for the cases that a split tests."""
        train, new = cases.select(fold.train), as_new(cases, fold)
        fitted = fold.method.fit_locations(train, self.min_samples)
        distribution = fold.method.predict_locations(new, train, fitted)
        observed = cases.observations[:, fold.test]
        numbers = np.broadcast_to(fold.test, observed.shape)
        known = Known(observed, numbers, new.forecasts, train.observations)
        return self.reduction(distribution, known, arrays)

    def _bytes_each(self, n: int) -> int:
        """Of the largest arrays of a location: distances, and weights of the tested forecasts."""
        rows = max(
            fold.test.size
            * fold.method.slots(fold.train.size)[0].size
            * (1 if fold.method.shares_members else 2)
            for fold in self.folds
        )
        return 8 * (rows + (n * n if self.reuse_distances else 0))


def _rows(array: npt.NDArray[Any], lead: tuple[int, ...], n_axes: int) -> npt.NDArray[Any]:
    """An array (..., n, ...) over all locations of a chunk, (L, n, ...)."""
    core = array.shape[array.ndim - n_axes :]
    return np.broadcast_to(array, (*lead, *core)).reshape(-1, *core)


def as_arrays(results: Iterable[FloatArray]) -> Arrays:
    """Results of a task: one array, or several."""
    arrays = tuple(results)
    return arrays if len(arrays) > 1 else arrays[0]


def as_new(cases: Cases, fold: Fold) -> NewCases:
    """The cases that a split tests as forecasts, with their distances to those it trains on."""
    new = replace(cases, squared=None).as_new(fold.test)
    return replace(new, across=_distances(cases, fold.test, fold.train))


def _distances(cases: Cases, rows: IntArray, columns: IntArray) -> FloatArray | None:
    if cases.squared is None:
        return None
    return np.ascontiguousarray(cases.squared[:, rows[:, np.newaxis], columns])


class PooledCrossValidationTask(SplitTask):
    """A chunk of locations in, a reduction of what pooled fits predict for dates held out, out.

    Parts are (..., pooled dimensions, n, m), other arguments (..., pooled dimensions, n, ...). Each
    fit gets the pooled cases of the training dates, as ``fit`` pools them if a user has selected
    these dates, so no location gives away what verified at another one. Its own distances, too:
    which positions are pooled may depend on the number of dates.
    """

    def __call__(self, *args: npt.NDArray[Any]) -> Arrays:
        """Run the task on one chunk."""
        n_others = self.n_learned - len(self.parts)
        n_core = (*[2] * len(self.parts), *[1] * n_others, *self.reduction.n_axes)
        leads = (a.shape[: a.ndim - n] for a, n in zip(args, n_core, strict=False))
        lead = np.broadcast_shapes(*leads)
        results = self.reduction.empty((*lead, args[len(self.parts)].shape[-1]))
        args, wanted = args[: len(n_core)], args[len(n_core) :]
        dated = [np.moveaxis(result, len(lead), 0) for result in results]
        cut = self.n_learned
        for fold in self.folds:
            assert fold.pool is not None
            cores = list(zip(args, n_core, strict=True))
            given = [np.take(a, fold.train, axis=-n) for a, n in cores[:cut]]
            given += [np.take(a, fold.test, axis=-n) for a, n in cores]
            predict = partial(self._predict, fold)
            task = PooledTask(predict, fold.pool, (*n_core[:cut], *n_core), n_served=len(args))
            reduced = task(*given, *wanted)
            each = reduced if isinstance(reduced, tuple) else (reduced,)
            for array, values in zip(dated, each, strict=True):
                array[fold.test] = np.moveaxis(np.asarray(values), len(lead), 0)
        return as_arrays(results)

    def _predict(self, fold: Fold, *args: npt.NDArray[Any]) -> Arrays:
        """Results (B, t, T, ...) for the tested dates at t positions that each of B fits is for.

        Weights exist for a block of fits at a time, and for a part of the forecasts of one fit.
        """
        from xrecal.arrays.distributions.forms import sort_members
        from xrecal.arrays.rows import WORKSPACE, location_blocks

        assert fold.pool is not None
        learned, served = args[: self.n_learned], args[self.n_learned :]
        shape = served[len(self.parts)].shape
        flat = [a.reshape(len(a), -1, *a.shape[3:]) for a in served]
        axis = fold.pool.axis(self.axis.take(fold.train), fold.train.size)
        train = self._cases(learned, axis)
        new, arrays = self._cases(flat[: self.n_learned], CaseAxis()), flat[self.n_learned :]
        fitted = fold.method.fit_locations(train, self.min_samples)
        assert train.forecasts is not None
        train = replace(train, forecasts=sort_members(train.forecasts))  # as a model keeps them
        n_fits, n_new = new.observations.shape
        row = 8 * fold.method.slots(train.observations.shape[1])[0].size
        row *= 1 if fold.method.shares_members else 2
        step = max(1, 4 * WORKSPACE // max(row, 1))
        blocks = []
        for block in location_blocks(n_fits, row * min(n_new, step)):
            state = {name: values[block] for name, values in fitted.items()}
            fits = _BlockOfFits(fold, train.take(block), state)
            here, own = new.take(block), [a[block] for a in arrays]
            pieces = np.split(np.arange(n_new), range(step, n_new, step))
            reduced = [self._reduce(fits, here, which, own) for which in pieces]
            blocks.append([np.concatenate(one, axis=1) for one in zip(*reduced, strict=True)])
        results = (np.concatenate(result) for result in zip(*blocks, strict=True))
        return as_arrays(result.reshape(*shape, *result.shape[2:]) for result in results)

    def _reduce(
        self,
        fits: _BlockOfFits,
        held_out: Cases,
        which: IntArray,
        arrays: Sequence[npt.NDArray[Any]],
    ) -> tuple[FloatArray, ...]:
        """Results (B, p, ...) for some of the cases held out, which are by position and date."""
        fold, train, state = fits
        new, observed = held_out.as_new(which), held_out.observations[:, which]
        distribution = fold.method.predict_locations(new, train, state)
        numbers = np.broadcast_to(fold.test[which % fold.test.size], observed.shape)
        assert fold.pool is not None
        own = train.observations[:, fold.pool.own_cases]
        known = Known(observed, numbers, new.forecasts, own)
        return self.reduction(distribution, known, [a[:, which] for a in arrays])

    def _cases(self, args: Sequence[npt.NDArray[Any]], axis: CaseAxis) -> Cases:
        parts = dict(zip(self.parts, args[: len(self.parts)], strict=True))
        return cases_of(parts, args[len(self.parts) :], self.periods, axis)[1]


class _BlockOfFits(NamedTuple):
    """Fits of one split at a block of locations."""

    fold: Fold
    train: Cases
    state: Mapping[str, npt.NDArray[Any]]
