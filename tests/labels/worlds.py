"""Small hindcasts in their plainest labels, and what calls give for them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

N_PAST, N_NEW, N_MEMBERS = 60, 8, 5

STATIONS = ["Oslo", "Reykjavík", "Tromsø", "Bodø"]

PLACES = {"Oslo": (59.95, 10.72), "Reykjavík": (64.13, -21.9), "Tromsø": (69.65, 18.94),
          "Bodø": (67.28, 14.4)}  # fmt: skip

CLIMATE = np.array([280.0, 292.0, 271.0, 305.0, 262.0, 299.0])
"""Of each place, so far apart that a wrong place changes every number."""

BIAS = np.array([1.0, 3.0, -2.0])
"""Of each lead."""

KELVIN = {"units": "K"}


class NotHereError(Exception):
    """A way does not apply to an input."""


@dataclass(frozen=True)
class Piece:
    """An input in some writing, and which canonical position each of its positions is."""

    role: str
    array: xr.DataArray
    names: dict[str, str | None]
    """Its name of each canonical dimension; None where it became a scalar."""
    positions: dict[str, np.ndarray]
    told: dict[str, Any] = field(default_factory=dict)
    """What a call is given with it, such as the name of a dimension."""
    form: str = "array"
    """How it is handed over: as an array or as a Dataset."""

    def name(self, dim: str) -> str | None:
        """Its name of a canonical dimension that it still has."""
        return self.names.get(dim)

    def of(self, array: xr.DataArray, **changes: Any) -> "Piece":
        return replace(self, array=array, **changes)

    def renamed(self, dim: str, new: str) -> "Piece":
        """Another name of a dimension, and of the coordinate along it."""
        old = self.names[dim]
        if new != old and new in {*self.array.coords, *self.array.dims}:
            raise NotHereError
        return self.of(self.array.rename({old: new}), names={**self.names, dim: new})

    def taken(self, dim: str, order: Any) -> "Piece":
        """Positions along a dimension; a number makes it a scalar."""
        if isinstance(order, slice):
            order = np.arange(self.array.sizes[self.names[dim]])[order]
        positions = {**self.positions, dim: np.atleast_1d(self.positions[dim][order])}
        array = self.array.isel({self.names[dim]: order})
        names = self.names if np.ndim(order) else {**self.names, dim: None}
        return self.of(array, names=names, positions=positions)


@dataclass(frozen=True)
class World:
    """Inputs by role: hindcast, forecast, observations, threshold, covariates of both."""

    name: str
    pieces: dict[str, Piece]
    lead_kind: str
    """``days``, ``months`` or none."""

    @property
    def place_dims(self) -> list[str]:
        return [d for d in ("station", "lat", "lon") if d in self.pieces["hindcast"].names]


def _piece(role: str, array: xr.DataArray) -> Piece:
    dims = [str(d) for d in array.dims]
    positions = {d: np.arange(array.sizes[d]) for d in dims}
    return Piece(role, array, {d: d for d in dims}, positions)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Numbers that float32 holds."""
    return np.round(values * 64) / 64


def _starts(lead_kind: str) -> np.ndarray:
    n = N_PAST + N_NEW
    if lead_kind == "months":
        return (np.datetime64("1999-03", "M") + np.arange(n)).astype("datetime64[ns]")
    return np.datetime64("2021-01-03", "ns") + np.arange(n) * np.timedelta64(13, "D")


def _valid(starts: np.ndarray, lead_kind: str) -> np.ndarray:
    if lead_kind == "months":
        months = starts.astype("datetime64[M]")
        return (months[:, np.newaxis] + np.arange(3)).astype("datetime64[ns]")
    if lead_kind == "days":
        return starts[:, np.newaxis] + np.array([7, 14, 21], "timedelta64[D]")
    return starts[:, np.newaxis]


def _times(valid: np.ndarray, lead_kind: str) -> np.ndarray:
    """All dates between the first and the last: what is paired wrongly finds a number too."""
    if lead_kind == "months":
        first, last = valid.min().astype("datetime64[M]"), valid.max().astype("datetime64[M]")
        return np.arange(first, last + 4).astype("datetime64[ns]")
    days = np.arange(valid.min() - np.timedelta64(25, "D"), valid.max() + np.timedelta64(25, "D"),
                     np.timedelta64(1, "D"))  # fmt: skip
    return days.astype("datetime64[ns]")


def _places(space: str) -> dict[str, Any]:
    if space == "stations":
        return {"station": np.array(STATIONS)}
    if space == "grid":
        return {"lat": np.array([-30.25, 10.1, 58.6]), "lon": np.array([-10.75, 20.3])}
    return {}


@cache
def world(name: str) -> World:
    """Inputs such as ``stations days ensemble``: places, leads and form of the forecasts."""
    space, lead_kind, form = name.split()
    rng = np.random.default_rng(5)
    starts = _starts(lead_kind)
    valid = _valid(starts, lead_kind)
    times = _times(valid, lead_kind)
    places = _places(space)
    shape = tuple(len(labels) for labels in places.values())
    climate = CLIMATE[: int(np.prod(shape))].reshape(shape)
    truth = _rounded(climate + 3 * rng.normal(size=(times.size, *shape)))
    observed = xr.DataArray(truth, {"time": times, **places}, name="t2m", attrs=KELVIN)
    at = np.searchsorted(times, valid)
    signal = truth[at]  # (start, lead, *places)
    bias = BIAS[: valid.shape[1]].reshape(1, -1, *[1] * (len(shape) + 1))
    noise = (
        rng.normal(size=(*signal.shape, N_MEMBERS))
        * (1 + rng.random(size=signal.shape))[..., np.newaxis]
    )
    members = _rounded(signal[..., np.newaxis] + bias + noise)
    members[rng.random(members.shape) < 0.02] = np.nan
    observed = observed.where(rng.random(observed.shape) > 0.02)
    leads = {
        "days": {"lead": np.array([7, 14, 21], "timedelta64[D]").astype("timedelta64[ns]")},
        "months": {"lead": ("lead", [0, 1, 2], {"units": "months"})},
        "none": {},
    }[lead_kind]
    if lead_kind == "none":
        members = members[:, 0]
    start = "time" if lead_kind == "none" else "init"
    dims = [start, *leads, *places, "member"]
    forecasts = xr.DataArray(members, {start: starts, **leads, **places}, dims, "t2m", KELVIN)
    if form == "quantiles":
        forecasts = forecasts.fillna(forecasts.mean("member"))
        levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
        values = np.sort(forecasts.to_numpy(), -1)
        forecasts = forecasts.copy(data=values).rename(member="quantile")
        forecasts = forecasts.assign_coords(quantile=levels)
    x = xr.DataArray(
        _rounded(rng.normal(size=(starts.size, *shape))), {start: starts, **places},
        [start, *places], "soil",
    )  # fmt: skip
    threshold = xr.DataArray(climate + 1.0, places, [*places], "limit", KELVIN)
    by_month = threshold + xr.DataArray(np.arange(12) - 5.5, {"month": np.arange(1, 13)}, ["month"])
    by_season = threshold + xr.DataArray(
        [-4.0, 0.5, 3.0, 1.5], {"season": ["DJF", "MAM", "JJA", "SON"]}, ["season"]
    )
    pieces = {
        "hindcast": forecasts[:N_PAST],
        "forecast": forecasts[N_PAST:],
        "observations": observed,
        "threshold": threshold,
        "monthly_threshold": by_month.assign_attrs(KELVIN),
        "seasonal_threshold": by_season.assign_attrs(KELVIN),
        "covariate": x[:N_PAST],
        "new_covariate": x[N_PAST:],
    }
    made = {role: _piece(role, array) for role, array in pieces.items()}
    return World(name, made, lead_kind)


WORLDS = [
    "stations days ensemble",
    "stations days ensemble",
    "grid days ensemble",
    "stations months ensemble",
    "stations none ensemble",
    "point days ensemble",
    "stations days quantiles",
    "grid none ensemble",
]

Results = dict[str, tuple[xr.DataArray, str]]
"""Arrays by name, and the role whose labels they have."""

Call = Callable[..., Results]
