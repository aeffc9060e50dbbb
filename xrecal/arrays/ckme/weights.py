"""New forecasts to weighted ensembles, by an embedding that was fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features, check_kernel, no_features
from xrecal.arrays.rows import Kept, location_blocks
from xrecal.typing import FloatArray, IntArray

from .centre import FILL_ROWS, Ranked
from .embedding import (
    FittedCKME,
    case_weights,
    check_choice,
    check_forecasts,
    lives_of,
)
from .learned import Embedding, Familiarity
from .location import (
    Cases,
    NewForecasts,
    feature_distances,
    from_new,
    new_forecasts,
    ordered_cases,
)
from .lowrank import TOGETHER
from .simplex import PROJECTIONS

A_DAY = 64
"""Forecasts at most after which others of the same model are expected: more take longer anyway."""

ROWS = 256
"""New forecasts weighed at once, so that their similarities to all cases stay small."""


KEPT: Kept[tuple[int, Embedding]] = Kept(256 * 2**20)
"""What was learned of the last locations that were met twice, in this process."""


class Issued(NamedTuple):
    """What is filled of T forecasts with n slots, where it is wanted."""

    members: FloatArray | None
    """(T, n)"""
    weights: FloatArray
    """(T, n)"""
    novelty: FloatArray | None = None
    """(T,)"""
    observed: FloatArray | None = None
    """(T, n) weights of past observations where they were chosen; the others are of errors then"""


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
    forecasts; each then costs O(n m + n²). With r landmarks that is O(n r²) and O(r m + n r). For
    few forecasts at few locations it is kept in the process, once these were met twice.
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
        of_place = None if novelty is None else novelty[place]
        one.fill(Issued(own, weights[place], of_place), projection)
    return (members, weights) if novelty is None else (members, weights, novelty)


def ckme_weights_of_both(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    fitted: FittedCKME,
    *,
    projection: str = "euclidean",
    **compared: Any,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r"""Weighted ensembles of errors, and weights of past observations beside them.

    Parameters
    ----------
    forecasts, cases, observations, fitted, projection
        As for :func:`ckme_weights`.
    **compared
        ``kernel``, ``features``, ``new_features``, ``days``, ``across``, ``squared``, ``shapes``
        as there.

    Returns
    -------
    members, weights : array, shape (L, T, n)
        Centre plus errors, and their probabilities: of the support that was fitted or, where that
        is past observations, of the best other one, with the kernel and ridge of the former.
    observed : array, shape (L, T, n)
        Probabilities of past observations where they are the support, 0 elsewhere.
    novelty : array of float64, shape (L, T)
        See :func:`ckme_novelty`.

    Notes
    -----
    Signed weights are the same for both, so that the costs are those of :func:`ckme_weights` and a
    second projection.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> settings = xrecal.arrays.Settings(supports=("observations", "mean"))
    >>> fitted = xrecal.arrays.fit_ckme(cases, truth, settings)
    >>> _, weights, observed, _ = ckme_weights_of_both(cases, cases, truth, fitted)
    >>> weights.shape, observed.sum(-1).round(6).max().item()
    ((1, 40, 40), 0.0)
    """
    check_choice("projection", projection, PROJECTIONS)
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    shape = 3, n_locations, n_new, n
    members, weights, observed = np.full(shape, np.nan, forecasts.loc.dtype)
    novelty = np.full((n_locations, n_new), np.nan)
    of = _Learned(cases, observations, fitted)
    for place, one in _places(forecasts, of, Compared(**compared), centred=True):
        out = Issued(members[place], weights[place], novelty[place], observed[place])
        one.fill(out, projection)
    return members, weights, observed, novelty


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
    n_locations, n, m = of.cases.loc.shape
    _, n_new, p = forecasts.loc.shape
    new_features = no_features(n_locations, n_new)
    if how.new_features is not None:
        new_features = how.new_features
    memory = _memory(of)
    keep = n_new <= A_DAY and how.squared is None and memory <= KEPT.most // 4
    for block in location_blocks(n_locations, 24 * max(n * m, n_new * p)):
        some = forecasts.take(block), new_features.take(block)
        new = new_forecasts(*some, centred=centred, shapes=how.shapes)
        make = partial(_embeddings, of, how, block, centred)
        known = KEPT.get(_contents(of, how, block, centred), memory, make) if keep else make()
        for cell, embedding in known:
            place = block.start + cell
            across = None if how.across is None else how.across[place]
            yield place, _Ensembles(new, embedding, across)


def _embeddings(
    of: _Learned, how: Compared, block: slice, centred: bool
) -> Iterator[tuple[int, Embedding]]:
    """Locations of a block that have a fit, counted from its start, and what was learned there."""
    n_locations, n, _ = of.cases.loc.shape
    features = no_features(n_locations, n) if how.features is None else how.features
    weight = case_weights(how.days, lives_of(of.fitted.half_life), n)
    past = Cases(of.cases, of.observations, features, weight)
    cases, _ = ordered_cases(past.take(block), centred=centred, shapes=how.shapes)
    for cell in range(cases.n_used.size):
        place = block.start + cell
        fitted = FittedCKME(*(np.array(part[place]) for part in of.fitted))
        if not np.isnan(fitted.ridge):
            squared = None if how.squared is None else how.squared[place]
            yield cell, Embedding(cases, cell, fitted, how.kernel == "laplace", squared)


def _memory(of: _Learned) -> int:
    """About so many bytes are embeddings: members in several orders, columns and factors."""
    n_locations, n, m = of.cases.loc.shape
    landmarks = int((of.fitted.landmark >= 0).sum(-1).max(initial=0))
    of_case = 4 * (landmarks + TOGETHER) if landmarks else 3 * n
    return int(8 * n_locations * n * (8 * m + of_case))


def _contents(of: _Learned, how: Compared, block: slice, centred: bool) -> Iterator[Any]:
    """All that embeddings of a block depend on."""
    features = how.features
    circular, values = (None, None) if features is None else (features.circular, features.values)
    yield how.kernel, how.shapes, centred, block
    yield from (*of.cases, of.observations, *of.fitted, circular, values, how.days)


class _Ensembles:
    """Weighted ensembles of all forecasts at one location."""

    def __init__(self, new: NewForecasts, learned: Embedding, across: Squared | None) -> None:
        self.new, self.learned, self._across = new, learned, across

    def fill(self, out: Issued, projection: str) -> None:
        """Fill what is issued of the forecasts."""
        learned, fitted = self.learned, self.learned.fitted
        rank, solve = learned.solver(out.weights.shape[0])
        familiar = None if out.novelty is None else learned.familiarity
        chosen = learned.chosen(rank if familiar is None else max(rank, familiar.known.size))
        supports = [(self._support(fitted.support, fitted.centre), out.members, out.weights)]
        if out.observed is not None:
            out.observed[:] = 0.0
            if fitted.beside:
                beside = self._support(fitted.beside, fitted.beside_centre)
                supports = [
                    (supports[0][0], None, out.observed),
                    (beside, out.members, out.weights),
                ]
        for rows in _parts(out.weights.shape[0]):
            similarities = self._similarities(rows, chosen)
            if out.novelty is not None and familiar is not None:
                out.novelty[rows] = self._novelty(familiar, similarities, rows)
            signed = solve(similarities[:, :rank])
            # The solution is that of R K R, with the roots R of the case weights: β = R α.
            signed *= learned.one.root
            for support, members, weights in supports:
                self._fill_rows(
                    signed, support, FILL_ROWS[projection], members, weights[rows], rows
                )
        if out.observed is not None:
            out.observed[np.isnan(out.weights).all(-1)] = np.nan

    def _support(self, code: IntArray, centre: FloatArray) -> tuple[Ranked, FloatArray]:
        """Cases ranked by their errors around a centre, and centres and spreads (2, T)."""
        centred = self.learned.centres(self.new, code, centre)
        return self.learned.support(code, centre), centred

    def _fill_rows(
        self,
        signed: FloatArray,
        support: tuple[Ranked, FloatArray],
        fill_rows: Any,
        members: FloatArray | None,
        weights: FloatArray,
        rows: slice,
    ) -> None:
        """Fill some forecasts, from signed weights (q, n)."""
        ranked, centred = support
        slot = self.learned.cases.slot[self.learned.cell]
        shares, points = np.empty((2, *signed.shape))
        fill_rows(signed, ranked, np.ascontiguousarray(centred[:, rows]), shares, points)
        _to_slots(shares, slot, 0.0, weights)
        if members is not None:
            points[np.isnan(shares[:, 0])] = np.nan
            _to_slots(points, slot, np.nan, members[rows])

    def fill_novelty(self, novelty: FloatArray) -> None:
        """Fill the novelty (T,) of forecasts."""
        familiar = self.learned.familiarity
        chosen = self.learned.chosen(familiar.known.size)
        for rows in _parts(novelty.size):
            novelty[rows] = self._novelty(familiar, self._similarities(rows, chosen), rows)

    def _novelty(self, familiar: Familiarity, similarities: FloatArray, rows: slice) -> FloatArray:
        """Novelty (q,) of some forecasts; 1 of those that differ from cases that are all alike."""
        novelty = familiar.novelty(similarities)
        if np.isinf(self.learned.fitted.bandwidth):
            learned = self.learned
            first = from_new(self.new, learned.cases, learned.cell, rows, slice(1), self._across)
            novelty[first[:, 0] > 0] = 1.0
        return novelty

    def _similarities(self, rows: slice, chosen: slice | IntArray) -> FloatArray:
        """Kernel (q, k) between forecasts and cases, scaled by the roots of the case weights."""
        of, one, cell = self.learned, self.learned.one, self.learned.cell
        distance = from_new(self.new, of.cases, cell, rows, chosen, self._across)
        if one.laplace:
            distance = np.sqrt(distance)
        exponent = distance / -of.fitted.bandwidth
        features = self.new.features[cell, rows]
        strength = of.fitted.strength
        if strength > 0:
            exponent -= strength * feature_distances(features, one.features[chosen], one.precision)
        exponent[np.isnan(features).any(-1)] = np.nan  # even where they do not count
        return np.asarray(np.exp(exponent) * one.root[chosen])


def _parts(n: int) -> Iterator[slice]:
    """Slices of n forecasts."""
    return (slice(first, first + ROWS) for first in range(0, n, ROWS))


def _to_slots(values: FloatArray, slot: IntArray, unused: float, out: FloatArray) -> None:
    """Values (q, n) of the used cases to their slots; ``unused`` in others, NaN in a NaN row."""
    n = values.shape[1]
    out[:] = unused
    out[:, slot[:n]] = values
    out[np.isnan(values[:, 0])] = np.nan
