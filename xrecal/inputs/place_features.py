"""Features of places: coordinates that say where pooled positions lie."""

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


def feature_coordinates(form: Form, dims: Sequence[Hashable]) -> dict[str, xr.DataArray]:
    """Coordinates of a forecast by the feature that they hold, over some of the dimensions.

    Scalar ones count where the forecast is of a single place. Numbers alone do: leads that are
    lengths of time are days.
    """
    found: dict[str, xr.DataArray] = {}
    every = {n: c for part in form.parts.values() for n, c in part.coords.items()}
    for feature in (*_MARKS, "lead"):
        fits = is_lead if feature == "lead" else _MARKS[feature].fits
        matching = [
            c
            for name, c in every.items()
            if c.dtype.kind in "iufm" and set(c.dims) <= set(dims) and fits(name, c)
        ]
        if matching:  # of a curvilinear grid the fields, not its indices
            widest = max(matching, key=lambda c: c.ndim)
            found[feature] = days_of(widest) if widest.dtype.kind == "m" else widest
    return found


def middle_longitude(degrees: FloatArray) -> float:
    """Middle of longitudes (P,), on the circle."""
    turns = np.exp(1j * np.deg2rad(degrees[np.isfinite(degrees)]))
    middle = turns.mean() if turns.size else 1.0
    return float(np.round(np.rad2deg(np.angle(middle)), 6))


def around(degrees: FloatArray, middle: float) -> FloatArray:
    """Longitudes within half a turn of a middle, so that neighbours are near each other."""
    return np.asarray((degrees - middle + 180.0) % 360.0 - 180.0)
