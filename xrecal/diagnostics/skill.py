"""Compute skill: reduction of a score relative to the score of a reference."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.over_cases import over_cases
from xrecal.inputs.dims import Dims, dims_as_text
from xrecal.inputs.metadata import check_units, history_only, joined, shown_units
from xrecal.inputs.pairing import paired_by_position
from xrecal.inputs.places import like_places, warn_of_other_places
from xrecal.inputs.roles import Roles
from xrecal.methods.call_errors import explained

from .comparison import Shown, Table
from .evidence import (
    NO_UNIT,
    Cluster,
    by_time,
    case_dim,
    clusters_along,
    counted,
    described,
    in_time,
    named_dims,
    where_enough,
)
from .p_values import NO_P_VALUE, shown_p
from .rows import each_season, head_of_rows, season_of_rows, texts_of_rows

_TEXTS = {
    "skill": "skill: 1 - score / score of the reference",
    "skill_error": "standard error of the skill, allowing for autocorrelation",
    "p_value": "two-sided p-value of equal scores, t-test that allows for autocorrelation",
    "skill_low": "lower end of the 95 % interval of the skill, allowing for autocorrelation",
    "skill_high": "upper end of the 95 % interval of the skill, allowing for autocorrelation",
}


class Skills(Shown):
    """Dataset of skill over one dimension, which prints as a table once it is computed."""

    __slots__ = ()

    def is_whole(self) -> bool:
        """Return True if all values of the table are present, in memory and over one dimension."""
        needed = {*_TEXTS, "n_cases"} <= set(self) and not self.chunks
        return needed and self["skill"].dims == (self.attrs.get("by"),)

    def as_table(self) -> Table:
        """Return a table with a row for each label."""
        labels = self[self.attrs["by"]]
        shown = {name: list(map(_shown_percent, self[name].to_numpy())) for name in _TEXTS}
        ends = zip(shown["skill_low"], shown["skill_high"], strict=True)
        columns = {
            head_of_rows(labels): texts_of_rows(labels),
            "cases": [str(n) for n in self["n_cases"].to_numpy()],
            "skill": shown["skill"],
            "±": shown["skill_error"],
            "95 % interval": [
                low if low == NO_P_VALUE else f"{low} to {high}" for low, high in ends
            ],
            "p": [shown_p(p) for p in self["p_value"].to_numpy()],
        }
        foot = ", ".join(f"{k}: {self.attrs[k]}" for k in ("score", "reference") if k in self.attrs)
        if any(NO_P_VALUE in column for column in columns.values()):
            foot += f"\n{NO_P_VALUE}: too few cases (dependent cases count as fewer)"
        return Table(list(columns), list(map(list, zip(*columns.values(), strict=True))), foot)


def _shown_percent(share: float) -> str:
    return NO_P_VALUE if np.isnan(share) else f"{share:.1%}"


@explained("xrecal.diagnostics.skill")
def skill(
    scores: xr.DataArray,
    reference: xr.DataArray,
    dim: Dims = None,
    *,
    by: Hashable | None = None,
    block_length: int | None = None,
    cluster: Cluster | None = None,
) -> xr.Dataset:
    r"""Compute the skill of scores against the scores of a reference, and its significance.

    Parameters
    ----------
    scores, reference : DataArray
        Score of each case, from ``crps``, ``brier_score`` or another function for which smaller is
        better. ``scores`` are the scores of the forecasts. ``reference`` holds the scores of a
        reference, such as the raw forecast or climatology, with the same labels.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases. By default, the calibration dimension (time, init, ...); if ``by``
        is given, all dimensions except ``by``.
    by : hashable, optional
        Dimension of places or leads, such as "lead_time" or "station", or "season" for the season
        of the valid time (DJF, MAM, JJA, SON). The result then prints as a table with a row for
        each place, lead or season.
    block_length : int, optional
        Number of successive dates that count as one in error, p-value and interval; 1 if dates are
        independent. If not given, xrecal estimates this number from the data.
    cluster : {"year", "season"}, optional
        Treat whole years or seasons as independent of each other, instead of blocks of cases. Cases
        of one year or season may depend on each other in any way. Years begin in the longest part
        of the calendar that has no cases, or on 1 January if this part is short.

    Returns
    -------
    Dataset
        Over all dimensions except those of the cases, and over ``season`` if ``by="season"``:
        ``skill``, which is :math:`1 - \bar S / \bar S_{ref}` over the cases that have both scores
        (1 is perfect, 0 is no gain); its standard error ``skill_error``; ``p_value``, the two-sided
        p-value of equal scores; ``skill_low`` and ``skill_high``, the ends of the 95 % interval;
        ``n_cases`` and ``status``. Errors, intervals and p-values allow for dependence of
        successive cases. If the cases have several dimensions, such as time and places, each date
        counts once. The skill is NaN with fewer than 2 cases; error and p-value are NaN with fewer
        than 3. P-value and interval are also NaN if there are too few cases (dependent cases count
        as fewer). Against a perfect reference, skill and error are NaN. The result is lazy if an
        input is lazy.

    Raises
    ------
    TypeError
        If an argument is not a DataArray.
    ValueError
        If dimensions, labels or units of the inputs do not match, if the block length is out of
        range, if there are no dates for ``cluster``, or if ``by`` is neither a dimension of places
        or leads nor "season".

    Notes
    -----
    See :func:`xrecal.arrays.skill_score` and :func:`xrecal.arrays.diebold_mariano`. The p-value
    tests the difference of the mean scores, but the interval is computed from their ratio. If a few
    cases, such as floods, contribute most of the mean score, the interval may exclude 0 although
    the p-value is above 0.05. Then trust the p-value.

    Examples
    --------
    >>> raw = forecast.recal.crps(observations)
    >>> skill = xrecal.skill(model.crps(forecast, observations), raw, ["init", "location"])
    >>> skill["skill"].round(2).item()
    0.13
    >>> by_place = xrecal.skill(model.crps(forecast, observations), raw, by="location")
    >>> by_place["skill"].round(2).values
    array([0.09, 0.11, 0.18, 0.18])
    """
    for name, array in {"scores": scores, "reference": reference}.items():
        if not isinstance(array, xr.DataArray):
            raise TypeError(
                f"{name} must be a DataArray, a score of each case, got {type(array).__name__}"
            )
    check_units("scores", scores.attrs.get("units"), "reference", reference.attrs.get("units"))
    dims, season = _dims_and_season(scores, dim, by)
    names = ("scores", "reference")
    warn_of_other_places(reference, scores, names=names)
    by_position = paired_by_position(scores, reference, scores.dims)
    reference = like_places(reference, scores, scores.dims, names=names)
    extra = [d for d in reference.dims if d not in scores.dims]
    if extra:
        raise ValueError(f"reference has dimensions {extra} that scores lack; select or average")
    if season is not None:
        scores = each_season(scores, season, lambda values: values)
    from xrecal.arrays import skill_score

    order = in_time(scores, dims)
    ordered = [
        array.isel({d: o for d, o in order.items() if d in array.dims})
        for array in (scores, reference)
    ]
    dtype = np.result_type(scores.dtype, np.float32)
    known = ordered[0].notnull() & ordered[1].notnull()
    time = next((d for d in Roles(scores).cases if d in dims), dims[0])
    score = partial(
        skill_score,
        block_length=block_length,
        cluster=clusters_along(ordered[0], time, cluster),
    )
    skills = partial(over_cases, out=[()] * 5, dtypes=[dtype] * 5, what="the skill")
    if len(dims) == 1:
        results = skills(score, *ordered, dims=dims)
    else:
        (found, *_) = skills(skill_score, *ordered, dims=dims)
        series = [by_time(array.where(known), dims, time) for array in ordered]
        of_means, error, p_value, low, high = skills(score, *series, dims=[time])
        # If dates have different numbers of cases, the skill differs from that of their means.
        shift = found - of_means
        results = (found, error, p_value, low + shift, high + shift)
    variables = described(results, _TEXTS, NO_UNIT)
    variables = where_enough(variables, counted(known, dims))
    attrs = _score_and_reference(scores, reference)
    attrs |= history_only(scores.attrs, joined(f"skill over {dims_as_text(dims)}", by_position))
    if by is None:
        return xr.Dataset(variables, attrs=attrs)
    return Skills(variables, attrs=attrs | {"by": by})


def _score_and_reference(scores: xr.DataArray, reference: xr.DataArray) -> dict[str, Any]:
    """Return attributes: name and unit of the score, and method of the reference."""
    name, units = scores.attrs.get("long_name", scores.name), shown_units(scores.attrs)
    name = "score" if name is None else name
    return {"score": f"{name} in {units}" if units else str(name), **reference_of(reference)}


def _dims_and_season(
    scores: xr.DataArray, dim: Dims, by: Hashable | None
) -> tuple[tuple[Hashable, ...], xr.DataArray | None]:
    """Return the dimensions of the cases, and the season of each case if ``by`` is "season"."""
    dims = named_dims(dim, scores.dims, name="scores")
    if by is None:
        return dims or (case_dim(scores, name="scores"),), None
    named = [d for d in Roles(scores).cases if d in (dims or scores.dims)] or dims
    case = named[0] if named else case_dim(scores, name="scores")
    season = season_of_rows(by, scores, case, name="scores")
    return tuple(d for d in dims or scores.dims if d != by), season


AS_ISSUED = "forecasts as issued"


def reference_of(scores: xr.DataArray) -> dict[str, str]:
    """Return an attribute with the method that made the scored forecasts, if it is known."""
    history = str(scores.attrs.get("history", ""))
    made = re.findall(
        r"(?:recalibrated|each case,? predicted) by (.+?)(?: fitted |$)", history, re.M
    )
    if not made and history.startswith("xrecal: "):  # scores computed here from other data
        made = [AS_ISSUED]
    return {"reference": made[-1]} if made else {}
