"""Compute probabilities of terciles, and the usual scores of seasonal forecasts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import require_free
from xrecal.chunks.over_cases import over_cases
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Edges, Thresholds, check_edges, read_edges
from xrecal.methods.call_errors import explained
from xrecal.products.categories import (
    CATEGORY,
    EDGE,
    TERCILES,
    as_members,
    between,
    issued_categories,
)
from xrecal.products.source import Issued

from .discrimination import area_parts
from .evidence import (
    NO_UNIT,
    Evidence,
    counted,
    described,
    flag_events,
    read_evidence,
    stacked,
    where_enough,
)
from .probability_scores import RANKED, brier_scores
from .reliability import Events, events_at, reliability_parts
from .skill_scores import only_edges, ranked, ranked_reference, skill_of

LEVELS = (1 / 3, 2 / 3)
DIGITS = 5
"""Number of decimal places to which float32 probabilities are rounded."""
ODDS = (1 / 3, 1 / 3, 1 / 3)
"""Probabilities that the reference, climatology, gives to the three categories."""

_AREA = {
    "roc_area": "area under the ROC curve of the category",
    "roc_area_error": "standard error of the ROC area, allowing for autocorrelation",
    "frequency": "share of cases in the category",
}
_SKILL = {
    "rpss": "skill: 1 - ranked probability score / score of climatological odds",
    "rpss_error": "standard error of the skill, allowing for autocorrelation",
    "p_value": "two-sided p-value of equal scores, t-test that allows for autocorrelation",
}


@explained("xrecal.diagnostics.tercile_summary")
def tercile_summary(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    edges: Edges | None = None,
    fair: bool = False,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute probabilities of terciles, and their skill, discrimination and reliability.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable, raw or recalibrated: ensembles, quantiles, normal distributions
        or mixtures. They may also be probabilities of three categories, from ``categories`` or
        ``cross_validate(output="categories")``.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    edges : sequence of float or DataArray, optional
        The lower and the upper tercile, in the unit of the variable. A DataArray has a dimension of
        size 2 that the forecast lacks. It may vary with location, date or part of the year, such as
        ``record.groupby("time.month").quantile([1/3, 2/3], "time")``. If not given, the edges are
        the terciles of ``observations`` at each location over all cases; this choice is right if
        all cases are of one season of the year. Leave ``edges`` out if the forecast consists of
        probabilities of categories: it then has its own edges.
    fair : bool
        If members are exchangeable, True estimates the scores of an infinite ensemble. This is only
        for plain ensembles.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over ``category`` (below_normal, near_normal and above_normal, with coordinates
        ``lower_edge`` and ``upper_edge``): ``probability`` of each case, as issued, and
        ``conditional_probability``, the probability of the category given the issued probability,
        estimated by isotonic regression. Over ``category`` and locations: ``mean_probability``;
        ``frequency``, the share of cases in the category; ``roc_area`` with its standard error
        ``roc_area_error``; ``brier_score``, which is ``miscalibration`` - ``discrimination`` +
        ``uncertainty``. Over locations: ``rps``, the mean ranked probability score; ``rpss``, the
        skill of the forecasts against odds of one third for each category, with its standard error
        ``rpss_error`` and the ``p_value`` of equal scores; ``n_cases``; ``status``, which reports
        if a category happened in none of the cases. The result is lazy if an input is lazy. In
        three situations, ``rpss`` compares forecasts not with odds of one third, but with the share
        of these cases in each category: if ``edges`` are not given, if both edges are equal, or if
        at least 5 % of the observations equal an edge (a dry season). Climatology then has a skill
        of 0.

    Raises
    ------
    ValueError
        If there is more than one variable, if edges are not two increasing numbers, if
        ``fair=True`` and the forecast is not a plain ensemble, or if dimensions, labels or units of
        the inputs do not match.

    Notes
    -----
    The parts of the result are described at these functions:
    :func:`xrecal.products.categories.categories`, :func:`rpss`, :func:`roc`, :func:`reliability`.
    :func:`xrecal.plot.skill_map` plots ``rpss`` of a grid, and :func:`xrecal.plot.tercile_map`
    plots the probabilities of one date. If ``dim`` contains places, ROC areas and reliability use
    the cases of all places as one sample, but the RPSS compares with the climatology of each place.
    If ``edges`` are not given, the terciles contain information that was unknown when forecasts
    were issued. To avoid this, evaluate
    ``hindcast.recal.cross_validate(observations, output="categories")``, whose terciles are
    computed without the predicted cases.

    References
    ----------
    .. [1] Weigel, Liniger & Appenzeller (2007), The discrete Brier and ranked probability skill
       scores. https://doi.org/10.1175/MWR3280.1

    Examples
    --------
    >>> found = hindcast.recal.tercile_summary(observations, ["init", "location"])
    >>> found["rpss"].round(2).item(), found["roc_area"].round(2).values
    (0.9, array([0.97, 0.95, 0.98]))
    """
    issued = issued_categories(forecast)
    forecast, own, member_dim = as_members(forecast, member_dim)
    edges, odds = (edges, ODDS) if own is None else (only_edges(own, edges), _odds(issued))
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    require_free(evidence.form.dims, [CATEGORY])
    events = events_at(evidence, _edges(edges, evidence))
    happened = _in_category(events)
    at = events.thresholds.values.rename({events.thresholds.dim: EDGE})
    probability = between(Issued(evidence.form), at, TERCILES, named=False)
    # Shares of members may differ by rounding only; this must not change their ranks.
    digits = DIGITS * np.finfo(probability.dtype).precision // 6
    bare = probability.drop_vars(["lower_edge", "upper_edge"]).round(digits)
    conditional, parts = reliability_parts(evidence, bare, happened)
    known = bare.notnull() & happened.notnull()
    usual = evidence.mean_of_known(bare.where(known))
    variables = {
        "conditional_probability": conditional,
        "mean_probability": usual.assign_attrs(
            long_name="mean probability of the category", **NO_UNIT
        ),
        **described(area_parts(evidence, bare, happened), _AREA, NO_UNIT),
        **parts,
        **_ranked(evidence, events, fair, None if edges is None else odds),
    }
    counts = counted(known.isel({CATEGORY: 0}, drop=True), evidence.dims)
    variables = {"probability": probability, **where_enough(variables, counts)}
    result = evidence.result(variables, "terciles")
    result = flag_events(result, events.known, evidence.dims, events.thresholds.dim)
    return result.transpose(..., CATEGORY)


def _odds(issued: xr.DataArray | None) -> Sequence[float] | None:
    """Return climatological odds of one third each, or None if categories are not terciles."""
    return ODDS if issued is not None and list(issued[CATEGORY].values) == list(TERCILES) else None


def _edges(edges: Edges | None, evidence: Evidence) -> Thresholds:
    """Return terciles as thresholds; by default, the terciles of observations at each location."""
    form = evidence.form
    if edges is None:
        (found,) = over_cases(
            _terciles,
            evidence.observations,
            dims=[evidence.time],
            out=[(EDGE,)],
            sizes={EDGE: len(LEVELS)},
            what=evidence.work("the terciles"),
        )
        edges = found.assign_attrs(evidence.units)
    check_edges(edges)
    wanted = read_edges(edges, form, form.loc.dtype)
    n = wanted.values.sizes[wanted.dim]
    if n != len(LEVELS):
        raise ValueError(f"edges must be two numbers, the lower and the upper tercile, got {n}")
    return wanted


def _terciles(observations: np.ndarray) -> np.ndarray:
    from xrecal.arrays import climatology_quantiles

    finite = np.where(np.isfinite(observations), observations, np.nan)
    return np.asarray(climatology_quantiles(finite, np.array(LEVELS)))


def _in_category(events: Events) -> xr.DataArray:
    """Return 1 if the observation is in a category, 0 if not, NaN if this is unknown."""
    dim = events.thresholds.dim
    above = events.happened.rename({dim: CATEGORY}).drop_vars(CATEGORY, errors="ignore")
    lower, upper = above.isel({CATEGORY: 0}), above.isel({CATEGORY: 1})
    parts = [1.0 - lower, lower - upper, upper]
    whole = stacked([part.astype(above.dtype) for part in parts], CATEGORY)
    return whole.assign_coords({CATEGORY: list(TERCILES)})


def _ranked(
    evidence: Evidence, events: Events, fair: bool, odds: Sequence[float] | None
) -> dict[str, xr.DataArray]:
    """Return the mean RPS, and the skill against ``odds``; if None, against observed shares."""
    scores = ranked(brier_scores(evidence, events.thresholds, fair), events.thresholds)
    others = ranked_reference(events, odds, evidence, of_levels=True)
    found = skill_of(scores, others, evidence)
    mean = evidence.mean_of_known(scores.where(others.notnull()))
    skills = [found[name] for name in ("skill", "skill_error", "p_value")]
    rps = {"rps": mean.assign_attrs(long_name=RANKED.long_name, **NO_UNIT)}
    return rps | described(skills, _SKILL, NO_UNIT)
