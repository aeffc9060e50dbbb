"""Correlation of forecasts and observations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.rows import as_rows, location_blocks
from xrecal.typing import FloatArray

from .significance import SMALLEST


class Correlation(NamedTuple):
    """Correlation of forecasts and observations, as arrays (...)."""

    correlation: FloatArray
    """Correlation in [-1, 1]"""
    influence: FloatArray
    """(..., n) influence of each case, for tests: the standard error of the mean influence is the
    standard error of the correlation"""


def anomaly_correlation(
    forecasts: FloatArray, observations: FloatArray, centred: bool = True
) -> Correlation:
    r"""Compute the correlation of anomalies of forecasts and observations.

    Parameters
    ----------
    forecasts, observations : array of float, shape (..., n)
        Anomalies (deviations from a climatology) or the values themselves, in any unit. The
        function leaves out a case with NaN or infinity in either array.
    centred : bool, default True
        If True, the function also subtracts the means over the cases. This gives Pearson's
        correlation, which does not change if a constant is added to all forecasts or all
        observations. If False, the function does not subtract the means: mean anomalies of the same
        sign in forecasts and observations then increase the correlation.

    Returns
    -------
    Correlation
        Float64 arrays of shape (...) and (..., n). Both are NaN with fewer than 3 cases, or if
        forecasts or observations are constant. The influence of left-out cases is NaN, too.

    Raises
    ------
    ValueError
        If shapes differ.

    Notes
    -----
    The correlation of anomalies f and o is :math:`r = \overline{f o} / \sqrt{\overline{f^2} \,
    \overline{o^2}}` [1]_. The influence of a case is :math:`\tilde f \tilde o - \frac r2 (\tilde
    f^2 + \tilde o^2)`, where the tilde marks anomalies divided by their root mean square. By the
    delta method, the mean influence has the standard error of r. The method is accurate if r is not
    near 1 or -1. The :func:`~xrecal.arrays.standard_error` of the influence, with cases in order of
    time, allows for autocorrelation. The cost is O(n) per location.

    References
    ----------
    .. [1] Murphy & Epstein (1989), Skill scores and correlation coefficients in model verification.
       https://doi.org/10.1175/1520-0493(1989)117<0572:SSACCI>2.0.CO;2

    Examples
    --------
    >>> found = anomaly_correlation(np.array([1.0, 2.0, 4.0, 3.0]), np.array([2.0, 1.0, 4.0, 3.0]))
    >>> float(found.correlation.round(2))
    0.8
    """
    (f, o), shape = as_rows(forecasts=forecasts, observations=observations)
    correlation, influence = np.empty(len(f)), np.empty(f.shape)
    for block in location_blocks(len(f), 64 * f.shape[1]):
        known = np.isfinite(f[block]) & np.isfinite(o[block])
        a, b = (_anomalies(part[block], known, centred) for part in (f, o))
        r = (a * b).sum(-1) / np.where(known.sum(-1) >= SMALLEST, known.sum(-1), np.nan)
        r = np.clip(r, -1.0, 1.0)
        each = a * b - r[:, np.newaxis] / 2 * (a * a + b * b)
        correlation[block], influence[block] = r, np.where(known, each, np.nan)
    return Correlation(correlation.reshape(shape), influence.reshape(*shape, f.shape[1]))


def _anomalies(
    values: FloatArray, known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], centred: bool
) -> FloatArray:
    """Return values (L, n) divided by their root mean square.

    If ``centred`` is True, the function first subtracts the mean. Unknown values become 0. All
    values become NaN if the values are constant.
    """
    n = np.maximum(known.sum(-1, keepdims=True), 1)
    x = np.where(known, values, 0.0).astype(np.float64)
    largest = np.abs(x).max(-1, keepdims=True, initial=0.0)
    x /= np.where(largest > 0, largest, 1.0)  # squares may overflow or underflow
    if centred:
        x = np.where(known, x - x.sum(-1, keepdims=True) / n, 0.0)
    size = np.sqrt((x * x).sum(-1, keepdims=True) / n)
    # Deviations of equal values from their mean are rounding errors.
    return np.asarray(x / np.where(size > ROUNDING, size, np.nan))


ROUNDING = 1e-14
"""A deviation from the mean below this share of the largest value counts as a rounding error."""
