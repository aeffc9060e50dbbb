"""Synthetic twins of the tutorial data: the same names, shapes and units, and similar errors.

Each function takes a random generator. Sizes, mean errors and spreads follow the real data, but
this module contains no real value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from xrecal.typing import FloatArray

_MEMBER = {"standard_name": "realization", "long_name": "ensemble member"}
_YEAR = 365.25


def innsbruck_temperature(rng: np.random.Generator) -> xr.Dataset:
    """Make night temperatures of a valley; forecasts are too narrow, and 9 degrees too cold."""
    n, m = 2749, 11
    time = np.datetime64("2000-01-01T06", "ns") + 2 * _days(n)
    centre = 6 - 8 * _annual(time, 20) + 2.8 * _red_noise(rng, (n,), 0.6)
    error = 2.2 * _red_noise(rng, (n,), 0.3) * (1 - 0.3 * _annual(time, 200))
    members = centre - 9 - 1.6 * _annual(time, 75) + 0.7 * rng.standard_normal((m, n))
    attrs = {"units": "degree_Celsius", "long_name": "minimum temperature of 12 h"}
    return _dataset(
        {"forecast": (("time", "member"), members.T), "observation": ("time", centre + error)},
        {"time": time, "member": _members(m)},
        attrs,
    )


def frankfurt_rain(rng: np.random.Generator) -> xr.Dataset:
    """Make daily rain, often exactly 0 mm, and an ensemble with drizzle on most dry days."""
    n, m = 3617, 50
    time = np.datetime64("2007-01-06", "ns") + _days(n)
    observed = _red_noise(rng, (n,), 0.3)
    centre = 0.85 * observed + 0.4 * rng.standard_normal(n)
    members = centre[:, np.newaxis] + 0.3 * rng.standard_normal((n, m))
    drizzle = np.where(members > -1.6, 0.15 * rng.gamma(0.7, size=(n, m)), 0.0)
    attrs = {"units": "mm", "long_name": "precipitation of 24 h"}
    return _dataset(
        {
            "forecast": (("time", "member"), _rain(members) + drizzle),
            "observation": ("time", _rain(observed)),
        },
        {"time": time, "member": _members(m)},
        attrs,
    )


def mediterranean_temperature(rng: np.random.Generator) -> xr.Dataset:
    """Make monthly temperatures on a grid of one degree; forecasts start in six Novembers."""
    lat, lon, lead, m = np.arange(27.0, 49.0), np.arange(-12.0, 41.0), np.arange(1, 4), 15
    years = np.array([f"{year}-11" for year in range(2000, 2006)], "datetime64[M]")
    climate = 294 - 0.7 * (lat[:, np.newaxis] - 27) - 0.08 * (lon - 14)
    climate = climate - 3.2 * (lead[:, np.newaxis, np.newaxis] - 1)
    anomaly = 1.2 * _fields(rng, (len(years), len(lead)), lat, lon)
    deviations = 1.3 * _fields(rng, (len(years), len(lead), m), lat, lon)
    bias = -1 + 0.6 * _fields(rng, (len(lead),), lat, lon)
    bias = bias + rng.standard_normal((len(lat), len(lon)))  # coarse mountains and coasts
    members = (climate + bias + 0.3 * anomaly)[:, :, np.newaxis] + deviations
    dims = ("lat", "lon")
    return _dataset(
        {
            "forecast": (("init", "lead", "member", *dims), members),
            "observation": (("init", "lead", *dims), climate + anomaly),
        },
        {
            "init": ("init", years.astype("datetime64[ns]"), _START),
            "lead": ("lead", lead, {"long_name": "lead month (1 = month of start)"}),
            "member": _members(m),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
            "valid_time": (
                ("init", "lead"),
                (years[:, np.newaxis] + (lead - 1)).astype("datetime64[ns]"),
            ),
        },
        {"units": "K", "long_name": "monthly mean 2 m temperature"},
    )


def mjo_rmm1(rng: np.random.Generator) -> xr.Dataset:
    """Make an index with a cycle of 48 days, and four members that hardly differ at short leads."""
    n, m, lead = 510, 4, np.arange(45)
    start = 12 * np.arange(n)
    turn = 0.97 * np.exp(2j * np.pi / 48)
    index = 1.1 * _red_noise(rng, (start[-1] + lead[-1] + 1,), turn)
    analysis = 0.9 * index[start] + 0.15 * _complex(rng, (n,))
    noise = 0.2 * _complex(rng, (len(lead), n, m))
    noise[0] = 0.02 * _complex(rng, (n, m))
    members = analysis[:, np.newaxis] * turn ** lead[:, np.newaxis, np.newaxis] + _filter(
        noise, turn
    )
    init = np.datetime64("1999-01-01", "ns") + start * np.timedelta64(1, "D")
    valid = start[:, np.newaxis] + lead
    attrs = {"units": "1", "long_name": "MJO index RMM1"}
    return _dataset(
        {
            "forecast": (("init", "lead", "member"), members.real.transpose(1, 0, 2) - 0.4),
            "observation": (("init", "lead"), index.real[valid]),
        },
        {
            "init": ("init", init, _START),
            "lead": ("lead", lead, {"units": "days", "standard_name": "forecast_period"}),
            "member": _members(m),
            "valid_time": (("init", "lead"), init[0] + valid * np.timedelta64(1, "D")),
        },
        attrs,
    )


def influenza_admissions(rng: np.random.Generator) -> xr.Dataset:
    """Make weekly counts of 52 places in three winters, with quantile forecasts up to 3 weeks."""
    from scipy.special import ndtri

    weeks = np.r_[0:30, 58:67, 68:86, 110:138]  # from 2023-10-14 on: no forecasts in summers
    lead = np.arange(4)
    levels = np.r_[0.01, 0.025, np.arange(1, 20) / 20, 0.975, 0.99]
    codes = np.setdiff1d(np.arange(1, 57), [3, 7, 14, 43, 52])
    size = rng.normal(4.0, 1.0, 52)
    size[4] = 5.8  # California
    time = np.datetime64("2023-10-14", "ns") + 7 * _days(weeks[-1] + 4)
    level = size + 1.6 * _annual(time, 15)[:, np.newaxis]
    level = level + 0.4 * _red_noise(rng, (len(time), 52), 0.9)
    actual = level[weeks[:, np.newaxis] + lead].transpose(0, 2, 1)
    sd = 0.12 + 0.1 * lead
    centre = actual + sd * _red_noise(rng, actual.shape, 0.5)
    quantiles = centre[..., np.newaxis] + 0.75 * sd[:, np.newaxis] * ndtri(levels)
    dims = ("time", "location", "lead")
    return _dataset(
        {
            "forecast": ((*dims, "quantile"), np.exp(quantiles)),
            "observation": (dims, np.round(np.exp(actual))),
        },
        {
            "time": time[weeks],
            "location": [f"{code:02}" for code in (*codes, 72)],
            "lead": ("lead", lead, {"units": "weeks"}),
            "quantile": levels,
        },
        {"units": "1", "long_name": "weekly hospital admissions with influenza"},
    )


def german_prices(rng: np.random.Generator) -> xr.Dataset:
    """Make hourly prices and four forecasts; prices and errors grow tenfold within two years."""
    n, hours, m = 1831, np.arange(24), 4
    time = np.datetime64("2018-12-27", "ns") + _days(n)
    turns = ("2018-12-27", "2020-05-01", "2021-02-01", "2021-12-20", "2022-08-25", "2023-03-01")
    at = (np.array([*turns, "2023-12-31"], "datetime64[ns]") - time[0]) / np.timedelta64(1, "D")
    level = np.exp(np.interp(np.arange(n), at, np.log([45, 25, 50, 190, 320, 100, 70])))
    day = (
        1 + 0.2 * np.sin((hours - 5) * np.pi / 6) + 0.3 * _red_noise(rng, (n,), 0.6)[:, np.newaxis]
    )
    price = level[:, np.newaxis] * (day + 0.1 * rng.standard_normal((n, 24)))
    error = 0.16 * level[:, np.newaxis] * _red_noise(rng, (n, 24), 0.2)
    own = 0.12 * level[:, np.newaxis, np.newaxis] * rng.standard_normal((n, 24, m))
    return _dataset(
        {
            "forecast": (("time", "hour", "member"), (price - error)[..., np.newaxis] + own),
            "observation": (("time", "hour"), price),
        },
        {"time": time, "hour": hours},
        {"units": "EUR MWh-1", "long_name": "day-ahead electricity price"},
    )


def bicycle_hire(rng: np.random.Generator) -> xr.Dataset:
    """Make hourly numbers of hired bicycles, with two peaks on working days, one on other days."""
    n = 17379
    time = np.datetime64("2011-01-01", "ns") + np.arange(n) * np.timedelta64(1, "h")
    day = np.arange(n) // 24
    hour, weekday = np.arange(n) % 24, (day + 6) % 7
    work = (weekday % 6 > 0).astype(int)
    temp = 0.5 - 0.22 * _annual(time, 20) + 0.06 * np.sin((hour - 9) * np.pi / 12)
    temp = np.clip(temp + 0.08 * _red_noise(rng, (n,), 0.99), 0.02, 1)
    rain = _red_noise(rng, (n,), 0.9)
    weather = 1 + (rain > 0.4) + (rain > 1.4) + (rain > 3.5)
    rush = np.exp(-((hour - 8) ** 2) / 2) + 1.3 * np.exp(-((hour - 17.5) ** 2) / 4)
    leisure = np.exp(-((hour - 14) ** 2) / 25)
    usual = 8 + np.where(work, 300 * rush + 90 * leisure, 270 * leisure)
    mean = usual * (0.3 + 1.4 * temp) * np.array([1.0, 0.9, 0.5, 0.3])[weather - 1]
    mean = mean * (0.8 + 0.5 * (day >= 365))
    month = time.astype("datetime64[M]").astype(int) % 12 + 1
    columns = {
        "yr": (day >= 365).astype(int),
        "mnth": month,
        "hr": hour,
        "weekday": weekday,
        "workingday": work,
        "weathersit": weather,
        "temp": temp,
        "hum": np.clip(0.62 + 0.12 * rain + 0.1 * rng.standard_normal(n), 0, 1),
        "windspeed": rng.gamma(2.5, 0.076, n),
        "cnt": 1 + rng.poisson(mean * rng.gamma(9, 1 / 9, n)),
    }
    return xr.Dataset({name: ("case", values) for name, values in columns.items()})


_START = {"standard_name": "forecast_reference_time"}


def _dataset(
    variables: dict[str, Any], coords: dict[str, Any], attrs: dict[str, str]
) -> xr.Dataset:
    """Return forecasts and observations in single precision, both with the attributes ``attrs``."""
    arrays = {
        name: (dims, values.astype(np.float32), attrs) for name, (dims, values) in variables.items()
    }
    return xr.Dataset(arrays, coords)


def _members(m: int) -> Any:
    return ("member", np.arange(1, m + 1), _MEMBER)


def _days(n: int) -> Any:
    return np.arange(n) * np.timedelta64(1, "D")


def _annual(time: Any, peak: float) -> FloatArray:
    """Return an annual cycle from -1 to 1 that is largest on the day ``peak`` of the year."""
    day = (time - np.datetime64("2000-01-01", "ns")) / np.timedelta64(1, "D")
    cycle: FloatArray = np.cos(2 * np.pi * (day - peak) / _YEAR)
    return cycle


def _rain(latent: FloatArray) -> FloatArray:
    amount: FloatArray = 4.5 * np.maximum(latent - 0.1, 0) ** 1.7
    return amount


def _complex(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return complex normal values; their real and imaginary parts have variance 1."""
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def _red_noise(rng: np.random.Generator, shape: tuple[int, ...], memory: complex) -> Any:
    """Return autoregressive series of variance 1 along the first dimension.

    Each value is ``memory`` times the value before it, plus noise. If ``memory`` is complex, the
    series are complex, and their real and imaginary parts have variance 1.
    """
    noise = _complex(rng, shape) if isinstance(memory, complex) else rng.standard_normal(shape)
    noise[1:] *= np.sqrt(1 - abs(memory) ** 2)
    return _filter(noise, memory)


def _filter(noise: Any, memory: complex) -> Any:
    from scipy.signal import lfilter

    return lfilter([1.0], [1.0, -memory], noise, axis=0)


def _fields(
    rng: np.random.Generator, shape: tuple[int, ...], lat: FloatArray, lon: FloatArray
) -> FloatArray:
    """Return smooth fields of variance 1 over latitude and longitude, sums of 16 random waves."""
    along_lat, along_lon = rng.normal(0, 0.12, (2, 16))
    phase = rng.uniform(0, 2 * np.pi, 16)
    waves = np.cos(
        np.multiply.outer(lat, along_lat)[:, np.newaxis] + lon[:, np.newaxis] * along_lon + phase
    )
    found: FloatArray = rng.standard_normal((*shape, 16)) @ waves.reshape(-1, 16).T / np.sqrt(8)
    return found.reshape(*shape, lat.size, lon.size)
