"""The baseline that ignores the forecast: past observations, all or those near in season."""

from __future__ import annotations

import numpy as np

from xrecal.typing import FloatArray

DAYS_PER_YEAR = 365.25


def climatology_weights(
    observations: FloatArray,
    n_new: int,
    *,
    window: float | None = None,
    season: FloatArray | None = None,
    new_season: FloatArray | None = None,
) -> FloatArray:
    """Equal weights for past observations.

    Parameters
    ----------
    observations : array of float, shape (L, n)
        Past observations, NaN where unknown.
    n_new : int
        Number T of forecasts.
    window : float, optional
        Width in days of the part of the year, centred on the forecast's date, whose cases count.
        All cases count without it.
    season, new_season : array of float, shapes (n,) and (T,), optional
        Dates of cases and forecasts as fractions of their year, in [0, 1); needed with a window.

    Returns
    -------
    array of float64, shape (L, T, n)
        Weights that sum to one; NaN where no case lies in the window.

    Raises
    ------
    ValueError
        If a window is given without dates.
    """
    known = np.isfinite(observations)[:, np.newaxis, :]
    if window is None:
        counted = np.broadcast_to(known, (known.shape[0], n_new, known.shape[2]))
    else:
        if season is None or new_season is None:
            raise ValueError("a window needs season and new_season, the dates of all cases")
        apart = np.abs(np.asarray(new_season)[:, np.newaxis] - np.asarray(season))
        apart = DAYS_PER_YEAR * np.minimum(apart, 1.0 - apart)  # on the circle of the year
        counted = known & (apart <= window / 2)
    total = counted.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, counted / np.where(total > 0, total, np.nan), np.nan)
