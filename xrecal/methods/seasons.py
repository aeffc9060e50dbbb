"""Weights of a pool if a short record may not distinguish a seasonal cycle from a jump."""

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
"""A record that is at most this many days shorter than two years counts as two years long. In a
monthly record of two years, the first and the last case are only 23 months apart."""


def trust_in_season(components: Sequence[Component], cases: Cases) -> FloatArray:
    """Return the share (L,) of their weight that components with the season may keep.

    See :func:`xrecal.arrays.baselines.jump.season_kept`. The share is 1 if cases have no dates, or
    if no component uses the season. It is also 1 if all components without the season issue past
    observations or the raw forecast.
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
    """Replace held-out forecasts of cases of the first year by NaN.

    ``quantiles`` (L, C, n, Q) has Q quantiles of each of C components for each of n cases. These
    quantiles come from fits to earlier cases alone. In the first year, the earlier cases do not
    contain all seasons. The function does nothing if no component uses the season, or if the record
    is shorter than two years: without its first year, such a record could not show drift.
    """
    if days is not None and _seasonal(components).any():
        quantiles[:, :, in_first_year(days)] = np.nan


def in_first_year(days: FloatArray) -> BoolArray:
    """Mark the cases (n,) of the first year of a record, if it has two years or more."""
    from xrecal.arrays.baselines.jump import YEAR

    age = days - days.min(initial=np.inf)
    first: BoolArray = (age < YEAR) & (age.max(initial=0.0) >= 2 * YEAR - MONTH)
    return first


def with_season_in_doubt(
    components: Sequence[Component], weights: FloatArray, scores: FloatArray, trust: FloatArray
) -> FloatArray:
    """Average given weights (L, C) with the weights of a pool without the season.

    ``trust`` (L,) is the share of the given weights in this average, so a component with the season
    keeps this share of its weight. The pool without the season has only the components that do not
    use the season; its weights follow from the ``scores`` (L, C, C).
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
