"""Roles of dimensions: members, levels, cases and leads.

The role of a dimension follows from an argument, from its CF standard name or its name, or from its
labels and their type. Other modules take the roles from this module, and do not read attributes
again.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import xarray as xr

from .dates import are_dates
from .dims import Labels
from .leads import time_unit
from .metadata import OF_CASES, VALID_TIME, standard_name_of


@dataclass(frozen=True)
class Role:
    """A role of dimensions: usual names, and the argument by which users give another name."""

    what: str
    argument: str
    names: tuple[str, ...]
    standard_names: tuple[str, ...] = ()

    def has(self, name: Hashable) -> bool:
        """Return whether the name of a dimension gives it this role.

        Names of cases and leads may have any spelling: "leadTime", "lead_times" and "lead_time0"
        count as equal.
        """
        if self.argument != "dim":
            return name in self.names
        return _spelled(name) in self._spellings

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(map(_spelled, self.names))

    @property
    def usual(self) -> str:
        """The first four names as text, for messages."""
        return ", ".join(self.names[:4]) + ", ..." * (len(self.names) > 4)


def _spelled(name: Hashable) -> str:
    """Return a name in lower case, without underscores, plural ending and final number."""
    return re.sub(r"s?\d*$", "", re.sub(r"[\W_]", "", str(name).lower()))


MEMBER = Role(
    "member",
    "member_dim",
    (
        "member", "number", "realization", "ensemble", "ensemble_member", "member_id", "members",
        "realisation", "ens",
    ),
    ("realization",),
)  # fmt: skip

LEVEL = Role("quantile level", "member_dim", ("quantile", "percentile"))

PROBABILITIES = ("category", "threshold")
"""Names of the dimensions that count categories and thresholds of probabilities."""

START = "forecast_reference_time"
"""CF standard name of the start of a forecast."""

NAMES_OF_STARTS = (
    "init", "init_time", START, "init_date", "initial_time", "initial_date", "initialization",
    "initialization_time", "initialisation_time", "initialization_date", "reference_time",
    "ref_time", "reference_date", "forecast_time", "forecast_date", "forecast_start",
    "forecast_start_time", "start", "start_time", "start_date", "sdate", "hdate", "base_time",
    "base_date", "issue_time", "issue_date", "issued", "issuance_time", "origin_time",
    "origin_date", "run_time", "run_date", "cycle_time", "analysis_time",
)  # fmt: skip
"""Names of dimensions and coordinates that hold starts."""

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
"""Role of lead times. xrecal treats each lead as a location with observation times of its own."""

OTHER_LENGTHS = re.compile(
    r"period|duration|window|interval|averag|mean|accum|freq|return|bnds|bounds|resolution|delay"
    r"|latency|cutoff|\bage\b|^(year|month|week|season|day_?of|hour_?of|month_?of|week_?of)",
    re.IGNORECASE,
)
"""Parts of names. A length of time whose name has one of these parts is not a lead."""


def is_lead(name: Hashable, label: xr.DataArray | xr.Variable | None) -> bool:
    """Return whether a coordinate, which may be scalar, holds lead times.

    A coordinate holds leads if its CF standard name or its name means leads, or if it is a length
    of time: timedelta64, or numbers with a unit of time. Dates are not leads, and lengths of time
    with a name such as "window" are not leads.
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
    """Return whether a coordinate holds starts, according to its name or CF standard name."""
    return (CALIBRATION.has(name) and _spelled(name) != "time") or standard_name_of(label) == START


def is_length(label: xr.DataArray | xr.Variable) -> bool:
    """Return whether labels are lengths of time: timedelta64, or numbers with a unit of time."""
    if label.dtype.kind in "iuf":
        return time_unit(label.attrs.get("units")) is not None
    return label.dtype.kind == "m"


@dataclass(frozen=True)
class Roles(Generic[Labels]):
    """An array, and a cache of the roles of its dimensions and scalar coordinates."""

    obj: Labels

    def named(self, role: Role) -> list[Hashable]:
        """Find the dimensions of a role by CF standard name or, if there are none, by name."""
        known = [d for d, name in self._standard_names.items() if name in role.standard_names]
        return known or [d for d in self.obj.dims if role.has(d)]

    @cached_property
    def _standard_names(self) -> dict[Hashable, str | None]:
        """CF standard names of the labels along dimensions that have an index."""
        return {d: standard_name_of(v) for d, v in self._labels.items()}

    @cached_property
    def _labels(self) -> dict[Hashable, xr.Variable]:
        variables = self.obj.coords.variables
        return {d: variables[d] for d in self.obj.dims if d in self.obj.xindexes}

    @cached_property
    def members(self) -> list[Hashable]:
        """Dimensions of members, and dimensions of quantile levels."""
        return [*self.named(MEMBER), *self.named(LEVEL)]

    @cached_property
    def cases(self) -> list[Hashable]:
        """Candidates for the dimension of the cases.

        Issued forecasts may name this dimension in an attribute. Otherwise, candidates are the
        dimensions whose CF standard name means cases. If there are none, candidates are the
        dimensions whose name means cases. If there are none of these either, candidates are the
        dimensions whose labels are dates.
        """
        obj, labels, names = self.obj, self._labels, self._standard_names
        if OF_CASES in obj.attrs and obj.attrs[OF_CASES] in obj.dims:
            return [obj.attrs[OF_CASES]]
        dims = [d for d in obj.dims if names.get(d) not in LEAD.standard_names]
        known = [d for d in dims if names.get(d) in CALIBRATION.standard_names]
        named = known or [d for d in dims if CALIBRATION.has(d)]
        if len(named) > 1:  # starts, and times counted from starts
            named = [d for d in named if d not in labels or not is_length(labels[d])] or named
        return named or [d for d, v in labels.items() if d not in self.members and are_dates(v)]

    @cached_property
    def leads(self) -> list[Hashable]:
        """Candidates for the dimension of the leads.

        The function looks first for dimensions with the CF standard name of leads. If there are
        none, it looks for coordinates of valid times, and takes the dimension that they have in
        addition to the dimension of the cases. Last, it looks for dimensions whose labels
        :func:`is_lead` accepts.
        """
        return self._leads_of(self.cases)

    def leads_beside(self, dim: Hashable | None) -> list[Hashable]:
        """Return candidates for the dimension of leads; ``dim`` is the dimension of the cases."""
        known = self.leads if dim is None or self.cases == [dim] else self._leads_of([dim])
        return [d for d in known if d != dim]

    def _leads_of(self, cases: list[Hashable]) -> list[Hashable]:
        known = [d for d, n in self._standard_names.items() if n in LEAD.standard_names]
        if known:
            return known
        rest = [d for d in self.obj.dims if d not in (*cases, *self.members)]
        variables = self.obj.coords.variables
        return self._under_valid_times(rest, cases) or [
            d for d in rest if is_lead(d, variables.get(d))
        ]

    def _under_valid_times(self, rest: list[Hashable], cases: list[Hashable]) -> list[Hashable]:
        """Return the dimensions that coordinates of valid times have besides the case dimension."""
        if not rest or not self.times:
            return []
        variables = self.obj.coords.variables
        single = not cases and any(is_start(n, v) for n, v in variables.items() if not v.ndim)
        alone = [{d} for d in rest if single]
        over = [{*c.dims} for c in self.times.values()]
        return [
            d
            for d in rest
            if d not in variables or variables[d].dtype.kind not in "UST"
            if any(dims in [*alone, {d, *cases}] and d in dims for dims in over)
        ]

    def has_times_beside(self, dim: Hashable | None) -> bool:
        """Return whether a coordinate other than ``dim`` may give the valid times of forecasts."""
        return bool(self.leads_beside(dim) or self.single_leads or {*self.times} - {dim})

    @cached_property
    def single_leads(self) -> list[Hashable]:
        """Scalar coordinates with the lead of all forecasts.

        If some of them have the CF standard name of leads, the result leaves out all others.
        """
        scalars = {
            n: v
            for n, v in self.obj.coords.variables.items()
            if not v.ndim and is_lead(n, v) and (not CALIBRATION.has(n) or self.cases)
        }
        known = [n for n, v in scalars.items() if standard_name_of(v) in LEAD.standard_names]
        return known or [*scalars]

    def is_start(self, name: Hashable) -> bool:
        """Return whether a coordinate holds starts; see :func:`is_start`."""
        return is_start(name, self.obj[name])  # also for a dimension without labels

    @cached_property
    def single_start(self) -> Hashable | None:
        """Scalar coordinate with the start of a forecast that has no dimension of starts."""
        scalars = {n: v for n, v in self.obj.coords.variables.items() if not v.ndim}
        standard = CALIBRATION.standard_names
        known = [n for n, v in scalars.items() if standard_name_of(v) in standard]
        starts = known or [n for n in scalars if CALIBRATION.has(n)]
        return starts[0] if len(starts) == 1 else None

    @cached_property
    def times(self) -> dict[Hashable, xr.DataArray]:
        """Coordinates (and labels of dimensions) that are times by name or CF standard name."""
        variables = self.obj.coords.variables
        found = [
            n
            for n, v in variables.items()
            if n in (VALID_TIME, "time") or standard_name_of(v) == "time"
        ]
        return {n: self.obj.coords[n] for n in found}

    def find(self, role: Role, explicit: Hashable | None = None, *, name: str) -> Hashable | None:
        """Return the dimension that has a role, or ``explicit``; None if there is no candidate.

        Raises
        ------
        ValueError
            If the array lacks the dimension ``explicit``, or if there are several candidates.
        """
        obj = self.obj
        if explicit is not None:
            if explicit not in obj.dims:
                one = f"; use {name}.expand_dims({explicit!r})" if explicit in obj.coords else ""
                raise ValueError(
                    f"{name} has no dimension {explicit!r} ({role.argument}); it has "
                    f"{[*obj.dims]}{one}"
                )
            return explicit
        dims = self.cases if role is CALIBRATION else self.named(role)
        if len(dims) > 1:
            several = f"{name} has several {role.what} dimensions, {dims}"
            raise ValueError(f"{several}; name one: {role.argument}={dims[0]!r}")
        return dims[0] if dims else None
