"""What figures are drawn of: forecasts at one place and many, and their evidence."""

from functools import cache

import numpy as np
import xarray as xr
from matplotlib.collections import PolyCollection

import xrecal
from xrecal import plot

N = 120
LATITUDES, LONGITUDES = 40.0 + np.arange(4), 5.0 + 2 * np.arange(5)


@cache
def ensemble(m=9, n=N):
    """Ensembles (time, member, lat, lon) that are too warm and too narrow, and the truth."""
    rng = np.random.default_rng(1)
    shape = n, LATITUDES.size, LONGITUDES.size
    time = np.datetime64("2020-01-01T06", "ns") + np.arange(n) * np.timedelta64(1, "D")
    coords = {
        "time": time,
        "lat": ("lat", LATITUDES, {"units": "degrees_north", "standard_name": "latitude"}),
        "lon": ("lon", LONGITUDES, {"units": "degrees_east", "standard_name": "longitude"}),
    }
    signal = 280 + 4 * np.sin(np.arange(n) / 9)[:, None, None] + rng.normal(size=shape)
    spread = rng.uniform(0.5, 2, size=shape)
    truth = signal + spread * rng.normal(size=shape)
    bias = np.linspace(-0.5, 1.5, shape[2])
    noise = spread[:, None] * rng.normal(size=(n, m, *shape[1:]))
    members = signal[:, None] + bias + 0.6 * noise
    attrs = {"units": "K", "long_name": "2 m temperature"}
    return (
        xr.DataArray(members, coords, ["time", "member", "lat", "lon"], "t2m", attrs),
        xr.DataArray(truth, coords, ["time", "lat", "lon"], "t2m", attrs),
    )


HERE = {"lat": 1, "lon": 3}


def one():
    """The same at one place."""
    return tuple(array.isel(HERE) for array in ensemble())


def many():
    """At many places, of which one has no observation and others lack some."""
    forecast, truth = ensemble()
    forecast, truth = forecast.copy(), truth.copy()
    truth[:, 0, 0], truth[5:9, 1], forecast[11, :, 2] = np.nan, np.nan, np.nan
    return forecast, truth


def gaps():
    """At one place, with a month, single days and an observation missing."""
    forecast, truth = one()
    keep = np.r_[0:20, 50:70, 80, 90:N]
    forecast, truth = forecast[keep].copy(), truth[keep].copy()
    forecast[5], forecast[7], truth[12] = np.nan, np.nan, np.nan
    return forecast, truth


@cache
def model(support="observations"):
    forecast, truth = one()
    return forecast[:80].recal.fit(truth, xrecal.CKME(support=support, folds="block"))


def calibrated():
    """Weighted ensembles of past observations, at one place."""
    return model().apply(one()[0][80:])


@cache
def by_lead(n_places=1):
    """Ensembles over starts, leads and perhaps places, whose error grows, and the truth."""
    rng = np.random.default_rng(3)
    growth = 0.3 + 0.25 * np.arange(8)[:, None]
    shape = 60, 8, n_places
    coords = {
        "init": np.datetime64("2021-01-01", "ns") + np.arange(60) * np.timedelta64(5, "D"),
        "lead": ("lead", np.arange(1, 9), {"units": "days", "long_name": "lead time"}),
        "place": list("abcdef")[:n_places],
    }
    truth = rng.normal(size=shape)
    common = growth * rng.normal(size=shape)
    members = (truth + common)[:, None] + 0.4 * growth * rng.normal(size=(60, 6, 8, n_places))
    forecast = xr.DataArray(members, coords, ["init", "member", "lead", "place"], "index")
    return forecast, xr.DataArray(truth, coords, ["init", "lead", "place"])


@cache
def lead_skill(n_places=1, methods=False):
    forecast, truth = by_lead(n_places)
    climate = truth.rename(init="member").drop_vars("member").expand_dims(init=truth.init)
    reference = climate.recal.crps(truth)
    raw = xrecal.skill(forecast.recal.crps(truth), reference)
    if not methods:
        return raw
    wider = forecast.mean("member") + 2.5 * (forecast - forecast.mean("member"))
    better = xrecal.skill(wider.recal.crps(truth), reference)
    return xr.concat([raw, better], "method").assign_coords(method=["raw", "wider"])


def skill_of(forecast, truth):
    """Skill of the ensemble without its bias, which is also in the unbiased half, over it."""
    better = forecast - 0.8 * (forecast - truth).mean(["time", "member"])
    return xrecal.skill(better.recal.crps(truth), forecast.recal.crps(truth))


def terciles_of(forecast, truth):
    """Probabilities of terciles of the first date."""
    return forecast.recal.tercile_summary(truth)["probability"].isel(time=0)


@cache
def curve(places="one"):
    forecast, truth = {"one": one, "many": many, "gaps": gaps}[places]()
    if places == "many":
        forecast, truth = forecast.isel(lat=[0, 1], lon=[0, 2]), truth.isel(lat=[0, 1], lon=[0, 2])
    return forecast.recal.ridge_curve(truth, xrecal.CKME(support="observations", folds="block"))


@cache
def watched(places="one"):
    """Normal forecasts of two years, calibrated until they are too narrow; and their monitor."""
    rng = np.random.default_rng(8)
    n, n_places = 730, 1 if places != "many" else 12
    z = rng.normal(size=(n, n_places))
    z[300:] *= 1.4
    time = np.datetime64("2021-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    truth = xr.DataArray(z, {"time": time}, ["time", "place"], "t2m", {"long_name": "temperature"})
    if places == "gaps":
        truth[100:160] = np.nan
    forecast = xrecal.gaussian(0 * truth.fillna(0), 0 * truth.fillna(0) + 1)
    return forecast.recal.monitor(truth).squeeze("place" if n_places == 1 else [])


EVIDENCE = {
    "pit": lambda f, y: f.recal.pit_histogram(y),
    "rank_histogram": lambda f, y: f.recal.rank_histogram(y),
    "reliability": lambda f, y: f.recal.reliability(y, 281.0),
    "roc": lambda f, y: f.recal.roc(y, 281.0),
    "performance": lambda f, y: f.recal.roc(y, 281.0),
    "coverage": lambda f, y: f.recal.coverage(y),
    "spread_skill": lambda f, y: f.recal.spread_skill(y),
    "quantile_reliability": lambda f, y: f.recal.quantile_reliability(y),
}
"""Figures of diagnostics of forecasts, and how their data are made."""

PLACES = {"one": one, "many": many, "gaps": gaps}

DATA = {
    **{
        (name, place): (lambda make=make, place=place: make(*PLACES[place]()))
        for name, make in EVIDENCE.items()
        for place in PLACES
        if (name, place) not in (("quantile_reliability", "many"), ("performance", "many"))
    },
    ("fan", "one"): lambda: one()[0].recal.quantile([0.05, 0.25, 0.5, 0.75, 0.95]),
    ("fan", "gaps"): lambda: gaps()[0].recal.quantile([0.05, 0.25, 0.5, 0.75, 0.95]),
    ("cdf", "one"): lambda: calibrated().isel(time=3),
    ("cdf", "gaps"): lambda: one()[0].isel(time=3).where(np.arange(9) > 2),
    ("density", "one"): lambda: calibrated().isel(time=3),
    ("density", "gaps"): lambda: one()[0].isel(time=3).where(np.arange(9) > 2),
    ("skill_by_lead", "one"): lead_skill,
    ("skill_by_lead", "many"): lambda: lead_skill(6),
    ("skill_by_lead", "gaps"): lambda: lead_skill().where(lead_skill().lead != 3),
    ("skill_map", "many"): lambda: skill_of(*many()),
    ("tercile_map", "many"): lambda: terciles_of(*many()),
    ("p_value_map", "many"): lambda: many()[0][:30].recal.pit_test(many()[1], augmented=True),
    **{("monitor", place): (lambda place=place: watched(place)) for place in PLACES},
    ("ridge_curve", "one"): curve,
    ("ridge_curve", "many"): lambda: curve("many"),
    ("ridge_curve", "gaps"): lambda: curve("gaps"),
}
"""Data of each figure: at one place, at many with some missing, at one with gaps."""

FIGURES = {name: getattr(plot, name) for name in plot.__all__ if name != "report"}


@cache
def data_of(name, place):
    """Data of a figure, made once."""
    return DATA[name, place]()


def pixels(ax):
    """A figure as an array of numbers, which are equal if it looks the same."""
    canvas = ax.get_figure().canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).copy()


def curves(ax):
    """Lines of what is drawn, without references."""
    return [line for line in ax.lines if "curve" in str(line.get_gid())]


def labels(ax):
    """Texts of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ends_at(ax, x):
    """Lower and upper end of the first area at a position."""
    area = next(area for area in ax.collections if isinstance(area, PolyCollection))
    points = area.get_paths()[0].vertices
    here = points[np.isclose(points[:, 0], x, rtol=1e-9), 1]
    return here.min(), here.max()
