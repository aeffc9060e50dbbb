"""A small network of stations with all that a forecaster may have: forecasts, truth, predictors."""

from functools import cache
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal

N_PAST, N_LATER, N_MEMBERS = 66, 9, 5
STATIONS = np.array(["Aachen", "Bonn", "Celle", "Dessau"])
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)


class World(NamedTuple):
    """Forecasts in one form, what verified, and predictors, of past and later dates."""

    forecasts: xr.DataArray | xr.Dataset
    truth: xr.DataArray
    predictors: dict[str, xr.DataArray]

    def dates(self, dates: slice) -> "World":
        """The world at some dates."""
        return self._replace(
            forecasts=self.forecasts.isel(time=dates),
            truth=self.truth.isel(time=dates),
            predictors={name: a.isel(time=dates) for name, a in self.predictors.items()},
        )

    def stations(self, number: slice) -> "World":
        """The world at some stations."""
        return self._replace(
            forecasts=self.forecasts.isel(station=number),
            truth=self.truth.isel(station=number),
            predictors={
                name: a.isel(station=number) if "station" in a.dims else a
                for name, a in self.predictors.items()
            },
        )

    def chunked(self) -> "World":
        """The world as Dask arrays."""
        return World(
            self.forecasts.chunk(station=2),
            self.truth.chunk(station=2),
            {name: a.chunk() for name, a in self.predictors.items()},
        )


def coordinates() -> dict[str, object]:
    """Labels of all dates and stations."""
    time = np.datetime64("2001-01-15", "ns") + np.arange(N_PAST + N_LATER) * np.timedelta64(30, "D")
    n = STATIONS.size
    return {
        "time": time,
        "station": STATIONS,
        "lat": ("station", 50 + np.arange(n)),
        "lon": ("station", 6.0 + 2 * np.arange(n)),
        "height": ("station", 100.0 * np.arange(n)),
    }


@cache
def world(form: str = "members", *, leads: bool = False) -> World:
    """All dates and stations; over two leads if asked."""
    rng = np.random.default_rng(6)
    coords, lead = coordinates(), np.array([1, 2] if leads else [1])
    shape = N_PAST + N_LATER, STATIONS.size, lead.size
    signal, wind, cloud = rng.normal(size=(3, *shape))
    cloud = cloud[:, :1, :1]
    season = np.sin(2 * np.pi * np.arange(shape[0]) / 12.2)[:, np.newaxis, np.newaxis]
    truth = 280 + 2 * signal + season + wind + 0.5 * cloud + 0.7 * rng.normal(size=shape)
    members = 281 + (2 * signal)[..., np.newaxis] + 0.6 * rng.normal(size=(*shape, N_MEMBERS))
    dims = ["time", "station", "lead"]
    labels = {**coords, "lead": ("lead", lead, {"units": "days"})}
    name, attrs = "t2m", {"units": "K"}
    arrays = {
        "forecasts": xr.DataArray(
            members, {**labels, "member": list("abcde")}, [*dims, "member"], name, attrs
        ),
        "truth": xr.DataArray(truth, labels, dims, name, attrs),
        "wind": xr.DataArray(wind, labels, dims),
        "cloud": xr.DataArray(cloud[:, 0, 0], {"time": coords["time"]}, ["time"]),
    }
    arrays["cloud"].attrs["known"] = "start"
    if not leads:
        arrays = {n: a.isel(lead=0, drop=True) if "lead" in a.dims else a
                  for n, a in arrays.items()}  # fmt: skip
    forecasts = arrays.pop("forecasts")
    return World(FORMS[form](forecasts), arrays.pop("truth"), arrays)


def _normal(forecasts: xr.DataArray) -> xr.Dataset:
    scale = forecasts.std("member").assign_attrs(units="K")
    return xrecal.gaussian(forecasts.mean("member", keep_attrs=True), scale)


def _weighted(forecasts: xr.DataArray) -> xr.Dataset:
    weights = np.random.default_rng(5).integers(1, 5, forecasts.shape)
    return xrecal.weighted(forecasts, forecasts.copy(data=weights / 4.0).drop_attrs())


FORMS = {
    "members": lambda forecasts: forecasts,
    "named members": lambda forecasts: forecasts,
    "weighted": _weighted,
    "quantiles": lambda forecasts: forecasts.quantile(LEVELS, "member", keep_attrs=True),
    "normal": _normal,
}
"""From members to each form of a forecast."""
