"""What one Dask task does to cross-validate with pooled cases: for each split a pool and a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.inputs.dims import CaseAxis
from xrecal.methods.base import Cases
from xrecal.typing import FloatArray, IntArray

from .state import cases_of
from .tasks_cv import SEED, Fold, HeldOut, SplitTask
from .tasks_pool import PooledTask


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
        from xrecal.arrays.blocks import WORKSPACE, location_blocks
        from xrecal.arrays.distributions.forms import sort_members

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
