"""A forest as users would take it: scikit-learn's, on the errors of EMOS in units of its spread.

Past errors count as often as they share a leaf with the forecast. It is independent of the forest
in xrecal, which it is compared with.
"""

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

SETTINGS = {"n_estimators": 300, "min_samples_leaf": 5, "max_features": 0.4, "random_state": 0}
FEWEST = 20  # cases that a forest learns from
AT_ONCE = 200
"""Forecasts whose weights are held in memory together"""


def forest_crps(
    columns: np.ndarray, normal: np.ndarray, observed: np.ndarray, learned: np.ndarray
) -> np.ndarray:
    """Return the CRPS (n,) of a forest of the cases learned from; NaN at these, or if they are few.

    Parameters
    ----------
    columns : array of float, shape (n, k)
        Predictors; NaN where one is missing.
    normal : array of float, shape (n, 2)
        Mean and standard deviation that EMOS gives.
    observed : array of float, shape (n,)
    learned : array of bool, shape (n,)
    """
    loc, scale = normal.T
    error = (observed - loc) / scale
    known = np.isfinite(error)
    train, scored = np.flatnonzero(known & learned), np.flatnonzero(known & ~learned)
    crps = np.full(observed.size, np.nan)
    if train.size < FEWEST:
        return crps
    train = train[np.argsort(error[train])]
    grown = RandomForestRegressor(**SETTINGS).fit(columns[train], error[train])
    leaves = [grown.apply(columns[which]) for which in (train, scored)]
    for first in range(0, scored.size, AT_ONCE):
        part = slice(first, first + AT_ONCE)
        weights = leaf_weights(leaves[0], leaves[1][part])
        which = scored[part]
        crps[which] = scale[which] * weighted_crps(error[train], weights, error[which])
    return crps


def leaf_weights(train: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Mean share (m, n) of cases in leaves (n, trees) in those of forecasts (m, trees)."""
    n_trees = train.shape[1]
    n_nodes = max(train.max(), new.max()) + 1
    in_trees = n_nodes * np.arange(n_trees)
    found = []
    for leaf in (train, new):
        column, start = (leaf + in_trees).ravel(), n_trees * np.arange(len(leaf) + 1)
        ones = np.ones(column.size)
        shape = len(leaf), n_trees * n_nodes
        found.append(sparse.csr_array((ones, column, start), shape=shape))
    cases, forecasts = found
    count = np.maximum(np.asarray(cases.sum(axis=0)).ravel(), 1.0)
    return (forecasts / count / n_trees @ cases.T).toarray()


def weighted_crps(errors: np.ndarray, weights: np.ndarray, y: np.ndarray) -> np.ndarray:
    """CRPS (m,) at y of ascending errors (n,) with weights (m, n) that sum to one."""
    below = weights.cumsum(-1)[:, :-1]
    distance = np.abs(errors - y[:, np.newaxis])
    return (weights * distance).sum(-1) - (below * (1.0 - below)) @ np.diff(errors)
