"""Squared kernel calibration error (SKCE) at many locations, with p-values and status."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import INVALID_FORECAST, VALID, Forecasts, verdicts
from xrecal.arrays.rows import whole_number
from xrecal.arrays.serial import dates_of
from xrecal.arrays.status import (
    DEPENDENT,
    ENOUGH,
    FEW,
    FEWEST,
    IDENTICAL,
    INVALID,
    NO_SPREAD,
    NOT_TOLD,
    REFUSED,
    SEASONAL,
    TOO_FEW,
)
from xrecal.typing import FloatArray, IntArray

from .expectations import target_bandwidth, unsound
from .montecarlo import montecarlo_p_value
from .skce import (
    block_estimates,
    block_p_value,
    bootstrap_p_value,
    chosen_length,
    forecast_similarity,
    generator,
    matrix_of,
    one_row_each,
    serial_p_value,
    shows_dependence,
    skce_unbiased,
    subset_bandwidth,
    sums_by_date,
    usable_cases,
    wild_p_value,
)

TESTS = ("serial", "bootstrap", "wild", "montecarlo", "block")


ROUNDING = 1e-12
HARMONICS = 2
MOST = 0.5
"""The test subtracts the annual cycle if the cycle explains more than this share of the variance of
the forecast means."""

FEWEST_DATED = 20
"""Least number of cases from which the function estimates an annual cycle."""


class SkceSettings(NamedTuple):
    """Settings of the squared kernel calibration error and its test."""

    test: str | None = None
    """Name of the test: "serial", "bootstrap" or "wild" (see :func:`xrecal.arrays.skce_test`),
    "montecarlo" (see :func:`xrecal.arrays.montecarlo_test`), or "block" (see
    :func:`xrecal.arrays.block_p_value`). With None the function computes no test"""
    n_resamples: int = 1000
    """Number of resamples that the test draws; the test "block" draws none"""
    seed: int = 0
    """Seed of random numbers"""
    block_length: int | None = None
    """For "serial" and "wild", number of successive cases that count as one; by default "serial"
    estimates this number, and "wild" uses 1. For "block", number of cases in a block, at least 2;
    by default the square root of the number of cases, rounded down"""
    augmented: bool = False
    """True if the observation of each case becomes a further member of its plain ensemble; see
    :func:`xrecal.arrays.case_matrix`"""
    simultaneous: int = 1
    """For "serial", number of successive cases that belong to one date. If it is above 1,
    ``block_length`` counts dates"""


ESTIMATE = SkceSettings()


class SkceEstimates(NamedTuple):
    """Squared kernel calibration errors (SKCE) and tests of locations, as arrays (L,)."""

    skce: FloatArray
    """Unbiased estimate, without unit, which may be negative"""
    p_value: FloatArray
    """p-value, small if forecasts are not calibrated"""
    status: IntArray
    """Status bits, which ``xrecal.arrays.status.EVIDENCE_MEANINGS`` explains"""
    block_length: IntArray
    """Number of successive cases (or dates) that count as one; for "block", number of cases in a
    block; 0 without a test"""


def skce_locations(
    forecasts: Forecasts,
    observations: FloatArray,
    settings: SkceSettings = ESTIMATE,
    *,
    location_numbers: IntArray | None = None,
    season: FloatArray | None = None,
) -> SkceEstimates:
    """Compute the SKCE at each location, and test whether forecasts are calibrated.

    Parameters
    ----------
    forecasts : Forecasts
        Arrays (L, n, m) in the unit u of the variable; or ``loc`` (L, m) and ``weights``
        (L, n, m) for members that all cases of a location share.
    observations : array of float, shape (L, n)
        Observations in u, with cases in order of time.
    settings : SkceSettings
        Test and its options; by default the function computes no test.
    location_numbers : array of int, shape (L,), optional
        Number of each location in the whole data set, from 0; by default 0, 1, ... The random
        numbers of a location depend on this number. So a call with only some of the locations gives
        the same results for these locations.
    season : array of float, shape (L, n), optional
        Fraction of the year of each case, in [0, 1). The function fits yearly and half-yearly waves
        to the forecast means if there are 20 cases or more. If the waves explain more than half of
        the variance, the function subtracts them from forecasts and observations. Without this
        step, the kernels would mainly compare the seasons of cases.

    Returns
    -------
    SkceEstimates
        For "block", the estimate is the mean over blocks, or NaN if the cases do not fill one
        block. p-values are in (0, 1], or in [0, 1] for "block". They are NaN without a test. For
        "block" they are also NaN with fewer than two blocks. For "serial" they are also NaN if the
        autocorrelation is too strong for the number of cases. Estimate and p-value are NaN if fewer
        than two cases have a forecast and an observation, if all observations are equal, or if any
        forecast has invalid weights or scales. The function leaves out cases with missing or
        infinite values; the cases before and after such a case then count as successive.

    Raises
    ------
    ValueError
        If shapes do not match, the test is unknown, a setting is out of range or is for another
        test, or ``augmented`` is True for forecasts that are not plain ensembles.

    Notes
    -----
    With B resamples, the cost per location is O(n² m + B n²) time and the memory of a few arrays
    (n, n). With "block" and b cases in a block, it is O(n b m) time. Each location has its own
    test, so with many locations some tests reject calibration by chance.

    Examples
    --------
    >>> from xrecal.arrays import Forecasts
    >>> rng = np.random.default_rng(0)
    >>> members = Forecasts(rng.normal(size=(1, 50, 9)))
    >>> found = skce_locations(members, rng.normal(3.0, 1.0, (1, 50)), SkceSettings("wild"))
    >>> found.p_value.round(3), found.status
    (array([0.001]), array([0]))
    """
    by_case = one_row_each(forecasts)
    shape = by_case.check("forecasts", 3)
    observations = np.asarray(observations)
    if observations.shape != shape[:2]:
        raise ValueError(
            f"observations have shape {observations.shape}, but forecasts need {shape[:2]}"
        )
    settings = _checked(settings, by_case, forecasts)
    numbers = np.arange(shape[0]) if location_numbers is None else np.asarray(location_numbers)
    if numbers.shape != shape[:1] or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"location_numbers must be integers of shape {shape[:1]}, "
            f"got {numbers.dtype} of shape {numbers.shape}"
        )
    dates = np.full(shape[:2], np.nan) if season is None else np.asarray(season, np.float64)
    if dates.shape != shape[:2] or shape[1] % settings.simultaneous:
        raise ValueError(
            f"season must have shape {shape[:2]}, and simultaneous must divide {shape[1]} cases; "
            f"got shape {dates.shape} and simultaneous={settings.simultaneous}"
        )
    skce, p_value = np.full((2, shape[0]), np.nan)
    status, length = np.zeros((2, shape[0]), dtype=np.int64)
    for i in range(shape[0]):
        one = forecasts.take(i), observations[i], dates[i]
        found = _one(*one, settings, int(numbers[i]))
        skce[i], p_value[i], status[i], length[i] = found
    return SkceEstimates(skce, p_value, status, length)


def _checked(settings: SkceSettings, by_case: Forecasts, forecasts: Forecasts) -> SkceSettings:
    test, length = settings.test, settings.block_length
    if test is not None and test not in TESTS:
        names = ", ".join(map(repr, TESTS))
        raise ValueError(f"test is {test!r}; give one of {names}, or None")
    if length is not None:
        if test not in ("serial", "wild", "block"):
            raise ValueError(
                f"block_length is {length!r}, but test={test!r} treats cases as independent; "
                "use test='serial', 'wild' or 'block', or omit block_length"
            )
        length = whole_number("block_length", length, 2 if test == "block" else 1)
    if by_case is not forecasts and forecasts.scale is not None:
        raise ValueError("shared members must not have a scale; give loc the shape of scale")
    if settings.augmented and (forecasts.scale is not None or forecasts.weights is not None):
        raise ValueError(
            "augmented=True is for plain ensembles; these forecasts have weights or scales, so "
            "test them with augmented=False"
        )
    n_resamples = whole_number("n_resamples", settings.n_resamples, 1)
    simultaneous = whole_number("simultaneous", settings.simultaneous, 1)
    return settings._replace(
        n_resamples=n_resamples, block_length=length, simultaneous=simultaneous
    )


def _one(
    forecasts: Forecasts,
    observations: FloatArray,
    season: FloatArray,
    settings: SkceSettings,
    number: int,
) -> tuple[float, float, int, int]:
    """Compute SKCE, p-value, status and block length of one location."""
    by_case = one_row_each(forecasts)
    if unsound(by_case).any():
        return np.nan, np.nan, REFUSED, 0
    verdict = verdicts(by_case)
    infinite = (verdict == INVALID_FORECAST) | np.isinf(observations)
    status = INVALID if infinite.any() else 0
    usable = (verdict == VALID) & np.isfinite(observations)
    n = int(usable.sum())
    if n < FEWEST:
        return np.nan, np.nan, status | TOO_FEW, 0
    signs = n // (settings.block_length or 1) if settings.test == "wild" else n
    status |= FEW if signs < ENOUGH else 0
    parts, y = usable_cases(forecasts, observations, settings.augmented)
    if (relative := relative_to_season(parts, y, season[usable])) is not None:
        (parts, y), status = relative, status | SEASONAL
    theta = target_bandwidth(y)
    if math.isnan(theta):
        return np.nan, np.nan, status | NO_SPREAD, 0
    if settings.test == "block":
        length = settings.block_length or default_block(y.size)
        skce, p_value, identical = _from_blocks(parts, y, theta, length)
        status |= TOO_FEW if math.isnan(p_value) else 0
    else:
        date = dates_of(usable, settings.simultaneous)
        found = _from_matrix(parts, y, theta, date, settings, number)
        skce, p_value, identical, length, dependence = found
        status |= dependence
    return skce, p_value, status | (IDENTICAL if identical else 0), length


def default_block(n: int) -> int:
    """Return the default block length: the square root of n, rounded down, but at least 2."""
    return max(math.isqrt(n), 2)


def relative_to_season(
    parts: Forecasts, y: FloatArray, season: FloatArray
) -> tuple[Forecasts, FloatArray] | None:
    """Subtract the annual cycle of the forecasts from normalised forecasts and observations (n,).

    The result is None if :func:`annual_cycle` finds no cycle. The cycle depends only on forecasts
    and dates. So if forecasts are calibrated at each date, they stay calibrated after the
    subtraction.
    """
    loc, scale, weights = parts
    assert weights is not None  # set by normalised()
    centre = np.einsum("nm,nm->n", weights, np.broadcast_to(loc, weights.shape))
    cycle = annual_cycle(centre, season)
    if cycle is None:
        return None
    shifted = np.where(weights > 0, np.broadcast_to(loc, weights.shape) - cycle[:, np.newaxis], 0.0)
    return Forecasts(shifted, scale, weights), y - cycle


def annual_cycle(centre: FloatArray, season: FloatArray) -> FloatArray | None:
    """Return the annual cycle (n,) of forecast means (n,), relative to the mean of all cases.

    The cycle is a least-squares fit of yearly and half-yearly waves at the dates ``season`` (n,),
    in fractions of the year. The result is None with fewer than 20 cases, if a date is unknown, or
    if the cycle explains at most half of the variance. The explained variance is corrected for
    degrees of freedom.
    """
    known = np.isfinite(season)
    n = int(known.sum())
    if n < max(FEWEST_DATED, len(season)):  # every case needs a date
        return None
    angle = 2 * np.pi * np.outer(season, np.arange(1, HARMONICS + 1))
    design = np.column_stack([np.ones(n), np.cos(angle), np.sin(angle)])
    centred = centre - centre.mean()
    coefficients, _, rank, _ = np.linalg.lstsq(design, centred, rcond=1e-6)
    cycle: FloatArray = design @ coefficients
    left, whole = centred - cycle, float(centred @ centred)
    if whole <= n * (ROUNDING * np.abs(centre).max()) ** 2:
        return None
    if float(left @ left) / whole * (n - 1) / (n - rank) >= 1 - MOST:
        return None
    return cycle


def _from_blocks(
    parts: Forecasts, y: FloatArray, theta: float, b: int
) -> tuple[float, float, bool]:
    s = subset_bandwidth(parts)
    estimates = block_estimates(parts, y, b, s, theta)
    skce = float(estimates.mean()) if estimates.size else np.nan
    return skce, block_p_value(estimates), math.isinf(s)


def _from_matrix(
    parts: Forecasts,
    y: FloatArray,
    theta: float,
    date: IntArray,
    settings: SkceSettings,
    number: int,
) -> tuple[float, float, bool, int, int]:
    """Return SKCE, p-value, True if all forecasts are equal, block length, and status bits."""
    similarity, identical = forecast_similarity(parts)
    h = matrix_of(parts, y, similarity, theta)
    rng, n_resamples = generator(settings.seed, number), settings.n_resamples
    length = 0 if settings.test is None else settings.block_length or 1
    p_value, status = np.nan, 0
    if settings.test == "serial":
        given = settings.block_length is not None
        by_date = sums_by_date(h, date)
        length = length if given else chosen_length(by_date)
        p_value = serial_p_value(by_date, n_resamples, rng, length, given)
        status = NOT_TOLD if math.isnan(p_value) else 0
    elif settings.test == "bootstrap":
        p_value = bootstrap_p_value(h, n_resamples, rng)
    elif settings.test == "wild":
        p_value = wild_p_value(h, n_resamples, rng, length)
    elif settings.test == "montecarlo":
        p_value = montecarlo_p_value(parts, y, similarity, n_resamples, rng)
    if settings.test not in (None, "serial") and length == 1 and shows_dependence(h):
        status = DEPENDENT
    return skce_unbiased(h), p_value, identical, length, status
