"""Forecasts and observations of many locations -> SKCE, p-values, status."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import INVALID_FORECAST, VALID, Forecasts, verdicts
from xrecal.arrays.rows import whole_number
from xrecal.arrays.status import (
    ENOUGH,
    FEW,
    FEWEST,
    IDENTICAL,
    INVALID,
    NO_SPREAD,
    REFUSED,
    TOO_FEW,
)
from xrecal.typing import FloatArray, IntArray

from .expectations import target_bandwidth, unsound
from .montecarlo import montecarlo_p_value
from .skce import (
    block_estimates,
    block_p_value,
    bootstrap_p_value,
    forecast_similarity,
    generator,
    matrix_of,
    one_row_each,
    skce_unbiased,
    subset_bandwidth,
    usable_cases,
    wild_p_value,
)

TESTS = ("bootstrap", "wild", "montecarlo", "block")


class _Settings(NamedTuple):
    test: str | None
    n_resamples: int
    seed: int
    block_length: int | None
    augmented: bool


def skce_locations(
    forecasts: Forecasts,
    observations: FloatArray,
    *,
    test: str | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    location_numbers: IntArray | None = None,
    block_length: int | None = None,
    augmented: bool = False,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Squared kernel calibration error of forecasts, and a test of it, at each location.

    Parameters
    ----------
    forecasts : Forecasts
        Arrays (L, n, m) in the unit u of the variable; or ``loc`` (L, m) and ``weights``
        (L, n, m) for members that all cases of a location share.
    observations : array of float, shape (L, n)
        In u, cases in order of time.
    test : {None, "bootstrap", "wild", "montecarlo", "block"}
        See :func:`skce_test`, :func:`montecarlo_test`, :func:`block_p_value`; None: no test.
    n_resamples, seed : int
        Of all tests but "block", which draws nothing.
    location_numbers : array of int, shape (L,), optional
        Number from 0 of each location in the whole data set, which its random numbers depend on,
        so that chunks make no difference. 0, 1, ... if not given.
    block_length : int, optional
        For "wild" the reach of serial dependence in cases, 1 if not given. For "block" the cases
        in a block, at least 2 and the root of n, rounded down, if not given.
    augmented : bool
        Whether each observation joins its own plain ensemble, see :func:`case_matrix`.

    Returns
    -------
    skce : array of float64, shape (L,)
        Unbiased estimate, without unit, may be negative; with "block" the mean over blocks, NaN
        with fewer cases than make one.
    p_value : array of float64, shape (L,)
        In (0, 1], with "block" [0, 1]; NaN without a test, or with fewer than two blocks.
    status : array of int64, shape (L,)
        Bits of ``xrecal.arrays.status.EVIDENCE_MEANINGS``. Both values are NaN with fewer than
        two cases that hold forecast and observation, with observations that are all the same, and
        where any forecast has weights or scales that no distribution has. Cases with infinite
        values are left out; neighbours of a case left out count as successive.

    Raises
    ------
    ValueError
        If shapes do not match, the test is unknown, a number is out of range or belongs to
        another test, or ``augmented`` is asked for forecasts that are no plain ensembles.

    Notes
    -----
    O(n² m + B n²) time and a few arrays (n, n) for a location; O(n b m) with "block". Each
    location is tested by itself; many tests find some errors by chance.

    Examples
    --------
    >>> from xrecal.arrays import Forecasts
    >>> rng = np.random.default_rng(0)
    >>> members = Forecasts(rng.normal(size=(1, 50, 9)))
    >>> skce, p_value, status = skce_locations(members, rng.normal(3.0, 1.0, (1, 50)), test="wild")
    >>> p_value.round(3), status
    (array([0.001]), array([0]))
    """
    by_case = one_row_each(forecasts)
    shape = by_case.check("forecasts", 3)
    observations = np.asarray(observations)
    if observations.shape != shape[:2]:
        raise ValueError(
            f"observations have shape {observations.shape}, but forecasts need {shape[:2]}"
        )
    settings = _checked(
        _Settings(test, n_resamples, seed, block_length, augmented), by_case, forecasts
    )
    numbers = np.arange(shape[0]) if location_numbers is None else np.asarray(location_numbers)
    if numbers.shape != shape[:1] or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"location_numbers must be integers of shape {shape[:1]}, "
            f"got {numbers.dtype} of shape {numbers.shape}"
        )
    skce, p_value = np.full((2, shape[0]), np.nan)
    status = np.zeros(shape[0], dtype=np.int64)
    for i in range(shape[0]):
        one = Forecasts(*(None if part is None else part[i] for part in forecasts))  # type: ignore[arg-type]
        skce[i], p_value[i], status[i] = _one(one, observations[i], settings, int(numbers[i]))
    return skce, p_value, status


def _checked(settings: _Settings, by_case: Forecasts, forecasts: Forecasts) -> _Settings:
    test, length = settings.test, settings.block_length
    if test is not None and test not in TESTS:
        names = ", ".join(map(repr, TESTS))
        raise ValueError(f"test is {test!r}; give one of {names}, or None")
    if length is not None:
        if test not in ("wild", "block"):
            raise ValueError(
                f"block_length is {length!r}, but test={test!r} takes cases as independent; "
                "use test='wild' or test='block', or leave it out"
            )
        length = whole_number("block_length", length, 2 if test == "block" else 1)
    if by_case is not forecasts and forecasts.scale is not None:
        raise ValueError("scale has no place with shared members; give loc the shape of scale")
    if settings.augmented and (forecasts.scale is not None or forecasts.weights is not None):
        raise ValueError(
            "augmented=True is for plain ensembles: forecasts with weights or scales are "
            "distributions, test them with augmented=False"
        )
    n_resamples = whole_number("n_resamples", settings.n_resamples, 1)
    return settings._replace(n_resamples=n_resamples, block_length=length)


def _one(
    forecasts: Forecasts, observations: FloatArray, settings: _Settings, number: int
) -> tuple[float, float, int]:
    """SKCE, p-value and status of one location."""
    by_case = one_row_each(forecasts)
    if unsound(by_case).any():
        return np.nan, np.nan, REFUSED
    verdict = verdicts(by_case)
    infinite = (verdict == INVALID_FORECAST) | np.isinf(observations)
    status = INVALID if infinite.any() else 0
    n = int(((verdict == VALID) & np.isfinite(observations)).sum())
    if n < FEWEST:
        return np.nan, np.nan, status | TOO_FEW
    signs = n // (settings.block_length or 1) if settings.test == "wild" else n
    status |= FEW if signs < ENOUGH else 0
    parts, y = usable_cases(forecasts, observations, settings.augmented)
    theta = target_bandwidth(y)
    if math.isnan(theta):
        return np.nan, np.nan, status | NO_SPREAD
    if settings.test == "block":
        skce, p_value, identical = _from_blocks(parts, y, theta, settings.block_length)
        status |= TOO_FEW if math.isnan(p_value) else 0
    else:
        skce, p_value, identical = _from_matrix(parts, y, theta, settings, number)
    return skce, p_value, status | (IDENTICAL if identical else 0)


def default_block(n: int) -> int:
    """Number of cases in a block where none is given: the root of n, rounded down."""
    return max(math.isqrt(n), 2)


def _from_blocks(
    parts: Forecasts, y: FloatArray, theta: float, block_length: int | None
) -> tuple[float, float, bool]:
    b = block_length or default_block(y.size)
    s = subset_bandwidth(parts)
    estimates = block_estimates(parts, y, b, s, theta)
    skce = float(estimates.mean()) if estimates.size else np.nan
    return skce, block_p_value(estimates), math.isinf(s)


def _from_matrix(
    parts: Forecasts, y: FloatArray, theta: float, settings: _Settings, number: int
) -> tuple[float, float, bool]:
    similarity, identical = forecast_similarity(parts)
    h = matrix_of(parts, y, similarity, theta)
    rng, n_resamples = generator(settings.seed, number), settings.n_resamples
    p_value = np.nan
    if settings.test == "bootstrap":
        p_value = bootstrap_p_value(h, n_resamples, rng)
    elif settings.test == "wild":
        p_value = wild_p_value(h, n_resamples, rng, settings.block_length or 1)
    elif settings.test == "montecarlo":
        p_value = montecarlo_p_value(parts, y, similarity, n_resamples, rng)
    return skce_unbiased(h), p_value, identical
