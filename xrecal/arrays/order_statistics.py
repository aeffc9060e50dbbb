"""Median and other order statistics in compiled code.

Numba would need five seconds to compile ``np.median`` and ``np.partition``, mostly for their checks
and error messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import OutVector, Vector, copy, kernel


@kernel
def select(values: OutVector, k: int) -> Any:
    """Return the element at position ``k``, counted from 0, of finite values (n,) after sorting.

    The function reorders the values: no value before position k is larger than the result, and no
    value after it is smaller. The cost is O(n) on average.

    References
    ----------
    .. [1] Hoare (1961), Algorithm 65: find. https://doi.org/10.1145/366622.366647
    """
    first, last = 0, values.size - 1
    while first < last:
        pivot, i, j = values[k], first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < k:
            first = i
        if k < i:
            last = j
    return values[k]


@kernel
def median(values: Vector) -> Any:
    """Return the median of finite values (n,), or NaN if n is 0."""
    n = values.size
    if n == 0:
        return np.nan
    among = np.empty(n)
    copy(values, among)
    upper = select(among, n // 2)
    if n % 2 == 1:
        return upper
    lower = among[0]
    for i in range(1, n // 2):
        lower = max(lower, among[i])
    return (lower + upper) / 2
