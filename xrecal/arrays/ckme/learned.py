"""What was learned at a location, ready for any forecasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from threading import RLock
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Squared
from xrecal.typing import FloatArray, IntArray

from .centre import Limits, Ranked, fill_centres, inside
from .embedding import FittedCKME
from .location import Location, NewForecasts, OrderedCases, feature_distances, locate
from .solvers import ROUGH, LowRank

SMALL_RIDGE = 1e-3
"""Ridge with which the novelty of forecasts is measured, whichever one the fit chose: a larger one
shrinks ordinary forecasts, too."""

FEW = 16
"""Forecasts for which a matrix is not worth inverting."""


class Familiarity(NamedTuple):
    """What makes novelty of similarities."""

    known: FloatArray
    """(k,) factors of similarities to the first cases in the sum of signed weights"""
    typical: float
    """Median of that sum over cases that are left out"""

    def novelty(self, similarities: FloatArray) -> FloatArray:
        """Novelty (q,) of forecasts by their similarities (q, k) to these cases, or to more."""
        share = similarities[:, : self.known.size] @ self.known / self.typical
        return np.asarray(1.0 - np.clip(share, 0.0, 1.0))


class Embedding:
    """The cases of a location and what was fitted to them; its factors are made when asked for."""

    def __init__(
        self,
        cases: OrderedCases,
        cell: int,
        fitted: FittedCKME,
        laplace: bool,
        squared: Squared | None,
    ) -> None:
        self.cases, self.cell, self.fitted = cases, cell, fitted
        self._fitted_landmarks = self._landmarks()
        low_rank = self._fitted_landmarks.size > 0
        one = locate(cases, cell, laplace=laplace, low_rank=low_rank, squared=squared)
        self.one = replace(one, precision=np.asarray(fitted.precision, np.float64))
        self._supports: dict[int, Ranked] = {}
        self._making = RLock()  # a factor grows as more is asked of it

    def solver(self, n_new: int) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        """Number of cases to compare with, and what makes weights of similarities to these."""
        n, ridge = self.one.root.size, float(self.fitted.ridge)
        with self._making:
            if self.one.columns is not None:
                return self._low_rank_solver
            if n_new <= FEW:
                return n, partial(self._solve, ridge)
            # The inverse serves many by one product; the ridge keeps it well conditioned.
            inverse = self._inverse
        return n, lambda similarities: similarities @ inverse

    @property
    def familiarity(self) -> Familiarity:
        """What is usual of the cases, each left out."""
        with self._making:
            return self._familiarity

    def support(self, code: IntArray, centre: FloatArray) -> Ranked:
        """Cases ranked by their errors around a centre."""
        with self._making:
            if int(code) not in self._supports:
                self._supports[int(code)] = self._ranked(code, centre)
            return self._supports[int(code)]

    def chosen(self, rank: int) -> slice | IntArray:
        """So many cases to compare with: landmarks in their order, or all."""
        if self.one.columns is None:
            return slice(rank)
        return np.array(self._low_rank.factor.landmarks[:rank])

    def centres(self, of: OrderedCases | NewForecasts, code: IntArray, centre: FloatArray) -> Any:
        """Centre and spread (2, T) of each forecast, the cases' own among them."""
        cell = self.cell
        centred = np.empty((2, of.mean.shape[1]))
        fill_centres(
            int(code),
            np.ascontiguousarray(centre, np.float64),
            np.ascontiguousarray(of.mean[cell]),
            np.ascontiguousarray(of.variance[cell]),
            np.ascontiguousarray(of.features[cell]),
            centred,
        )
        return centred

    def _ranked(self, code: IntArray, centre: FloatArray) -> Ranked:
        cases, fitted, one = self.cases, self.fitted, self.one
        n = int(cases.n_used[self.cell])
        known, spread = self.centres(cases, code, centre)
        bounds = float(fitted.lower), float(fitted.upper)
        error = (one.target - known[:n]) / spread[:n]
        # Cases on a bound stay on it whatever the centre, so they rank below or above all others.
        error[one.target <= bounds[0]], error[one.target >= bounds[1]] = -np.inf, np.inf
        order = np.argsort(error)
        share = one.root**2 / (one.root**2).sum()
        return Ranked(order, error[order], share, Limits(*bounds, *inside(one.target, *bounds)))

    @cached_property
    def _familiarity(self) -> Familiarity:
        one = self.one
        if one.columns is None:
            inverse = self._all_apart.inverse(*self._kernel, SMALL_RIDGE)
            residual: FloatArray = inverse @ one.root
            known, own = residual, inverse.diagonal()
        else:
            factor = self._low_rank.factor
            # The first ones are those that weights need, whether these are asked for or not.
            self._low_rank.landmarks_for(float(self.fitted.ridge))
            known, residual, own = factor.sums(SMALL_RIDGE, factor.extend(ROUGH * SMALL_RIDGE))
        alone = residual / (one.root * own)
        typical = float(np.median(np.clip(1.0 - alone, 0.0, 1.0)))
        return Familiarity(known, max(typical, SMALL_RIDGE))

    @property
    def _kernel(self) -> tuple[float, float]:
        """Bandwidth, and strength of the covariates."""
        return float(self.fitted.bandwidth), float(self.fitted.strength)

    @cached_property
    def _all_apart(self) -> Location:
        """The location with the distances of all covariates."""
        one = self.one
        return replace(one, apart=feature_distances(one.features, one.features, one.precision))

    @cached_property
    def _inverse(self) -> FloatArray:
        """``(K + λ n)⁻¹`` (n, n) where all cases are compared."""
        return self._all_apart.inverse(*self._kernel, float(self.fitted.ridge))

    def _solve(self, ridge: float, similarities: FloatArray) -> FloatArray:
        """Weights (q, n) of a few similarities (q, n), without an inverse."""
        matrix = self._all_apart.with_ridge(*self._kernel, ridge)
        try:
            return np.ascontiguousarray(np.linalg.solve(matrix, similarities.T).T)
        except np.linalg.LinAlgError:  # see the inverse
            return np.asarray(similarities @ np.linalg.pinv(matrix))

    def _landmarks(self) -> IntArray:
        """Places of the landmarks among the cases in order; none for an exact solution."""
        landmark = self.fitted.landmark
        place = np.full(self.cases.slot.shape[1], -1)
        n = int(self.cases.n_used[self.cell])
        place[self.cases.slot[self.cell, :n]] = np.arange(n)
        landmarks: IntArray = place[landmark[landmark >= 0]]
        return np.asarray(landmarks[landmarks >= 0])

    @cached_property
    def _low_rank(self) -> LowRank:
        """What solves for weights by landmarks, where there are some."""
        return LowRank(self.one, *self._kernel, self._fitted_landmarks)

    @cached_property
    def _low_rank_solver(self) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        # Cases that came by an update may need some of their own.
        ridge = float(self.fitted.ridge)
        rank = len(self._low_rank.landmarks_for(ridge))
        return rank, self._low_rank.factor.solver(ridge, rank)
