"""Roles of dimensions: which one holds members, which one calibration cases; their dates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.typing import FloatArray, IntArray


@dataclass(frozen=True)
class Role:
    """How a dimension of one kind is recognised, and the argument that names it outright."""

    what: str
    argument: str
    names: tuple[str, ...]
    standard_names: tuple[str, ...] = ()


MEMBER = Role(
    "member",
    "member_dim",
    ("member", "number", "realization", "ensemble"),
    ("realization",),
)
LEVEL = Role("quantile level", "member_dim", ("quantile", "percentile"))
CALIBRATION = Role(
    "calibration",
    "dim",
    ("time", "init", "init_time", "forecast_reference_time"),
    ("time", "forecast_reference_time"),
)
LEAD = Role(
    "lead",
    "dim",
    (
        "lead",
        "lead_time",
        "step",
        "prediction_timedelta",
        "forecast_period",
        "forecastMonth",
        "leadtime_month",
    ),
    ("forecast_period",),
)
"""Lead times: locations, whose observations are at other times."""


def find_dim(
    obj: xr.DataArray, role: Role, explicit: Hashable | None = None, *, name: str
) -> Hashable | None:
    """Dimension of ``obj`` in a role; None if there is no candidate.

    The explicit argument counts first, then the CF ``standard_name`` of index coordinates, then
    known names. Scalar and two-dimensional coordinates say nothing.

    Raises
    ------
    ValueError
        If the explicit one is missing, or there are several candidates.
    """
    if explicit is not None:
        if explicit not in obj.dims:
            raise ValueError(
                f"{name} has no dimension {explicit!r} ({role.argument}); it has {list(obj.dims)}"
            )
        return explicit
    found = candidates(obj, role)
    if len(found) > 1:
        raise ValueError(
            f"{name} has several {role.what} dimensions, {found}; "
            f"name one: {role.argument}={found[0]!r}"
        )
    return found[0] if found else None


def candidates(obj: xr.DataArray, role: Role) -> list[Hashable]:
    """Dimensions of ``obj`` that could have a role: by standard name, else by name."""
    by_standard_name = [
        d
        for d in obj.dims
        if d in obj.xindexes and obj.coords[d].attrs.get("standard_name") in role.standard_names
    ]
    return by_standard_name or [d for d in obj.dims if d in role.names]


@dataclass(frozen=True)
class CaseAxis:
    """What is known about the dates of the cases along one dimension, each (n,) or None."""

    year: IntArray | None = None
    season: FloatArray | None = None
    """Fraction of the year, in [0, 1)."""
    days: FloatArray | None = None
    """Days since a fixed date of the calendar."""
    step: IntArray | None = None
    """Step in time, which never descends; without, each case is a step of its own."""

    def take(self, cases: slice | IntArray) -> CaseAxis:
        """Dates of some cases."""

        def taken(part: Any) -> Any:
            return None if part is None else part[cases]

        return CaseAxis(*map(taken, (self.year, self.season, self.days, self.step)))

    def steps(self, n: int) -> IntArray:
        """Step in time of each of ``n`` cases."""
        return np.arange(n) if self.step is None else self.step


def case_axis(obj: xr.DataArray, dim: Hashable) -> CaseAxis:
    """Dates along ``dim``: of a valid time on it, else of its own coordinate.

    Whole numbers from 1000 to 9999 that increase are years. A dimension that ``obj`` lacks may be
    a scalar coordinate: a single forecast, dated by it.
    """
    for label in _date_candidates(obj, dim):
        if label.chunks is not None or bool(label.isnull().any()):
            continue  # dates must be known without computing, and all of them
        values = label.to_numpy().reshape(-1)
        dated = date_axis(values)
        if dated is not None:
            return dated
        if np.issubdtype(values.dtype, np.integer):
            year = values.astype(np.int64)  # differences of unsigned integers are never negative
            if ((year >= 1000) & (year <= 9999)).all() and (np.diff(year) > 0).all():
                return CaseAxis(year=year)
    return CaseAxis()


def date_axis(values: Any) -> CaseAxis | None:
    """What dates (n,) say, as datetime64 or cftime objects; None for anything else."""
    if np.issubdtype(values.dtype, np.datetime64):
        return _standard_dates(values)
    if values.dtype == object and values.size and hasattr(values[0], "dayofyr"):
        return _calendar_dates(values)
    return None


def _date_candidates(obj: xr.DataArray, dim: Hashable) -> list[xr.DataArray]:
    dims = (dim,) if dim in obj.dims else ()
    along = {name: c for name, c in obj.coords.items() if c.dims == dims and c.size}
    valid = [
        c
        for name, c in along.items()
        if name != dim and (name == "valid_time" or c.attrs.get("standard_name") == "time")
    ]
    return valid + ([along[dim]] if dim in along else [])


def _standard_dates(dates: Any) -> CaseAxis:
    start = dates.astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[s]") - start.astype("datetime64[s]")
    elapsed = dates.astype("datetime64[s]") - start.astype("datetime64[s]")
    days = dates.astype("datetime64[s]").astype(np.int64) / 86400
    return CaseAxis(start.astype(np.int64) + 1970, elapsed / length, days)


def _calendar_dates(dates: Any) -> CaseAxis:
    """Dates of another calendar, as cftime objects; the year has that calendar's length."""
    year = np.array([d.year for d in dates])
    start = [d.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0) for d in dates]
    season = [(d - s) / (s.replace(year=d.year + 1) - s) for d, s in zip(dates, start, strict=True)]
    origin = dates[0].replace(year=2000, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    days = [(d - origin).total_seconds() / 86400 for d in dates]
    return CaseAxis(year, np.array(season), np.array(days))


Dims: TypeAlias = Hashable | Sequence[Hashable] | None
"""One dimension, several, or the usual one."""


def listed(dim: Hashable | Iterable[Hashable]) -> list[Hashable]:
    """Dimensions as a list."""
    return [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)


def told_dims(dims: Sequence[Hashable]) -> str:
    """Dimensions for a line of history."""
    return " and ".join(map(repr, dims))


NEAR = 1e-6
"""How far a level may be outside of those given: float32 levels and rounding pass."""


def read_levels(q: float | Sequence[float] | np.ndarray) -> FloatArray:
    """Levels as a float64 array of one axis, in the order asked for.

    Raises
    ------
    ValueError
        If one is outside [0, 1] or there twice.
    TypeError
        If one is no number.
    """
    from xrecal.arrays.distributions.weighted import check_levels

    if np.asarray(q).dtype.kind in "USOT":
        raise TypeError(f"q must hold numbers between 0 and 1, got {q!r:.60}")
    levels = check_levels(q)
    found, counts = np.unique(levels, return_counts=True)
    if (counts > 1).any():
        twice = ", ".join(f"{level:g}" for level in found[counts > 1])
        raise ValueError(f"q holds levels more than once: {twice}; give each level once")
    return levels


def read_inner_levels(q: float | Sequence[float] | np.ndarray) -> FloatArray:
    """Levels between categories; ValueError unless they increase, strictly between 0 and 1."""
    levels = read_levels(q)
    inside = ((levels > 0) & (levels < 1)).all()
    if not levels.size or not inside or not (np.diff(levels) > 0).all():
        raise ValueError(
            f"q must hold increasing levels between 0 and 1, ends excluded, got {levels}"
        )
    return levels


def is_between(levels: FloatArray, given: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether each level is between the lowest and the highest of those given, or one of them."""
    return np.asarray((levels >= given.min() - NEAR) & (levels <= given.max() + NEAR))


def level_coordinate(levels: FloatArray) -> xr.Variable:
    """Coordinate of quantiles, described."""
    return xr.Variable("quantile", levels, {"long_name": "quantile", "units": "1"})
