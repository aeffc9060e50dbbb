"""Pool-adjacent-violators, the step that makes levels ascend."""

from __future__ import annotations

from typing import Any

from xrecal.arrays.compiled import kernel


@kernel
def push_level(
    value: float,
    product: float,
    weight: float,
    level: Any,
    total: Any,
    width: Any,
    length: Any,
    blocks: int,
) -> int:
    """Add one value to an isotonic regression and pool until its levels ascend strictly.

    Parameters
    ----------
    value, product, weight : float
        What comes next in the order, its product with its weight, and its weight (> 0).
    level, total, width : array of float64, shape (n,)
        Of each block so far: fitted value, sum of products, sum of weights.
    length : array of int64, shape (n,)
        Number of values in each block.
    blocks : int
        How many blocks there are so far; 0 starts a regression.

    Returns
    -------
    int
        How many blocks there are now: that many first entries of the arrays hold them.

    Notes
    -----
    Once all n values are in, the levels are their isotonic regression by weighted least squares,
    exact in O(n) all together, as each value is pooled at most once. A pooled level is a ratio of
    sums, so where products and weights are counts the same ratio is the same level, to the last
    digit. Compiled; the arrays are overwritten.

    References
    ----------
    .. [1] Ayer et al. (1955), An empirical distribution function for sampling with incomplete
       information. https://doi.org/10.1214/aoms/1177728423
    """
    level[blocks], total[blocks], width[blocks], length[blocks] = value, product, weight, 1
    while blocks > 0 and level[blocks - 1] >= level[blocks]:
        total[blocks - 1] += total[blocks]
        width[blocks - 1] += width[blocks]
        length[blocks - 1] += length[blocks]
        blocks -= 1
        level[blocks] = total[blocks] / width[blocks]
    return blocks + 1
