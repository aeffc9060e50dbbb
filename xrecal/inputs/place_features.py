"""Read features of places: coordinates that describe the locations of a pooled fit."""

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
    """Return the coordinates over ``dims`` that are features of places, by name of the feature.

    xrecal recognises latitude, longitude, height and lead; ``named`` has the names of other
    features. Scalar coordinates, such as those of a single place, count, too. Only numbers are
    features; lengths of time, such as leads, are converted to days.
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
    """Return the circular mean, in degrees, of the longitudes (P,) of P places."""
    turns = np.exp(1j * np.deg2rad(degrees[np.isfinite(degrees)]))
    middle = turns.mean() if turns.size else 1.0
    return float(np.round(np.rad2deg(np.angle(middle)), 6))


def around(degrees: FloatArray, middle: float) -> FloatArray:
    """Return longitudes within 180 degrees of a middle, so that neighbours get close values."""
    return np.asarray((degrees - middle + 180.0) % 360.0 - 180.0)
