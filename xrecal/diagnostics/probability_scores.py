"""Scores of probabilities and quantiles: Brier, ranked probability, pinball."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from xrecal.fit.select_fits import explicit_member_dim
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import Dims, level_coordinate, read_levels
from xrecal.inputs.forms import Form, Labelled, require_plain
from xrecal.inputs.pairing import Observations, known_pairs, pair_cases
from xrecal.inputs.thresholds import (
    Edges,
    Threshold,
    Thresholds,
    check_edges,
    read_edges,
    read_thresholds,
)
from xrecal.methods.call_errors import explained
from xrecal.products.recalibrated import Recalibrated, recalibrated
from xrecal.products.scores import (
    BRIER,
    FAIR,
    PROBABILITY_AS_ISSUED,
    ScoreName,
    against,
    brier,
    quantile_scores_of,
    score_recalibrated,
    score_variables,
)
from xrecal.products.source import Issued, reduce
from xrecal.typing import FloatArray

from .evidence import Evidence

if TYPE_CHECKING:
    from xrecal.fit.fitted import Fitted

RANKED = ScoreName(
    "ranked_probability_score",
    "ranked probability score, not divided by the number of edges",
    PROBABILITY_AS_ISSUED,
    {"units": "1"},
)
PINBALL = ScoreName("quantile_score", "quantile (pinball) score")


@explained("xrecal.diagnostics.brier_score")
def brier_score(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    fair: bool = False,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Brier score of the probability of exceeding a threshold.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    observations : DataArray, Dataset or dict
        What verified, in the same units; matched by label along the dimension of the cases.
    threshold : float, sequence of float or DataArray
        As for :func:`xrecal.products.probabilities.exceedance`; the event is strictly more.
    dim : hashable or sequence of hashable, optional
        Dimensions to average over. Missing scores are left out of the mean. Where no rule
        recognises the dimension of the cases, the one named here is it.
    fair : bool
        Estimate the score of an infinite ensemble from exchangeable members [2]_. Only for plain
        ensembles of at least two members.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        :math:`(p - 1\{y > t\})^2` of each case and threshold, in [0, 1]; lazy if an input is. NaN
        where the observation, forecast or threshold is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units do not fit, or ``fair`` is asked of other forms than plain
        ensembles.

    References
    ----------
    .. [1] Brier (1950). https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
    .. [2] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270

    Examples
    --------
    >>> forecast.recal.brier_score(observations, 5.0, ["init", "location"]).round(2).item()
    0.05
    """

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        wanted = read_thresholds(threshold, form, form.loc.dtype)
        return _brier(form, observed, wanted, fair)

    text = _estimated(BRIER, fair)
    return score_variables(forecast, observations, one, dim, member_dim, text)


@explained("xrecal.diagnostics.ranked_probability_score")
def ranked_probability_score(
    forecast: Labelled,
    observations: Observations,
    edges: Edges,
    dim: Dims = None,
    *,
    fair: bool = False,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Ranked probability score of the categories between thresholds.

    Parameters
    ----------
    forecast, observations, dim, fair, member_dim
        As for :func:`brier_score`.
    edges : sequence of float or DataArray
        Thresholds between the categories, increasing, such as the two terciles of the
        climatology. A value on an edge belongs to the category below it. A DataArray has one
        dimension that the forecast lacks, and may have others (terciles by location).

    Returns
    -------
    DataArray or Dataset
        Sum over the edges of the Brier score, in [0, number of edges], of each case.

    Raises
    ------
    ValueError
        As for :func:`brier_score`, or if edges in a list do not increase or there is none, or if
        a DataArray has no dimension of its own.

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
    """
    check_edges(edges)

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        wanted = read_edges(edges, form, form.loc.dtype)
        return _brier(form, observed, wanted, fair).sum([wanted.dim], skipna=False)

    text = _estimated(RANKED, fair)
    return score_variables(forecast, observations, one, dim, member_dim, text)


def model_ranked_probability_score(
    model: Fitted,
    forecast: Labelled,
    observations: Observations,
    edges: Edges,
    dim: Hashable | list[Hashable] | None = None,
    *,
    covariates: Given = None,
) -> Labelled:
    """Ranked probability score of categories of the recalibrated forecasts, chunk by chunk.

    Parameters
    ----------
    forecast, observations, dim, covariates
        As for :meth:`crps`.
    edges : sequence of float or DataArray
        Thresholds between the categories, increasing; see
        :func:`xrecal.diagnostics.ranked_probability_score`.

    Returns
    -------
    DataArray or Dataset
        Sum over the edges of the Brier score, in [0, number of edges], of each case.

    Raises
    ------
    ValueError
        As for :meth:`brier_score`, or if edges in a list do not increase or there is none.

    Examples
    --------
    >>> score = model.rps(forecast, observations, [0.0, 5.0], dim=["init", "location"])
    >>> score.round(2).item()
    0.05
    """
    check_edges(edges)

    def score(source: Recalibrated, observed: xr.DataArray) -> xr.DataArray:
        wanted = read_edges(edges, source.form, source.threshold_dtype)
        return brier(source, observed, wanted).sum([wanted.dim], skipna=False)

    sources = recalibrated(model, forecast, covariates)
    member_dim = explicit_member_dim(model, forecast)
    return score_recalibrated(sources, observations, score, dim, member_dim, RANKED)


@explained("xrecal.diagnostics.quantile_score")
def quantile_score(
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Quantile (pinball) score of quantiles of the forecasts.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        As for :func:`brier_score`.
    q : float or sequence of float
        Levels in [0, 1], each once, in any order.

    Returns
    -------
    DataArray or Dataset
        :math:`(1\{y \le x\} - q) (x - y) \ge 0` of each case, x the quantile, in the unit of the
        variable; with ``quantile`` for several levels. Twice its mean over all levels is the CRPS.

    Raises
    ------
    ValueError
        If a level is outside [0, 1] or given twice, or dimensions, labels or units do not fit.

    References
    ----------
    .. [1] Gneiting (2011), Quantiles as optimal point forecasts.
       https://doi.org/10.1016/j.ijforecast.2009.12.015

    Examples
    --------
    >>> score = forecast.recal.quantile_score(observations, [0.1, 0.9], ["init", "location"])
    >>> score.round(2).values
    array([0.16, 0.17])
    """
    levels = read_levels(q)

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        reduction = partial(quantile_scores_of, levels=levels)
        scores = against(form, observed, reduction, {"quantile": levels.size})
        return _at_levels(scores, levels, q)

    return score_variables(forecast, observations, one, dim, member_dim, PINBALL)


def model_quantile_score(
    model: Fitted,
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
    dim: Hashable | list[Hashable] | None = None,
    *,
    covariates: Given = None,
) -> Labelled:
    """Quantile (pinball) score of quantiles of the recalibrated forecasts, chunk by chunk.

    Parameters
    ----------
    forecast, observations, dim, covariates
        As for :meth:`crps`.
    q : float or sequence of float
        Levels in [0, 1], each once, in any order.

    Returns
    -------
    DataArray or Dataset
        As the forecast, in the unit of the variable; with ``quantile`` for several levels. See
        :func:`xrecal.diagnostics.quantile_score`.

    Raises
    ------
    ValueError
        As for :meth:`crps`, or if a level is outside [0, 1] or given twice.

    Examples
    --------
    >>> score = model.quantile_score(forecast, observations, [0.1, 0.9], ["init", "location"])
    >>> score.round(2).values
    array([0.12, 0.13])
    """
    levels = read_levels(q)

    def score(source: Recalibrated, observed: xr.DataArray) -> xr.DataArray:
        reduction = partial(quantile_scores_of, levels=levels)
        scores = reduce(source, reduction, {"quantile": levels.size}, [observed])
        return _at_levels(scores, levels, q)

    sources = recalibrated(model, forecast, covariates)
    member_dim = explicit_member_dim(model, forecast)
    return score_recalibrated(sources, observations, score, dim, member_dim, PINBALL)


def _at_levels(
    scores: xr.DataArray, levels: FloatArray, q: float | Sequence[float] | np.ndarray
) -> xr.DataArray:
    """Scores with their levels; without the dimension of a single one."""
    scores = scores.assign_coords(quantile=level_coordinate(levels))
    return scores.isel(quantile=0) if np.ndim(q) == 0 else scores


def _brier(form: Form, observed: xr.DataArray, thresholds: Thresholds, fair: bool) -> xr.DataArray:
    """Brier score of each case and threshold."""
    if fair:
        require_plain(form, "fair=True")
    pairs = known_pairs(pair_cases(form, observed, name="forecast", require_dim=False))
    return brier(Issued(pairs.form), pairs.observations, thresholds, fair)


def brier_scores(evidence: Evidence, thresholds: Thresholds, fair: bool = False) -> xr.DataArray:
    """Brier score of each case and threshold of forecasts that are paired already."""
    if fair:
        require_plain(evidence.form, "fair=True")
    return brier(Issued(evidence.form), evidence.pairs.observations, thresholds, fair)


def _estimated(score: ScoreName, fair: bool) -> ScoreName:
    return score.of(FAIR) if fair else score
