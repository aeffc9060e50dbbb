"""Calibration cases as the solver takes them, and their folds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import (
    VALID,
    Forecasts,
    usable_observations,
    verdicts,
)
from xrecal.arrays.kernels.covariates import Features
from xrecal.typing import FloatArray, IntArray


class OrderedCases(NamedTuple):
    """Cases of L locations, float64: the ``n_used`` usable ones first, in the order of time."""

    loc: FloatArray
    """(L, n, m)"""
    scale: FloatArray | None
    """(L, n, m)"""
    weights: FloatArray
    """(L, n, m)"""
    mean: FloatArray
    """(L, n)"""
    variance: FloatArray
    """(L, n)"""
    features: FloatArray
    """(L, n, k) of the covariates"""
    circular: npt.NDArray[np.bool_]
    """(k,)"""
    target: FloatArray
    """(L, n) observations"""
    weight: FloatArray
    """(L, n) logarithm to base 2 of how much each case counts, up to a constant"""
    slot: IntArray
    """(L, n) place of each case among all"""
    step: IntArray
    """(L, n) step in time of each case"""
    n_used: IntArray
    """(L,)"""


class NewForecasts(NamedTuple):
    """Forecasts to recalibrate, contiguous float64, NaN where one is missing or invalid."""

    loc: FloatArray
    """(L, T, p)"""
    scale: FloatArray | None
    """(L, T, p)"""
    weights: FloatArray
    """(L, T, p)"""
    mean: FloatArray
    """(L, T)"""
    variance: FloatArray
    """(L, T)"""
    features: FloatArray
    """(L, T, k)"""


def order_cases(
    cases: Forecasts,
    observations: FloatArray,
    features: Features,
    weight: FloatArray,
    moments: tuple[FloatArray, FloatArray],
    step: IntArray | None = None,
) -> tuple[OrderedCases, npt.NDArray[np.bool_]]:
    """Put the cases (L, n, m) that can be learned from first, with all that is known of them.

    ``observations``, ``weight`` and the two ``moments`` of the forecasts have shape (L, n), the
    ``step`` in time (n,); each case is a step of its own without. Also returns whether each
    location holds an invalid value, (L,).
    """
    usable, invalid = usable_observations(cases, observations)
    usable[~np.isfinite(features.values).all(-1)] = np.nan
    slot = np.argsort(np.isnan(usable), axis=-1, kind="stable")

    def ordered(part: FloatArray) -> FloatArray:
        place = slot if part.ndim == 2 else slot[..., np.newaxis]
        return np.ascontiguousarray(np.take_along_axis(part, place, axis=1), dtype=np.float64)

    loc, scale, weights = cases
    found = OrderedCases(
        ordered(loc),
        None if scale is None else ordered(scale),
        np.ones(loc.shape) if weights is None else ordered(weights),
        ordered(moments[0]),
        ordered(moments[1]),
        ordered(features.values),
        features.circular,
        ordered(usable),
        ordered(weight),
        slot,
        slot if step is None else np.asarray(step, np.int64)[slot],
        np.isfinite(usable).sum(-1),
    )
    return found, invalid


def valid_parts(
    forecasts: Forecasts, features: Features, moments: tuple[FloatArray, FloatArray]
) -> NewForecasts:
    """Forecasts (L, T, p) as compiled code takes them."""
    loc, scale, weights = forecasts
    bad = (verdicts(forecasts) != VALID)[..., np.newaxis]
    return NewForecasts(
        np.where(bad, np.nan, loc.astype(np.float64)),
        None if scale is None else np.array(scale, dtype=np.float64, order="C"),
        np.ones(loc.shape) if weights is None else np.array(weights, np.float64, order="C"),
        np.array(moments[0], np.float64, order="C"),
        np.array(moments[1], np.float64, order="C"),
        np.array(features.values, np.float64, order="C"),
    )
