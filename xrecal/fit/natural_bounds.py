"""The lower bound of variables that cannot be negative, such as rain, wind speed or discharge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import xarray as xr

from xrecal.arrays.distributions.forms import SHARE_AT_BOUND
from xrecal.inputs.forms import Form
from xrecal.inputs.metadata import same_units
from xrecal.methods import Method
from xrecal.methods.settings import Settings

_NAMES = re.compile(
    r"precipitation|rainfall|snowfall|(^|_)speed(_|$)|humidity|concentration|(mole|mass)_fraction"
    r"|water_volume_transport_in_river_channel|mixing_ratio|wave_significant_height|number_of_"
)
"""Words in CF standard names of variables that are never negative."""

_SIGNED = re.compile(
    r"anomal|departure|differen|change|tendency|trend|error|bias|minus|logarithm|residual", re.I
)
"""Words in attributes of variables that may be negative."""

_TEMPERATURES = ("K", "degC", "Celsius", "degF")
_UNITS = ("m3 s-1", "kg m-3", "ug m-3", "µg m-3", "mol m-3", "count", "counts")
_WITH_SIGN = ("standard_name", "long_name", "cell_methods")


def never_negative(*attrs: Mapping[Any, Any]) -> str | None:
    """Return why a variable is never negative; None if it may be negative, or if this is unknown.

    Parameters
    ----------
    *attrs : mapping
        Attributes of forecasts and observations. The standard name decides; without a standard
        name, the unit decides. Anomalies and differences may be negative.

    Examples
    --------
    >>> never_negative({"standard_name": "wind_speed"})
    "standard name 'wind_speed'"
    >>> never_negative({"units": "m3 s-1"}), never_negative({"units": "K"})
    ("unit 'm3 s-1'", None)
    """
    if _has_both_signs(*attrs):
        return None
    names = [str(of["standard_name"]) for of in attrs if "standard_name" in of]
    if names:
        known = next((name for name in names if _NAMES.search(name)), None)
        return known and f"standard name {known!r}"
    units = [str(of["units"]) for of in attrs if "units" in of]
    known = next((u for u in units if any(same_units(u, one) for one in _UNITS)), None)
    return known and f"unit {known!r}"


def _has_both_signs(*attrs: Mapping[Any, Any]) -> bool:
    return any(_SIGNED.search(str(of.get(key, ""))) for of in attrs for key in _WITH_SIGN)


UNSURE = "no value is negative, but recalibrated values may be (bounds=(0, None) prevents this)"


def _may_have_bound(
    forecast: xr.DataArray, observed: xr.DataArray, *attrs: Mapping[Any, Any]
) -> bool:
    """Return whether values suggest the bound 0 and no attribute contradicts this bound.

    Values suggest this bound if they are in memory, near 0 and never below 0.

    Near means that the smallest observation is closer to 0 than to the largest observation. The
    result is False if many observations equal the smallest observation, because the fit finds such
    a bound itself.
    """
    if any("standard_name" in of for of in attrs) or _has_both_signs(*attrs):
        return False
    units = [of["units"] for of in attrs if isinstance(of.get("units"), str)]
    if any(same_units(u, one) for u in units for one in _TEMPERATURES):
        return False
    if forecast.chunks is not None or observed.chunks is not None:
        return False
    if not forecast.size or not observed.size:
        return False
    low, high = float(observed.min().data), float(observed.max().data)
    alone = float((observed == low).mean().data) < SHARE_AT_BOUND
    return 0 <= low < high - low and alone and float(forecast.min().data) >= 0


def within_nature(form: Form, observed: xr.DataArray, method: Method) -> tuple[Method, str | None]:
    """Return the method and a note; the method gets the bound 0 if the variable is never negative.

    The bounds that a user sets stay, including ``bounds=None``. If no attribute decides, but the
    values look as if 0 were a bound, the note mentions the bound.
    """
    if not isinstance(method, Settings) or method.variables is not None:
        return method, None
    bounded = method.with_bounds((0.0, "auto"))
    if bounded == method:
        return method, None
    attrs = {"long_name": form.name}, form.loc.attrs, observed.attrs
    why = never_negative(*attrs)
    if why is None:
        return method, UNSURE if _may_have_bound(form.loc, observed, *attrs) else None
    return bounded, f"never below 0, by its {why} (bounds=None removes this bound)"
