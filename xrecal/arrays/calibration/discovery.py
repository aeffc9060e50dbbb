"""Many tests at once: p-values of a map that control the share of false discoveries."""

from __future__ import annotations

import numpy as np

from xrecal.arrays.rows import check_probability
from xrecal.typing import FloatArray

METHODS = ("bh", "by")


def adjusted_p_values(p_values: FloatArray, method: str = "bh") -> FloatArray:
    """p-values adjusted for the number of tests: false discovery rates.

    Parameters
    ----------
    p_values : array of float, shape (...)
        p-values in [0, 1] of all tests together; NaN ones (sea) are no test.
    method : {"bh", "by"}
        Benjamini & Hochberg [1]_, for tests that are independent or, as on most maps, positively
        dependent; Benjamini & Yekutieli [2]_ for any dependence, with less power.

    Returns
    -------
    array of float64, shape (...)
        In [0, 1], NaN where ``p_values`` are. Among tests with at most q at most a share q is
        expected to be false.

    Raises
    ------
    ValueError
        If a value is outside [0, 1] or the method is unknown.

    Notes
    -----
    That of :func:`scipy.stats.false_discovery_control` over all tests. Without it 5 % of the map
    of a perfect forecast is significant at 5 % [3]_. O(N log N).

    References
    ----------
    .. [1] Benjamini & Hochberg (1995), Controlling the false discovery rate.
       https://doi.org/10.1111/j.2517-6161.1995.tb02031.x
    .. [2] Benjamini & Yekutieli (2001), The control of the false discovery rate in multiple
       testing under dependency. https://doi.org/10.1214/aos/1013699998
    .. [3] Wilks (2016), "The stippling shows statistically significant grid points".
       https://doi.org/10.1175/BAMS-D-15-00267.1

    Examples
    --------
    >>> adjusted_p_values(np.array([0.01, 0.02, 0.03, 0.5]))
    array([0.04, 0.04, 0.04, 0.5 ])
    """
    from scipy.stats import false_discovery_control

    if method not in METHODS:
        raise ValueError(f"method is {method!r}; give 'bh' or 'by'")
    p_values = np.asarray(p_values, dtype=np.float64)
    check_probability("p_values", p_values)
    adjusted = np.full(p_values.shape, np.nan)
    known = ~np.isnan(p_values)
    adjusted[known] = false_discovery_control(np.clip(p_values[known], 0.0, 1.0), method=method)
    return adjusted
