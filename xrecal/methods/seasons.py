"""Weights of a pool whose record is too short to separate a season from a jump."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xrecal.arrays.distributions.forms import moments
from xrecal.inputs.covariates import SEASON
from xrecal.typing import FloatArray

from .base import Cases
from .components import Component


def season_in_doubt(
    components: Sequence[Component], weights: FloatArray, scores: FloatArray, cases: Cases
) -> FloatArray:
    """Weights (L, C), those of components given the season lowered where a jump is likely.

    The mass that these lose goes by the weights that scores (L, C, C) give to all others. Weights
    stay as they are if all others issue past observations or the raw forecast. See
    :func:`xrecal.arrays.baselines.jump.season_kept`.
    """
    from xrecal.arrays.baselines.jump import season_kept
    from xrecal.arrays.distributions.pool import SMALLEST, weights_of_scores

    seasonal = np.array([SEASON in c.method.covariates for c in components])
    errors = np.array([c.method.recalibrates and not c.on_observations for c in components])
    if cases.axis.days is None or not (seasonal.any() and (errors & ~seasonal).any()):
        return weights
    assert cases.forecasts is not None
    means, _ = moments(cases.forecasts)
    kept = season_kept(means, cases.observations, cases.axis.days)[:, np.newaxis]
    without = scores.copy()
    without[:, seasonal], without[:, :, seasonal] = np.nan, np.nan
    plain = weights_of_scores(without)
    mixed = np.where(np.isnan(plain), weights, kept * weights + (1.0 - kept) * plain)
    mixed = np.where(mixed < SMALLEST * mixed.max(-1, keepdims=True), 0.0, mixed)
    return np.asarray(mixed / mixed.sum(-1, keepdims=True))
