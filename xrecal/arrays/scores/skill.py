"""Scores of two forecasts to the skill of one over the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.arrays.rows import mean_of_known
from xrecal.typing import FloatArray

from .significance import diebold_mariano, standard_error


class Skill(NamedTuple):
    """Skill (...) of a forecast, with its uncertainty."""

    skill: FloatArray
    """1 is perfect, 0 as good as the reference, less is worse"""
    standard_error: FloatArray
    """of the skill"""
    p_value: FloatArray
    """of equal mean scores, two-sided"""


def skill_score(scores: FloatArray, reference: FloatArray) -> Skill:
    r"""Share of a reference's score by which a forecast is better.

    Parameters
    ----------
    scores : array of float, shape (..., n)
        Scores s of the forecast, smaller is better and 0 perfect; cases in order of time.
    reference : array of float, broadcast with ``scores``
        Scores r of the reference. Cases missing in either are left out of both.

    Returns
    -------
    Skill
        :math:`1 - \bar s / \bar r`, its standard error, and the p-value of equal mean scores
        (:func:`~xrecal.arrays.diebold_mariano`), each of shape (...). Skill and standard error are
        NaN where the mean score of the reference is not positive; without common cases all are.

    Raises
    ------
    ValueError
        If shapes do not match.

    Notes
    -----
    The standard error is that of the mean of :math:`s - (\bar s / \bar r) \, r` under serial
    dependence (:func:`~xrecal.arrays.standard_error`), divided by :math:`\bar r`: the delta method
    for a ratio of means, good where the reference's mean is known well.

    Examples
    --------
    >>> found = skill_score(np.array([1.0, 2.0, 1.5, 1.5]), np.array([2.0, 3.0, 4.0, 3.0]))
    >>> float(found.skill)
    0.5
    """
    s, r = common_cases(scores=scores, reference=reference)
    mean_s, mean_r = mean_of_cases(s), mean_of_cases(r)
    usable = mean_r > 0
    divisor = np.where(usable, mean_r, 1.0)
    ratio = np.where(usable, mean_s / divisor, np.nan)
    error = standard_error(s - np.where(usable, ratio, 0.0)[..., np.newaxis] * r) / divisor
    p_value = diebold_mariano(s - r)[1]
    return Skill(1.0 - ratio, np.where(usable, error, np.nan), p_value)


def common_cases(**scores: FloatArray) -> list[FloatArray]:
    """Scores (..., n) as float64 of one shape, NaN in all where one is; names for the error."""
    found = [np.asarray(part, np.float64) for part in scores.values()]
    shapes = ", ".join(f"{name} {part.shape}" for name, part in zip(scores, found, strict=True))
    if any(part.ndim == 0 for part in found):
        raise ValueError(f"scores need an axis of cases, which is the last; found {shapes}")
    try:
        found = list(np.broadcast_arrays(*found))
    except ValueError:
        raise ValueError(f"shapes of scores do not match: {shapes}") from None
    missing = np.isnan(found).any(0)
    return [np.where(missing, np.nan, part) for part in found]


def mean_of_cases(scores: FloatArray) -> FloatArray:
    """Mean (...) of the cases of scores (..., n) that are not NaN; NaN without any."""
    return mean_of_known(scores, ~np.isnan(scores), fewest=1)
