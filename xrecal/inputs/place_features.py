"""Features of places: coordinates that describe pooled positions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import xarray as xr

from xrecal.typing import FloatArray

from .forms import Form
from .leads import days_of
from .metadata import HEIGHT, LATITUDE, LONGITUDE
from .roles import is_lead

_MARKS = {"latitude": LATITUDE, "longitude": LONGITUDE, "height": HEIGHT}


def feature_coordinates(
    form: Form, dims: Sequence[Hashable], named: Sequence[str] = ()
) -> dict[str, xr.DataArray]:
    """Coordinates of a forecast by their feature, over some of the dimensions.

    Latitude, longitude, height and lead are recognised; other features must be ``named``. Scalar
    coordinates count if the forecast has a single place. Only numbers are features; leads that
    are lengths of time are converted to days.
    """
    found: dict[str, xr.DataArray] = {}
    every = {n: c for part in form.parts.values() for n, c in part.coords.items()}
    along = {n: c for n, c in every.items() if set(c.dims) <= set(dims)}
    for feature in (*_MARKS, "lead"):
        fits = is_lead if feature == "lead" else _MARKS[feature].fits
        matching = [c for name, c in along.items() if c.dtype.kind in "iufm" and fits(name, c)]
        if matching:  # a curvilinear grid has fields, not indices
            widest = max(matching, key=lambda c: c.ndim)
            found[feature] = days_of(widest) if widest.dtype.kind == "m" else widest
    known = {c.name for c in found.values()}
    others = [name for name in named if name in along and name not in known]
    return found | {name: along[name] for name in others if along[name].dtype.kind in "iuf"}


def middle_longitude(degrees: FloatArray) -> float:
    """Middle of longitudes (P,) on the circle."""
    turns = np.exp(1j * np.deg2rad(degrees[np.isfinite(degrees)]))
    middle = turns.mean() if turns.size else 1.0
    return float(np.round(np.rad2deg(np.angle(middle)), 6))


def around(degrees: FloatArray, middle: float) -> FloatArray:
    """Longitudes within 180 degrees of a middle, so that neighbours have close values."""
    return np.asarray((degrees - middle + 180.0) % 360.0 - 180.0)
