"""Scores of probabilities of exceeding a threshold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.arrays.rows import check_probability
from xrecal.typing import FloatArray


def brier_score(
    observations: FloatArray,
    probabilities: FloatArray,
    thresholds: npt.ArrayLike,
    n_members: npt.ArrayLike | None = None,
) -> FloatArray:
    r"""Compute the Brier score of the probability that the observation exceeds a threshold.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in any unit.
    probabilities : array of float, shape (..., k)
        Forecast probabilities p that the observation exceeds the threshold, in [0, 1].
    thresholds : array_like, shape (k,) or (..., k)
        Thresholds, in the unit of the observations; the event is y > threshold.
    n_members : array_like, broadcast to ``observations``, optional
        Number m of equally likely members. If it is given, the function returns the fair score: the
        expected score if the ensemble had infinitely many members. Then p must be the share of
        members above the threshold.

    Returns
    -------
    array of float64, shape (..., k)
        :math:`(p - 1\{y > t\})^2` in [0, 1], smaller is better. The fair score is smaller by
        :math:`p (1 - p) / (m - 1)`, and it is not negative if p is a multiple of 1/m. The result is
        NaN if the observation, probability or threshold is NaN; the fair score is also NaN with
        fewer than two members.

    Raises
    ------
    ValueError
        If a probability is outside [0, 1] or shapes do not fit.

    Notes
    -----
    The integral of the score over all thresholds is the CRPS; the integral of the fair score is the
    fair CRPS.

    References
    ----------
    .. [1] Brier (1950), Verification of forecasts expressed in terms of probability.
       https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
    .. [2] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270

    Examples
    --------
    >>> brier_score(np.array([1.0, 5.0]), np.array([[0.5], [0.75]]), [3.0])
    array([[0.25  ],
           [0.0625]])
    """
    y, p = np.asarray(observations, np.float64), np.asarray(probabilities, np.float64)
    if p.ndim != y.ndim + 1 or p.shape[:-1] != y.shape:
        raise ValueError(
            f"probabilities have shape {p.shape}, but observations {y.shape} need {y.shape} and "
            "thresholds on the last axis"
        )
    check_probability("probabilities", p)
    t = _fitting("thresholds", thresholds, p.shape)
    event = (y[..., np.newaxis] > t).astype(np.float64)
    score = (p - event) ** 2
    if n_members is not None:
        m = _fitting("n_members", n_members, y.shape)[..., np.newaxis]
        score = np.where(m >= 2, score - p * (1.0 - p) / np.maximum(m - 1.0, 1.0), np.nan)
    return np.where(np.isnan(y)[..., np.newaxis] | np.isnan(t), np.nan, score)


def ranked_probability_score(
    observations: FloatArray,
    probabilities: FloatArray,
    edges: npt.ArrayLike,
    n_members: npt.ArrayLike | None = None,
) -> FloatArray:
    r"""Compute the ranked probability score of K ordered categories between K - 1 edges.

    Parameters
    ----------
    observations : array of float, shape (...)
        Observations, in any unit; a value on an edge is in the category below the edge.
    probabilities : array of float, shape (..., K - 1)
        Forecast probabilities that the observation exceeds an edge, in [0, 1].
    edges : array_like, shape (K - 1,) or (..., K - 1)
        Edges in ascending order, in the unit of the observations; neighbouring edges may be equal.
    n_members : array_like, broadcast to ``observations``, optional
        Number of members for the fair score, as in :func:`brier_score`.

    Returns
    -------
    array of float64, shape (...)
        Sum of the Brier scores of the edges, in [0, K - 1], smaller is better. The function does
        not divide the sum by K - 1. The score is NaN if the observation, a probability or an edge
        is NaN; the fair score is also NaN with fewer than two members.

    Raises
    ------
    ValueError
        If there is no edge, if edges decrease, if a probability is outside [0, 1], or if shapes do
        not fit.

    Notes
    -----
    Cumulative probabilities P(Y <= edge) = 1 - P(Y > edge) would give the same score. The category
    between equal edges is empty, but the score counts both edges.

    References
    ----------
    .. [1] Epstein (1969), A scoring system for probability forecasts of ranked categories.
       https://doi.org/10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2
    .. [2] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270

    Examples
    --------
    >>> ranked_probability_score(np.array([1.5]), np.array([[0.5, 0.25]]), [1.0, 2.0])
    array([0.3125])
    """
    given = np.asarray(edges, np.float64)
    if given.ndim == 0 or given.shape[-1] == 0:
        raise ValueError(f"edges have shape {given.shape}; give at least one, on the last axis")
    if (np.diff(given, axis=-1) < 0).any():
        raise ValueError("edges decrease along the last axis; sort them, and the probabilities too")
    return np.asarray(brier_score(observations, probabilities, given, n_members).sum(-1))


def _fitting(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Broadcast values to a float64 array of the given shape; raise ValueError if impossible."""
    given = np.asarray(values, np.float64)
    try:
        return np.broadcast_to(given, shape)
    except ValueError:
        raise ValueError(
            f"{name} have shape {given.shape}, which does not broadcast to {shape}"
        ) from None
