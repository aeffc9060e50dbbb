"""Models as this version of xrecal stores them, for later versions to open: a set for each layout.

    python -m tests.stored.make

writes two files for each model, ``schema<SCHEMA>_<NAME>.nc.gz`` and, with the forecasts to apply it
to, their quantiles and their means, ``schema<SCHEMA>_<NAME>_issued.nc.gz``. Run it once, with the
commit that raises ``SCHEMA`` in ``xrecal/storage/stored.py``, and commit what it writes. A set is
never made again: files of an older layout cannot be written any more, and one that is made anew
would hide that the old one is read wrongly. So it refuses to write where its set exists, and writes
only what is new where a method has joined a layout.

Data are small and drawn from a seed. Together the models hold whatever a stored model can: all
supports, parameters of all shapes, labels and dates of all kinds, missing values, pools, leads,
covariates, several variables, cases that came by an update. The files are netCDF as ``model.save``
writes it, packed by gzip as most of it is padding.
"""

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import cftime
import numpy as np
import xarray as xr

import xrecal
from xrecal.inputs import pool
from xrecal.methods import Method
from xrecal.storage.stored import SCHEMA

HERE = Path(__file__).parent
N, N_NEW, N_PLACES, N_MEMBERS = 40, 4, 3, 5

LEVELS = (0.023, 0.137, 0.291, 0.491, 0.683, 0.877, 0.973)
"""None is a multiple of 1/k for the number k of cases of any model: a level that a CDF of equal
steps reaches exactly would be reached or missed by rounding."""


class Made(NamedTuple):
    """A model, and forecasts that it is applied to."""

    model: xrecal.Recalibrator
    forecast: xr.Dataset


class Cases(NamedTuple):
    """A hindcast with what verified, and new forecasts."""

    hindcast: xr.DataArray
    observed: xr.DataArray
    forecast: xr.DataArray


def draw(seed: int, dim: str = "time", labels: object = None, place: str = "station") -> Cases:
    """Temperatures over ``dim`` (20 days apart unless labelled), places and members."""
    rng = np.random.default_rng(seed)
    n = N + N_NEW
    signal = 3 * rng.normal(size=(n, N_PLACES))
    observed = 280 + signal + rng.normal(size=signal.shape)
    members = 281 + signal[..., np.newaxis] + 0.8 * rng.normal(size=(n, N_PLACES, N_MEMBERS))
    if labels is None:
        labels = np.datetime64("2001-01-15", "ns") + np.arange(n) * np.timedelta64(20, "D")
    coords = {dim: labels} if np.size(labels) else {}
    attrs = {"units": "K", "long_name": "2 m temperature", "valid_range": np.array([180.0, 330.0])}
    forecasts = xr.DataArray(members, coords, [dim, place, "member"], "t2m", attrs)
    truth = xr.DataArray(observed, coords, [dim, place], "t2m", {"units": "K"})
    past, new = {dim: slice(N)}, {dim: slice(N, None)}
    return Cases(forecasts.isel(past), truth.isel(past), forecasts.isel(new))


def plain(seed: int, method: Method) -> Made:
    """A method on dated cases."""
    hindcast, observed, forecast = draw(seed)
    return Made(hindcast.recal.fit(observed, method), forecast.to_dataset())


def ckme() -> Made:
    """Stations by name, in single precision, with missing values: one station has no fit."""
    stations = {"station": ["Gap", "Ötz", "Rom"], "height": ("station", [735.0, 812.0, 21.0])}
    hindcast, observed, forecast = (a.assign_coords(stations).astype("float32") for a in draw(1))
    hindcast[3, 0, 2] = observed[5, 0] = observed[:30, 2] = forecast[1, 1] = np.nan
    return Made(hindcast.recal.fit(observed), forecast.to_dataset())


def observations() -> Made:
    """Members that are past observations."""
    return plain(15, xrecal.CKME(support="observations"))


def record() -> Made:
    """Observations chosen before errors, which give way in forecasts beyond the record."""
    hindcast, observed, forecast = record_cases()
    return Made(hindcast.recal.fit(observed), forecast.to_dataset())


def record_cases() -> Cases:
    """Observations at two values, and forecasts ever further beyond them."""
    hindcast, observed, forecast = draw(16)
    drift = xr.DataArray(np.linspace(0, 1, N), dims=["time"])
    observed = (285 - 10 * (observed < 280) + drift).assign_attrs(units="K")
    beyond = xr.DataArray([0.0, 2.0, 8.0, 40.0], dims=["time"])
    forecast = (forecast + beyond).rename("t2m").assign_attrs(forecast.attrs)
    return Cases(hindcast, observed, forecast)


def season() -> Made:
    """Supports, half-life and bandwidth chosen at each place; errors drift with the season."""
    hindcast, observed, forecast = draw(2)
    errors = 2 * np.cos(2 * np.pi * np.arange(N) * 20 / 365.25) + np.linspace(0, 8, N) ** 2 / 10
    observed = observed + xr.DataArray(errors, dims=["time"])
    observed = observed.assign_attrs(units="K")
    method = xrecal.CKME(condition_on="season", half_life="cv", bandwidth="cv", gap=2)
    return Made(hindcast.recal.fit(observed, method), forecast.to_dataset())


def emos() -> Made:
    """Rain, which has a bound at 0, by the dates of a calendar without leap days."""
    days = [cftime.DatetimeNoLeap(1999 + i // 12, 1 + i % 12, 15) for i in range(N + N_NEW)]
    hindcast, observed, forecast = (
        (a - 280).clip(min=0).assign_attrs(units="mm") for a in draw(3, labels=days)
    )
    return Made(hindcast.recal.fit(observed, xrecal.EMOS()), forecast.to_dataset())


def idr() -> Made:
    """Cases without labels."""
    hindcast, observed, forecast = draw(4, labels=())
    return Made(hindcast.recal.fit(observed, xrecal.IDR()), forecast.to_dataset())


def linear_pool() -> Made:
    """All methods that a linear pool mixes."""
    return plain(5, xrecal.LinearPool())


def climatology() -> Made:
    """Observations of the same part of the year."""
    return plain(12, xrecal.Climatology(window=90))


def pit() -> Made:
    """Ranks of the observations among the members."""
    return plain(13, xrecal.PITRecalibration())


def conformal() -> Made:
    """The same ranks, with levels of coverage."""
    return plain(14, xrecal.ConformalPrediction())


def pooled() -> Made:
    """One fit from all places, whose cases are dates at several of them; cases are years."""
    hindcast, observed, forecast = (
        a.assign_coords(lat=[45.0, 46.0, 47.5])
        for a in draw(6, labels=np.arange(1950, 1950 + N + N_NEW), place="lat")
    )
    model = hindcast.recal.fit(observed, xrecal.CKME(folds="block"), pool="lat")
    return Made(model, forecast.to_dataset())


def windows() -> Made:
    """A fit at each place from its neighbours too."""
    hindcast, observed, forecast = draw(7, place="lat")
    model = hindcast.recal.fit(observed, xrecal.EMOS(bounds=None), pool={"lat": 3})
    return Made(model, forecast.to_dataset())


def leads() -> Made:
    """Starts and leads, whose observations are over valid time, missing for some."""
    hindcast, observed, forecast = (a.rename(station="lead") for a in draw(8, dim="init"))
    steps = np.array([5, 10, 40], "timedelta64[D]").astype("timedelta64[ns]")
    hindcast, forecast = (a.assign_coords(lead=steps) for a in (hindcast, forecast))
    dates = observed.init.to_numpy()[:, np.newaxis] + steps
    valid = xr.DataArray(
        observed.to_numpy().ravel(), {"time": dates.ravel()}, ["time"], attrs=observed.attrs
    )
    method = xrecal.CKME(support="errors", condition_on="season")
    known = valid.drop_duplicates("time").sortby("time").isel(time=slice(80))
    return Made(hindcast.recal.fit(known, method), forecast.to_dataset())


def variables() -> Made:
    """Two variables, of different cases and units."""
    warm, wet = draw(9), draw(10)
    pairs = [
        xr.Dataset({"t2m": a, "dew": (b - 273.15).assign_attrs(units="degC")})
        for a, b in zip(warm, wet, strict=True)
    ]
    hindcast, observed, forecast = pairs
    model = hindcast.recal.fit(observed, xrecal.CKME(solver="lowrank", half_life=400))
    return Made(model, forecast)


def jointly() -> Made:
    """Two variables recalibrated as vectors."""
    (hindcast, observed, forecast), rng = draw(12), np.random.default_rng(12)
    pairs = []
    for a in (hindcast, observed, forecast):
        dew = (a - 275 + rng.normal(size=a.shape)).assign_attrs(units="degC")
        pairs.append(xr.Dataset({"t2m": a, "dew": dew}))
    model = pairs[0].recal.fit(pairs[1], jointly=("t2m", "dew"))
    return Made(model, pairs[2])


def shared() -> Made:
    """A fit that places share, with features of each; half of the cases came by an update."""
    hindcast, observed, forecast = draw(18)
    where = {
        "lat": ("station", [45.0, 46.0, 47.5]),
        "height": ("station", [735.0, 812.0, 21.0]),
    }
    hindcast, forecast = (a.assign_coords(where) for a in (hindcast, forecast))
    first, rest = {"time": slice(N // 2)}, {"time": slice(N // 2, None)}
    most, pool.MAX_POOLED = pool.MAX_POOLED, 10  # many cases would make a large file
    model = hindcast.isel(first).recal.fit(observed.isel(first), pool="station")
    pool.MAX_POOLED = most
    return Made(model.update(hindcast.isel(rest), observed.isel(rest)), forecast.to_dataset())


def update() -> Made:
    """Normal distributions with a circular covariate; half of the cases came by an update."""
    rng = np.random.default_rng(11)
    hindcast, observed, forecast = draw(11)
    wind = xr.DataArray(rng.uniform(0, 360, N + N_NEW), dims=["time"], attrs={"period": 360.0})
    observed = (observed + 4 * np.cos(np.deg2rad(wind[:N]))).assign_attrs(units="K")
    past, new = (
        xrecal.gaussian(a.mean("member", keep_attrs=True), a.std("member", keep_attrs=True))
        for a in (hindcast, forecast)
    )
    past = past.assign_coords(wind=wind[:N])
    new = new.assign_coords(wind=wind[N:])
    first, rest = {"time": slice(N // 2)}, {"time": slice(N // 2, None)}
    method = xrecal.CKME(condition_on="wind")
    model = past.isel(first).recal.fit(observed.isel(first), method)
    return Made(model.update(past.isel(rest), observed.isel(rest)), new)


def online_pool() -> Made:
    """A pool that has learned from cases of an update, while some wait that were issued before."""
    cases = [a.isel(station=[0]) for a in draw(17)]
    hindcast, observed, forecast = (a.assign_coords(station=["Gap"]) for a in cases)
    first, rest = {"time": slice(30)}, {"time": slice(30, None)}
    method = xrecal.OnlinePool(
        (xrecal.CKME(), xrecal.IDR()), delay=2, refit=8, condition_on="season"
    )
    model = hindcast.isel(first).recal.fit(observed.isel(first), method)
    return Made(model.update(hindcast.isel(rest), observed.isel(rest)), forecast.to_dataset())


MODELS: dict[str, Callable[[], Made]] = {
    make.__name__: make
    for make in (
        ckme, observations, record, season, emos, idr, linear_pool, climatology, pit, conformal,
        pooled, windows, leads, variables, jointly, update, online_pool, shared,
    )
}  # fmt: skip


def issued(model: xrecal.Recalibrator, forecast: xr.Dataset) -> xr.Dataset:
    """Forecasts, and as ``quantile_NAME`` and ``mean_NAME`` what a model makes of them."""
    made = {"quantile": model.quantile(forecast, list(LEVELS)), "mean": model.mean(forecast)}
    for what, dataset in made.items():
        forecast = forecast.assign({f"{what}_{name}": a for name, a in dataset.items()})
    return forecast


def make(folder: Path = HERE) -> list[Path]:
    """Write the models that the set of the present layout lacks; FileExistsError if it is whole."""
    known = sorted(folder.glob(f"schema{SCHEMA}_*"))
    there = {path.name for path in known}
    lacking = {n: made for n, made in MODELS.items() if f"schema{SCHEMA}_{n}.nc.gz" not in there}
    if not lacking:
        raise FileExistsError(
            f"{known[0]} exists; the set of a layout is made once: raise SCHEMA in "
            "xrecal/storage/stored.py if the layout has changed, and never make an old set anew"
        )
    written = []
    with tempfile.TemporaryDirectory() as temporary:
        aside = Path(temporary)
        for name, made_by in lacking.items():
            model, forecast = made_by()
            model.save(aside / f"schema{SCHEMA}_{name}.nc")
            issued(model, forecast).to_netcdf(aside / f"schema{SCHEMA}_{name}_issued.nc")
        for file in sorted(aside.iterdir()):
            written.append(folder / f"{file.name}.gz")
            written[-1].write_bytes(gzip.compress(file.read_bytes()))
    return written


if __name__ == "__main__":
    for path in make():
        print(f"{path.stat().st_size:8} {path}")
