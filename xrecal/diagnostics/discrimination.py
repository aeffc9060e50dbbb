"""Discrimination of forecasts: ROC curves, economic value, generalised discrimination."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.chunks.blockwise import require_free
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold
from xrecal.products.scores import score_entry

from .evidence import (
    NO_UNIT,
    Evidence,
    by_name,
    described,
    flag_events,
    read_evidence,
)
from .reliability import Events, read_events
from .series import over_series

LEVEL = "probability_level"
COST_LOSS = "cost_loss"

PERCENT = np.linspace(0.0, 1.0, 101)
RATIOS = np.linspace(0.05, 0.95, 19)

_CURVE = {
    "hit_rate": "share of events whose probability reaches the level",
    "false_alarm_rate": "share of cases without the event whose probability reaches the level",
}
_AREA = {
    "area": "area under the ROC curve",
    "area_error": "standard error of the area, allowing for autocorrelation",
    "base_rate": "share of cases in which the event happened",
}
_VALUES = {
    "value": "relative economic value of acting if the probability is at least cost / loss",
    "potential_value": "relative economic value of acting at the best level of probability",
    "base_rate": "share of cases in which the event happened",
}
_DISCRIMINATION = {
    "discrimination": "generalised discrimination score",
    "discrimination_error": "standard error of the discrimination, allowing for autocorrelation",
}


@score_entry(variable="area", each=True)
def roc(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    levels: Sequence[float] | np.ndarray | None = None,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute the ROC (relative operating characteristics) of probabilities of an event.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    threshold : float, sequence of float or DataArray
        See :func:`xrecal.products.probabilities.exceedance`. The event is an observation above the
        threshold.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    levels : sequence of float, optional
        Probabilities in [0, 1], one for each point of the curve. The point describes a user who
        acts if the forecast gives the event at least this probability. By default, 0 to 1 in steps
        of 0.01. The area does not depend on ``levels``, because it uses all issued probabilities.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over locations, ``threshold`` (if there are several) and ``probability_level``:
        ``hit_rate``, the share of events in which the user acts, and ``false_alarm_rate``, the
        share of cases without an event in which the user acts. Over locations and ``threshold``:
        ``area`` in [0, 1] (1 is perfect, ½ is no discrimination); its standard error
        ``area_error``; ``base_rate``, the share of cases with an event; ``n_cases`` and ``status``.
        Curve and area are NaN with fewer than 2 cases, or if the event happened in none or all of
        the cases; the status reports the reason. The result is lazy if an input is lazy.

    Raises
    ------
    ValueError
        If there is more than one variable, levels are outside [0, 1], or if dimensions, labels or
        units of the inputs do not match.

    Notes
    -----
    See :func:`xrecal.arrays.roc_area` for the formulas. The curve ends at (0, 0), where the user
    never acts. An increasing transform of the probabilities does not change the curve, so the curve
    does not measure calibration; :func:`reliability` measures calibration. Standard errors allow
    for dependence of successive cases. If the cases have several dimensions, such as time and
    places, each date counts once. The cost is O(n log n) for n cases.

    If ``dim`` contains places, one curve describes the cases of all places. If events are more
    frequent at some places than at others, this curve has a larger area than the curves of single
    places, even for a forecast that knows only the climate [2]_. To avoid this, leave places out of
    ``dim``: each place then has its own curve. Or give each place its own threshold, such as
    ``observations.quantile(0.9, "time")``. :func:`brier_skill_score` compares with the climatology
    of each place.

    References
    ----------
    .. [1] Mason (1982), A model for assessment of weather forecasts. Australian Meteorological
       Magazine 30, 291-303.
    .. [2] Hamill & Juras (2006), Measuring forecast skill: is it real skill or is it the varying
       climatology? https://doi.org/10.1256/qj.06.25

    Examples
    --------
    >>> found = hindcast.recal.roc(observations, 5.0, ["init", "location"])
    >>> found["area"].round(3).item(), found["base_rate"].item()
    (0.996, 0.34)
    """
    wanted = _checked(PERCENT if levels is None else levels, "levels", ends=True)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    require_free(evidence.form.dims, [LEVEL])
    events = read_events(evidence, threshold)
    given = events.probability, events.happened
    curve = evidence.over_cases(
        by_name("roc_curve", levels=wanted),
        *given,
        out=[(LEVEL,)] * 2,
        sizes={LEVEL: wanted.size},
        what="the ROC curve",
    )
    attrs = {"long_name": "lowest probability at which a user acts", **NO_UNIT}
    variables = described(curve, _CURVE, NO_UNIT)
    variables |= described(area_parts(evidence, *given), _AREA, NO_UNIT)
    what, along = "relative operating characteristics", {LEVEL: (wanted, attrs)}
    return _flagged(evidence, events, variables, what, along)


def _flagged(
    evidence: Evidence, events: Events, variables: dict[str, xr.DataArray], what: str, along: Any
) -> xr.Dataset:
    """Return the results; their status marks events that happened in none or all of the cases."""
    result = evidence.result(variables, what, events.known.notnull(), sure=True, along=along)
    return events.label(flag_events(result, events.known, evidence.dims))


def area_parts(
    evidence: Evidence, probability: xr.DataArray, happened: xr.DataArray
) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Return the area under the ROC curve, its standard error and the share of events."""
    dtype = probability.dtype
    area, influence, base_rate = evidence.over_cases(
        _area,
        probability,
        happened,
        out=[(), evidence.dims, ()],
        dtypes=[dtype, np.float64, dtype],
        what="the ROC area",
    )
    return area, evidence.error_of_mean(influence).astype(dtype), base_rate


@score_entry(variable="value", each=True)
def economic_value(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    cost_loss: float | Sequence[float] | np.ndarray | None = None,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute the relative economic value of probabilities of exceeding a threshold.

    Parameters
    ----------
    forecast, observations, threshold, dim, member_dim
        See :func:`roc`.
    cost_loss : float or sequence of float, optional
        Ratios, between 0 and 1, of the cost of protection to the loss that protection avoids. By
        default, 0.05 to 0.95 in steps of 0.05.

    Returns
    -------
    Dataset
        Over locations, ``threshold`` and ``cost_loss`` (if there are several): ``value``, the value
        for a user who takes protection if the probability is at least the ratio of cost to loss
        (the best rule if probabilities are calibrated); ``potential_value``, the value for a user
        who takes protection if the probability is at least the level that is best for these cases.
        A perfect forecast has the value 1. There are two simple rules: always or never to take
        protection. The better of these rules has the value 0; negative values are worse than this
        rule. Over locations and ``threshold``: ``base_rate``, the share of cases with an event (a
        user whose ratio of cost to loss equals this share gains most); ``n_cases``; ``status``,
        which reports if the event happened in none or all of the cases. The result is lazy if an
        input is lazy.

    Raises
    ------
    ValueError
        See :func:`roc`; also if a ratio is not between 0 and 1.

    Notes
    -----
    See :func:`xrecal.arrays.economic_value` for the formula [1]_. ``value`` is below
    ``potential_value`` mainly because of miscalibration. A small part of the difference arises
    because ``potential_value`` uses the level that is best for the same cases. The cost is O(n log
    n) for n cases.

    References
    ----------
    .. [1] Richardson (2000), Skill and relative economic value of the ECMWF ensemble prediction
       system. https://doi.org/10.1002/qj.49712656313

    Examples
    --------
    >>> found = hindcast.recal.economic_value(
    ...     observations, 5.0, ["init", "location"], cost_loss=[0.2, 0.5]
    ... )
    >>> found["value"].round(2).values, found["base_rate"].item()
    (array([0.98, 0.97]), 0.34)
    """
    cost_loss = RATIOS if cost_loss is None else cost_loss
    ratios = _checked(cost_loss, "cost_loss", ends=False)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    require_free(evidence.form.dims, [COST_LOSS])
    events = read_events(evidence, threshold)
    results = evidence.over_cases(
        partial(_values, ratios=ratios),
        events.probability,
        events.happened,
        out=[(COST_LOSS,), (COST_LOSS,), ()],
        sizes={COST_LOSS: ratios.size},
        what="the economic value",
    )
    variables = described(results, _VALUES, NO_UNIT)
    attrs = {"long_name": "cost of protection / loss that protection avoids", **NO_UNIT}
    what, along = "relative economic value", {COST_LOSS: (ratios, attrs)}
    result = _flagged(evidence, events, variables, what, along)
    return result.isel({COST_LOSS: 0}) if np.ndim(cost_loss) == 0 else result


@score_entry(variable="discrimination", each=True)
def generalised_discrimination(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute the generalised discrimination score (2AFC): share of pairs in the right order.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`roc`.

    Returns
    -------
    Dataset
        Over locations: ``discrimination`` in [0, 1], the share of pairs in the right order (1 is
        perfect, ½ is no discrimination); its standard error ``discrimination_error``; ``n_cases``
        and ``status``. A pair is any two cases with different observations. Its order is right if
        the case with the larger forecast has the larger observation. The result is lazy if an input
        is lazy.

    Raises
    ------
    ValueError
        See :func:`roc`; also if Dask has the cases in several chunks.

    Notes
    -----
    See :func:`xrecal.arrays.generalised_discrimination` for the definition [1]_ [2]_. Forecast A is
    larger than forecast B if, with a probability above ½, a random member of A exceeds a random
    member of B. The score needs no threshold. A bias or an error of spread that all forecasts share
    does not change the score. The function represents each normal distribution by 200 quantiles.
    See :func:`roc` for standard errors. The cost is O(n² m) for n cases of m members.

    References
    ----------
    .. [1] Mason & Weigel (2009), A generic forecast verification framework for administrative
       purposes. https://doi.org/10.1175/2008MWR2553.1
    .. [2] Weigel & Mason (2011), The generalized discrimination score for ensemble forecasts.
       https://doi.org/10.1175/MWR-D-10-05069.1

    Examples
    --------
    >>> found = hindcast.recal.generalised_discrimination(observations, "init")
    >>> found["discrimination"].round(2).values
    array([0.97, 0.96, 0.96, 0.96])
    """
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    evidence, note = evidence.by_quantiles(keep=not evidence.form.traits.has_scale)
    form, dims = evidence.form, evidence.dims
    score, influence = over_series(
        evidence,
        _pairs,
        dims=dims,
        per_case=[False, True],
        dtypes=[form.loc.dtype, np.float64],
        what="the discrimination",
    )
    error = evidence.error_of_mean(influence).astype(form.loc.dtype)
    variables = described((score, error), _DISCRIMINATION, NO_UNIT)
    variables["discrimination"].attrs["estimator"] = f"comparison of cases, member by member{note}"
    what = "generalised discrimination"
    return evidence.result(variables, what, influence.notnull(), sure=True)


def _pairs(
    forecasts: Forecasts, observed: np.ndarray, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores (L,) of locations, and the influence (L, n) of cases on these scores."""
    from xrecal.arrays.calibration.skce import one_row_each

    each = one_row_each(forecasts)
    found = arrays.generalised_discrimination(observed, each.loc, each.weights)
    return found.score, found.influence


def _checked(values: Any, name: str, *, ends: bool) -> np.ndarray:
    """Return probabilities as an array with one axis; raise ValueError for other values."""
    given = np.atleast_1d(np.asarray(values))
    numbers = given.dtype.kind in "iuf" and given.ndim == 1 and given.size > 0
    inside = numbers and ((given >= 0) & (given <= 1)).all()
    if inside and not ends:
        inside = ((given > 0) & (given < 1)).all()
    if not inside:
        where = "in [0, 1]" if ends else "between 0 and 1"
        raise ValueError(f"{name} must hold numbers {where}, got {values!r:.60}")
    return given.astype(np.float64)


def _area(probability: np.ndarray, happened: np.ndarray) -> tuple[np.ndarray, ...]:
    found = arrays.roc_area(probability, happened)
    return found.area, found.influence, _base_rate(probability, happened)


def _values(
    probability: np.ndarray, happened: np.ndarray, ratios: np.ndarray
) -> tuple[np.ndarray, ...]:
    return *arrays.economic_value(probability, happened, ratios), _base_rate(probability, happened)


def _base_rate(probability: np.ndarray, happened: np.ndarray) -> np.ndarray:
    from xrecal.arrays.scores.significance import mean_of_cases

    return mean_of_cases(np.where(np.isnan(probability), np.nan, happened))
