"""Compute scores of probabilities and quantiles: Brier, ranked probability, pinball score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.inputs.dims import Dims, level_coordinate, read_levels
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import (
    Edges,
    Threshold,
    Thresholds,
    check_edges,
    read_edges,
    read_thresholds,
)
from xrecal.products.scores import (
    BRIER,
    FAIR,
    PROBABILITY_AS_ISSUED,
    Score,
    Verified,
    score_entry,
    scored,
)
from xrecal.products.source import Issued
from xrecal.typing import FloatArray

from .evidence import Evidence

RANKED = Score(
    "ranked_probability_score",
    "ranked probability score, not divided by the number of edges",
    PROBABILITY_AS_ISSUED,
    {"units": "1"},
)
PINBALL = Score("quantile_score", "quantile (pinball) score")


def quantile_scores_of(
    distribution: Distribution, observations: FloatArray, levels: FloatArray
) -> tuple[FloatArray, ...]:
    """Compute quantile scores (L, T, k) of L places and T cases at k levels."""
    from xrecal.arrays.scores.quantile_scores import quantile_score as of_quantiles

    return (of_quantiles(observations, distribution.quantile(levels), levels),)


@score_entry()
def brier_score(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    fair: bool = False,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the Brier score of probabilities of exceeding a threshold.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    threshold : float, sequence of float or DataArray
        See :func:`xrecal.products.probabilities.exceedance`. The event is an observation above the
        threshold.
    dim : hashable or sequence of hashable, optional
        Dimensions to average over. The mean leaves out missing scores. If xrecal does not
        recognise the dimension of the cases, name it here.
    fair : bool
        True estimates the score of an infinite ensemble from exchangeable members [2]_. This is
        only for plain ensembles of at least two members.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        :math:`(p - 1\{y > t\})^2` in [0, 1] for each case and threshold, where p is the
        probability, y is the observation, and t is the threshold. The result is lazy if an input is
        lazy. It is NaN where the observation, forecast or threshold is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units of the inputs do not match, or if ``fair=True`` and the
        forecast is not a plain ensemble.

    References
    ----------
    .. [1] Brier (1950). https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
    .. [2] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270

    Examples
    --------
    >>> forecast.recal.brier_score(observations, 5.0, ["init", "location"]).round(2).item()
    0.05
    >>> model.brier_score(forecast, observations, 5.0, dim=["init", "location"]).round(2).item()
    0.04
    """

    def rule(verified: Verified) -> xr.DataArray:
        source = verified.source
        wanted = read_thresholds(threshold, source.form, source.threshold_dtype, source.dim)
        return verified.brier(wanted, fair)

    return scored(forecast, observations, rule, dim, member_dim, _estimated(BRIER, fair))


@score_entry("rps")
def ranked_probability_score(
    forecast: Labelled,
    observations: Observations,
    edges: Edges,
    dim: Dims = None,
    *,
    fair: bool = False,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the ranked probability score of the categories between thresholds.

    Parameters
    ----------
    forecast, observations, dim, fair, member_dim
        See :func:`brier_score`.
    edges : sequence of float or DataArray
        Thresholds between the categories, increasing, such as the two terciles of the climatology.
        A value that equals an edge belongs to the category below this edge. In a DataArray, edges
        lie along a dimension that the forecast lacks. The DataArray may also have dimensions of the
        forecast: each location then has its own edges.

    Returns
    -------
    DataArray or Dataset
        Sum of the Brier scores at all edges, in [0, number of edges], for each case.

    Raises
    ------
    ValueError
        See :func:`brier_score`; also if edges in a list do not increase, if there is no edge, or if
        a DataArray has no dimension that the forecast lacks.

    References
    ----------
    .. [1] Epstein (1969), A scoring system for probability forecasts of ranked categories.
       https://doi.org/10.1175/1520-0450(1969)008<0985:ASSFPF>2.0.CO;2

    Examples
    --------
    >>> edges = [0.0, 5.0]
    >>> score = forecast.recal.ranked_probability_score(observations, edges, ["init", "location"])
    >>> score.round(2).item()
    0.06
    >>> model.rps(forecast, observations, edges, dim=["init", "location"]).round(2).item()
    0.05
    """
    check_edges(edges)

    def rule(verified: Verified) -> xr.DataArray:
        wanted = read_edges(edges, verified.source.form, verified.source.threshold_dtype)
        return verified.brier(wanted, fair).sum([wanted.dim], skipna=False)

    return scored(forecast, observations, rule, dim, member_dim, _estimated(RANKED, fair))


@score_entry()
def quantile_score(
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the quantile (pinball) score of quantiles of the forecasts.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`brier_score`.
    q : float or sequence of float
        Levels in [0, 1], each once, in any order.

    Returns
    -------
    DataArray or Dataset
        :math:`(1\{y \le x\} - q) (x - y) \ge 0` of each case in the unit of the variable, where x
        is the forecast's quantile at level q and y is the observation. With several levels, the
        result has a dimension ``quantile``. Twice the mean of the scores over all levels between 0
        and 1 is the CRPS.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or listed twice, or if dimensions, labels or units of the
        inputs do not match.

    References
    ----------
    .. [1] Gneiting (2011), Quantiles as optimal point forecasts.
       https://doi.org/10.1016/j.ijforecast.2009.12.015

    Examples
    --------
    >>> score = forecast.recal.quantile_score(observations, [0.1, 0.9], ["init", "location"])
    >>> score.round(2).values
    array([0.16, 0.17])
    >>> score = model.quantile_score(forecast, observations, [0.1, 0.9], ["init", "location"])
    >>> score.round(2).values
    array([0.12, 0.13])
    """
    levels = read_levels(q)

    def rule(verified: Verified) -> xr.DataArray:
        reduction = partial(quantile_scores_of, levels=levels)
        scores = verified.reduce(reduction, {"quantile": levels.size})
        scores = scores.assign_coords(quantile=level_coordinate(levels))
        return scores.isel(quantile=0) if np.ndim(q) == 0 else scores

    return scored(forecast, observations, rule, dim, member_dim, PINBALL)


def brier_scores(evidence: Evidence, thresholds: Thresholds, fair: bool = False) -> xr.DataArray:
    """Compute the Brier score of each case and threshold."""
    return Verified(Issued(evidence.form), evidence.pairs.observations).brier(thresholds, fair)


def _estimated(score: Score, fair: bool) -> Score:
    return score.of(FAIR) if fair else score
