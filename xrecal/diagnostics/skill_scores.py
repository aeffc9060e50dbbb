"""Compute the skill of probabilities: Brier and ranked probability skill scores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import FEWEST_AT_BOUND, SHARE_AT_BOUND
from xrecal.arrays.rows import check_probability
from xrecal.chunks.blockwise import require_free
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Edges, Threshold, Thresholds, check_edges, read_edges
from xrecal.products.categories import as_members
from xrecal.products.scores import score_entry

from .evidence import Evidence, flag_events, read_evidence
from .probability_scores import brier_score, brier_scores, ranked_probability_score
from .reliability import Events, events_at, read_events
from .skill import skill

RESULTS = ("skill", "skill_error", "p_value", "skill_low", "skill_high", "n_cases", "status")
"""Names of the results of :func:`xrecal.skill`."""


@score_entry(variable="skill")
def brier_skill_score(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    reference: Labelled | float | None = None,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute the skill of probabilities of exceeding a threshold, by the Brier score.

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
    reference : DataArray, Dataset or float, optional
        Another forecast of the same cases in any form, such as the raw forecast or climatology; or
        a probability. If not given, the reference is the share of these cases that have the event,
        at each location.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Results of :func:`xrecal.skill`, over locations and ``threshold`` (if there are several).
        ``skill`` is 1 - Brier score / Brier score of the reference, and ``skill_error`` is its
        standard error. ``p_value`` is the p-value of equal scores; ``skill_low`` and ``skill_high``
        are the ends of the 95 % interval of the skill. ``n_cases`` is the number of cases;
        ``status`` reports if the event happened in none or all of the cases. The result is lazy if
        an input is lazy.

    Raises
    ------
    ValueError
        If there is more than one variable, if the reference is neither a forecast nor a
        probability, or if dimensions, labels or units of the inputs do not match.

    Notes
    -----
    The default reference is computed from the observations that it predicts. So, with n cases, its
    score is lower (better) by a share of about 1/n than the score of a climatology that is known
    when forecasts are issued [1]_. If cases come from many places, the default reference is the
    share at each place, so a forecast that knows only the climate has no skill. With few members,
    the Brier score is too high; ``xrecal.skill(forecast.recal.brier_score(observations, threshold,
    fair=True), ...)`` estimates the skill of infinitely many members.

    References
    ----------
    .. [1] Wilks (2019), Statistical methods in the atmospheric sciences, section 9.4.
       https://doi.org/10.1016/C2017-0-03921-6

    Examples
    --------
    >>> found = hindcast.recal.brier_skill_score(observations, 5.0, ["init", "location"])
    >>> found["skill"].round(2).item()
    0.97
    """
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    events = read_events(evidence, threshold)
    scores = brier_scores(evidence, events.thresholds)
    if isinstance(reference, (xr.DataArray, xr.Dataset)):
        others = brier_score(reference, observations, threshold, member_dim=None)
    else:
        others = _brier_of_probability(events, reference, evidence)
    found = _skill(scores, others, evidence, "Brier score").assign_attrs(_told(reference))
    single = {} if events.thresholds.several else {events.thresholds.dim: 0}
    return flag_events(found, events.known.isel(single, drop=True), evidence.dims)


@score_entry(variable="skill")
def rpss(
    forecast: Labelled,
    observations: Observations,
    edges: Edges | None = None,
    dim: Dims = None,
    *,
    reference: Labelled | Sequence[float] | np.ndarray | None = None,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute the ranked probability skill score of the categories between thresholds.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures. Or
        probabilities of categories, from ``categories`` or ``cross_validate(output="categories")``.
    observations, dim, member_dim
        See :func:`brier_skill_score`.
    edges : sequence of float or DataArray
        Increasing thresholds between the categories; see :func:`ranked_probability_score`. Leave
        ``edges`` out if the forecast consists of probabilities of categories: it then has its own
        edges.
    reference : DataArray, Dataset or sequence of float, optional
        Another forecast of the same cases in any form, or a probability of each category, such as
        ``[1/3, 1/3, 1/3]``. If not given, the reference is the share of these cases in each
        category, at each location.

    Returns
    -------
    Dataset
        Results of :func:`xrecal.skill`, over locations. The status reports if a category happened
        in none of the cases.

    Raises
    ------
    ValueError
        See :func:`brier_skill_score`; also if edges do not increase, or if ``reference`` does not
        hold one probability for each category, with the sum 1.

    Notes
    -----
    See :func:`brier_skill_score`. An ensemble whose m members are drawn from the climatology has a
    negative skill against the climatology [1]_; ``fair=True`` in :func:`ranked_probability_score`
    and :func:`tercile_summary` removes this bias.

    References
    ----------
    .. [1] Weigel, Liniger & Appenzeller (2007), The discrete Brier and ranked probability skill
       scores. https://doi.org/10.1175/MWR3280.1

    Examples
    --------
    >>> found = hindcast.recal.rpss(observations, [0.0, 5.0], ["init", "location"])
    >>> found["skill"].round(2).item()
    0.96
    """
    forecast, own, member_dim = as_members(forecast, member_dim)
    edges = only_edges(own, edges)
    check_edges(edges)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    wanted = read_edges(edges, evidence.form, evidence.form.loc.dtype)
    events = events_at(evidence, wanted)
    scores = ranked(brier_scores(evidence, wanted), wanted)
    if isinstance(reference, (xr.DataArray, xr.Dataset)):
        other, _, other_dim = as_members(reference, None)
        others = ranked_probability_score(other, observations, edges, member_dim=other_dim)
    else:
        others = ranked_reference(events, reference, evidence)
    found = _skill(scores, others, evidence, "ranked probability score")
    found = found.assign_attrs(_told(reference))
    return flag_events(found, events.known, evidence.dims, wanted.dim)


def only_edges(own: xr.DataArray | None, edges: Edges | None) -> Edges:
    """Return the edges of a forecast of categories, or else the edges that the user gave."""
    if own is None and edges is None:
        raise ValueError(
            "edges are needed, such as edges=[0.0, 5.0] or the two terciles: only forecasts of "
            "categories have edges of their own"
        )
    if own is not None and edges is not None:
        raise ValueError("the forecast of categories has edges of its own; leave edges out")
    found = edges if own is None else own
    assert found is not None
    return found


def ranked(scores: xr.DataArray, edges: Thresholds) -> xr.DataArray:
    """Sum Brier scores over edges; the sum is missing if one score is missing."""
    return scores.sum([edges.dim], skipna=False)


def ranked_reference(
    events: Events,
    probabilities: Sequence[float] | np.ndarray | None,
    evidence: Evidence,
    *,
    of_levels: bool = False,
) -> xr.DataArray:
    """Return the RPS of ``probabilities``; None means the share of cases in each category.

    RPS is the ranked probability score. If ``of_levels`` is True, the edges are quantiles of the
    climatology, and the probabilities are the differences between the levels of these quantiles.
    """
    dim = events.thresholds.dim
    above = None
    if probabilities is not None:
        given, n = np.asarray(probabilities), events.happened.sizes[dim] + 1
        numbers = given.dtype.kind in "iuf" and given.shape == (n,)
        if not numbers or abs(given.sum() - 1) > 1e-6:
            raise ValueError(
                f"reference must be a forecast, or probabilities of {n} categories with the "
                f"sum 1, got {probabilities!r:.60}"
                + (f", whose sum is {given.sum():.8g}" if numbers else "")
            )
        check_probability("reference", given)
        above = xr.DataArray(1.0 - np.cumsum(given)[:-1], dims=[dim])
        above = _with_ties(above, events, evidence, of_levels)
    return ranked(_squared(events, above, evidence), events.thresholds)


def _with_ties(
    above: xr.DataArray, events: Events, evidence: Evidence, of_levels: bool
) -> xr.DataArray:
    """Return probabilities of values above edges; for tied edges, return shares of the cases.

    Edges are tied if two edges are equal, or if many observations equal an edge. Two equal edges,
    such as the terciles of a dry season, have no values between them. If many observations equal an
    edge, the levels of quantiles are not the probabilities of the categories.
    """
    dim, cases = events.thresholds.dim, evidence.dims_of_climate
    edges = events.thresholds.values.drop_vars([dim], errors="ignore")
    known = events.known.astype(np.float64)
    first, last = {dim: slice(None, -1)}, {dim: slice(1, None)}
    equal = (edges.isel(first) == edges.isel(last)) & (above.isel(first) > above.isel(last))
    pad = partial(equal.pad, constant_values=False)
    tied = pad({dim: (0, 1)}) | pad({dim: (1, 0)})
    if not of_levels:
        return above.where(~tied, known.where(tied).mean(cases))
    on_edge = ((evidence.observations == edges) & known.notnull() & ~tied).sum(cases)
    n_free = (known.notnull() & ~tied).sum(cases)
    much = on_edge >= np.maximum(FEWEST_AT_BOUND, SHARE_AT_BOUND * n_free)
    free = above.where(~much, known.where(~tied).mean(cases))
    return free.where(~tied, known.where(tied).mean(cases))


def _brier_of_probability(
    events: Events, probability: float | None, evidence: Evidence
) -> xr.DataArray:
    """Compute Brier scores of a probability; None means the share of cases with the event."""
    above = None
    if probability is not None:
        if np.ndim(probability) or np.asarray(probability).dtype.kind not in "iuf":
            raise ValueError(
                f"reference must be a probability or a forecast, got {probability!r:.60}"
            )
        check_probability("reference", np.atleast_1d(probability))
        above = xr.DataArray(float(probability))
    return events.label(_squared(events, above, evidence))


def _told(reference: object) -> dict[str, str]:
    """Return an attribute that describes a reference, unless the reference is a forecast."""
    if isinstance(reference, (xr.DataArray, xr.Dataset)):
        return {}
    if reference is None:
        return {"reference": "the shares of these cases"}
    return {"reference": f"the probability {reference}"}


def _squared(events: Events, above: xr.DataArray | None, evidence: Evidence) -> xr.DataArray:
    """Return squared differences of events and a probability; None means the share of events."""
    if above is None:
        above = events.known.astype(np.float64).mean(evidence.dims_of_climate)
    return ((events.known - above) ** 2).astype(events.probability.dtype)


def _skill(scores: xr.DataArray, others: Labelled, evidence: Evidence, name: str) -> xr.Dataset:
    """Compute the skill of scores against the scores ``others``, which may be in a Dataset."""
    require_free(evidence.form.dims, RESULTS)
    if isinstance(others, xr.Dataset):
        (others,) = others.values()
    history = {k: v for k, v in evidence.attrs.items() if k == "history"}
    dims = [d for d in evidence.form.dims if d in scores.dims]
    scores = scores.transpose(*dims, ...).assign_attrs(long_name=name, units="1", **history)
    return skill_of(scores, others, evidence)


def skill_of(scores: xr.DataArray, others: xr.DataArray, evidence: Evidence) -> xr.Dataset:
    """Compute the skill of scores without a unit; drop coordinates with the names of results."""
    own, other = (
        a.drop_vars(RESULTS, errors="ignore").assign_attrs(units="1") for a in (scores, others)
    )
    return skill(own, other, evidence.dims)
