"""Order statistics of values in compiled code.

Numba's ``np.median`` and ``np.partition`` would compile for five seconds, most of it for their
checks and error messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import OutVector, Vector, copy, kernel


@kernel
def select(values: OutVector, k: int) -> Any:
    """Return the value that has ``k`` values before it in ascending order; O(n) on average.

    The function reorders the finite values (n,): smaller and equal values come before position k,
    larger and equal values after it.

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
    """Return the median of finite values (n,), NaN without any."""
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
