"""The embedding: its settings, its fitted numbers, and what these make of the cases.

What fit and prediction share is here, and what was learned at a location, ready for any forecasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features, no_features
from xrecal.arrays.splitting import Span
from xrecal.typing import FloatArray, IntArray

from .centre import Limits, Ranked, fill_centres, inside
from .location import Location, NewForecasts, OrderedCases, feature_distances, locate
from .solvers import ROUGH, LowRank

SMALL_RIDGE = 1e-3
"""Ridge with which the novelty of forecasts is measured, whichever one the fit chose: a larger one
shrinks ordinary forecasts, too."""

FEW = 16
"""Forecasts for which a matrix is not worth inverting."""


class Settings(NamedTuple):
    """Settings of the fit; the same at all locations."""

    kernel: str = "gaussian"
    bandwidth: float | None = None
    ridge: float | None = None
    loss: str = "crps"
    projection: str = "euclidean"
    gap: Span = 0
    bounds: str | tuple[float | None, float | None] | None = "auto"
    supports: tuple[str, ...] = ("observations",)
    kernels: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    """Factor of the bandwidth, and strength of the covariates (0: without), of each candidate."""
    min_samples: int = 20
    solver: str = "auto"
    shapes: bool = False
    """True if forecasts are compared after each has lost its mean."""


class FittedCKME(NamedTuple):
    """Choices of the cross-validation at L locations; with the cases they give all weights."""

    bandwidth: FloatArray
    """(L,) in the unit of D² (Gaussian kernel) or D (Laplace); infinity: climatology."""
    ridge: FloatArray
    """(L,) lambda, unitless; NaN where there were too few cases."""
    strength: FloatArray
    """(L,) exponent of the kernel on covariates, 0 without."""
    precision: FloatArray
    """(L, k) weights of the features in the distance of covariates."""
    support: IntArray
    """(L,) position in :data:`xrecal.arrays.ckme.centre.SUPPORTS`."""
    centre: FloatArray
    """(L, 4 + 2 k) coefficients of the centre; see :mod:`xrecal.arrays.ckme.centre`."""
    lower: FloatArray
    """(L,) bounds of the variable, infinite without."""
    upper: FloatArray
    """(L,)"""
    half_life: FloatArray
    """(L,) in days; infinite where all cases count alike."""
    loss: FloatArray
    """(L,) mean held-out loss at the best ridge of the grid; NaN where nothing was chosen."""
    n_cases: IntArray
    """(L,) cases used."""
    status: IntArray
    """(L,) bits of :mod:`xrecal.arrays.status`, 0 where all is well."""
    landmark: IntArray
    """(L, r) slots of the cases that a low-rank solver represents all others by; -1 without."""
    beside: IntArray
    """(L,) best support of errors, where that of past observations is chosen before it; else 0."""
    beside_centre: FloatArray
    """(L, 4 + 2 k) coefficients of its centre; NaN without."""

    def of_errors(self) -> FittedCKME:
        """The fit whose members are errors everywhere, with the same weights before projection."""
        xp = namespace(self.ridge)
        there = self.beside != 0
        return self._replace(
            support=xp.where(there, self.beside, self.support),
            centre=xp.where(there[:, None], self.beside_centre, self.centre),
        )


def complete_fit(fitted: Mapping[str, npt.NDArray[Any]], n_features: int) -> FittedCKME:
    """Fitted parameters, filled up where the settings choose none."""
    ridge = fitted["ridge"]
    xp, n = namespace(ridge), ridge.size
    plain = xp.zeros((n, 4 + 2 * n_features))
    plain[:, 2] = 1.0  # centre 0 and spread 1: errors are the observations themselves
    default: dict[str, npt.NDArray[Any]] = {
        "strength": xp.zeros(n),
        "precision": xp.zeros((n, n_features)),
        "support": xp.zeros(n, dtype=np.int8),
        "centre": plain,
        "lower": xp.full(n, -np.inf),
        "upper": xp.full(n, np.inf),
        "half_life": xp.full(n, np.inf),
        "loss": xp.full(n, np.nan),
        "n_cases": xp.zeros(n, dtype=np.int32),
        "status": xp.zeros(n, dtype=np.int8),
        "landmark": xp.full((n, 1), -1, dtype=np.int32),
        "beside": xp.zeros(n, dtype=np.int8),
        "beside_centre": plain,
    }
    chosen = {name: fitted[name] for name in FittedCKME._fields if name in fitted}
    return FittedCKME(**{**default, **chosen})


class Calibration(NamedTuple):
    """Calibration cases at L locations, with dates, folds and what else is given of them."""

    cases: Forecasts
    """(L, n, m)"""
    observations: FloatArray
    """(L, n)"""
    features: Features
    """(L, n, k)"""
    groups: IntArray
    """(n,) what folds are made of"""
    blocks: int
    """Number of folds, 0 for one of each group"""
    step: IntArray
    """(n,) step in time"""
    used: npt.NDArray[np.bool_]
    """(L, n) cases that count in the length of the period, on the host"""
    days: FloatArray | None = None
    """(n,) dates"""
    squared: Sequence[Squared] | None = None
    """(L, n, n) squared distances, where they were computed before"""
    vectors: FloatArray | None = None
    """(L, n, d) observed vectors, where observations are the numbers of these"""


def calibration_of(
    cases: Forecasts,
    observations: FloatArray,
    features: Features | None,
    groups: IntArray | None,
    blocks: int,
    step: IntArray | None,
) -> Calibration:
    """Check shapes and fill in what is not given."""
    n_locations, n = cases.check("cases", 3)[:2]
    check_observations(observations, (n_locations, n))
    step = np.arange(n) if step is None else np.asarray(step)
    groups = step if groups is None else np.asarray(groups)
    for name, array in {"step": step, "groups": groups}.items():
        if array.shape != (n,):
            raise ValueError(f"{name} has shape {array.shape}, but there are {n} cases")
    if not np.issubdtype(step.dtype, np.integer):
        raise ValueError(f"step must hold whole numbers, got {step.dtype}; days are no steps")
    features = no_features(n_locations, n) if features is None else features
    used = namespace(observations).isfinite(observations)
    return Calibration(cases, observations, features, groups, blocks, step, used)


def case_weights(days: FloatArray | None, half_life: FloatArray, n: int) -> FloatArray:
    """Logarithm to base 2 of how much each case counts, (L, n), up to a constant."""
    if np.isinf(half_life).all():
        return np.broadcast_to(0.0, (half_life.size, n))
    if days is None:
        raise ValueError("a half-life needs days, the dates of the cases")
    age = np.max(days) - np.asarray(days, np.float64)
    return -age / half_life[:, np.newaxis]


def lives_of(half_life: FloatArray) -> FloatArray:
    """Half-lives (L,) of a fit, infinite where there is none as nothing was fitted."""
    return np.where(np.isnan(half_life), np.inf, half_life)


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError unless a setting is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_observations(observations: FloatArray, shape: tuple[int, int]) -> None:
    """Raise ValueError unless there is an observation for each case."""
    if observations.shape != shape:
        raise ValueError(
            f"observations have shape {observations.shape}, but the cases need {shape}"
        )


def check_forecasts(
    forecasts: Forecasts, cases: Forecasts, observations: Any, fitted: FittedCKME
) -> tuple[int, int, int]:
    """Numbers of locations, cases and forecasts; ValueError if they do not belong together."""
    n_locations, n = cases.check("cases", 3)[:2]
    n_new = forecasts.check("forecasts", 3)[1]
    if forecasts.loc.shape[0] != n_locations:
        raise ValueError(
            f"forecasts have {forecasts.loc.shape[0]} locations, but cases have {n_locations}"
        )
    if (forecasts.scale is None) != (cases.scale is None):
        raise ValueError("forecasts and cases must both be ensembles or both be Gaussian")
    check_observations(observations, (n_locations, n))
    for name, array in fitted._asdict().items():
        if array.shape[0] != n_locations:
            raise ValueError(
                f"{name} has shape {array.shape}, but there are {n_locations} locations"
            )
    return n_locations, n, n_new


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
