"""Sequential comparison of two forecasts: users may look at the evidence after every case."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.calibration.monitoring import LARGEST, check_lags
from xrecal.arrays.compiled import Indices, Matrix, OutMatrix, inner, kernel
from xrecal.arrays.rows import as_rows, double_blocks
from xrecal.typing import FloatArray

MOST = 0.5
"""Largest bet: one case lowers the e-value by at most this share."""

PSEUDO_SQUARES = 1.0
"""Initial value of the sum of squares that limits the bets. Ten cases, each with a gain of a third
of its bound, add about this value."""


def score_e_values(gain: FloatArray, bound: FloatArray, lag: npt.ArrayLike = 1) -> FloatArray:
    r"""Compute e-values: evidence after each case that a forecast is better than a reference.

    Parameters
    ----------
    gain : array of float, shape (..., n)
        Score of the reference minus score of the forecast, in successive cases. A missing case
        (NaN) does not change the evidence.
    bound : array of float, shape (..., n)
        Largest possible absolute gain of each case; it must be known when both forecasts are
        issued. For the CRPS, it is twice the Wasserstein distance between the two forecasts,
        :math:`2 \int |F - G|`. The function leaves out cases with a bound of 0.
    lag : int or array of int, shape (...)
        Number of cases between the issue and the verification of a forecast, at least 1.

    Returns
    -------
    array of float64, shape (..., n)
        E-values, at least 0. If the forecast is never better than the reference (its expected gain
        is at most 0 whenever it is issued), the probability that any e-value reaches
        :math:`1/\alpha` is at most :math:`\alpha`. All e-values are NaN if there is no case.

    Raises
    ------
    ValueError
        If shapes do not fit, if a gain is larger than its bound, or if the lag is not valid.

    Notes
    -----
    The e-values are products of :math:`1 + \lambda_t x_t`, where :math:`x_t` is the gain divided by
    its bound [1]_. The bet :math:`\lambda_t` is the sum of past :math:`x`, divided by one plus the
    sum of past :math:`x^2`, and limited to the range from 0 to 1/2. Lags work as in
    :func:`xrecal.arrays.calibration_e_values`. The cost is O(h n) per location, with the lag h.

    References
    ----------
    .. [1] Choe & Ramdas (2024), Comparing sequential forecasters.
       https://doi.org/10.1287/opre.2021.0792

    Examples
    --------
    >>> e_values = score_e_values(np.full(30, 0.4), np.ones(30))
    >>> e_values[[0, -1]].round(1)
    array([  1. , 187.6])
    """
    (gains, bounds), shape = as_rows(gain=gain, bound=bound)
    over = abs(gains) > bounds * (1 + 1e-6) + 1e-12
    if over.any():
        raise ValueError(
            f"a gain of {gains[over][0]:g} is larger than its bound, {bounds[over][0]:g}; compute "
            "both from the same pair of forecasts"
        )
    lags = check_lags(lag, shape)
    e_values = np.full(gains.shape, np.nan)
    for block, parts in double_blocks(gains, bounds):
        _fill_e_values(*parts, lags[block], e_values[block])
    return e_values.reshape(*shape, gains.shape[1])


@kernel
def _fill_e_values(gain: Matrix, bound: Matrix, lags: Indices, e_values: OutMatrix) -> None:
    """Write e-values for gains and bounds (L, n) into ``e_values`` (L, n)."""
    for location in range(len(gain)):
        known = False
        for x in gain[location] + bound[location]:
            known = known or not np.isnan(x)
        if known:
            lag = min(lags[location], gain.shape[1])
            _e_values(gain[location], bound[location], lag, e_values[location])


@inner
def _e_values(gain: Any, bound: Any, lag: int, e_values: Any) -> None:
    """Write e-values for the gains and bounds (n,) of one location into ``e_values`` (n,)."""
    log_e = np.zeros(lag)
    total, squares = 0.0, PSEUDO_SQUARES
    for t in range(len(gain)):
        if t >= lag:
            x = _share(gain[t - lag], bound[t - lag])
            total += x
            squares += x * x
        bet = min(max(total / squares, 0.0), MOST)
        log_e[t % lag] += math.log1p(bet * _share(gain[t], bound[t]))
        e_values[t] = math.exp(min(log_e.max(), LARGEST)) / lag


@inner
def _share(gain: float, bound: float) -> float:
    """Return the gain divided by its bound, in [-1, 1]; 0 if unknown or if the bound is 0."""
    if np.isnan(gain) or not bound > 0:
        return 0.0
    return min(max(gain / bound, -1.0), 1.0)
