"""Weights of a pool whose record is too short to separate a season from a jump."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xrecal.arrays.distributions.forms import moments
from xrecal.inputs.covariates import SEASON
from xrecal.typing import FloatArray

from .base import Cases
from .climatology import Climatology
from .components import Component


def season_in_doubt(
    components: Sequence[Component], weights: FloatArray, scores: FloatArray, cases: Cases
) -> FloatArray:
    """Weights (L, C), those of components given the season lowered where a jump is likely.

    The mass that these lose goes by the weights that scores (L, C, C) give to all others. Weights
    stay as they are if no other component than climatology is recalibrated. See
    :func:`xrecal.arrays.baselines.jump.season_kept`.
    """
    from xrecal.arrays.baselines.jump import season_kept
    from xrecal.arrays.distributions.pool import weights_of_scores

    seasonal = np.array([SEASON in c.method.covariates for c in components])
    others = (c.method for c, of_season in zip(components, seasonal, strict=True) if not of_season)
    another = any(m.recalibrates and not isinstance(m, Climatology) for m in others)
    if cases.axis.days is None or not (seasonal.any() and another):
        return weights
    assert cases.forecasts is not None
    means, _ = moments(cases.forecasts)
    kept = season_kept(means, cases.observations, cases.axis.days)[:, np.newaxis]
    without = scores.copy()
    without[:, seasonal], without[:, :, seasonal] = np.nan, np.nan
    plain = weights_of_scores(without)
    return np.where(np.isnan(plain), weights, kept * weights + (1.0 - kept) * plain)
