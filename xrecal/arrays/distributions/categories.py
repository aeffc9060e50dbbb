"""Probabilities of the categories between thresholds, such as below, near and above normal."""

from __future__ import annotations

import numpy as np

from xrecal.arrays.dispatch import as_array, namespace
from xrecal.typing import FloatArray


def category_probabilities(exceedance: FloatArray, edges: FloatArray) -> FloatArray:
    """Probabilities of categories from those of exceeding the edges between them.

    Parameters
    ----------
    exceedance : array of float, shape (..., k)
        ``P(Y > edge)``, strictly: a value on an edge belongs to the category below it.
    edges : array of float, shape (..., k)
        Not decreasing along the last axis.

    Returns
    -------
    array of float64, shape (..., k + 1)
        From the lowest category to the highest, >= 0, summing to one up to rounding; 0 between
        equal edges. NaN in all of them where a probability or an edge is missing or edges
        decrease.

    Examples
    --------
    >>> category_probabilities(np.array([0.75, 0.25]), np.array([1.0, 2.0]))
    array([0.25, 0.5 , 0.25])
    """
    above, edges = as_array(exceedance).astype(np.float64), as_array(edges)
    xp, one = namespace(above), (*above.shape[:-1], 1)
    all_, none = xp.ones(one), xp.zeros(one)
    found = np.concatenate([all_, above], axis=-1) - np.concatenate([above, none], axis=-1)
    decreasing = (edges[..., 1:] < edges[..., :-1]).any(-1, keepdims=True)
    missing = np.isnan(edges).any(-1, keepdims=True) | np.isnan(above).any(-1, keepdims=True)
    return np.where(decreasing | missing, np.nan, np.maximum(found, 0.0))
