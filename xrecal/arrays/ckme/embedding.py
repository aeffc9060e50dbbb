"""Settings and fitted numbers of the embedding, and what fit and prediction share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import Forecasts, Squared, moments
from xrecal.arrays.kernels.covariates import Features, no_features
from xrecal.typing import FloatArray, IntArray

from .ordered_cases import NewForecasts, OrderedCases, order_cases, valid_parts

SMALLEST_WEIGHT = 1e-12
"""Of a case many half-lives old: less would only be rounding."""


class Settings(NamedTuple):
    """How the embedding is fitted; the same at all locations."""

    kernel: str = "gaussian"
    bandwidth: float | None = None
    ridge: float | None = None
    loss: str = "crps"
    projection: str = "euclidean"
    gap: int = 0
    bounds: str | tuple[float | None, float | None] | None = "auto"
    supports: tuple[str, ...] = ("observations",)
    kernels: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    """Factor of the bandwidth, and strength of the covariates (0: without), of each candidate."""
    min_samples: int = 20
    solver: str = "auto"
    shapes: bool = False
    """Whether forecasts are compared after each has lost its mean."""


class FittedCKME(NamedTuple):
    """What cross-validation chose at L locations; with the cases it gives all weights."""

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


class Calibration(NamedTuple):
    """All that is known of the calibration cases at L locations."""

    cases: Forecasts
    """(L, n, m)"""
    observations: FloatArray
    """(L, n)"""
    features: Features
    """(L, n, k)"""
    days: FloatArray | None
    """(n,) dates"""
    groups: IntArray
    """(n,) what folds are made of"""
    blocks: int
    """Number of folds, 0 for one of each group"""
    step: IntArray
    """(n,) step in time"""
    squared: Sequence[Squared] | None
    """(L, n, n) squared distances, where known"""
    vectors: FloatArray | None
    """(L, n, d) observed vectors, where observations are the numbers of these"""


def calibration(
    cases: Forecasts,
    observations: FloatArray,
    features: Features | None,
    days: FloatArray | None,
    groups: IntArray | None,
    blocks: int,
    step: IntArray | None,
    squared: Sequence[Squared] | None,
    vectors: FloatArray | None = None,
) -> Calibration:
    """Check shapes and fill in what is not given."""
    n_locations, n = cases.check("cases", 3)[:2]
    check_observations(observations, (n_locations, n))
    step = np.arange(n) if step is None else np.asarray(step)
    groups = step if groups is None else np.asarray(groups)
    for name, array in {"step": step, "groups": groups}.items():
        if array.shape != (n,):
            raise ValueError(f"{name} has shape {array.shape}, but there are {n} cases")
    features = no_features(n_locations, n) if features is None else features
    known = features, days, groups, blocks, step, squared, vectors
    return Calibration(cases, observations, *known)


def ordered_cases(
    cases: Forecasts,
    observations: FloatArray,
    features: Features,
    weight: FloatArray,
    centred: bool,
    step: IntArray | None = None,
    *,
    shapes: bool = False,
) -> tuple[OrderedCases, npt.NDArray[np.bool_]]:
    """See :func:`~xrecal.arrays.ckme.ordered_cases.order_cases`; with moments for centres."""
    known = moments_of(cases, centred=centred)
    compared = shapes_of(cases, known[0]) if shapes else cases
    return order_cases(compared, observations, features, weight, known, step)


def new_forecasts(
    forecasts: Forecasts, features: Features, centred: bool, *, shapes: bool = False
) -> NewForecasts:
    """See :func:`~xrecal.arrays.ckme.ordered_cases.valid_parts`; with moments for centres."""
    known = moments_of(forecasts, centred=centred)
    compared = shapes_of(forecasts, known[0]) if shapes else forecasts
    return valid_parts(compared, features, known)


def shapes_of(forecasts: Forecasts, mean: FloatArray) -> Forecasts:
    """Forecasts (L, n, m) without their means (L, n); those that have none as they are."""
    shift = np.where(np.isfinite(mean), mean, 0.0)[..., np.newaxis]
    return forecasts._replace(loc=forecasts.loc - shift.astype(forecasts.loc.dtype))


def moments_of(forecasts: Forecasts, *, centred: bool) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of forecasts (L, n, m); zeros where no centre needs them."""
    if centred:
        return moments(forecasts)
    zeros = np.broadcast_to(0.0, forecasts.loc.shape[:2])
    return zeros, zeros


def case_weights(days: FloatArray | None, half_life: FloatArray, n: int) -> FloatArray:
    """Logarithm to base 2 of how much each case counts, (L, n), up to a constant."""
    if np.isinf(half_life).all():
        return np.broadcast_to(0.0, (half_life.size, n))
    if days is None:
        raise ValueError("a half-life needs days, the dates of the cases")
    age = np.max(days) - np.asarray(days, np.float64)
    return -age / half_life[:, np.newaxis]


def roots_of(logarithm: FloatArray) -> FloatArray:
    """Roots of the weights of the cases used (n,), of which the largest is 1."""
    weight = 2.0 ** (logarithm - logarithm.max(initial=-np.inf))
    return np.asarray(np.sqrt(np.maximum(weight, SMALLEST_WEIGHT)))


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
