"""The method from its formulas in plain NumPy: the dense reference of the budgets.

With the kernel matrix K given, each fold takes one eigendecomposition for 13 ridges, a projection
on the simplex that sorts, and the n × n Gram matrix of the targets. Columns are forecasts.
"""

import numpy as np

RIDGES = 10.0 ** np.arange(-6, 0.1, 0.5)
N_FOLDS = 5


def choose_ridge(gram: np.ndarray, y: np.ndarray) -> float:
    """Ridge with the smallest CRPS of the cases held out in contiguous blocks."""
    target = energy_gram(y)
    losses = np.zeros(RIDGES.size)
    for held in np.array_split(np.arange(y.size), N_FOLDS):
        train = np.setdiff1d(np.arange(y.size), held)
        eigen = np.linalg.eigh(gram[np.ix_(train, train)])
        similarities, matches = gram[np.ix_(train, held)], target[np.ix_(train, held)]
        among, own = target[np.ix_(train, train)], np.diag(target)[held]
        for at, ridge in enumerate(RIDGES):
            weights = project_simplex(signed_weights(*eigen, similarities, ridge))
            losses[at] += held_out_crps(weights, among, matches, own).sum()
    return float(RIDGES[losses.argmin()])


def signed_weights(
    values: np.ndarray, vectors: np.ndarray, similarities: np.ndarray, ridge: float
) -> np.ndarray:
    """``(K + λ n I)⁻¹ k(x)``, recentred so that each column sums to 1."""
    n = values.size
    shrunk = (vectors.T @ similarities) / (values + ridge * n)[:, np.newaxis]
    signed = vectors @ shrunk
    return signed + (1 - signed.sum(axis=0)) / n


def project_simplex(signed: np.ndarray) -> np.ndarray:
    """Nearest probabilities: the largest entries, less what they sum to beyond 1."""
    ordered = -np.sort(-signed, axis=0)
    counts = np.arange(1, len(signed) + 1)[:, np.newaxis]
    excess = (np.cumsum(ordered, axis=0) - 1) / counts
    n_positive = (ordered > excess).sum(axis=0)
    return np.maximum(signed - np.take_along_axis(excess, n_positive[np.newaxis] - 1, axis=0), 0)


def energy_gram(y: np.ndarray) -> np.ndarray:
    """``l(u, v) = |u| + |v| - |u - v|`` of all pairs."""
    size = np.abs(y)
    return size[:, np.newaxis] + size - np.abs(y[:, np.newaxis] - y)


def held_out_crps(
    weights: np.ndarray, among: np.ndarray, matches: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """``½ (l(y, y) - 2 Σ wᵢ l(yᵢ, y) + wᵀ L w)``, which is the CRPS."""
    quadratic = (weights * (among @ weights)).sum(axis=0)
    return 0.5 * (own - 2 * (weights * matches).sum(axis=0) + quadratic)
