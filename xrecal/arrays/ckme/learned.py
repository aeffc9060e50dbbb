"""Fitted CKME of one location, ready for new forecasts."""

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
"""Ridge with which every fit computes the novelty. With a larger ridge, ordinary forecasts would
seem novel."""

STD_OF_MEAN_SIZE = np.sqrt(np.pi / 2)
"""Standard deviation of normal errors, divided by their mean absolute value."""

FEW = 16
"""Largest number of forecasts for which the inverse of a matrix takes more time than it saves."""


class Embedding:
    """Cases and fit of one location; the class computes factors of matrices on first use."""

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
        self._making = RLock()  # one thread at a time extends a factor

    def solver(self, n_new: int) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        """Return the number of cases to compare forecasts with, and a function for signed weights.

        The function turns similarities of ``n_new`` forecasts to these cases into signed weights.
        """
        n = self.where.slot.size
        with self._making:
            if self.where.low_rank:
                return self._low_rank_solver
            if n_new <= FEW:
                return n, self._solve
            # One product with the inverse serves many forecasts; the ridge keeps it well
            # conditioned.
            inverse = self._inverse
        return n, lambda similarities: similarities @ inverse

    def support(self, code: IntArray, centre: FloatArray) -> Ranked:
        """Return the cases ranked by their errors around the centre of the support ``code``.

        ``centre`` holds the coefficients of this centre.
        """
        with self._making:
            if int(code) not in self._supports:
                self._supports[int(code)] = self._ranked(code, centre)
            return self._supports[int(code)]

    def chosen(self, rank: int) -> slice | IntArray:
        """Return an index of the first ``rank`` landmarks (of cases if there are no landmarks)."""
        if not self.where.low_rank:
            return slice(rank)
        return np.array(self._low_rank.landmarks[:rank])

    def similarities(self, new: NewForecasts, rows: slice, chosen: slice | IntArray) -> FloatArray:
        """Return similarities (q, k) of q forecasts to k cases, times the roots of case weights."""
        return self.where.similarities(new, rows, chosen, *self._kernel)

    def novelty(self, new: NewForecasts, rows: slice, similarities: FloatArray) -> FloatArray:
        """Return the novelty (q,) of forecasts from their similarities (q, k) to cases.

        The cases are the first landmarks, or all cases if the fit has no landmarks. If the
        forecasts of all cases are equal, the novelty is 1 for any other forecast.
        """
        known, typical = self.familiarity
        share = similarities[:, : known.size] @ known / typical
        novelty = np.asarray(1.0 - np.clip(share, 0.0, 1.0))
        if np.isinf(self._kernel[0]):
            novelty[self.where.from_new(new, rows, slice(1))[:, 0] > 0] = 1.0
        return novelty

    def centres(self, new: NewForecasts, code: IntArray, centre: FloatArray) -> FloatArray:
        """Return centres and spreads (2, T) of forecasts.

        If new ensembles have another number of members than past ensembles, the spreads allow for
        this.
        """
        found = centres(new, code, centre)
        if new.noise is not None:
            size = error_size(self.support(code, centre).error)
            found[1] *= narrowing(float(centre[1]) ** 2 * new.noise, (size * found[1]) ** 2)
        return found

    @property
    def familiarity(self) -> tuple[FloatArray, float]:
        """Return factors (k,) of similarities, and the typical sum of signed weights of a forecast.

        To get the sum of the signed weights of a forecast, multiply its similarities to the first k
        landmarks (or to all cases) by the factors, and add up the products. The typical sum is the
        median over held-out cases.
        """
        with self._making:
            return self._familiarity

    def _ranked(self, code: IntArray, centre: FloatArray) -> Ranked:
        fitted, one = self.fitted, self.where
        known, spread = centres(one, code, centre)
        bounds = float(fitted.lower), float(fitted.upper)
        error = (one.target - known) / spread
        # Cases on a bound stay there for every centre, so they rank below or above all other cases.
        error[one.target <= bounds[0]], error[one.target >= bounds[1]] = -np.inf, np.inf
        order = np.argsort(error)
        share = one.root**2 / (one.root**2).sum()
        return Ranked(order, error[order], share, Limits(*bounds, *inside(one.target, *bounds)))

    @cached_property
    def _familiarity(self) -> tuple[FloatArray, float]:
        root = self.where.root
        if self.where.low_rank:
            factor = self._low_rank
            # Choose the landmarks for the weights first, even if the caller needs no weights. So
            # the novelty is the same for all callers.
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
        """Return ``(K + λ n)⁻¹`` (n, n) with this ridge λ, for a fit without landmarks."""
        return solve_any(self.where.gram(*self._kernel, ridge), np.eye(self.where.slot.size))

    @cached_property
    def _inverse(self) -> FloatArray:
        """Return the inverse with the ridge of the fit."""
        return self._inverse_with(float(self.fitted.ridge))

    def _solve(self, similarities: FloatArray) -> FloatArray:
        """Return signed weights (q, n) from the similarities (q, n) of a few forecasts."""
        matrix = self.where.gram(*self._kernel, float(self.fitted.ridge))
        return np.ascontiguousarray(solve_any(matrix, similarities.T).T)

    @cached_property
    def _low_rank(self) -> LowRank:
        """Return the low-rank solver, which starts from the landmarks of the fit."""
        return LowRank(self.where, *self._kernel, self._fitted_landmarks)

    @cached_property
    def _low_rank_solver(self) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        # Cases that an update has added may need landmarks of their own.
        ridge = float(self.fitted.ridge)
        rank = len(self._low_rank.landmarks_for(ridge))
        return rank, self._low_rank.solver(ridge, rank)


def centres(of: Location | NewForecasts, code: IntArray, centre: FloatArray) -> FloatArray:
    """Return the centre and spread (2, T) of each forecast, or of each case."""
    centred = np.empty((2, of.mean.size))
    coefficients = np.ascontiguousarray(centre, np.float64)
    fill_centres(int(code), coefficients, of.mean, of.variance, of.features, centred)
    return centred


def error_size(error: FloatArray) -> float:
    """Estimate the standard deviation of errors (n,) from their mean absolute value.

    The function limits outliers first.
    """
    return float(STD_OF_MEAN_SIZE) * typical_size(error[np.isfinite(error)])


def _landmarks(slot: IntArray, landmark: IntArray) -> IntArray:
    """Return the positions of the landmarks among the usable cases, whose slots are ``slot`` (n,).

    Slots are positions among all cases. The result is empty for the exact solver.
    """
    place = {at: case for case, at in enumerate(slot.tolist())}
    return np.array([place[at] for at in landmark.tolist() if at in place], np.int64)
