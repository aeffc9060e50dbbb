"""Weights of the pools of many places, if the pools share a component.

The scores of components at a single place are too uncertain to determine the weights of this place.
The scores of all places together are more certain. So the mean scores over places determine joint
weights, and the weights of each place are shrunk to the joint weights. In this module, the evidence
of a place consists of its scores and its trust in the season.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from xrecal.typing import FloatArray

from .base import FitArrays
from .components import Component
from .seasons import with_season_in_doubt

MATRIX, TRUST = "relative_scores", "trust_in_season"
"""Keys of the evidence of a pool. ``MATRIX``: scores of held-out forecasts, one for each pair of
components, divided by the smallest CRPS of all components. ``TRUST``: the share of their weight
that components with the season may keep."""


def evidence_sizes(n_components: int) -> Mapping[str, tuple[int, ...]]:
    """Return the sizes of the evidence of a place: its scores, and its trust in the season."""
    return {MATRIX: (n_components, n_components), TRUST: ()}


def evidence(scores: FloatArray, trust: FloatArray) -> dict[str, FloatArray]:
    """Return two arrays of evidence about L places, from scores (L, C, C) and trust (L,)."""
    from xrecal.arrays.distributions.pool import relative_scores

    return {MATRIX: relative_scores(scores), TRUST: trust}


def weights_of_all(
    components: Sequence[Component], choices: FitArrays, n_cases: FloatArray
) -> dict[str, FloatArray]:
    """Return joint weights (1, C) and mean evidence of all places, from the evidence of L places.

    The joint weights are shrunk to weights that depend only on the CRPS of each component alone.
    The strength of this shrinkage is proportional to the median of ``n_cases`` (L,), divided by the
    sum of ``n_cases``.
    """
    from xrecal.arrays.distributions.pool import PULL, weights_of_scores

    mean = _mean_of_known(choices[MATRIX])
    trust = _mean_of_known(choices[TRUST])
    alone = np.nanmedian(n_cases) / np.nansum(n_cases) if np.nansum(n_cases) > 0 else 1.0
    weights = weights_of_scores(mean, PULL * float(alone))
    weights = with_season_in_doubt(components, weights, mean, trust)
    return {"pool_weight": weights, MATRIX: mean, TRUST: trust}


def weights_at_places(
    components: Sequence[Component], together: FitArrays, own: FitArrays, share: FloatArray
) -> FloatArray:
    """Return weights (L, C) of places, from means of a place's own scores and the joint scores.

    ``share`` (L,) is the weight of a place's own scores in this mean. The weights are shrunk to the
    joint weights, and equal the joint weights where ``share`` is 0.
    """
    from xrecal.arrays.distributions.pool import weights_of_scores

    part = share[:, np.newaxis, np.newaxis]
    scores = np.where(
        np.isnan(own[MATRIX]), together[MATRIX], (1 - part) * together[MATRIX] + part * own[MATRIX]
    )
    trust = np.where(np.isnan(own[TRUST]), together[TRUST], own[TRUST])
    trust = (1 - share) * together[TRUST] + share * trust
    weights = weights_of_scores(scores, towards=together["pool_weight"])
    weights = with_season_in_doubt(components, weights, scores, trust)
    return np.where(share[:, np.newaxis] > 0, weights, together["pool_weight"])


def _mean_of_known(values: FloatArray) -> FloatArray:
    """Return the mean (1, ...) of known values (L, ...) of L places; NaN if no value is known."""
    known = ~np.isnan(values)
    count = known.sum(0, keepdims=True)
    total = np.where(known, values, 0.0).sum(0, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
