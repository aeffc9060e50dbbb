"""A forest whose leaves give weights to past targets, in the manner of honest forests.

Each tree is grown on one half of a random half of the rows and filled with the other half of it,
as distributional random forests do. They choose splits by the distance of whole distributions in a
Fourier approximation of a kernel; these here by the variance of the target, as scikit-learn does.
"""

import numpy as np

from benchmarks.paper.data import Part
from benchmarks.paper.forecasts import Forecasts

N_TREES, FEW_TREES, MANY_ROWS = 500, 200, 2000
"""Trees; fewer where there are many rows."""

MIN_LEAF = 5
SHARE = 0.5  # of the rows, for each tree; half of them to grow it, half to fill it
MAX_SUPPORT = 500
"""Points that distributions are kept on: neighbouring targets are merged to their mean."""


def forest(train: Part, features: list[np.ndarray], seed: int) -> list[Forecasts]:
    """Weights of past targets: how often they share a leaf with the case, over all trees."""
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    n, p = train.x.shape
    support, place = merged(train.y)
    sums = [np.zeros((len(x), support.size)) for x in features]
    found = [np.zeros(len(x)) for x in features]
    for _ in range(N_TREES if n <= MANY_ROWS else FEW_TREES):
        rows = rng.permutation(n)[: int(SHARE * n)]
        grow, fill = np.array_split(rows, 2)
        tree = DecisionTreeRegressor(
            min_samples_leaf=MIN_LEAF,
            max_features=min(int(np.ceil(np.sqrt(p) + 20)), p),
            random_state=int(rng.integers(2**31)),
        ).fit(train.x[grow], train.y[grow])
        leaves = tree.apply(train.x[fill])
        counts = np.zeros((tree.tree_.node_count, support.size))
        np.add.at(counts, (leaves, place[fill]), 1.0)
        size = counts.sum(axis=1, keepdims=True)
        shares = np.divide(counts, size, out=counts, where=size > 0)
        for x, total, trees in zip(features, sums, found, strict=True):
            at = tree.apply(x)
            total += shares[at]
            trees += size[at, 0] > 0  # a leaf that nothing fills says nothing
    weights = [total / trees[:, np.newaxis] for total, trees in zip(sums, found, strict=True)]
    return [Forecasts(support, None, w) for w in weights]


def merged(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most 500 points (s,) in order, and for each target the point that stands for it."""
    values, inverse = np.unique(y, return_inverse=True)
    if values.size <= MAX_SUPPORT:
        return values, inverse
    ranks = np.argsort(np.argsort(y, kind="stable"), kind="stable")
    first = np.full(values.size, y.size)
    np.minimum.at(first, inverse, ranks)  # equal targets stay together
    group = np.unique(first[inverse] * MAX_SUPPORT // y.size, return_inverse=True)[1]
    points = np.bincount(group, y) / np.bincount(group)
    return points, group
