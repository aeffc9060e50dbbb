"""Probability integral transform of forecasts that consist of quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.typing import FloatArray


def quantile_pit(
    quantiles: FloatArray, q: FloatArray, observations: FloatArray, uniform: FloatArray
) -> FloatArray:
    """Draw the PIT of each observation between the levels of the two quantiles that enclose it.

    Parameters
    ----------
    quantiles : array of float, shape (..., m)
        Quantiles of each forecast, in the unit of the variable; NaN marks a missing quantile.
    q : array of float, shape (m,)
        Levels of the quantiles in [0, 1], all different, in any order.
    observations : array of float, shape (...)
        Observations, in the unit of the quantiles.
    uniform : array of float, shape (...)
        Random numbers u in (0, 1), such as those of :func:`hash_uniform`.

    Returns
    -------
    array of float64, shape (...)
        ``low + u (high - low)`` in [0, 1], where low and high are the levels of the two quantiles
        that enclose the observation. Low is 0 for an observation below all quantiles, and high is 1
        for an observation above all quantiles. The result is NaN where the observation is missing
        or infinite, all quantiles of the forecast are missing, or any quantile is infinite.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    If observations follow a continuous distribution with these quantiles, the result is uniform on
    (0, 1), whatever the distribution is between the quantiles. If an observation equals one or
    several quantiles, low and high are the ends of the mass of these quantiles. This mass begins
    halfway between their lowest level and the next lower level, or at 0 if no level is lower. It
    ends halfway between their highest level and the next higher level, or at 1 if no level is
    higher. For example, a dry day gets a PIT between 0 and the probability of no rain. If quantiles
    are in the wrong order, the function first sorts them. The cost is O(m log m) per forecast.

    Examples
    --------
    >>> quantiles = np.array([1.0, 2.0, 4.0])
    >>> quantile_pit(quantiles, np.array([0.1, 0.5, 0.9]), np.array(3.0), np.array(0.25))
    array(0.6)
    """
    shape = tuple(observations.shape)
    fitting = {"quantiles": (*shape, *q.shape), "uniform": shape}
    for name, array in {"quantiles": quantiles, "uniform": uniform}.items():
        if tuple(array.shape) != fitting[name]:
            raise ValueError(
                f"{name} have shape {tuple(array.shape)}, but observations of shape {shape} "
                f"and levels of shape {q.shape} need {fitting[name]}"
            )
    values, y, u = (part.astype(np.float64) for part in (quantiles, observations, uniform))
    y, known = y[..., None], ~np.isnan(values)
    levels = np.where(known, q.astype(np.float64), 1.0)
    ends = np.zeros_like(y)
    steps = np.concatenate([ends, np.sort(levels, axis=-1), ends + 1.0], axis=-1)
    below, up_to, n = (
        part.sum(axis=-1, keepdims=True)
        for part in (known & (values < y), known & (values <= y), known)
    )

    def middle(at: Any) -> Any:
        """Return the mean of level ``at`` and the next level; 0 before all levels, 1 after them."""
        one, other = (np.take_along_axis(steps, i, -1) for i in (at, at + 1))
        return np.where(at == 0, 0.0, np.where(at == n, 1.0, (one + other) / 2))

    tied = up_to > below
    low = np.where(tied, middle(below), np.take_along_axis(steps, below, -1))
    high = np.where(tied, middle(up_to), np.take_along_axis(steps, up_to + 1, -1))
    sound = (n > 0) & np.isfinite(y) & ~np.any(np.isinf(values), axis=-1, keepdims=True)
    pit: FloatArray = np.where(sound, low + u[..., None] * (high - low), float("nan"))[..., 0]
    return pit
