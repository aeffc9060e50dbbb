"""Compute the reliability of probabilities of events, such as rain > 10 mm, and of quantiles."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.inputs.dims import Dims, level_coordinate, read_levels
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import probability_attributes
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold, Thresholds, read_thresholds
from xrecal.methods.call_errors import explained
from xrecal.products.probabilities import EXCEEDANCE
from xrecal.products.statistics import quantiles_of

from .evidence import NO_UNIT, Evidence, described, read_evidence, stacked

T = TypeVar("T", xr.DataArray, xr.Dataset)

_PARTS = {
    "miscalibration": "miscalibration: part that recalibration would remove",
    "discrimination": "discrimination: gain of the recalibrated forecast over climatology",
    "uncertainty": "uncertainty: score of the climatology of these cases",
}


@dataclass(frozen=True)
class Events:
    """Events of the type "value above a threshold": probabilities and outcomes."""

    thresholds: Thresholds
    probability: xr.DataArray
    """Issued probabilities over cases, locations and thresholds."""
    happened: xr.DataArray
    """1 if the observation exceeds the threshold, 0 if not, NaN if unknown."""

    @property
    def known(self) -> xr.DataArray:
        """1 if the event happened, 0 if not, NaN if this outcome or the probability is unknown."""
        return self.happened.where(self.probability.notnull())

    def label(self, result: T) -> T:
        """Add the coordinates of the thresholds; a single threshold gets no dimension."""
        if not self.thresholds.several:
            result = result.isel({self.thresholds.dim: 0})
        return result.assign_coords(self.thresholds.coords)


def read_events(evidence: Evidence, threshold: Threshold) -> Events:
    """Return probabilities of exceeding a threshold, and whether observations exceeded it.

    Observations and thresholds are compared in the floating type of the forecast.
    """
    form = evidence.form
    return events_at(evidence, read_thresholds(threshold, form, form.loc.dtype, evidence.pairs.dim))


def events_at(evidence: Evidence, wanted: Thresholds) -> Events:
    """Return the events of :func:`read_events` for thresholds in the form ``Thresholds``."""
    form = evidence.form
    new = {wanted.dim: wanted.values.sizes[wanted.dim]}
    probability = evidence.reduce(EXCEEDANCE.reduction, [wanted.values], new)
    observed = evidence.observations
    above = (observed > wanted.values).astype(form.loc.dtype)
    known = observed.notnull() & wanted.values.notnull()
    attrs = probability_attributes(form.loc.attrs, EXCEEDANCE.event)
    attrs.pop("history", None)  # a result has its own history
    return Events(wanted, probability.assign_attrs(attrs), above.where(known))


@explained("xrecal.diagnostics.reliability")
def reliability(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute the reliability of probabilities of exceeding a threshold, without bins.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    threshold : float, sequence of float or DataArray
        See :func:`xrecal.products.probabilities.exceedance`.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over cases, locations and ``threshold`` (if there are several): ``probability``, the issued
        probability, and ``conditional_probability``, the probability of the event given the issued
        probability, in [0, 1]. This conditional probability comes from isotonic regression of
        events on issued probabilities. Plotted against ``probability``, it gives the reliability
        diagram. Over locations and threshold: ``brier_score``, which is ``miscalibration`` -
        ``discrimination`` + ``uncertainty``, three parts >= 0; ``n_cases`` and ``status``. The
        result is lazy if an input is lazy.

    Raises
    ------
    ValueError
        If there is more than one variable, or if dimensions, labels or units of the inputs do not
        match.

    Notes
    -----
    The cost is O(n log n) for n cases. The regression is fitted to the cases that it describes, so
    with few cases even a calibrated forecast has some miscalibration. The miscalibration is the
    part of the score that recalibration would remove. The uncertainty is the score of the
    climatology of these cases, and the discrimination is the gain of the recalibrated forecast over
    this climatology.

    If ``dim`` contains places, one regression is fitted to the cases of all places. So opposite
    errors at two places may cancel, and the discrimination contains differences between the
    climates of the places. To avoid this, leave places out of ``dim``: each place then has its own
    curve. Or give each place its own threshold, such as ``observations.quantile(0.9, "time")``.
    :func:`brier_skill_score` compares with the climatology of each place.

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
       classifiers. https://doi.org/10.1073/pnas.2016191118

    Examples
    --------
    >>> parts = hindcast.recal.reliability(observations, 5.0, ["init", "location"])
    >>> parts["brier_score"].round(3).item(), parts["miscalibration"].round(3).item()
    (0.007, 0.002)
    """
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    events = read_events(evidence, threshold)
    conditional, parts = reliability_parts(evidence, events.probability, events.happened)
    given = {"probability": events.probability, "conditional_probability": conditional}
    variables = given | parts
    what = "reliability of probabilities"
    return events.label(evidence.result(variables, what, events.known.notnull()))


def reliability_parts(
    evidence: Evidence, probability: xr.DataArray, happened: xr.DataArray
) -> tuple[xr.DataArray, dict[str, xr.DataArray]]:
    """Return event probabilities given issued probabilities, and the parts of the Brier score."""
    conditional, *parts, score = evidence.over_cases(
        _probability_parts,
        probability,
        happened,
        out=[evidence.dims, (), (), (), ()],
        what="the reliability",
    )
    text = "probability of the event given the forecast, by isotonic regression"
    return conditional.assign_attrs(long_name=text, units="1"), {
        "brier_score": score.assign_attrs(long_name="mean Brier score", units="1"),
        **described(parts, _PARTS, NO_UNIT),
    }


@explained("xrecal.diagnostics.quantile_reliability")
def quantile_reliability(
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute the quantile of observations given the issued quantile.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`reliability`.
    q : float or sequence of float
        Levels between 0 and 1.

    Returns
    -------
    Dataset
        Over cases, locations and ``quantile`` (if there are several levels): ``forecast_quantile``,
        the issued quantile, and ``conditional_quantile``, the quantile of the observations given
        the issued quantile, by isotonic quantile regression; both in the unit of the variable. Over
        locations and ``quantile``: ``below``, the share of observations at or below the issued
        quantile; ``quantile_score``, which is ``miscalibration`` - ``discrimination`` +
        ``uncertainty``, three parts >= 0 in the unit of the variable; ``n_cases`` and ``status``.
        The result is lazy if an input is lazy.

    Raises
    ------
    ValueError
        See :func:`reliability`; also if a level is not between 0 and 1, or is listed twice.

    Notes
    -----
    The cost is O(n log n) for each level and n cases.

    References
    ----------
    .. [1] Gneiting & Resin (2023), Regression diagnostics meets forecast evaluation: conditional
       calibration, reliability diagrams, and coefficient of determination.
       https://doi.org/10.1214/23-EJS2180

    Examples
    --------
    >>> parts = hindcast.recal.quantile_reliability(observations, 0.9, ["init", "location"])
    >>> parts["below"].round(2).item()
    0.65
    """
    levels = read_levels(q)
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"q must hold levels between 0 and 1, ends excluded, got {levels}")
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    issued = evidence.reduce(
        partial(quantiles_of, levels=levels), new={"quantile": levels.size}
    ).assign_coords(quantile=level_coordinate(levels))
    by_level = [  # each level has its own regression
        evidence.over_cases(
            partial(_quantile_parts, level=level),
            issued.isel(quantile=i),
            evidence.observations,
            out=[evidence.dims, (), (), (), (), ()],
            what="the quantile reliability",
        )
        for i, level in enumerate(levels)
    ]
    conditional, *parts, score, below = (
        stacked(part, "quantile").assign_coords(quantile=level_coordinate(levels))
        for part in zip(*by_level, strict=True)
    )
    text = {"long_name": "quantile of the observation", **evidence.units}
    variables = {
        "forecast_quantile": issued.assign_attrs({**text, "long_name": "issued quantile"}),
        "conditional_quantile": conditional.assign_attrs(
            {**text, "long_name": "quantile given the issued quantile, by isotonic regression"}
        ),
        "below": below.assign_attrs(
            long_name="share of observations at or below the issued quantile", units="1"
        ),
        "quantile_score": score.assign_attrs(
            long_name="mean quantile (pinball) score", **evidence.units
        ),
        **described(parts, _PARTS, evidence.units),
    }
    known = issued.isel(quantile=0, drop=True).notnull() & (abs(evidence.observations) < np.inf)
    result = evidence.result(variables, "reliability of quantiles", known)
    return result.isel(quantile=0) if np.ndim(q) == 0 else result


def _probability_parts(probability: np.ndarray, happened: np.ndarray) -> tuple[np.ndarray, ...]:
    conditional, parts = arrays.corp(probability, happened)
    return (conditional, *parts)


def _quantile_parts(
    issued: np.ndarray, observations: np.ndarray, level: float
) -> tuple[np.ndarray, ...]:
    known = np.isfinite(issued) & np.isfinite(observations)
    n = known.sum(-1)
    with np.errstate(invalid="ignore"):  # without cases
        below = (known & (observations <= issued)).sum(-1) / np.where(n > 1, n, np.nan)
    conditional, parts = arrays.quantile_reliability(issued, observations, level)
    return (conditional, *parts, below)
