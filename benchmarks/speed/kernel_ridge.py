"""The method as one would write it with SciPy, scikit-learn and properscoring.

Distances come from a loop over pairs, weights from a kernel ridge regression whose targets are
one-hot: the prediction for a new case is then its signed weight of each past one.
"""

import numpy as np
import properscoring
from sklearn.kernel_ridge import KernelRidge

from .data import Data
from .dense import N_FOLDS, RIDGES, project_simplex
from .distance import scipy_distance


def forecast(data: Data) -> np.ndarray:
    """Weights (T, n) of the cases for each new forecast, the ridge by cross-validation."""
    squared = distances(data.x, data.x)
    bandwidth = np.median(squared[np.triu_indices(len(squared), 1)])
    gram = np.exp(-squared / bandwidth)
    losses = [held_out_crps(gram, data.y, ridge) for ridge in RIDGES]
    model = fit(gram, RIDGES[np.argmin(losses)])
    return weigh(model, np.exp(-distances(data.x_new, data.x) / bandwidth))


def distances(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Squared energy distances of all pairs, or of all distinct ones if both are the same."""
    squared = np.zeros((len(x), len(z)))
    for i in range(len(x)):
        for j in range(i if x is z else len(z)):
            squared[i, j] = scipy_distance(x[i], z[j])
    return squared + squared.T if x is z else squared


def held_out_crps(gram: np.ndarray, y: np.ndarray, ridge: float) -> float:
    """CRPS of the cases held out in contiguous blocks."""
    total = 0.0
    for held in np.array_split(np.arange(y.size), N_FOLDS):
        train = np.setdiff1d(np.arange(y.size), held)
        weights = weigh(fit(gram[np.ix_(train, train)], ridge), gram[np.ix_(held, train)])
        members = np.tile(y[train], (held.size, 1))
        total += properscoring.crps_ensemble(y[held], members, weights=weights).sum()
    return total


def fit(gram: np.ndarray, ridge: float) -> KernelRidge:
    """Kernel ridge regression of which case it is."""
    return KernelRidge(alpha=ridge * len(gram), kernel="precomputed").fit(gram, np.eye(len(gram)))


def weigh(model: KernelRidge, similarities: np.ndarray) -> np.ndarray:
    """Probabilities (T, n) from similarities (T, n)."""
    signed = model.predict(similarities)
    signed += (1 - signed.sum(axis=1, keepdims=True)) / signed.shape[1]
    return project_simplex(signed.T).T
