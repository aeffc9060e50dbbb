"""Weights of a pool if the record is too short to separate a season from a jump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import moments
from xrecal.inputs.covariates import SEASON
from xrecal.typing import FloatArray

from .base import Cases
from .components import Component

BoolArray: TypeAlias = npt.NDArray[np.bool_]

MONTH = 31.0
"""Tolerance in days: from its first to its last case, a monthly record of two years is this much
shorter."""


def trust_in_season(components: Sequence[Component], cases: Cases) -> FloatArray:
    """Share (L,) of the weight that components given the season may keep.

    See :func:`xrecal.arrays.baselines.jump.season_kept`. The share is 1 if no component is given
    the season, or if all other components issue past observations or the raw forecast.
    """
    from xrecal.arrays.baselines.jump import season_kept

    seasonal = _seasonal(components)
    errors = np.array([c.method.recalibrates and not c.on_observations for c in components])
    if cases.axis.days is None or not (seasonal.any() and (errors & ~seasonal).any()):
        return np.ones(len(cases.observations))
    assert cases.forecasts is not None
    means, _ = moments(cases.forecasts)
    return np.asarray(season_kept(means, cases.observations, cases.axis.days))


def forget_first_year(
    quantiles: FloatArray, components: Sequence[Component], days: FloatArray | None
) -> None:
    """Set forecasts (L, C, n, Q) from earlier cases to NaN until these contain all seasons.

    They become NaN in the first year of a record of two years or more, if a component is given the
    season. A shorter record keeps these forecasts, as nothing else shows drift there.
    """
    if days is not None and _seasonal(components).any():
        quantiles[:, :, in_first_year(days)] = np.nan


def in_first_year(days: FloatArray) -> BoolArray:
    """Mark cases (n,) of the first year, if a record has two years or more."""
    from xrecal.arrays.baselines.jump import YEAR

    age = days - days.min(initial=np.inf)
    first: BoolArray = (age < YEAR) & (age.max(initial=0.0) >= 2 * YEAR - MONTH)
    return first


def with_season_in_doubt(
    components: Sequence[Component], weights: FloatArray, scores: FloatArray, trust: FloatArray
) -> FloatArray:
    """Weights (L, C), with those of components given the season multiplied by a share (L,).

    Other components get the lost mass, by the weights that follow from their scores (L, C, C).
    """
    from xrecal.arrays.distributions.pool import SMALLEST, weights_of_scores

    if (trust == 1.0).all():
        return weights
    seasonal, kept = _seasonal(components), trust[:, np.newaxis]
    without = scores.copy()
    without[:, seasonal], without[:, :, seasonal] = np.nan, np.nan
    plain = weights_of_scores(without)
    mixed = np.where(np.isnan(plain), weights, kept * weights + (1.0 - kept) * plain)
    mixed = np.where(mixed < SMALLEST * mixed.max(-1, keepdims=True), 0.0, mixed)
    return np.asarray(mixed / mixed.sum(-1, keepdims=True))


def _seasonal(components: Sequence[Component]) -> BoolArray:
    return np.array([SEASON in c.method.covariates for c in components])
