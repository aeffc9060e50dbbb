"""The conditional kernel mean embedding: calibration cases to weights for new forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from xrecal.typing import FloatArray, IntArray

from . import SMALLEST_RIDGE
from ._ckme_numba import fit_locations, weigh_locations
from .cases import assign_folds, location_blocks, order_cases, valid_parts
from .forms import Forecasts
from .kernel import check_kernel
from .simplex import PROJECTIONS
from .status import INVALID
from .tuning import LOSSES


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
    if blocks < 0 or blocks == 1 or gap < 0:
        raise ValueError(
            "blocks must be 2 or more (0: each group is a fold) and gap 0 or more, "
            f"got {blocks=}, {gap=}"
        )
    for name, value in (("bandwidth", bandwidth), ("ridge", ridge)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, or None to choose it, got {value}")
    if ridge is not None and ridge < SMALLEST_RIDGE:
        raise ValueError(f"ridge must be at least {SMALLEST_RIDGE:g}, got {ridge}")
    n_locations, n = cases.check("cases", 3)[:2]
    _check_observations(observations, (n_locations, n))
    groups = np.arange(n) if groups is None else np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups has shape {groups.shape}, but there are {n} cases")
    bandwidths = np.full(n_locations, np.nan if bandwidth is None else bandwidth, np.float64)
    ridges = np.full(n_locations, np.nan if ridge is None else ridge, np.float64)
    n_cases, statuses = np.zeros(n_locations, np.int32), np.zeros(n_locations, np.int64)
    for block in location_blocks(n_locations, 24 * math.prod(cases.loc.shape[1:])):
        ordered, invalid = order_cases(cases.take(block), observations[block])
        statuses[block], n_cases[block] = np.where(invalid, INVALID, 0), ordered.n_used
        usable = np.arange(n) < ordered.n_used[:, np.newaxis]
        in_time = np.zeros_like(usable)
        np.put_along_axis(in_time, ordered.slot, usable, axis=1)
        fold = np.take_along_axis(assign_folds(groups, in_time, blocks), ordered.slot, axis=1)
        fit_locations(
            *ordered,
            fold,
            gap,
            kernel == "laplace",
            PROJECTIONS[projection],
            *LOSSES[loss],
            min_samples,
            bandwidths[block],
            ridges[block],
            statuses[block],
        )
    return FittedCKME(bandwidths, ridges, n_cases, statuses.astype(np.int8))


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
    Rebuilds and inverts :math:`K + \lambda n I` once per location, O(n³), for all T
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
    _check_observations(observations, (n_locations, n))
    for name, fitted in {"bandwidth": bandwidth, "ridge": ridge}.items():
        if np.shape(fitted) != (n_locations,):
            raise ValueError(
                f"{name} has shape {np.shape(fitted)}, but there are {n_locations} locations"
            )
    weights = np.full((n_locations, n_new, n), np.nan, dtype=forecasts.loc.dtype)
    members = max(n * cases.loc.shape[2], n_new * forecasts.loc.shape[2])
    for block in location_blocks(n_locations, 8 * max(n_new * n, 3 * members)):
        ordered, _ = order_cases(cases.take(block), observations[block])
        found = np.full((ordered.n_used.size, n_new, n), np.nan)
        weigh_locations(
            *valid_parts(forecasts.take(block)),
            *ordered,
            np.array(bandwidth[block], np.float64),
            np.array(ridge[block], np.float64),
            kernel == "laplace",
            PROJECTIONS[projection],
            found,
        )
        weights[block] = found
    return weights


def _check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def _check_observations(observations: FloatArray, shape: tuple[int, int]) -> None:
    if observations.shape != shape:
        raise ValueError(
            f"observations have shape {observations.shape}, but the cases need {shape}"
        )
