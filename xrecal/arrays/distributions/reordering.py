"""Members in the order of a template: ranks that belong together from place to place."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .draws import uniforms_at


def reordered_members(
    members: FloatArray, template: FloatArray, seed: int, cases: IntArray
) -> FloatArray:
    """Members of each forecast, rearranged so that their ranks are those of a template.

    Parameters
    ----------
    members : array of float, shape (..., n)
        In any unit and order.
    template : array of float, shape (..., n)
        Values whose ranks are taken over: raw members [1]_, or observations at n dates [2]_.
    seed : int
        Any integer; it counts modulo 2^64.
    cases : array of int, shape (...)
        Number of the case of each forecast in the whole data set. The location does not count:
        what is drawn is the same at all places of a case.

    Returns
    -------
    array of float64, shape (..., n)
        The same values at each place; the k-th smallest stands where the template is k-th smallest.

    Raises
    ------
    ValueError
        If shapes do not match, or cases are no integers.

    Notes
    -----
    Each position has one random number a case. Ties (dry members) are in the order of these
    numbers, everywhere the same, so that ties at two places have the same order. A missing value of
    the template has no rank: its number, uniform in (0, 1), is the quantile level at which it is
    put among the others. O(n log n) a forecast.

    References
    ----------
    .. [1] Schefzik, Thorarinsdottir & Gneiting (2013), Uncertainty quantification in complex
       simulation models using ensemble copula coupling. https://doi.org/10.1214/13-STS443
    .. [2] Clark et al. (2004), The Schaake shuffle.
       https://doi.org/10.1175/1525-7541(2004)005<0243:TSSAMF>2.0.CO;2

    Examples
    --------
    >>> members, template = np.array([[1.0, 2.0, 3.0]]), np.array([[5.0, 9.0, 7.0]])
    >>> reordered_members(members, template, 0, np.array([0]))
    array([[1., 3., 2.]])
    """
    ascending = np.sort(np.asarray(members, dtype=np.float64), axis=-1)
    pattern, numbers = np.asarray(template), np.asarray(cases)
    if pattern.shape != ascending.shape:
        raise ValueError(
            f"template has shape {pattern.shape}, but members have {ascending.shape}; each member "
            "needs one value to follow"
        )
    if numbers.shape != ascending.shape[:-1] or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"cases must be integers of shape {ascending.shape[:-1]}, "
            f"got {numbers.dtype} of shape {numbers.shape}"
        )
    n = ascending.shape[-1]
    order = _order(pattern, uniforms_at(seed, np.zeros_like(numbers), numbers, n))
    found = np.empty_like(ascending)
    np.put_along_axis(found, order, ascending, axis=-1)
    return found


def _order(template: FloatArray, uniform: FloatArray) -> IntArray:
    """Positions of the template (..., n) from its smallest to its largest value."""
    order = np.lexsort((uniform, template), axis=-1)  # missing ones come last
    missing = np.isnan(template)
    if missing.any():
        n = template.shape[-1]
        n_known = np.maximum(n - missing.sum(-1, keepdims=True), 1)
        levels = np.empty(template.shape)
        np.put_along_axis(levels, order, (np.arange(n) + 0.5) / n_known, axis=-1)
        levels = np.where(missing, uniform, levels)
        order = np.lexsort((uniform, levels), axis=-1)
    return np.asarray(order)
