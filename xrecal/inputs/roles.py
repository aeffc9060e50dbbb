"""Roles of dimensions: members, levels, cases and leads, by what each dimension is.

A role follows from an argument, a CF standard name, a name, or from labels and their type.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass

import xarray as xr

from .dims import Labelled
from .leads import time_unit
from .metadata import OF_CASES, standard_name_of

VALID_TIME = "valid_time"


@dataclass(frozen=True)
class Role:
    """A role of dimensions: the names that have it, and the argument that gives another."""

    what: str
    argument: str
    names: tuple[str, ...]
    standard_names: tuple[str, ...] = ()

    def has(self, name: Hashable) -> bool:
        """Return whether a dimension has the role by its name.

        Of cases and leads in any spelling: "leadTime", "lead_times" and "lead_time0" are one name.
        """
        if self.argument != "dim":
            return name in self.names
        return _spelled(name) in map(_spelled, self.names)

    @property
    def usual(self) -> str:
        """The first names, for messages."""
        return ", ".join(self.names[:4]) + ", ..." * (len(self.names) > 4)


def _spelled(name: Hashable) -> str:
    """A name in lower case, without underscores, a plural and a number at its end."""
    return re.sub(r"s?\d*$", "", re.sub(r"[\W_]", "", str(name).lower()))


MEMBER = Role(
    "member", "member_dim", ("member", "number", "realization", "ensemble"), ("realization",)
)

LEVEL = Role("quantile level", "member_dim", ("quantile", "percentile"))

START = "forecast_reference_time"
"""CF standard name of the time at which a forecast starts."""

NAMES_OF_STARTS = (
    "init", "init_time", START, "init_date", "initial_time", "initial_date", "initialization",
    "initialization_time", "initialisation_time", "initialization_date", "reference_time",
    "ref_time", "reference_date", "forecast_time", "forecast_date", "forecast_start",
    "forecast_start_time", "start", "start_time", "start_date", "sdate", "hdate", "base_time",
    "base_date", "issue_time", "issue_date", "issued", "issuance_time", "origin_time",
    "origin_date", "run_time", "run_date", "cycle_time", "analysis_time",
)  # fmt: skip
"""Dimensions and coordinates that are starts by their name."""

CALIBRATION = Role("calibration", "dim", ("time", *NAMES_OF_STARTS), ("time", START))

LEAD = Role(
    "lead",
    "dim",
    (
        "lead", "lead_time", "step", "prediction_timedelta", "forecast_period", "forecastMonth",
        "leadtime_month", "lead_hour", "lead_day", "lead_week", "lead_month", "lead_year",
        "lead_step", "forecast_lead", "forecast_lead_time", "forecast_hour", "forecast_day",
        "forecast_week", "forecast_year", "forecast_step", "fhour", "fhr", "fxx", "ltime",
        "horizon", "forecast_horizon", "days_ahead", "hours_ahead", "weeks_ahead",
    ),
    ("forecast_period",),
)  # fmt: skip
"""Lead times: locations, whose observations are at other times."""

OTHER_LENGTHS = re.compile(
    r"period|duration|window|interval|averag|mean|accum|freq|return|bnds|bounds|resolution|delay"
    r"|latency|cutoff|\bage\b|^(year|month|week|season|day_?of|hour_?of|month_?of|week_?of)",
    re.IGNORECASE,
)
"""In the names of lengths of time, and of parts of the year, that are no leads."""


def find_dim(
    obj: xr.DataArray, role: Role, explicit: Hashable | None = None, *, name: str
) -> Hashable | None:
    """Dimension of ``obj`` in a role; None if there is no candidate.

    The explicit argument counts first, then :func:`candidates`.

    Raises
    ------
    ValueError
        If the explicit one is missing, or there are several candidates.
    """
    if explicit is not None:
        if explicit not in obj.dims:
            one = f"; use {name}.expand_dims({explicit!r})" if explicit in obj.coords else ""
            raise ValueError(
                f"{name} has no dimension {explicit!r} ({role.argument}); it has {[*obj.dims]}{one}"
            )
        return explicit
    dims = candidates(obj, role)
    if len(dims) > 1:
        told = f"{name} has several {role.what} dimensions, {dims}"
        raise ValueError(f"{told}; name one: {role.argument}={dims[0]!r}")
    return dims[0] if dims else None


def candidates(obj: Labelled, role: Role, dim: Hashable | None = None) -> list[Hashable]:
    """Dimensions of ``obj`` that could have a role: by CF standard name, else by name.

    Cases are else along the dimension with dates; of issued forecasts, along the dimension that
    these name themselves. Leads are along the dimension that a valid time shares with the cases,
    else along those of :func:`is_lead`. ``dim`` is the dimension of the cases, where it is known.
    """
    if role is CALIBRATION:
        return _of_cases(obj)
    labels = obj.coords.variables
    named = {d: standard_name_of(labels[d]) for d in obj.dims if d in obj.xindexes}
    by_standard_name = [d for d, name in named.items() if name in role.standard_names]
    if by_standard_name:
        return by_standard_name
    if role is not LEAD:
        return [d for d in obj.dims if role.has(d)]
    cases = _of_cases(obj) if dim is None else [dim]
    members = [*candidates(obj, MEMBER), *candidates(obj, LEVEL)]
    rest = [d for d in obj.dims if d not in (*cases, *members)]
    return _under_valid_times(obj, rest, cases) or [d for d in rest if is_lead(d, labels.get(d))]


def _of_cases(obj: Labelled) -> list[Hashable]:
    """Dimensions that could be that of the cases."""
    if OF_CASES in obj.attrs and obj.attrs[OF_CASES] in obj.dims:
        return [obj.attrs[OF_CASES]]
    labels = {d: obj.coords.variables[d] for d in obj.dims if d in obj.xindexes}
    names = {d: standard_name_of(label) for d, label in labels.items()}
    dims = [d for d in obj.dims if names.get(d) not in LEAD.standard_names]
    by_standard_name = [d for d in dims if names.get(d) in CALIBRATION.standard_names]
    named = by_standard_name or [d for d in dims if CALIBRATION.has(d)]
    if len(named) > 1:  # starts, and a time that is counted from them
        named = [d for d in named if d not in labels or not is_length(labels[d])] or named
    members = [*candidates(obj, MEMBER), *candidates(obj, LEVEL)]
    return named or [d for d in labels if d not in members and are_dates(labels[d])]


def _under_valid_times(
    obj: Labelled, rest: list[Hashable], cases: list[Hashable]
) -> list[Hashable]:
    """Dimensions that a coordinate of valid times has besides that of the cases."""
    single = not cases and any(is_start(n, c) for n, c in obj.coords.items() if not c.ndim)
    valid = [
        {*c.dims}
        for n, c in obj.coords.items()
        if n in (VALID_TIME, "time") or standard_name_of(c) == "time"
    ]
    texts = [d for d in rest if d in obj.coords and obj.coords[d].dtype.kind in "UST"]
    alone = [{d} for d in rest if single]
    return [
        d
        for d in rest
        if d not in texts and any(dims in [*alone, {d, *cases}] and d in dims for dims in valid)
    ]


def is_lead(name: Hashable, label: xr.DataArray | xr.Variable | None) -> bool:
    """Return whether a coordinate, also a single one, holds lead times.

    By its CF standard name or its name, else as it is a length of time: timedelta64, or numbers
    with a unit of time. Dates are none, nor lengths that a name says to be others, as of windows.
    """
    if label is None:
        return LEAD.has(name)
    standard = standard_name_of(label)
    if standard in LEAD.standard_names:
        return True
    if are_dates(label) or standard in CALIBRATION.standard_names:
        return False
    other = OTHER_LENGTHS.search(f"{name} {standard or ''}")
    return LEAD.has(name) or (is_length(label) and not other)


def is_start(name: Hashable, label: xr.DataArray | xr.Variable) -> bool:
    """Return whether a coordinate holds starts, by its name or CF standard name."""
    return (CALIBRATION.has(name) and _spelled(name) != "time") or standard_name_of(label) == START


def single_leads(obj: Labelled) -> list[Hashable]:
    """Scalar coordinates that are the lead time of all forecasts: by CF standard name, else all."""
    scalars = {
        n: c
        for n, c in obj.coords.items()
        if not c.ndim and is_lead(n, c) and (not CALIBRATION.has(n) or _of_cases(obj))
    }
    named = [n for n, c in scalars.items() if standard_name_of(c) in LEAD.standard_names]
    return named or [*scalars]


def is_length(label: xr.DataArray | xr.Variable) -> bool:
    """Return whether labels are lengths of time: timedelta64, or numbers with a unit of time."""
    if label.dtype.kind in "iuf":
        return time_unit(label.attrs.get("units")) is not None
    return label.dtype.kind == "m"


def are_dates(label: xr.DataArray | xr.Variable) -> bool:
    """Return whether labels are dates: datetime64, or objects of cftime."""
    if label.dtype.kind == "M":
        return True
    if label.dtype != object or label.chunks is not None or not label.size:
        return False
    return hasattr(label.to_numpy().flat[0], "calendar")
