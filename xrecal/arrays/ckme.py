"""The conditional kernel mean embedding: calibration cases to weights for new forecasts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xrecal.typing import FloatArray, IntArray

from ._normal_numba import fill_normal_distances
from .distance import cross_distances, self_distances
from .forms import INVALID_FORECAST, VALID, Forecasts, valid_forecasts
from .kernel import check_kernel, fill_similarity, positive_median
from .simplex import energy_row, simplex_row
from .status import IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW
from .tuning import LOSSES, assign_folds, choose_ridge

PROJECTIONS = ("euclidean", "energy")


class FittedCKME(NamedTuple):
    """What cross-validation chose at L locations; with the cases it gives all weights."""

    bandwidth: FloatArray
    """(L,) in the unit of D² (Gaussian kernel) or D (Laplace); infinity: climatology."""
    ridge: FloatArray
    """(L,) lambda, unitless; NaN where there were too few cases."""
    n_cases: IntArray
    """(L,) cases used."""
    status: IntArray
    """(L,) bits of :mod:`xrecal.arrays.status`, 0 where all is well."""


def fit_ckme(
    cases: Forecasts,
    observations: FloatArray,
    *,
    groups: IntArray | None = None,
    blocks: int = 5,
    gap: int = 0,
    kernel: str = "gaussian",
    bandwidth: float | None = None,
    ridge: float | None = None,
    loss: str = "crps",
    projection: str = "euclidean",
    min_samples: int = 20,
) -> FittedCKME:
    r"""Choose bandwidth and ridge of the embedding at every location.

    Parameters
    ----------
    cases : Forecasts
        Calibration forecasts at L locations: arrays (L, n, m).
    observations : array of float, shape (L, n)
        What verified, in the unit of the forecasts; NaN where unknown.
    groups : array of int, shape (n,), optional
        What folds are made of: calendar years, or an order of the cases. Position by default.
    blocks : int
        Number of folds, cut from the cases ordered by ``groups``; 0 makes each value of
        ``groups`` a fold.
    gap : int
        Cases left out of training on both sides of those held out, in slots of the n.
    kernel : {"gaussian", "laplace"}
        :math:`\exp(-D^2/s)` or :math:`\exp(-D/s)`.
    bandwidth, ridge : float, optional
        s and :math:`\lambda`; chosen here if not given: median distance, cross-validation.
    loss : {"crps", "laplace"}
        Held-out loss of the ridge search, of the projected weights.
    projection : {"euclidean", "energy"}
        How signed weights become probabilities.
    min_samples : int
        Locations with fewer complete cases get NaN and a status.

    Returns
    -------
    FittedCKME

    Raises
    ------
    ValueError
        If a setting is unknown or shapes differ.

    Notes
    -----
    Per location one eigendecomposition, O(n³), and about 20 ridges of O(n³) matrix products;
    five n × n matrices of float64 at a time. Cases with an infinite or otherwise invalid value
    are left out, with a status. Locations run one after another in compiled code without the GIL.

    References
    ----------
    .. [1] Park & Muandet (2020), A measure-theoretic approach to kernel conditional mean
       embeddings. https://arxiv.org/abs/2002.03689
    """
    check_kernel(kernel)
    _check_choice("loss", loss, LOSSES)
    _check_choice("projection", projection, PROJECTIONS)
    n_locations, n = cases.check("cases", 3)[:2]
    y = _observations(observations, (n_locations, n))
    groups = np.arange(n) if groups is None else np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups has shape {groups.shape}, but there are {n} cases")
    fitted = FittedCKME(
        np.full(n_locations, np.nan if bandwidth is None else bandwidth, dtype=np.float64),
        np.full(n_locations, np.nan if ridge is None else ridge, dtype=np.float64),
        np.zeros(n_locations, dtype=np.int32),
        np.zeros(n_locations, dtype=np.int8),
    )
    _fit_locations(
        *cases.as_compiled(),
        y,
        groups.astype(np.float64),
        blocks,
        gap,
        kernel == "laplace",
        loss == "laplace",
        projection == "energy",
        min_samples,
        *fitted,
    )
    return fitted


def ckme_weights(
    forecasts: Forecasts,
    cases: Forecasts,
    observations: FloatArray,
    bandwidth: FloatArray,
    ridge: FloatArray,
    *,
    kernel: str = "gaussian",
    projection: str = "euclidean",
) -> FloatArray:
    r"""Weights of the calibration observations for new forecasts.

    Parameters
    ----------
    forecasts : Forecasts
        Arrays (L, T, p): T forecasts at each location.
    cases, observations, bandwidth, ridge
        As given to, and returned by, :func:`fit_ckme`.
    kernel, projection
        As in the fit.

    Returns
    -------
    array of the floating type of the forecasts, shape (L, T, n)
        Probabilities of the n observations, 0 for unused cases; NaN for a forecast without
        valid members and at locations without a fit.

    Notes
    -----
    Rebuilds and factorises :math:`K + \lambda n I` once per location, O(n³), for all T
    forecasts; each then costs O(n m + n²). Signed weights
    :math:`\beta = (K + \lambda n I)^{-1} k(x)` get :math:`(1 - \sum\beta)/n` added, the
    regression around the climatological mean embedding, before the projection.
    """
    check_kernel(kernel)
    _check_choice("projection", projection, PROJECTIONS)
    n_locations, n = cases.check("cases", 3)[:2]
    n_new = forecasts.check("forecasts", 3)[1]
    if forecasts.loc.shape[0] != n_locations:
        raise ValueError(
            f"forecasts have {forecasts.loc.shape[0]} locations, but cases have {n_locations}"
        )
    if (forecasts.scale is None) != (cases.scale is None):
        raise ValueError("forecasts and cases must both be ensembles or both be Gaussian")
    y = _observations(observations, (n_locations, n))
    for name, fitted in {"bandwidth": bandwidth, "ridge": ridge}.items():
        if np.shape(fitted) != (n_locations,):
            raise ValueError(
                f"{name} has shape {np.shape(fitted)}, but there are {n_locations} locations"
            )
    weights = np.full((n_locations, n_new, n), np.nan, dtype=forecasts.loc.dtype)
    _weigh_locations(
        *forecasts.as_compiled(),
        *cases.as_compiled(),
        y,
        np.require(bandwidth, np.float64, ["C", "W"]),
        np.require(ridge, np.float64, ["C", "W"]),
        kernel == "laplace",
        projection == "energy",
        weights,
    )
    return weights


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _observations(observations: FloatArray, shape: tuple[int, int]) -> FloatArray:
    y = np.require(observations, np.float64, ["C", "W"])
    if y.shape != shape:
        raise ValueError(f"observations have shape {y.shape}, but the cases need {shape}")
    return y


@njit(nogil=True)
def _fit_locations(
    loc: Any,
    scale: Any,
    weights: Any,
    observations: Any,
    groups: Any,
    blocks: int,
    gap: int,
    laplace_kernel: bool,
    laplace_loss: bool,
    energy: bool,
    min_samples: int,
    bandwidths: Any,
    ridges: Any,
    n_cases: Any,
    statuses: Any,
) -> None:
    """Fill bandwidth and ridge where they are NaN; compiled loop over locations."""
    for cell in range(loc.shape[0]):
        slots, target, invalid = _used_cases(loc, scale, weights, observations, cell)
        n = slots.size
        status = INVALID if invalid else 0
        n_cases[cell] = n
        if n < max(min_samples, 2):
            statuses[cell] = status | TOO_FEW
            bandwidths[cell] = ridges[cell] = np.nan
            continue
        gram = _case_distances(loc, scale, weights, cell, slots)
        s = positive_median(gram)
        if np.isinf(s):  # K = 1: no forecast says more than climatology, whatever the ridge
            statuses[cell] = status | IDENTICAL
            bandwidths[cell], ridges[cell] = s, 1.0
            continue
        if np.isnan(bandwidths[cell]):
            bandwidths[cell] = np.sqrt(s) if laplace_kernel else s
        if np.isnan(ridges[cell]):
            fill_similarity(gram, bandwidths[cell], laplace_kernel)
            group = np.empty(n)
            for i in range(n):
                group[i] = groups[slots[i]]
            ridges[cell], on_edge = choose_ridge(
                gram, target, assign_folds(group, slots, blocks), slots, gap, laplace_loss, energy
            )
            status |= RIDGE_EDGE if on_edge else 0
        statuses[cell] = status


@njit(nogil=True)
def _weigh_locations(
    new_loc: Any,
    new_scale: Any,
    new_weights: Any,
    loc: Any,
    scale: Any,
    weights: Any,
    observations: Any,
    bandwidths: Any,
    ridges: Any,
    laplace_kernel: bool,
    energy: bool,
    out: Any,
) -> None:
    """Fill the weights of valid forecasts at fitted locations; compiled loop over locations."""
    beta, row = np.empty(loc.shape[1]), np.empty(loc.shape[1])
    for cell in range(loc.shape[0]):
        new = _valid_slots(valid_forecasts(new_loc, new_scale, new_weights, cell))
        if np.isnan(ridges[cell]) or new.size == 0:
            continue
        slots, support, _ = _used_cases(loc, scale, weights, observations, cell)
        n = slots.size
        gram = _case_distances(loc, scale, weights, cell, slots)
        fill_similarity(gram, bandwidths[cell], laplace_kernel)
        for i in range(n):
            gram[i, i] += ridges[cell] * n
        across = _new_distances(
            new_loc, new_scale, new_weights, new, loc, scale, weights, slots, cell
        )
        fill_similarity(across, bandwidths[cell], laplace_kernel)
        signed = np.dot(across, np.linalg.inv(gram))
        for t in range(new.size):
            mass = 0.0
            for i in range(n):
                beta[i] = signed[t, i]
                mass += beta[i]
            for i in range(n):
                beta[i] += (1.0 - mass) / n
            if energy:
                energy_row(beta[:n], support, row[:n])
            else:
                simplex_row(beta[:n], row[:n])
            for i in range(out.shape[2]):
                out[cell, new[t], i] = 0.0
            for i in range(n):
                out[cell, new[t], slots[i]] = row[i]


@njit(nogil=True)
def _valid_slots(verdict: Any) -> Any:
    slots = np.empty(verdict.size, dtype=np.int64)
    count = 0
    for i in range(verdict.size):
        if verdict[i] == VALID:
            slots[count] = i
            count += 1
    return slots[:count]


@njit(nogil=True)
def _used_cases(loc: Any, scale: Any, weights: Any, observations: Any, cell: int) -> Any:
    """Slots with a finite observation and a valid forecast, and the observations, ascending.

    Also whether a case was left out because a value is invalid, not merely missing.
    """
    verdict = valid_forecasts(loc, scale, weights, cell)
    invalid = False
    for i in range(verdict.size):
        y = observations[cell, i]
        invalid = invalid or verdict[i] == INVALID_FORECAST or np.isinf(y)
        if not np.isfinite(y):
            verdict[i] = 0
    slots = _valid_slots(verdict)
    target, ascending = np.empty(slots.size), np.empty(slots.size, dtype=np.int64)
    for i in range(slots.size):
        target[i] = observations[cell, slots[i]]
    order = np.argsort(target)
    for i in range(slots.size):
        target[i] = observations[cell, slots[order[i]]]
        ascending[i] = slots[order[i]]
    return ascending, target, invalid


@njit(nogil=True)
def _take(array: Any, cell: int, rows: Any) -> Any:
    """Rows of one location as float64."""
    taken = np.empty((rows.size, array.shape[2]))
    for i in range(rows.size):
        for j in range(array.shape[2]):
            taken[i, j] = array[cell, rows[i], j]
    return taken


@njit(nogil=True)
def _take_weights(weights: Any, cell: int, rows: Any, size: int) -> Any:
    if weights is None:
        return np.ones((rows.size, size))
    return _take(weights, cell, rows)


@njit(nogil=True)
def _case_distances(loc: Any, scale: Any, weights: Any, cell: int, slots: Any) -> Any:
    points = _take(loc, cell, slots)
    mass = _take_weights(weights, cell, slots, loc.shape[2])
    if scale is None:
        return self_distances(points, mass)
    spread = _take(scale, cell, slots)
    squared = np.empty((slots.size, slots.size))
    fill_normal_distances(points, spread, mass, points, spread, mass, squared)
    return squared


@njit(nogil=True)
def _new_distances(
    new_loc: Any,
    new_scale: Any,
    new_weights: Any,
    new: Any,
    loc: Any,
    scale: Any,
    weights: Any,
    slots: Any,
    cell: int,
) -> Any:
    new_points = _take(new_loc, cell, new)
    new_mass = _take_weights(new_weights, cell, new, new_loc.shape[2])
    points = _take(loc, cell, slots)
    mass = _take_weights(weights, cell, slots, loc.shape[2])
    if scale is None:
        return cross_distances(new_points, new_mass, points, mass)
    squared = np.empty((new.size, slots.size))
    new_spread, spread = _take(new_scale, cell, new), _take(scale, cell, slots)
    fill_normal_distances(new_points, new_spread, new_mass, points, spread, mass, squared)
    return squared
