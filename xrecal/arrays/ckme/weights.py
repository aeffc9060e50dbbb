"""New forecasts to weighted ensembles, by an embedding that was fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import Indices, Matrix, OutMatrix, Vector, kernel
from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features, check_kernel, no_features
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray, IntArray

from .centre import Limits, fill_centres, fill_members, inside
from .embedding import FittedCKME, case_weights, check_choice, check_observations, lives_of
from .location import (
    Cases,
    NewForecasts,
    OrderedCases,
    feature_distances,
    from_new,
    locate,
    new_forecasts,
    ordered_cases,
)
from .simplex import PROJECTIONS
from .solvers import ROUGH, LowRank

SMALL_RIDGE = 1e-3
"""Ridge with which the novelty of forecasts is measured, whichever one the fit chose: a larger one
shrinks ordinary forecasts, too."""

ROWS = 256
"""New forecasts weighed at once, so that their similarities to all cases stay small."""


def ckme_weights(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    fitted: FittedCKME,
    *,
    kernel: str = "gaussian",
    projection: str = "euclidean",
    features: Features | None = None,
    new_features: Features | None = None,
    days: FloatArray | None = None,
    own_members: bool = False,
    across: Sequence[Squared] | None = None,
    squared: Sequence[Squared] | None = None,
    shapes: bool = False,
    return_novelty: bool = False,
) -> tuple[FloatArray, ...]:
    r"""Weighted ensembles for new forecasts.

    Parameters
    ----------
    forecasts : Forecasts
        Arrays (L, T, p): T forecasts at each location.
    cases, observations, fitted
        As given to, and returned by, :func:`fit_ckme`.
    kernel, projection, features, days
        As in the fit.
    new_features : Features, optional
        Covariates of the forecasts, (L, T, k).
    own_members : bool
        Whether each forecast has members of its own; without, all supports must be past
        observations.
    across, squared : array of float64, shapes (L, T, n) and (L, n, n), optional
        Squared energy distances from forecasts to cases and among the cases, where known already.
    shapes : bool
        Whether forecasts are compared without their means, as in the fit.
    return_novelty : bool
        Whether to return the novelty, too, which then costs little.

    Returns
    -------
    members : array, shape (L, n) or (L, T, n)
        Observations, or centre plus errors; NaN in unused slots.
    weights : array, shape (L, T, n)
        Probabilities, 0 in unused slots; NaN for a forecast without valid members or covariates
        and at locations without a fit. Both have the floating type of the forecasts.
    novelty : array of float64, shape (L, T)
        If asked for; see :func:`ckme_novelty`.

    Notes
    -----
    Rebuilds and inverts :math:`K + \lambda n \Omega^{-1}` once per location, O(n³), for all T
    forecasts; each then costs O(n m + n²). With r landmarks that is O(n r²) and O(r m + n r).
    Signed weights :math:`\beta = (K + \lambda n \Omega^{-1})^{-1} k(x)` get
    :math:`1 - \sum\beta` added in proportion to the case weights, the regression around the
    climatological mean embedding, before the projection.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> members, weights = ckme_weights(cases, cases, truth, xrecal.arrays.fit_ckme(cases, truth))
    >>> weights.shape, weights.sum(-1).round(6).min().item()
    ((1, 40, 40), 1.0)
    """
    check_choice("projection", projection, PROJECTIONS)
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    dtype = forecasts.loc.dtype
    weights = np.full((n_locations, n_new, n), np.nan, dtype)
    members = np.full((n_locations, n_new, n), np.nan, dtype) if own_members else observations
    novelty = np.full((n_locations, n_new), np.nan) if return_novelty else None
    how = Compared(kernel, features, new_features, days, across, squared, shapes)
    of = _Learned(cases, observations, fitted)
    for place, one in _places(forecasts, of, how, centred=own_members):
        own = members[place] if own_members else None
        one.fill(own, weights[place], projection, None if novelty is None else novelty[place])
    return (members, weights) if novelty is None else (members, weights, novelty)


def ckme_novelty(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    fitted: FittedCKME,
    **compared: Any,
) -> FloatArray:
    r"""How little of new forecasts is known from past ones.

    Parameters
    ----------
    forecasts, cases, observations, fitted
        As for :func:`ckme_weights`.
    **compared
        ``kernel``, ``features``, ``new_features``, ``days``, ``across``, ``squared``, ``shapes``
        as for :func:`ckme_weights`.

    Returns
    -------
    array of float64, shape (L, T)
        0 for an ordinary forecast, 1 for one that is like no past one; NaN as the weights are.

    Notes
    -----
    With a small ridge :math:`\lambda = 10^{-3}`, whichever one the fit chose, the sum of signed
    weights :math:`s(x) = \sum_i \beta_i(x)` is the share of the forecast that comes from cases like
    it. One minus its ratio to the median over the cases, each left out, is the novelty: there
    :math:`1 - s_{-i} = (1 - s_i) / (1 - h_i)` with the leverage :math:`h_i`. O(n³) time for each
    location, or O(n r²) with r landmarks, and O(m + n) for each forecast and case.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 80))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 80, 5)))
    >>> new = Forecasts(np.array([[[0.0], [3.0], [20.0]]]) + cases.loc[:, :1] - truth[0, 0])
    >>> fitted = xrecal.arrays.fit_ckme(cases, truth)
    >>> xrecal.arrays.ckme_novelty(new, cases, truth, fitted).round(1).tolist()
    [[0.0, 0.6, 1.0]]
    """
    n_locations, _, n_new = check_forecasts(forecasts, cases, observations, fitted)
    novelty = np.full((n_locations, n_new), np.nan)
    how, of = Compared(**compared), _Learned(cases, observations, fitted)
    for place, one in _places(forecasts, of, how, centred=how.shapes):  # shapes are without means
        one.fill_novelty(novelty[place])
    return novelty


class Compared(NamedTuple):
    """How forecasts are compared with cases; see :func:`ckme_weights`."""

    kernel: str = "gaussian"
    features: Features | None = None
    new_features: Features | None = None
    days: FloatArray | None = None
    across: Sequence[Squared] | None = None
    squared: Sequence[Squared] | None = None
    shapes: bool = False


class _Learned(NamedTuple):
    """The cases, and what was fitted to them."""

    cases: Forecasts
    observations: FloatArray
    fitted: FittedCKME


def _places(
    forecasts: Forecasts, of: _Learned, how: Compared, *, centred: bool
) -> Iterator[tuple[int, _Ensembles]]:
    """Locations that have a fit, and what makes ensembles there."""
    check_kernel(how.kernel)
    (n_locations, n, m), fitted = of.cases.loc.shape, of.fitted
    _, n_new, p = forecasts.loc.shape
    features = no_features(n_locations, n) if how.features is None else how.features
    new_features = no_features(n_locations, n_new)
    if how.new_features is not None:
        new_features = how.new_features
    weight = case_weights(how.days, lives_of(fitted.half_life), n)
    past = Cases(of.cases, of.observations, features, weight)
    for block in location_blocks(n_locations, 24 * max(n * m, n_new * p)):
        cases, _ = ordered_cases(past.take(block), centred=centred, shapes=how.shapes)
        some = forecasts.take(block), new_features.take(block)
        new = new_forecasts(*some, centred=centred, shapes=how.shapes)
        for cell in range(cases.n_used.size):
            place = block.start + cell
            one = FittedCKME(*(part[place] for part in fitted))
            if np.isnan(one.ridge):
                continue
            known = tuple(None if d is None else d[place] for d in (how.across, how.squared))
            yield place, _Ensembles(new, cases, cell, one, how.kernel == "laplace", known)


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


class _Ensembles:
    """Weighted ensembles of all forecasts at one location."""

    def __init__(
        self,
        new: NewForecasts,
        cases: OrderedCases,
        cell: int,
        fitted: FittedCKME,
        laplace: bool,
        known: tuple[Squared | None, ...],
    ) -> None:
        self.new, self.cases, self.cell = new, cases, cell
        self.fitted, (self._across, squared) = fitted, known
        self._fitted_landmarks = self._landmarks()
        low_rank = self._fitted_landmarks.size > 0
        one = locate(cases, cell, laplace=laplace, low_rank=low_rank, squared=squared)
        self.one = replace(one, precision=np.asarray(fitted.precision, np.float64))

    def fill(
        self,
        members: FloatArray | None,
        weights: FloatArray,
        projection: str,
        novelty: FloatArray | None,
    ) -> None:
        """Fill members and weights (T, n_slots), and the novelty (T,) if it is wanted."""
        new, cases, cell, fitted, one = self.new, self.cases, self.cell, self.fitted, self.one
        n = int(cases.n_used[cell])
        rank, solve = self._solve()
        familiar = None if novelty is None else self._familiarity()
        chosen = self._chosen(rank if familiar is None else max(rank, familiar.known.size))
        centre, spread = self._centres(cases)
        bounds = float(fitted.lower), float(fitted.upper)
        error = (one.target - centre[:n]) / spread[:n]
        # Cases on a bound stay on it whatever the centre, so they rank below or above all others.
        error[one.target <= bounds[0]], error[one.target >= bounds[1]] = -np.inf, np.inf
        order = np.argsort(error)
        centred = self._centres(new)
        share = one.root**2 / (one.root**2).sum()
        ranked = Ranked(order, error[order], share, Limits(*bounds, *inside(one.target, *bounds)))
        for rows in _parts(weights.shape[0]):
            similarities = self._similarities(rows, chosen)
            if novelty is not None and familiar is not None:
                novelty[rows] = familiar.novelty(similarities)
            signed = solve(similarities[:, :rank])
            # The solution is that of R K R, with the roots R of the case weights: β = R α.
            signed *= one.root
            theirs = np.ascontiguousarray(centred[:, rows])
            shares, points = np.empty((2, signed.shape[0], n))
            FILL_ROWS[projection](signed, ranked, theirs, shares, points)
            _to_slots(shares, cases.slot[cell], 0.0, weights[rows])
            if members is not None:
                points[np.isnan(shares[:, 0])] = np.nan
                _to_slots(points, cases.slot[cell], np.nan, members[rows])

    def fill_novelty(self, novelty: FloatArray) -> None:
        """Fill the novelty (T,) of forecasts."""
        familiar = self._familiarity()
        chosen = self._chosen(familiar.known.size)
        for rows in _parts(novelty.size):
            novelty[rows] = familiar.novelty(self._similarities(rows, chosen))

    def _familiarity(self) -> _Familiarity:
        """What is usual of the cases, each left out."""
        one = self.one
        if one.columns is None:
            inverse = self._inverse(SMALL_RIDGE)
            residual: FloatArray = inverse @ one.root
            known, own = residual, inverse.diagonal()
        else:
            factor = self._low_rank.factor
            # The first ones are those that weights need, whether these are asked for or not.
            self._low_rank.landmarks_for(float(self.fitted.ridge))
            known, residual, own = factor.sums(SMALL_RIDGE, factor.extend(ROUGH * SMALL_RIDGE))
        alone = residual / (one.root * own)
        typical = float(np.median(np.clip(1.0 - alone, 0.0, 1.0)))
        return _Familiarity(known, max(typical, SMALL_RIDGE))

    @property
    def _kernel(self) -> tuple[float, float]:
        """Bandwidth, and strength of the covariates."""
        return float(self.fitted.bandwidth), float(self.fitted.strength)

    def _inverse(self, ridge: float) -> FloatArray:
        """``(K + λ n)⁻¹`` (n, n) where all cases are compared."""
        one = self.one
        apart = feature_distances(one.features, one.features, one.precision)
        return replace(one, apart=apart).inverse(*self._kernel, ridge)

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

    def _chosen(self, rank: int) -> slice | IntArray:
        """So many cases to compare with: landmarks in their order, or all."""
        if self.one.columns is None:
            return slice(rank)
        return np.array(self._low_rank.factor.landmarks[:rank])

    def _solve(self) -> tuple[int, Callable[[FloatArray], FloatArray]]:
        """Number of cases to compare with, and what makes weights of similarities to these."""
        ridge = float(self.fitted.ridge)
        if self.one.columns is not None:
            # Cases that came by an update may need some of their own.
            rank = len(self._low_rank.landmarks_for(ridge))
            return rank, self._low_rank.factor.solver(ridge, rank)
        # The inverse serves all forecasts by one product; the ridge keeps it well conditioned.
        inverse = self._inverse(ridge)
        return inverse.shape[0], lambda similarities: similarities @ inverse

    def _centres(self, of: OrderedCases | NewForecasts) -> FloatArray:
        """Centre and spread (2, T) of each forecast."""
        cell, fitted = self.cell, self.fitted
        centred = np.empty((2, of.mean.shape[1]))
        fill_centres(
            int(fitted.support),
            np.ascontiguousarray(fitted.centre, np.float64),
            np.ascontiguousarray(of.mean[cell]),
            np.ascontiguousarray(of.variance[cell]),
            np.ascontiguousarray(of.features[cell]),
            centred,
        )
        return centred

    def _similarities(self, rows: slice, chosen: slice | IntArray) -> FloatArray:
        """Kernel (q, k) between forecasts and cases, scaled by the roots of the case weights."""
        one = self.one
        distance = from_new(self.new, self.cases, self.cell, rows, chosen, self._across)
        if one.laplace:
            distance = np.sqrt(distance)
        exponent = distance / -self.fitted.bandwidth
        features = self.new.features[self.cell, rows]
        strength = self.fitted.strength
        if strength > 0:
            exponent -= strength * feature_distances(features, one.features[chosen], one.precision)
        exponent[np.isnan(features).any(-1)] = np.nan  # even where they do not count
        return np.asarray(np.exp(exponent) * one.root[chosen])


class _Familiarity(NamedTuple):
    """What makes novelty of similarities."""

    known: FloatArray
    """(k,) factors of similarities to the first cases in the sum of signed weights"""
    typical: float
    """Median of that sum over cases that are left out"""

    def novelty(self, similarities: FloatArray) -> FloatArray:
        """Novelty (q,) of forecasts by their similarities (q, k) to these cases, or to more."""
        share = similarities[:, : self.known.size] @ self.known / self.typical
        return np.asarray(1.0 - np.clip(share, 0.0, 1.0))


def _parts(n: int) -> Iterator[slice]:
    """Slices of n forecasts."""
    return (slice(first, first + ROWS) for first in range(0, n, ROWS))


def _to_slots(values: FloatArray, slot: IntArray, unused: float, out: FloatArray) -> None:
    """Values (q, n) of the used cases to their slots; ``unused`` in others, NaN in a NaN row."""
    n = values.shape[1]
    out[:] = unused
    out[:, slot[:n]] = values
    out[np.isnan(values[:, 0])] = np.nan


class Ranked(NamedTuple):
    """Calibration cases (n,) by ascending error."""

    order: Indices
    """Cases in this order"""
    error: Vector
    """Their errors, ascending"""
    share: Vector
    """Share of each case in climatology, in the order of time"""
    limits: Limits


def _rows_by(project: Any) -> Any:
    """Code that fills forecasts, with a compiled projection."""

    @kernel
    def fill_rows(
        signed: Matrix, ranked: Ranked, centred: Matrix, weights: OutMatrix, points: OutMatrix
    ) -> None:
        """Signed weights (q, n) to probabilities and the points that they belong to.

        What is missing to a sum of one goes to the cases by their share: the regression is one
        around climatology. ``centred`` (2, q) holds centre and spread of each forecast.
        """
        order, share = ranked.order, ranked.share
        n = share.size
        beta, row, ascending = np.empty(n), np.empty(n), np.empty(n)
        for t in range(signed.shape[0]):
            mass = 0.0
            for i in range(n):
                mass += signed[t, i]
            for i in range(n):
                c = order[i]
                beta[i] = signed[t, c] + (1.0 - mass) * share[c]
            fill_members(centred[0, t], centred[1, t], ranked.error, ranked.limits, ascending)
            project(beta, ascending, row)
            for i in range(n):
                weights[t, order[i]], points[t, order[i]] = row[i], ascending[i]

    return fill_rows


FILL_ROWS = {name: _rows_by(project) for name, project in PROJECTIONS.items()}
"""Code that fills forecasts, by the name of a projection."""
