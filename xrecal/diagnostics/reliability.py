"""Reliability: what happens, given what was forecast."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
import xarray as xr

from xrecal.chunks.over_cases import over_cases
from xrecal.inputs.dims import Dims, level_coordinate, read_levels
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold
from xrecal.products.statistics import quantiles_of

from .events import Events, read_events
from .evidence import Evidence, as_dataset, counted, read_evidence, stacked, task_name

_PARTS = {
    "miscalibration": "what recalibration would gain",
    "discrimination": "what the recalibrated forecast gains over climatology",
    "uncertainty": "score of the climatology of these cases",
}


def reliability(
    forecast: Labelled,
    observations: Observations,
    threshold: Threshold,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Reliability of the probability of exceeding a threshold, without bins.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms, one variable.
    observations : DataArray, Dataset or dict
        What verified, in the same units; matched by label along the dimension of the cases.
    threshold : float, sequence of float or DataArray
        As for :func:`xrecal.products.probabilities.exceedance`.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; the calibration dimension (time, init, ...) if not given.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    Dataset
        Over cases, locations and ``threshold`` (for several): ``probability`` as issued, and
        ``conditional_probability`` of the event given it, in [0, 1]: the isotonic regression of
        events on forecasts, whose plot against ``probability`` is the reliability diagram. Over
        locations and threshold: ``brier_score``, which is ``miscalibration`` - ``discrimination`` +
        ``uncertainty``, each >= 0; ``n_cases`` and ``status``. Lazy if an input is.

    Raises
    ------
    ValueError
        If there is more than one variable, or dimensions, labels or units do not fit.

    Notes
    -----
    O(n log n) for n cases. The regression is fitted on the cases it is shown for: with few of
    them even a calibrated forecast has some miscalibration.

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
    dims = evidence.dims
    found = over_cases(
        _probability_parts,
        events.probability,
        events.happened,
        dims=dims,
        out=[dims, (), (), (), ()],
        what=task_name("the reliability", evidence),
    )
    conditional = found[0].assign_attrs(
        long_name="probability of the event given the forecast, by isotonic regression", units="1"
    )
    variables = {
        "probability": events.probability,
        "conditional_probability": conditional,
        **_decomposed(found[1:], "brier_score", "mean Brier score", {"units": "1"}),
    }
    return _labelled(evidence, events, variables, "reliability of probabilities")


def quantile_reliability(
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Reliability of quantiles: the quantile of observations given the quantile that was issued.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        As for :func:`reliability`.
    q : float or sequence of float
        Levels between 0 and 1.

    Returns
    -------
    Dataset
        Over cases, locations and ``quantile`` (for several levels): ``forecast_quantile`` as issued
        and ``conditional_quantile`` given it, by isotonic quantile regression, in the unit of the
        variable. Over locations and ``quantile``: ``below``, the share of observations at or
        below the issued quantile; ``quantile_score``, which is ``miscalibration`` -
        ``discrimination`` + ``uncertainty``, each >= 0 and in the unit of the variable; ``n_cases``
        and ``status``. Lazy if an input is.

    Raises
    ------
    ValueError
        As for :func:`reliability`, or if a level is not between 0 and 1 or given twice.

    Notes
    -----
    O(n log n) for n cases and each level.

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
    dims = evidence.dims
    parts = []
    for i, level in enumerate(levels):  # each has a regression of its own
        one = issued.isel(quantile=i)
        parts.append(
            over_cases(
                partial(_quantile_parts, level=level),
                one,
                evidence.observations,
                dims=dims,
                out=[dims, (), (), (), (), ()],
                what=task_name("the quantile reliability", evidence),
            )
        )
    conditional, *numbers = (
        stacked(part, "quantile").assign_coords(quantile=level_coordinate(levels))
        for part in zip(*parts, strict=True)
    )
    text = {"long_name": "quantile of the observation", **evidence.units}
    variables = {
        "forecast_quantile": issued.assign_attrs({**text, "long_name": "issued quantile"}),
        "conditional_quantile": conditional.assign_attrs(
            {**text, "long_name": "quantile given the issued one, by isotonic regression"}
        ),
        "below": numbers[4].assign_attrs(
            long_name="share of observations at or below the issued quantile", units="1"
        ),
        **_decomposed(
            numbers[:4], "quantile_score", "mean quantile (pinball) score", evidence.units
        ),
    }
    known = issued.isel(quantile=0, drop=True).notnull() & (abs(evidence.observations) < np.inf)
    result = as_dataset(evidence, variables | counted(known, dims), "reliability of quantiles")
    return result.isel(quantile=0) if np.ndim(q) == 0 else result


def _probability_parts(probability: np.ndarray, happened: np.ndarray) -> tuple[np.ndarray, ...]:
    from xrecal.arrays import corp

    conditional, parts = corp(probability, happened)
    return (conditional, *parts)


def _quantile_parts(
    issued: np.ndarray, observations: np.ndarray, level: float
) -> tuple[np.ndarray, ...]:
    from xrecal.arrays import quantile_reliability as parts_of

    known = np.isfinite(issued) & np.isfinite(observations)
    n = known.sum(-1)
    with np.errstate(invalid="ignore"):  # no case
        below = (known & (observations <= issued)).sum(-1) / np.where(n > 1, n, np.nan)
    conditional, parts = parts_of(issued, observations, level)
    return (conditional, *parts, below)


def _decomposed(
    parts: Sequence[xr.DataArray], name: str, text: str, units: dict[str, str]
) -> dict[str, xr.DataArray]:
    """Miscalibration, discrimination, uncertainty and the score they make up."""
    *three, score = parts
    found = {name: score.assign_attrs(long_name=text, **units)}
    for (part, meaning), array in zip(_PARTS.items(), three, strict=True):
        found[part] = array.assign_attrs(long_name=f"{part}: {meaning}", **units)
    return found


def _labelled(
    evidence: Evidence, events: Events, variables: dict[str, xr.DataArray], what: str
) -> xr.Dataset:
    known = events.probability.notnull() & events.happened.notnull()
    result = as_dataset(evidence, variables | counted(known, evidence.dims), what)
    return events.label(result)
