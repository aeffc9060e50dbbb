"""The cycle of forecasts over the year, and forecasts relative to it."""

from __future__ import annotations

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts
from xrecal.typing import FloatArray

HARMONICS = 2
MOST = 0.5
"""Of the variance of the means of forecasts: beyond it they are compared relative to their
cycle."""

FEWEST = 20
"""Cases below which no cycle is looked for."""


def relative_to_season(
    parts: Forecasts, y: FloatArray, season: FloatArray
) -> tuple[Forecasts, FloatArray] | None:
    """Normalised forecasts and observations (n,) minus the cycle of the forecasts, if any.

    The cycle is the least-squares fit of the year and half-year waves to the means of the
    forecasts. As it follows from forecasts and dates alone, what was calibrated given both still
    is. None where it explains half of the variance of the means or less, degrees of freedom
    counted.
    """
    loc, scale, weights = parts
    assert weights is not None  # as normalised() leaves them
    known = np.isfinite(season)
    n = int(known.sum())
    if n < max(FEWEST, len(season)):  # all of them need a date
        return None
    centre = np.einsum("nm,nm->n", weights, np.broadcast_to(loc, weights.shape))
    angle = 2 * np.pi * np.outer(season, np.arange(1, HARMONICS + 1))
    design = np.column_stack([np.ones(n), np.cos(angle), np.sin(angle)])
    centred = centre - centre.mean()
    coefficients, _, rank, _ = np.linalg.lstsq(design, centred, rcond=1e-6)
    cycle = design @ coefficients
    left, whole = centred - cycle, float(centred @ centred)
    if not whole > 0 or float(left @ left) / whole * (n - 1) / (n - rank) >= 1 - MOST:
        return None
    shifted = np.where(weights > 0, np.broadcast_to(loc, weights.shape) - cycle[:, np.newaxis], 0.0)
    return Forecasts(shifted, scale, weights), y - cycle
