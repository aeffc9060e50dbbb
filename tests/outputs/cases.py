"""Past forecasts and new ones, with what verified, of every kind and form."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import xrecal

N, N_NEW, N_PLACES, N_MEMBERS = 60, 6, 3, 8
LEVELS = [0.023, 0.137, 0.291, 0.491, 0.683, 0.877, 0.973]
"""No multiples of 1/n for the number n of cases, which rounding may reach or miss."""

MIDDLE = 281.3
"""A temperature that is exceeded about as often as not."""


Output = Iterator[tuple[str, Any]]
"""Names and what bears them: arrays, tables, numbers, texts, or the exception of a refusal."""


class Cases(NamedTuple):
    """Past forecasts with what verified, and new forecasts with what verified."""

    hindcast: xr.DataArray | xr.Dataset
    observed: xr.DataArray | xr.Dataset
    forecast: xr.DataArray | xr.Dataset
    verified: xr.DataArray | xr.Dataset


def split(forecasts: Any, truth: Any, dim: str = "time") -> Cases:
    """The first cases to learn from, the rest to predict."""
    past, new = {dim: slice(N)}, {dim: slice(N, None)}
    return Cases(forecasts.isel(past), truth.isel(past), forecasts.isel(new), truth.isel(new))


@cache
def temperature() -> Cases:
    """Monthly temperatures of six years, biased by season, with missing values."""
    rng = np.random.default_rng(7)
    n = N + N_NEW
    dates = np.datetime64("2001-01-15", "ns") + np.arange(n) * np.timedelta64(31, "D")
    season = 2 * np.pi * np.arange(n) * 31 / 365.25
    signal = 280 + 6 * np.sin(season)[:, np.newaxis] + 2 * rng.normal(size=(n, N_PLACES))
    spread = 0.5 + rng.gamma(2, 0.4, size=(n, N_PLACES))
    truth = signal + 1.5 * np.cos(season)[:, np.newaxis] + spread * rng.normal(size=signal.shape)
    noise = rng.normal(size=(n, N_PLACES, N_MEMBERS))
    members = 1 + signal[..., np.newaxis] + 0.7 * spread[..., np.newaxis] * noise
    members[3, 0, 2] = members[5, 1] = truth[7, 0] = truth[20:24, 2] = np.nan
    coords = {"time": dates, "station": ["a", "b", "c"][:N_PLACES]}
    forecasts = xr.DataArray(
        members, coords, ["time", "station", "member"], "t2m", {"units": "K", "long_name": "t"}
    )
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "t2m", {"units": "K"}))


@cache
def rain() -> Cases:
    """Rain, often none."""
    rng = np.random.default_rng(8)
    cold = temperature()
    dates = np.concatenate([cold.hindcast.time, cold.forecast.time])
    wet = rng.gamma(0.8, 4, size=(dates.size, N_PLACES))
    truth = np.maximum(wet * rng.gamma(4, 0.25, size=wet.shape) - 1, 0)
    shape = (*wet.shape, N_MEMBERS)
    members = np.maximum(1.3 * wet[..., np.newaxis] * rng.gamma(6, 1 / 6, size=shape) - 0.8, 0)
    coords = {"time": dates, "station": ["a", "b", "c"]}
    units = {"units": "mm"}
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "rain", units)
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "rain", units))


@cache
def direction() -> Cases:
    """Wind directions in degrees."""
    rng = np.random.default_rng(9)
    cold = temperature()
    spread = rng.gamma(2, 15, size=(N + N_NEW, N_PLACES))
    mean = rng.uniform(0, 360, size=spread.shape)
    noise = rng.normal(size=(*spread.shape, N_MEMBERS))
    members = (mean[..., np.newaxis] + 15 + 0.7 * spread[..., np.newaxis] * noise) % 360
    truth = (mean + spread * rng.normal(size=spread.shape)) % 360
    dates = np.concatenate([cold.hindcast.time, cold.forecast.time])
    coords = {"time": dates, "station": ["a", "b", "c"]}
    units = {"units": "degree"}
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "wind", units)
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "wind", units))


@cache
def pair() -> Cases:
    """Temperature and rain, together."""
    return Cases(*map(together, temperature(), rain()))


def together(cold: xr.DataArray, wet: xr.DataArray) -> xr.Dataset:
    return xr.Dataset({"t2m": cold, "rain": wet})


@cache
def leads() -> Cases:
    """Starts and leads, with observations over valid time."""
    cold = temperature()
    steps = np.array([31, 62, 93], "timedelta64[D]").astype("timedelta64[ns]")
    names = {"time": "init", "station": "lead"}
    past, new = (a.rename(names).assign_coords(lead=steps) for a in (cold.hindcast, cold.forecast))
    days = np.datetime64("2001-01-15", "ns") + np.arange(N + N_NEW + 3) * np.timedelta64(31, "D")
    values = past.mean("member").mean("lead", skipna=True).to_numpy()
    rng = np.random.default_rng(10)
    truth = np.interp(np.arange(days.size), np.arange(N), values) + rng.normal(size=days.size)
    observed = xr.DataArray(truth, {"time": days}, ["time"], "t2m", {"units": "K"})
    return Cases(past, observed, new, observed)


def as_form(members: xr.DataArray, form: str) -> xr.DataArray | xr.Dataset:
    """The forecasts of an ensemble in another form."""
    if form == "plain":
        return members
    if form == "circular":
        return members.assign_attrs(circular_period=360.0)
    if form == "weighted":
        weights = np.random.default_rng(11).gamma(1.5, size=members.shape)
        weights = np.where(np.isnan(members), 0, weights)
        total = np.maximum(weights.sum(-1, keepdims=True), 1e-9)
        return xrecal.weighted(members, members.copy(data=weights / total))
    if form == "quantiles":
        q = np.array([0.1, 0.3, 0.5, 0.75, 0.9])
        return members.quantile(q, "member", keep_attrs=True).transpose(..., "quantile")
    scale = members.std("member", keep_attrs=True) + 0.01
    if form == "mixture":
        loc = members.isel(member=slice(3)).rename(member="component")
        return xrecal.gaussian(loc, scale, xr.DataArray([0.5, 0.3, 0.2], dims="component"))
    mean = members.mean("member", keep_attrs=True)
    if form == "censored":
        lower, upper = (0.0, None) if members.name == "rain" else (278.0, 288.0)
        return xrecal.gaussian(mean, scale, lower=lower, upper=upper)
    return xrecal.gaussian(mean, scale)


def in_form(cases: Cases, form: str) -> Cases:
    """Cases whose forecasts have another form."""
    return cases._replace(
        hindcast=as_form(cases.hindcast, form), forecast=as_form(cases.forecast, form)
    )


@cache
def days() -> Cases:
    """Daily temperatures of two places; the forecast system changes its bias after 45 days."""
    rng = np.random.default_rng(12)
    signal = 280 + 3 * rng.normal(size=(N + N_NEW, 2))
    members = 1 + signal[..., np.newaxis] + 0.7 * rng.normal(size=(*signal.shape, N_MEMBERS))
    members[45:] += 2
    truth = signal + rng.normal(size=signal.shape)
    members[50, 1] = truth[48, 0] = np.nan
    dates = np.datetime64("2001-01-01", "ns") + np.arange(N + N_NEW) * np.timedelta64(1, "D")
    coords, units = {"time": dates, "station": ["a", "b"]}, {"units": "K"}
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "t2m", units)
    return split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "t2m", units))


@cache
def grid() -> Cases:
    """Temperatures of three latitudes and two longitudes."""
    rng = np.random.default_rng(13)
    shape = (N + N_NEW, 3, 2)
    signal = 280 + 2 * rng.normal(size=shape)
    bias = rng.normal(size=shape[1:])
    members = signal[..., np.newaxis] + 0.6 * rng.normal(size=(*shape, N_MEMBERS))
    truth = signal + bias + rng.normal(size=shape)
    dates = np.datetime64("2001-01-15", "ns") + np.arange(N + N_NEW) * np.timedelta64(31, "D")
    coords = {"time": dates, "lat": [45.0, 46.0, 47.0], "lon": [5.0, 6.0]}
    dims, units = ["time", "lat", "lon"], {"units": "K"}
    forecasts = xr.DataArray(members, coords, [*dims, "member"], "t2m", units)
    return split(forecasts, xr.DataArray(truth, coords, dims, "t2m", units))


N_STATIONS = 42
"""Of a network, with more than the 1500 cases that are compared one by one."""


@cache
def network() -> Cases:
    """Temperatures of many stations, of which one has no record, and one more that is not known.

    Errors depend on what is known of a station, its spread, and the season.
    """
    rng = np.random.default_rng(14)
    n, places = N + N_NEW, N_STATIONS + 1
    lat, lon = 45 + 10 * rng.random(places), 5 + 10 * rng.random(places)
    height = np.minimum(rng.gamma(1.2, 400, places), 3000)
    season = np.sin(2 * np.pi * np.arange(n) * 31 / 365.25)[:, np.newaxis]
    signal = 10 - 0.0065 * height + 8 * season + 3 * rng.normal(size=(n, places))
    spread = rng.gamma(6, 0.2, size=signal.shape)
    members = signal[..., np.newaxis] + spread[..., np.newaxis] * rng.normal(
        size=(*signal.shape, 5)
    )
    bias = np.sin(0.5 * lat) - height / 1000 + 0.3 * rng.normal(size=places) + season
    truth = signal + bias + 1.2 * spread * rng.normal(size=signal.shape)
    truth[:, 5] = truth[3, 0] = members[7, 2, 1] = np.nan
    dates = np.datetime64("2001-01-15", "ns") + np.arange(n) * np.timedelta64(31, "D")
    coords = {
        "time": dates,
        "station": [f"s{k:02}" for k in range(places)],
        "lat": ("station", lat, {"units": "degrees_north"}),
        "lon": ("station", lon, {"units": "degrees_east"}),
        "elevation": ("station", height, {"units": "m"}),
    }
    units = {"units": "degC"}
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "t2m", units)
    cases = split(forecasts, xr.DataArray(truth, coords, ["time", "station"], "t2m", units))
    known, shown = {"station": slice(N_STATIONS)}, {"station": [0, 5, 20, N_STATIONS]}
    return Cases(
        cases.hindcast.isel(known),
        cases.observed.isel(known),
        cases.forecast.isel(shown),
        cases.verified.isel(shown),
    )


@cache
def known_network() -> Cases:
    """The network without the station that is not known."""
    cases, known = network(), {"station": slice(3)}
    return cases._replace(forecast=cases.forecast.isel(known), verified=cases.verified.isel(known))


@cache
def leads_with_index() -> Cases:
    """Starts and leads with a covariate ``index`` of each forecast."""
    cases = leads()

    def known(forecasts: xr.DataArray, seed: int) -> xr.DataArray:
        values = np.random.default_rng(seed).normal(size=forecasts.shape[:2])
        return forecasts.assign_coords(index=(forecasts.dims[:2], values))

    return cases._replace(hindcast=known(cases.hindcast, 15), forecast=known(cases.forecast, 16))
