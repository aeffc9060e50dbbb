"""Weighted ensembles for new forecasts, from a fitted CKME."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features, check_kernel, no_features
from xrecal.arrays.rows import Kept, location_blocks
from xrecal.typing import FloatArray, IntArray

from .centre import FILL_ROWS
from .embedding import (
    FittedCKME,
    case_weights,
    check_choice,
    check_forecasts,
    lives_of,
)
from .learned import Embedding
from .location import NewForecasts, locations, new_forecasts
from .lowrank import TOGETHER
from .simplex import PROJECTIONS

A_DAY = 64
"""For calls with at most this number of forecasts, the process keeps the inverse of the kernel
matrix for later calls. A call with more forecasts takes long even with a known inverse."""

ROWS = 256
"""Number of new forecasts that get weights at once. It limits the memory for similarities."""


KEPT: Kept[tuple[int, Embedding]] = Kept(256 * 2**20)
"""Cache of embeddings (cases and fit of a location) that this process has used twice or more. A
full cache first drops embeddings that were not used for the longest time."""


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
    r"""Compute weighted ensembles for new forecasts.

    Parameters
    ----------
    forecasts : Forecasts
        Arrays (L, T, p): T forecasts at each location.
    cases, observations, fitted
        Arguments and results of :func:`fit_ckme`.
    kernel, projection, features, days
        As in the fit.
    new_features : Features, optional
        Covariates of the forecasts, (L, T, k).
    own_members : bool
        True computes members for each forecast. If False, the members are the past observations,
        and all supports must be past observations.
    across, squared : array of float64, shapes (L, T, n) and (L, n, n), optional
        Squared energy distances from forecasts to cases and among the cases, if already computed.
    shapes : bool
        True compares forecasts minus their means; the value must be that of the fit.
    return_novelty : bool
        True also returns the novelty, at little extra cost.

    Returns
    -------
    members : array, shape (L, n) or (L, T, n)
        The observations. With ``own_members``, the members of each forecast instead: centre plus
        errors, in the floating type of the forecasts, and NaN for unused cases.
    weights : array, shape (L, T, n)
        Probabilities of the members, in the floating type of the forecasts; 0 for unused cases.
        NaN for a forecast without valid members or covariates, and at locations without a fit.
    novelty : array of float64, shape (L, T)
        Only with ``return_novelty``; see :func:`ckme_novelty`.

    Notes
    -----
    Let K be the kernel matrix, :math:`\lambda` the ridge, :math:`\Omega` the case weights, and k(x)
    the similarities of a forecast x to the n cases. The signed weights are :math:`\beta = (K +
    \lambda n \Omega^{-1})^{-1} k(x)`. Before the projection, the function adds :math:`1 -
    \sum\beta` to them, in proportion to the case weights. This makes the CKME a regression around
    climatology. The function rebuilds and inverts :math:`K + \lambda n \Omega^{-1}` once per
    location for all T forecasts, in O(n³). Each forecast then costs O(n m + n²). With r landmarks,
    the costs are O(n r²) per location and O(r m + n r) per forecast. If several calls use the same
    fit, the process keeps the inverse from the second call on, but only if the calls have few
    forecasts at few locations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> members, weights = ckme_weights(cases, cases, truth, xrecal.arrays.fit_ckme(cases, truth))
    >>> weights.shape, weights.sum(-1).round(6).min().item()
    ((1, 40, 40), 1.0)
    """
    names = ("members",) * own_members + ("weights",) + ("novelty",) * return_novelty
    found = _issue(
        names,
        forecasts,
        cases,
        observations,
        fitted,
        projection,
        kernel=kernel,
        features=features,
        new_features=new_features,
        days=days,
        across=across,
        squared=squared,
        shapes=shapes,
    )
    return found if own_members else (observations, *found)


def ckme_weights_of_both(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    fitted: FittedCKME,
    *,
    projection: str = "euclidean",
    **compared: Any,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r"""Compute weighted ensembles of errors, and weights of past observations.

    Parameters
    ----------
    forecasts, cases, observations, fitted, projection
        As for :func:`ckme_weights`.
    **compared
        ``kernel``, ``features``, ``new_features``, ``days``, ``across``, ``squared``, ``shapes``,
        also as for :func:`ckme_weights`.

    Returns
    -------
    members, weights : array, shape (L, T, n)
        Centre plus errors, and the probabilities of these members. The errors are those of the
        fitted support. If the fitted support is past observations, the errors are those of the best
        other support, with the same kernel and ridge.
    observed : array, shape (L, T, n)
        Probabilities of past observations at locations where the search found these better than
        errors, 0 at other locations.
    novelty : array of float64, shape (L, T)
        See :func:`ckme_novelty`.

    Notes
    -----
    The function computes both kinds of weights from the same signed weights, so the cost is that of
    :func:`ckme_weights` plus a second projection.

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
    names = "members", "weights", "observed", "novelty"
    return _issue(names, forecasts, cases, observations, fitted, projection, **compared)  # type: ignore[return-value]


def ckme_novelty(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    fitted: FittedCKME,
    **compared: Any,
) -> FloatArray:
    r"""Compute the novelty of new forecasts: their distance from all past forecasts.

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
        0 for an ordinary forecast, 1 for a forecast unlike all past ones; NaN where the weights are
        NaN.

    Notes
    -----
    The function uses a small ridge, :math:`\lambda = 10^{-3}`, whatever ridge the fit has chosen.
    With this ridge, the sum of signed weights :math:`s(x) = \sum_i \beta_i(x)` is the share of the
    forecast that comes from similar cases. The novelty is one minus the ratio of s(x) to the median
    of s over held-out cases. For a held-out case i, :math:`1 - s_{-i} = (1 - s_i) / (1 - h_i)`,
    where :math:`s_{-i}` is the sum from a fit without this case, and :math:`h_i` is its leverage.
    The time is O(n³) for each location, or O(n r²) with r landmarks, and O(m + n) for each forecast
    and case.

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
    return _issue(("novelty",), forecasts, cases, observations, fitted, **compared)[0]


class Compared(NamedTuple):
    """Inputs that determine how to compare forecasts with cases; see :func:`ckme_weights`."""

    kernel: str = "gaussian"
    features: Features | None = None
    new_features: Features | None = None
    days: FloatArray | None = None
    across: Sequence[Squared] | None = None
    squared: Sequence[Squared] | None = None
    shapes: bool = False


class _Learned(NamedTuple):
    """Cases, their fit, and the inputs that determine how to compare forecasts with the cases."""

    cases: Forecasts
    observations: FloatArray
    fitted: FittedCKME
    how: Compared
    centred: bool


def _issue(
    names: tuple[str, ...],
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    fitted: FittedCKME,
    projection: str = "euclidean",
    **compared: Any,
) -> tuple[FloatArray, ...]:
    """Return the arrays (L, T, ...) with these names, such as "weights"."""
    check_choice("projection", projection, PROJECTIONS)
    n_locations, n, n_new = check_forecasts(forecasts, cases, observations, fitted)
    how = Compared(**compared)
    check_kernel(how.kernel)
    issued = {}
    for name in names:
        is_novelty = name == "novelty"
        shape = (n_locations, n_new) if is_novelty else (n_locations, n_new, n)
        issued[name] = np.full(shape, np.nan, np.float64 if is_novelty else forecasts.loc.dtype)
    of = _Learned(cases, observations, fitted, how, "members" in names or how.shapes)
    for place, new, learned in _places(forecasts, of):
        _fill(learned, new, {name: array[place] for name, array in issued.items()}, projection)
    return tuple(issued.values())


def _places(forecasts: Forecasts, of: _Learned) -> Iterator[tuple[int, NewForecasts, Embedding]]:
    """Yield the index, the forecasts and the embedding of each location that has a fit."""
    (n_locations, n, m), (_, n_new, p) = of.cases.loc.shape, forecasts.loc.shape
    how, memory = of.how, _memory(of)
    features = no_features(n_locations, n_new) if how.new_features is None else how.new_features
    keep = n_new <= A_DAY and how.squared is None and memory <= KEPT.most // 4
    for block in location_blocks(n_locations, 24 * max(n * m, n_new * p)):
        some = forecasts.take(block), features.take(block)
        new = list(new_forecasts(*some, centred=of.centred, shapes=how.shapes))
        make = partial(_embeddings, of, block)
        known = KEPT.get([*_contents(of, block)], memory, make) if keep else make()
        for cell, embedding in known:
            place = block.start + cell
            across = None if how.across is None else how.across[place]
            one = new[cell]._replace(across=across)
            yield place, one.compared_with(embedding.where), embedding


def _embeddings(of: _Learned, block: slice) -> Iterator[tuple[int, Embedding]]:
    """Yield the index and the embedding of each location that has a fit, in a block of locations.

    The first location of the block has the index 0.
    """
    how, (n_locations, n, _) = of.how, of.cases.loc.shape
    features = no_features(n_locations, n) if how.features is None else how.features
    weight = case_weights(how.days, lives_of(of.fitted.half_life), n)
    past = of.cases.take(block), of.observations[block], features.take(block), weight[block]
    for cell, where in enumerate(locations(*past, centred=of.centred, shapes=how.shapes)):
        place = block.start + cell
        fitted = FittedCKME(*(np.array(part[place]) for part in of.fitted))
        if not np.isnan(fitted.ridge):
            squared = None if how.squared is None else how.squared[place]
            yield cell, Embedding(where, fitted, how.kernel == "laplace", squared)


def _memory(of: _Learned) -> int:
    """Estimate the size of embeddings in bytes."""
    n_locations, n, m = of.cases.loc.shape
    landmarks = int((of.fitted.landmark >= 0).sum(-1).max(initial=0))
    of_case = 4 * (landmarks + TOGETHER) if landmarks else 3 * n
    return int(8 * n_locations * n * (8 * m + of_case))


def _contents(of: _Learned, block: slice) -> Iterator[Any]:
    """Yield all inputs that the embeddings of a block of locations depend on."""
    how, features = of.how, of.how.features
    circular, values = (None, None) if features is None else (features.circular, features.values)
    yield how.kernel, how.shapes, of.centred, block
    yield from (*of.cases, of.observations, *of.fitted, circular, values, how.days)


def _fill(
    learned: Embedding, new: NewForecasts, out: Mapping[str, FloatArray], projection: str
) -> None:
    """Write the results for the forecasts at one location to the arrays ``out``, by name."""
    fitted, n_new, rank = learned.fitted, new.mean.size, 0
    supports = {}
    if "weights" in out:
        rank, solve = learned.solver(n_new)
        supports["weights"] = fitted.support, fitted.centre
    most = max(rank, learned.familiarity[0].size) if "novelty" in out else rank
    chosen = learned.chosen(most)
    if "observed" in out:
        out["observed"][:] = 0.0
        if fitted.beside:
            supports["observed"] = supports["weights"]
            supports["weights"] = fitted.beside, fitted.beside_centre
    known = {
        name: (learned.support(*support), learned.centres(new, *support))
        for name, support in supports.items()
    }
    for rows in (slice(first, first + ROWS) for first in range(0, n_new, ROWS)):
        similarities = learned.similarities(new, rows, chosen)
        if "novelty" in out:
            out["novelty"][rows] = learned.novelty(new, rows, similarities)
        if not supports:
            continue
        signed = solve(similarities[:, :rank])
        # The solver returns α for R K R, with the roots R of the case weights; β = R α.
        signed *= learned.where.root
        for name, (ranked, centred) in known.items():
            shares, points = np.empty((2, *signed.shape))
            some = np.ascontiguousarray(centred[:, rows])
            FILL_ROWS[projection](signed, ranked, some, shares, points)
            _to_slots(shares, learned.where.slot, 0.0, out[name][rows])
            if name == "weights" and "members" in out:
                points[np.isnan(shares[:, 0])] = np.nan
                _to_slots(points, learned.where.slot, np.nan, out["members"][rows])
    if "observed" in out:
        out["observed"][np.isnan(out["weights"]).all(-1)] = np.nan


def _to_slots(values: FloatArray, slot: IntArray, unused: float, out: FloatArray) -> None:
    """Write values (q, n) of used cases to the positions of these cases among all cases.

    Other positions get ``unused``; a row of NaN stays NaN at all positions.
    """
    out[:] = unused
    out[:, slot] = values
    out[np.isnan(values[:, 0])] = np.nan
