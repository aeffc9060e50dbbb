"""What was learned at a location, ready for any forecasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from threading import RLock

import numpy as np

from xrecal.arrays.baselines.robust import typical_size
from xrecal.arrays.distributions.ensemble_size import narrowing
from xrecal.arrays.distributions.forms import Squared
from xrecal.typing import FloatArray, IntArray

from .centre import Limits, Ranked, fill_centres, inside
from .embedding import FittedCKME
from .lapack import solve_any
from .location import Location, NewForecasts
from .lowrank import ROUGH, LowRank

SMALL_RIDGE = 1e-3
"""Ridge with which the novelty of forecasts is measured, whichever one the fit chose: a larger one
shrinks ordinary forecasts, too."""

STD_OF_MEAN_SIZE = np.sqrt(np.pi / 2)
"""Standard deviation of normal errors by their mean size."""

FEW = 16
"""Forecasts for which a matrix is not worth inverting."""


class Embedding:
    """The cases of a location and what was fitted to them; its factors are made when asked for."""

    def __init__(
        self, where: Location, fitted: FittedCKME, laplace: bool, squared: Squared | None
    ) -> None:
        self.fitted, self._fitted_landmarks = fitted, _landmarks(where.slot, fitted.landmark)
        self.where = replace(
            where,
            laplace=laplace,
            low_rank=self._fitted_landmarks.size > 0,
            squared=squared,
            fitted_precision=np.asarray(fitted.precision, np.float64),
        )
        self._kernel = float(fitted.bandwidth), float(fitted.strength)
        self._supports: dict[int, Ranked] = {}
        self._making = RLock()  # a factor grows as more is asked of it

    def solver(self, n_new: int) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        """Number of cases to compare with, and what makes weights of similarities to these."""
        n = self.where.slot.size
        with self._making:
            if self.where.low_rank:
                return self._low_rank_solver
            if n_new <= FEW:
                return n, self._solve
            # The inverse serves many by one product; the ridge keeps it well conditioned.
            inverse = self._inverse
        return n, lambda similarities: similarities @ inverse

    def support(self, code: IntArray, centre: FloatArray) -> Ranked:
        """Cases ranked by their errors around a centre."""
        with self._making:
            if int(code) not in self._supports:
                self._supports[int(code)] = self._ranked(code, centre)
            return self._supports[int(code)]

    def chosen(self, rank: int) -> slice | IntArray:
        """So many cases to compare with: landmarks in their order, or all."""
        if not self.where.low_rank:
            return slice(rank)
        return np.array(self._low_rank.landmarks[:rank])

    def similarities(self, new: NewForecasts, rows: slice, chosen: slice | IntArray) -> FloatArray:
        """Kernel (q, k) between forecasts and cases, scaled by the roots of the case weights."""
        return self.where.similarities(new, rows, chosen, *self._kernel)

    def novelty(self, new: NewForecasts, rows: slice, similarities: FloatArray) -> FloatArray:
        """Novelty (q,) of some forecasts by their similarities (q, k) to the first cases.

        It is 1 of those that differ from cases that are all alike.
        """
        known, typical = self.familiarity
        share = similarities[:, : known.size] @ known / typical
        novelty = np.asarray(1.0 - np.clip(share, 0.0, 1.0))
        if np.isinf(self._kernel[0]):
            novelty[self.where.from_new(new, rows, slice(1))[:, 0] > 0] = 1.0
        return novelty

    def centres(self, new: NewForecasts, code: IntArray, centre: FloatArray) -> FloatArray:
        """Centre and spread (2, T) of forecasts, which may have other numbers of members."""
        found = centres(new, code, centre)
        if new.noise is not None:
            size = error_size(self.support(code, centre).error)
            found[1] *= narrowing(float(centre[1]) ** 2 * new.noise, (size * found[1]) ** 2)
        return found

    @property
    def familiarity(self) -> tuple[FloatArray, float]:
        """What is usual of the cases, each left out.

        Factors (k,) of similarities to the first cases in the sum of signed weights, and the median
        of that sum over cases that are left out.
        """
        with self._making:
            return self._familiarity

    def _ranked(self, code: IntArray, centre: FloatArray) -> Ranked:
        fitted, one = self.fitted, self.where
        known, spread = centres(one, code, centre)
        bounds = float(fitted.lower), float(fitted.upper)
        error = (one.target - known) / spread
        # Cases on a bound stay on it whatever the centre, so they rank below or above all others.
        error[one.target <= bounds[0]], error[one.target >= bounds[1]] = -np.inf, np.inf
        order = np.argsort(error)
        share = one.root**2 / (one.root**2).sum()
        return Ranked(order, error[order], share, Limits(*bounds, *inside(one.target, *bounds)))

    @cached_property
    def _familiarity(self) -> tuple[FloatArray, float]:
        root = self.where.root
        if self.where.low_rank:
            factor = self._low_rank
            # The first ones are those that weights need, whether these are asked for or not.
            factor.landmarks_for(float(self.fitted.ridge))
            known, residual, own = factor.sums(SMALL_RIDGE, factor.extend(ROUGH * SMALL_RIDGE))
        else:
            inverse = self._inverse_with(SMALL_RIDGE)
            residual = inverse @ root
            known, own = residual, inverse.diagonal()
        alone = residual / (root * own)
        typical = float(np.median(np.clip(1.0 - alone, 0.0, 1.0)))
        return known, max(typical, SMALL_RIDGE)

    def _inverse_with(self, ridge: float) -> FloatArray:
        """``(K + λ n)⁻¹`` (n, n) where all cases are compared."""
        return solve_any(self.where.gram(*self._kernel, ridge), np.eye(self.where.slot.size))

    @cached_property
    def _inverse(self) -> FloatArray:
        """The inverse with the ridge of the fit."""
        return self._inverse_with(float(self.fitted.ridge))

    def _solve(self, similarities: FloatArray) -> FloatArray:
        """Weights (q, n) of a few similarities (q, n), without an inverse."""
        matrix = self.where.gram(*self._kernel, float(self.fitted.ridge))
        return np.ascontiguousarray(solve_any(matrix, similarities.T).T)

    @cached_property
    def _low_rank(self) -> LowRank:
        """What solves for weights by landmarks, where there are some."""
        return LowRank(self.where, *self._kernel, self._fitted_landmarks)

    @cached_property
    def _low_rank_solver(self) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        # Cases that came by an update may need some of their own.
        ridge = float(self.fitted.ridge)
        rank = len(self._low_rank.landmarks_for(ridge))
        return rank, self._low_rank.solver(ridge, rank)


def centres(of: Location | NewForecasts, code: IntArray, centre: FloatArray) -> FloatArray:
    """Centre and spread (2, T) of each forecast, or of each case."""
    centred = np.empty((2, of.mean.size))
    coefficients = np.ascontiguousarray(centre, np.float64)
    fill_centres(int(code), coefficients, of.mean, of.variance, of.features, centred)
    return centred


def error_size(error: FloatArray) -> float:
    """Standard deviation of errors (n,) as their mean size gives it, a few wild ones cut."""
    return float(STD_OF_MEAN_SIZE) * typical_size(error[np.isfinite(error)])


def _landmarks(slot: IntArray, landmark: IntArray) -> IntArray:
    """Places of landmarks among the cases at some slots (n,); none for an exact solution."""
    place = {at: case for case, at in enumerate(slot.tolist())}
    return np.array([place[at] for at in landmark.tolist() if at in place], np.int64)
