"""Read covariates by name: season and days ahead from dates, others from users or coordinates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.blockwise import like
from xrecal.chunks.labels import labels_along

from .covariate_forecasts import SPREAD, names_of_given, without_members
from .covariate_forecasts import Given as Given
from .covariate_times import KNOWN as KNOWN
from .covariate_times import at_times
from .dates import calendar_of, case_axis, date_axis
from .dims import Names
from .forms import Form
from .labels import read_labels
from .leads import days_of, read_leads
from .places import at_single, like_places, refuse_other_name
from .valid_time import known_valid_times

SEASON, DAY = "season", "calendar_day"
"""Names of two covariates that come from dates, both with period 1. The first is the share of the
year that has passed. The second is this share in a year of 365 days: it gives a calendar day the
same value in every year."""

AHEAD = "days_ahead"
"""Name of the covariate with the days from start to valid time, negative if labels are valid times.
It shows an ``OnlinePool`` when a forecast verifies; recalibrated distributions do not depend on
it."""


def read_covariates(
    names: Sequence[str],
    form: Form,
    dim: Hashable,
    given: Given,
    *,
    name: str,
    cases: Sequence[Hashable] = (),
    known_as: Mapping[str, str] | None = None,
) -> dict[str, xr.DataArray]:
    """Return the covariates of a forecast for each case; they may also differ between locations.

    Parameters
    ----------
    names : sequence of str
        Names of the covariates.
    form : Form
        Forecasts with their coordinates.
    dim : hashable
        Dimension of the cases. Covariates may lack this dimension, and dimensions of locations.
    given : mapping from name to DataArray or forecast
        The user's covariates, which take precedence over coordinates. Each covariate needs a value
        for all labels of the forecasts; other labels are dropped. Covariates that are not
        in ``names`` are ignored. A covariate that is a forecast becomes two; see
        :func:`without_members`.
    name : str
        Name of the forecasts in messages.
    cases : sequence of hashable
        For a hindcast, ``dim`` and the pooled dimensions: each covariate must vary along at
        least one of these. The sequence is empty for a forecast.
    known_as : mapping from name to {"start", "valid"}, optional
        Attribute ``known`` of each covariate that the fit used.

    Raises
    ------
    ValueError
        If a covariate is missing, has other dimensions or labels, or is not numeric, or if the user
        gives covariates, but ``names`` contains none of them.
    TypeError
        If a covariate is not a DataArray.
    """
    known = names_of_given(given)
    needed = {n: value for n, value in (given or {}).items() if {*known[n]} & {*names}}
    if known and not needed:
        raise ValueError(
            Advice(
                f"the fit conditions on {list(names)}, not on the covariates {[*known]}; "
                "name them in ",
                Typed("condition_on"),
                " or leave them out",
            )
        )
    covariates, single = {}, without_members(needed)
    for wanted in names:
        value, by_date = single.get(wanted), wanted in (SEASON, DAY, AHEAD)
        own = value is None
        if value is None:
            value = _own_value(wanted, form, dim)
        if value is None:
            raise ValueError(_missing(wanted, form, dim, name, fitting=bool(cases)))
        if not isinstance(value, xr.DataArray):
            raise TypeError(
                f"the covariate {wanted!r} must be a DataArray, got {type(value).__name__}"
            )
        if not (own and by_date):  # the covariate has the labels of the forecast
            value = read_labels(value, name=f"the covariate {wanted!r}").obj
        names = (name, f"the covariate {wanted!r}")
        if not own:
            value = at_times(value, form, dim, names=names, known=(known_as or {}).get(wanted))
        if dim not in value.dims and set(value.dims) & set(cases):
            value = _for_each_case(value, form, dim)
        if not (own and by_date):
            value = _at_forecasts(value, form, dim, names=names, fitting=bool(cases))
        elif dim in value.indexes:
            _require_one_each(value, dim, names=names)
        bare = value.drop_vars(set(value.coords) - labels_along(value, value.dims))
        bare = bare.astype(np.float64).assign_attrs(value.attrs)
        covariates[wanted] = like(bare, form.loc) if own else bare
    return covariates


def _own_value(wanted: str, form: Form, dim: Hashable) -> xr.DataArray | None:
    """Return a covariate from dates or a coordinate of a forecast; None if both are missing."""
    if wanted in (SEASON, DAY):
        return season_of(form, dim, by_day=wanted == DAY)
    if wanted == AHEAD:
        return days_ahead(form, dim)
    return next((p.coords[wanted] for p in form.parts.values() if wanted in p.coords), None)


def season_of(form: Form, dim: Hashable, *, by_day: bool = False) -> xr.DataArray | None:
    """Return the fraction of the year of each forecast, by case and lead; None without dates.

    With ``by_day`` it is the fraction of a year of 365 days, so that a calendar day has the same
    value in every year. Dates are valid times, or starts if labels do not give valid times. Starts
    serve as well, because each lead has a fit of its own: within a fit, the time from start to
    valid time is the same, except that months differ in length.
    """
    period = {"period": 1.0}
    valid = known_valid_times(form.roles, dim)
    dated = None if valid is None else date_axis(valid.to_numpy().ravel())
    part = "day" if by_day else "season"
    known = None if dated is None else getattr(dated, part)
    if valid is not None and known is not None:
        return valid.copy(data=known.reshape(valid.shape)).assign_attrs(period)
    of_cases = [part for part in form.parts.values() if dim in part.dims] or [form.loc]
    season = getattr(case_axis(of_cases[0], dim), part)
    if of_cases[0].sizes.get(dim) == 0:
        season = np.zeros(0)  # no date is missing
    if season is None:
        return None
    if dim in of_cases[0].dims:
        return xr.DataArray(season, {dim: of_cases[0][dim]}, [dim], attrs=period)
    return xr.DataArray(season[0], attrs=period)


def days_ahead(form: Form, dim: Hashable) -> xr.DataArray:
    """Return the days from start to valid time of each forecast, over its cases and leads.

    The days come from a coordinate ``valid_time``, from starts and leads, or from leads alone. A
    single lead may be a scalar coordinate. The days are negative if labels are valid times, and 0
    if labels do not give the days.
    """
    roles, whole = form.roles, form.roles.obj
    ahead = _days_to_valid_times(form, dim)
    leads = roles.leads_beside(dim) or roles.single_leads
    if ahead is None and leads:
        ahead = _days_of_leads(whole, leads[0])
        ahead = None if ahead is None else -ahead
    if ahead is None or not bool(np.isfinite(ahead).all()):
        ahead = xr.DataArray(0.0)
    if dim in whole.dims and dim not in ahead.dims:
        ahead = _for_each_case(ahead, form, dim)
    return ahead


def issued_together(form: Form, dim: Hashable) -> bool:
    """Return whether forecasts with equal labels are issued at the same time.

    They are not if labels are valid times and leads differ.
    """
    ahead = days_ahead(form, dim)
    return not bool((ahead < 0).any()) or bool((ahead == ahead.min()).all())


def _days_to_valid_times(form: Form, dim: Hashable) -> xr.DataArray | None:
    """Return the days from starts to valid times; None unless both are dates.

    The result is over starts and leads, or over starts alone.
    """
    valid, coords = known_valid_times(form.roles, dim), form.roles.obj.coords
    if valid is None or dim not in coords:
        return None
    both = [date_axis(np.ravel(dates.to_numpy())) for dates in (valid, coords[dim])]
    days, begun = (None if axis is None else axis.days for axis in both)
    if days is None or begun is None:
        return None
    starts = xr.DataArray(begun, dims=[dim]) if dim in valid.dims else begun[0]
    return valid.copy(data=days.reshape(valid.shape)) - starts


def _days_of_leads(whole: xr.DataArray, lead: Hashable) -> xr.DataArray | None:
    """Return the leads in days; None if their unit is unknown or has no fixed length."""
    try:
        leads = read_leads(whole, lead, name="forecast")
    except ValueError:  # no leads, or an unknown unit
        return None
    if leads.kind != "span":
        return None
    days = leads.values / np.timedelta64(1, "D")
    return xr.DataArray(
        days if lead in whole.dims else days[0], {lead: whole[lead]}, whole[lead].dims
    )


def _for_each_case(value: xr.DataArray, form: Form, dim: Hashable) -> xr.DataArray:
    """Repeat, for each case, a covariate that lacks the dimension of the cases."""
    part = next(part for part in form.parts.values() if dim in part.dims)
    return value.expand_dims({dim: part[dim].variable if dim in part.indexes else part.sizes[dim]})


def _missing(wanted: str, form: Form, dim: Hashable, name: str, *, fitting: bool) -> str:
    """Return the message about a covariate that neither the user nor a coordinate gives."""
    if wanted in (SEASON, DAY):
        return (
            f"the {wanted.replace('_', ' ')} needs the dates of {name}: a datetime64 or cftime "
            f"coordinate along {dim!r}, or a scalar coordinate for a single forecast"
        )
    of_spread = f" (of {wanted.removesuffix(SPREAD)!r} as a forecast with members)"
    return (
        f"the covariate {wanted!r}{of_spread if wanted.endswith(SPREAD) else ''} is not known for "
        f"{name}, whose coordinates are {sorted(map(str, form.loc.coords))}; pass "
        f"covariates={{{wanted!r}: DataArray}} or add a coordinate of that name"
        + ("" if fitting else "; apply(..., missing_covariates='without') leaves it out")
    )


def _at_forecasts(
    value: xr.DataArray, form: Form, dim: Hashable, *, names: Names, fitting: bool
) -> xr.DataArray:
    """Check a covariate, and return its values at the labels of the forecasts."""
    name, covariate = names
    value = days_of(value) if value.dtype.kind == "m" else value
    if value.dtype.kind not in "iufb":
        raise ValueError(
            Advice(
                f"{covariate} must hold numbers, got {value.dtype}; for dates use ",
                Typed("condition_on", "season"),
            )
        )
    whole = form.broadcast().loc
    others = [d for d in value.dims if d not in form.dims]
    value = at_single(value, whole, names=names, dims=others)
    refuse_other_name(value, whole, names=names)
    extra = [d for d in value.dims if d not in form.dims]
    if extra or (fitting and dim not in value.dims):
        raise ValueError(
            f"{covariate} has dimensions {list(value.dims)}, but {name} has {list(form.dims)}; a "
            f"covariate varies along {dim!r} and perhaps locations: rename its dimensions, or "
            "select"
        )
    if dim in value.dims:
        value = _at_labels(value, whole, dim, names=names)
    value = like_places(value, whole, value.dims, names=names, select=True)
    period = period_of(value)
    if period is not None and not period > 0:
        raise ValueError(
            f"{covariate} has the period {value.attrs['period']!r}; it must be positive"
        )
    return value


def _require_one_each(value: xr.DataArray, dim: Hashable, *, names: Names) -> None:
    if not value.indexes[dim].is_unique:
        raise ValueError(f"labels along {dim!r} of {names[1]} must be unique; drop the duplicates")


def _at_labels(
    value: xr.DataArray, whole: xr.DataArray, dim: Hashable, *, names: Names
) -> xr.DataArray:
    """Return the values of a covariate at the labels of the forecasts; drop its other values."""
    labelled = [dim in part.indexes for part in (whole, value)]
    if not all(labelled):
        if any(labelled):
            bare = names[labelled.index(False)]
            raise ValueError(f"{bare} has no labels along {dim!r} to match by; add the coordinate")
        return value
    _require_one_each(value, dim, names=names)
    mine, theirs = (calendar_of(part[dim].to_numpy()) for part in (whole, value))
    if mine != theirs and "datetime64" not in (mine, theirs) and None not in (mine, theirs):
        raise ValueError(
            f"dates along {dim!r} of {names[1]} are {theirs}, but dates of {names[0]} are {mine}; "
            f"use convert_calendar({mine!r}, dim={dim!r}, use_cftime=True) on the covariate"
        )
    place = value.indexes[dim].get_indexer(whole.indexes[dim])
    if (place < 0).any():
        first = whole.indexes[dim][int(np.flatnonzero(place < 0)[0])]
        raise ValueError(
            f"{names[1]} has no value for {int((place < 0).sum())} of {place.size} labels along "
            f"{dim!r} of {names[0]}, first {first}; give a value for each, NaN where it is unknown"
        )
    return value if value.indexes[dim].equals(whole.indexes[dim]) else value.isel({dim: place})


def period_of(covariate: xr.DataArray) -> float | None:
    """Return the period of a circular covariate, from its attribute; None for other covariates."""
    period = covariate.attrs.get("period")
    return None if period is None else float(period)
