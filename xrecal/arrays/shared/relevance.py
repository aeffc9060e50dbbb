"""Choose, on held-out cases, features that improve the law of errors, and a scale for each.

The law is the distribution of errors that a shared fit learns.
"""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray, IntArray

from .coordinates import Coordinates
from .folds import Folds
from .landmarks import choose_landmarks
from .law import fold_losses
from .sums import sum_parts

SHAPES = (1.0, 0.25, 0.0625, 4.0)
"""Factors to try for the squared distance of shapes (ensembles minus their means)."""
FACTORS = (0.0625, 0.25, 1.0, 4.0)
"""Factors to try for the squared difference of a feature; factor 0 leaves a feature out."""
RIDGES = np.logspace(-6, 0, 13)
MAX_RANK = 200


def choose_relevance(
    coordinates: Coordinates,
    grid: FloatArray,
    cases: tuple[FloatArray, FloatArray, FloatArray],
    part: IntArray,
    folds: Folds,
    max_rank: int = MAX_RANK,
) -> Coordinates:
    """Choose coordinates in which each feature has the weight that is best for the law of errors.

    Parameters
    ----------
    coordinates : Coordinates
        Coordinates with median distances as scales.
    grid : array of float, shape (J + 1,)
        Thresholds of errors; successive thresholds are the limits of J cells.
    cases : tuple of arrays
        Errors (n,), shapes (n, m) and features (n, k) of a sample of cases.
    part : array of int, shape (n,)
        Index of the part to which each case belongs; a fold consists of parts.
    folds : Folds
        F folds, each held out as a whole.
    max_rank : int
        Largest number of landmarks in each trial.

    Returns
    -------
    Coordinates
        Shapes get the best of four scales. A feature gets the best of four scales if it lowers the
        held-out CRPS by more than the standard error of the gain over the folds; otherwise the
        precision of the feature is 0, which leaves the feature out. Each CRPS is the CRPS with the
        best ridge.

    Raises
    ------
    ValueError
        If fewer than two folds have cases.

    Notes
    -----
    The function tries features one after the other, in their order, together with the features
    already chosen. In all, it computes sums over the sample 4 (k + 1) times. The usual rule takes
    the median distance as the scale of every feature. With many features, this rule would make any
    two cases dissimilar.
    """
    errors, shapes, features = cases
    k, n_parts = features.shape[1], folds.of_part.size

    def losses(shape: float, relevance: FloatArray) -> FloatArray:
        """Return the loss of each fold (F,) at the best ridge."""
        placed = coordinates.scaled(shape, relevance).of(shapes, features)
        used = np.isfinite(placed).all(1) & np.isfinite(errors)
        landmarks = choose_landmarks(placed[used], max_rank)
        sums = sum_parts(landmarks, grid, placed[used], errors[used], part[used], n_parts)
        each, weights = fold_losses(folds.pairs(sums), grid, RIDGES)
        return np.asarray(each[:, np.argmin(weights @ each)])

    relevance = np.zeros(k)
    tried = {shape: losses(shape, relevance) for shape in SHAPES}
    best_shape = min(tried, key=lambda shape: float(tried[shape].mean()))
    best = tried[best_shape]
    for feature in np.flatnonzero(coordinates.precision > 0):
        for factor in FACTORS:
            trial = relevance.copy()
            trial[feature] = factor
            found = losses(best_shape, trial)
            if _is_less(found, best):
                relevance, best = trial, found
    return coordinates.scaled(best_shape, relevance)


def _is_less(found: FloatArray, best: FloatArray) -> bool:
    """Return whether the losses ``found`` of F folds are clearly below ``best``, on average.

    The difference of the means must exceed its standard error over the folds.
    """
    if found.size != best.size:
        return False
    gain = best - found
    error = gain.std(ddof=1) / np.sqrt(gain.size)
    return bool(gain.mean() > error)
