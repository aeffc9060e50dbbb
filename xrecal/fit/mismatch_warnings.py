"""Whether forecasts belong to a model: warnings of another place or lead, and of far values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable

import numpy as np
import xarray as xr

from xrecal.chunks.warnings import users_stacklevel
from xrecal.inputs.attributes import shown_units
from xrecal.inputs.circular import PERIOD
from xrecal.inputs.dims import LEAD
from xrecal.inputs.forms import VECTOR, Form
from xrecal.inputs.labels import text_of
from xrecal.inputs.leads import span_of, unit_of_leads
from xrecal.methods import VectorCKME

from .fitted import FittedVariable

PLACE_NAMES = (
    "station", "station_id", "station_name", "location", "location_id", "site", "site_id", "name",
    "id",
)  # fmt: skip
"""Coordinates that name a place; so do those with the CF attribute ``cf_role``."""

DEGREES = ("lat", "latitude", "lon", "longitude")
"""Coordinates that are degrees, as are those that CF attributes say to be such."""

ROUNDING = 360 * float(np.finfo(np.float32).eps)
"""Degrees by which coordinates in single precision differ from what they stand for."""

NewForecast = tuple[Form, FittedVariable]


def warn_of_other_place(forecasts: Iterable[NewForecast], *, name: str = "forecast") -> None:
    """Warn of forecasts whose place or lead is another than that of the hindcast of their fit.

    Told from scalar coordinates that both have: names of stations and sites, latitudes and
    longitudes, and leads. One warning for all variables.
    """
    for told in dict.fromkeys(_other_place(*one, name=name) for one in forecasts):
        if told is not None:
            warnings.warn(told, stacklevel=users_stacklevel())


def _other_place(form: Form, fitted: FittedVariable, *, name: str) -> str | None:
    known = _scalars(fitted.state)
    given = {n: c for part in form.parts.values() for n, c in _scalars(part).items()}
    differ = [n for n in known if n in given and _differ(n, known[n], given[n])]
    if not differ:
        return None
    there, here = (
        ", ".join(f"{n} {_shown(n, coords[n])}" for n in differ) for coords in (known, given)
    )
    drop = repr(differ[0]) if len(differ) == 1 else repr(differ)
    return (
        f"the model was fitted at {there}, but {name} is at {here}: does it belong to the model? "
        f"If so, use {name}.drop_vars({drop}), if not a model of a hindcast there"
    )


def _scalars(obj: xr.DataArray | xr.Dataset) -> dict[Hashable, xr.DataArray]:
    """Scalar coordinates whose value is known without computing, and there."""
    scalars = {n: c for n, c in obj.coords.items() if c.ndim == 0 and c.chunks is None}
    return {n: c for n, c in scalars.items() if not bool(c.isnull())}


def _differ(name: Hashable, a: xr.DataArray, b: xr.DataArray) -> bool:
    """Whether two coordinates of one name tell two places, or two leads."""
    if any(is_lead(name, c) for c in (a, b)):
        return _differ_in_time(a, b)
    if any(is_angle(name, c) for c in (a, b)):
        if not (_are_numbers(a) and _are_numbers(b)):
            return False
        apart = float(a.to_numpy()) - float(b.to_numpy())
        return abs(math.remainder(apart, 360)) > ROUNDING
    if name not in PLACE_NAMES and not any("cf_role" in c.attrs for c in (a, b)):
        return False
    return _differ_in_value(a, b)


def is_lead(name: Hashable, label: xr.DataArray) -> bool:
    """Whether it is a lead time, by its name or its CF standard name."""
    return name in LEAD.names or label.attrs.get("standard_name") in LEAD.standard_names


def is_angle(name: Hashable, label: xr.DataArray) -> bool:
    """Whether it is a latitude or longitude, by its name or what CF asks for."""
    units = str(label.attrs.get("units", ""))
    told = label.attrs.get("standard_name") in ("latitude", "longitude")
    return name in DEGREES or told or units in ("degrees_north", "degrees_east")


def _differ_in_time(a: xr.DataArray, b: xr.DataArray) -> bool:
    """Whether leads differ; numbers without a unit are in that of other numbers."""
    units = unit_of_leads(a), unit_of_leads(b)
    if units[0] != units[1] and (None not in units or "timedelta64" in units):
        spans = span_of(a), span_of(b)
        return None not in spans and spans[0] != spans[1]
    return _differ_in_value(a, b)


def _differ_in_value(a: xr.DataArray, b: xr.DataArray) -> bool:
    """Whether labels differ; numbers of another type do not, and not those written as text."""
    if _are_numbers(a) and _are_numbers(b):
        return bool(a.to_numpy() != b.to_numpy())
    return _text(a) != _text(b)


def _are_numbers(label: xr.DataArray) -> bool:
    return label.dtype.kind in "iuf"


def _text(label: xr.DataArray) -> str:
    return text_of(label.drop_vars(list(label.coords)).expand_dims("label").to_index()[0])


def _shown(name: Hashable, label: xr.DataArray) -> str:
    """A label, with the unit of a lead."""
    units = label.attrs.get("units", "") if is_lead(name, label) else ""
    return f"{_text(label)} {units}".rstrip()


def warn_of_far_values(forecasts: Iterable[NewForecast]) -> None:
    """Warn of forecasts in memory that are far from all that their fit has learned from.

    Far is further from the range of the members of the hindcast than that range is wide, at all
    locations together: of normal distributions their locations. Nothing is told of variables on a
    circle, of lazy forecasts or fits, which are not computed for it, and by methods that keep no
    hindcast, such as EMOS.
    """
    for form, fitted in forecasts:
        learned = _learned(fitted)
        if learned is None or learned.chunks is not None or form.loc.chunks is not None:
            continue
        (low, high), (lowest, highest) = _range(learned), _range(form.loc)
        width = high - low
        if width > 0 and (lowest - high > width or low - highest > width):
            units = shown_units(fitted.attrs)
            name = "forecast" if form.name is None else f"{form.name} of the forecast"
            warnings.warn(
                f"{name} is between {lowest:.4g} and {highest:.4g}, far from the hindcast that "
                f"the model was fitted on, {low:.4g} to {high:.4g} {units}".rstrip()
                + ": is it in another unit, whatever its attribute units says, or another "
                "variable? Give it in the unit of the hindcast",
                stacklevel=users_stacklevel(),
            )


def _learned(fitted: FittedVariable) -> xr.DataArray | None:
    """Members of the hindcast that the fit keeps, if it does and they are on a line."""
    if fitted.attrs.get(PERIOD) is not None:
        return None
    method = fitted.method
    name = f"{VECTOR}{method.own}" if isinstance(method, VectorCKME) else "loc"
    return fitted.state.get(name)


def _range(values: xr.DataArray) -> tuple[float, float]:
    """Least and largest of what is there; NaN if nothing is."""
    if values.size == 0:
        return math.nan, math.nan
    return float(values.min().data), float(values.max().data)  # as a GPU's go by no other way
