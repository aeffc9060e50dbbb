"""Real forecasts: what is issued beyond the record, in other units, and of prices that rise."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

import xrecal
from benchmarks.skill.sets import SHARE, Set, by_share
from benchmarks.skill.sources import single_sets
from benchmarks.speed.tables import Row
from examples.real_data import open_data

from .issuing import METHODS, Found, Limit, beyond, only, outermost

REAL = (
    "innsbruck", "frankfurt", "toulouse", "glofas", "mjo", "decadal", "iberia", "mediterranean",
)  # fmt: skip
"""Sources of the skill benchmark; prices and stations have loaders here."""
STEPS = {"toulouse": 4, "glofas": 4}
"""Of the sets of a source of the skill benchmark one in so many, else in 2: many are alike."""
PRICES = ("epf_de", "epf_pjm", "epex_de")
BOUNDED = ("rain", "GloFAS")
"""In the names of sets whose values are never below 0."""
HIGH = 0.98
"""Level of the quantile of the learned observations above which forecasts are judged again."""
UNITS = {"K": (1.0, 273.15), "°F": (1.8, 32.0)}
LEVELS = np.linspace(0.001, 0.999, 199)


def changed(one: Set, change: Callable) -> Set:
    """The set with its forecasts and observations changed."""
    parts = map(change, (one.hindcast, one.forecast, one.observations))
    return one._replace(**dict(zip(("hindcast", "forecast", "observations"), parts, strict=True)))


def precise(one: Set) -> Set:
    """The set in double precision and without units."""
    return changed(one, lambda part: part.astype(float).drop_attrs())


def case_dim(one: Set) -> str:
    """The dimension of the cases."""
    return next(str(d) for d in one.hindcast.dims if d in ("time", "init"))


def prices(name: str, hours: slice) -> Set:
    """Prices by the hour, the first days to learn."""
    price = open_data(f"{name}.nc").isel(hour=hours)
    return precise(by_share(name, price["forecast"], price["observation"], "time", season=True))


def hannover() -> Set:
    """Normal forecasts of temperature a day ahead."""
    one = open_data("hannover_ecmwf.nc").isel(lead=0, drop=True).astype(float)
    normal = xrecal.gaussian(one["lead_t2m_mean"], one["lead_t2m_sd"])
    cut = int(SHARE * normal.sizes["time"])
    parts = normal.isel(time=slice(cut)), normal.isel(time=slice(cut, None))
    return precise(Set("Hannover 24 h", *parts, one["lead_observation"], season=True))


def reduced(one: Set) -> Set:
    """Few cells of a grid; of a pooled set the last start alone to forecast, from the others."""
    if one.pool is not None:
        few = {"lead": 0, "lat": slice(None, None, 4), "lon": slice(None, None, 4)}
        one = changed(one, lambda part: part.isel(few, drop=True))
        return one._replace(hindcast=one.hindcast[:-1], forecast=one.forecast[-1:])
    if "cell" in one.hindcast.dims:
        return changed(one, lambda part: part.isel(cell=slice(3)))
    return one


def every_set(quick: bool) -> Iterator[Set]:
    """The sets; quick: a part of one."""
    if quick:
        one = precise(next(single_sets("toulouse")))
        yield one._replace(hindcast=one.hindcast[::4], forecast=one.forecast[:40])
        return
    for source in REAL:
        for one in list(single_sets(source))[:: STEPS.get(source, 2)]:
            yield precise(reduced(one))
    yield hannover()
    for name in PRICES:
        yield prices(name, slice(0, None, 12))


def issue(label: str, one: Set):
    """The model, None of the raw forecast, and what it issues."""
    if label == "raw":
        raw = one.forecast
        return None, raw if isinstance(raw, xr.Dataset) else raw.to_dataset(name="forecast")
    model = one.hindcast.recal.fit(one.observations, METHODS[label], pool=one.pool)
    return model, model.apply(one.forecast)


def novelty_of(model, one: Set, crps, issued) -> dict[str, float | str]:
    """Mean novelty, and its rank correlation with the CRPS in units of the issued spread.

    A novelty that tells something is larger where the forecast does worse than it promised.
    """
    if model is None or not model.method.knows_novelty:
        return {"novelty": "", "rank": ""}
    novelty = only(model.novelty(one.forecast))
    spread = only(issued.recal.std())
    lost = (crps / spread).where(spread > 0)
    known = (novelty + lost).notnull().values.ravel()
    pair = [part.transpose(*novelty.dims).values.ravel()[known] for part in (novelty, lost)]
    varies = all(np.ptp(part) > 0 for part in pair)
    rank = float(spearmanr(*pair).statistic) if varies else ""
    return {"novelty": float(novelty.mean()), "rank": rank}


def judged(label: str, one: Set) -> dict[str, float | str]:
    """All figures of a method on a set.

    ``below`` and ``above`` are how far the outermost values that are issued lie beyond the record
    of the learned observations, in units of its range (negative inside); ``physics`` how far below
    0, where nothing is; ``far`` the mass issued beyond the record by more than its range;
    ``seen`` and ``issued`` the frequency of observations beyond the record, and the mass there.
    """
    dim = case_dim(one)
    known = one.observations.sel({dim: one.hindcast[dim]})
    where = [dim, *(one.pool or ())]
    low, high = known.min(where), known.max(where)
    width = high - low
    model, issued = issue(label, one)
    crps = only(issued.recal.crps(one.observations))
    log = only(issued.recal.log_score(one.observations))
    smallest, largest = outermost(issued)
    later = one.observations.sel({dim: one.forecast[dim]})
    outside = ((later < low) | (later > high)).where(later.notnull())
    tail = only(issued.recal.crps(one.observations, lower=known.quantile(HIGH, where, skipna=True)))
    bounded = any(part in one.name for part in BOUNDED)
    finite = np.isfinite(log)
    return {
        "crps": float(crps.mean()),
        "below": float(((low - smallest) / width).max()),
        "above": float(((largest - high) / width).max()),
        "physics": float((-smallest / width).max().clip(0)) if bounded else "",
        "far": float(beyond(issued.recal.exceedance, low - width, high + width).mean()),
        "seen": float(outside.mean()),
        "issued": float(beyond(issued.recal.exceedance, low, high).mean()),
        "tail crps": float(tail.mean()),
        "log score": float(log.where(finite).mean()),
        "log inf": float(np.isposinf(log).mean()),
        **novelty_of(model, one, crps, issued),
    }


def sets(quick: bool = False) -> Found:
    """Every method on real forecasts: scores, and how far beyond the record it goes."""
    rows = [
        Row(f"{one.name}, {label}", judged(label, one))
        for one in every_set(quick)
        for label in METHODS
    ]
    title = "sets: issued against the record of learned observations, in ranges of it"
    return Found(title, rows, [])


def quantiles_in(one: Set, label: str, slope: float, zero: float):
    """Quantiles and spread of forecasts made in another unit, converted back."""
    one = changed(one, lambda part: slope * part + zero)
    model = one.hindcast.recal.fit(one.observations, METHODS[label])
    quantiles, spread = model.quantile(one.forecast, LEVELS), model.std(one.forecast)
    return (quantiles - zero) / slope, spread / slope


def units(quick: bool = False) -> Found:
    """The largest change of a quantile in units of the issued spread, if °C are K or °F.

    A unit is a convention: nothing that is issued may depend on it.
    """
    step = 8 if quick else 1
    innsbruck, toulouse = (precise(next(single_sets(name))) for name in ("innsbruck", "toulouse"))
    toulouse = changed(toulouse, lambda part: part - 273.15)
    rows, worst = [], {}
    for one in (toulouse,) if quick else (innsbruck, toulouse):
        some = one._replace(hindcast=one.hindcast[::step], forecast=one.forecast[:: 5 * step])
        for label in METHODS:
            base, spread = quantiles_in(some, label, 1.0, 0.0)
            found = {}
            for unit, (slope, zero) in UNITS.items():
                change = abs(quantiles_in(some, label, slope, zero)[0] - base) / spread
                found[unit] = float(change.where(spread > 1e-9 * spread.max()).max())
            rows.append(Row(f"{one.name}, {label}", found))
            worst[label] = max(worst.get(label, 0.0), *found.values())
    title = "units: largest change of a quantile from °C, in issued standard deviations"
    limits = [Limit(f"units: change of a quantile, {k}", 1e-3, seen) for k, seen in worst.items()]
    return Found(title, rows, limits)


def price_rows(one: Set) -> Iterator[Row]:
    """For each hour the CRPS over that of the raw forecast, and the mass far beyond the record."""
    known = one.observations.sel(time=one.hindcast["time"])
    low, high = known.min("time"), known.max("time")
    width = high - low
    raw = one.forecast.recal.crps(one.observations).mean("time")
    found = {}
    for label, model in {
        "default": one.hindcast.recal.fit(one.observations),
        "pool": one.hindcast.recal.fit(one.observations, xrecal.LinearPool()),
    }.items():
        found[f"{label}/raw"] = model.crps(one.forecast, one.observations).mean("time") / raw
        far = beyond(partial(model.exceedance, one.forecast), low - width, high + width)
        found[f"{label} far"] = far.mean("time")
    for i, hour in enumerate(one.hindcast["hour"].values):
        yield Row(f"{one.name}, hour {hour}", {k: float(v[i]) for k, v in found.items()})


def rising_prices(quick: bool = False) -> Found:
    """Prices whose level leaves the record, by the default fit and the pool.

    Raw forecasts follow the level. A method that does not is worse than they are.
    """
    rows = []
    for name in PRICES[:1] if quick else PRICES:
        one = prices(name, slice(0, None, 12 if quick else 3))
        if quick:
            one = one._replace(hindcast=one.hindcast[:80], forecast=one.forecast[:20])
        rows += price_rows(one)
    limits = []
    for label, told in (("default", "default fit"), ("pool", "pool")):
        ratio = [row.cells[f"{label}/raw"] for row in rows]
        limits.append(Limit(f"prices: {told} over raw, worst hour", 1.05, max(ratio)))
        limits.append(Limit(f"prices: {told} over raw, median hour", 1.02, np.median(ratio)))
    title = "prices: CRPS over the raw forecast's, mass beyond the record by its range"
    return Found(title, rows, limits)
