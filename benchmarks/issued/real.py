"""Real forecasts: what is issued beyond the record, in other units, and of prices that rise."""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

import xrecal
from benchmarks.skill.sets import SHARE, SOURCES, Set, by_share
from benchmarks.speed.tables import Report, Row
from examples.real_data import open_data
from xrecal.methods.novelty import compares

from .issuing import METHODS, Limit, beyond, only, outermost

VARIANTS = {
    "innsbruck": (0, 1, 2),
    "frankfurt": (0,),
    "toulouse": (0, 4),
    "glofas": (0, 4, 8),
    "mjo": (0, 2),
    "decadal": (0,),
    "iberia": (0,),
    "mediterranean": (0,),
}
"""Of each source of the skill benchmark the sets that are taken: others are much like them."""
PRICES = ("epf_de", "epf_pjm", "epex_de")
BOUNDED = ("rain", "GloFAS")
"""In the names of sets whose values are never below 0."""
HIGH = 0.98
"""Level of the quantile of the learned observations above which forecasts are judged again."""
UNITS = {"K": (1.0, 273.15), "°F": (1.8, 32.0)}
LEVELS = np.linspace(0.001, 0.999, 199)


def precise(one: Set) -> Set:
    """The set in double precision and without units."""
    parts = one.hindcast, one.forecast, one.observations
    hindcast, forecast, observed = (part.astype(float).drop_attrs() for part in parts)
    return one._replace(hindcast=hindcast, forecast=forecast, observations=observed)


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
    return precise(Set("Hannover 24 h", *parts, one["lead_observation"], True))


def reduced(one: Set) -> Set:
    """Few cells of a grid; of a pooled set the last start alone to forecast, from the others."""
    if one.pool is not None:
        some = one.hindcast.isel(lead=0, lat=slice(None, None, 4), lon=slice(None, None, 4))
        parts = some.isel(init=slice(-1)), some.isel(init=slice(-1, None))
        return one._replace(hindcast=parts[0], forecast=parts[1])
    if "cell" in one.hindcast.dims:
        few = {"cell": slice(None, 3)}
        parts = one.hindcast.isel(few), one.forecast.isel(few), one.observations.isel(few)
        return one._replace(hindcast=parts[0], forecast=parts[1], observations=parts[2])
    return one


def every_set(quick: bool) -> Iterator[Set]:
    """The sets; quick: a part of one."""
    if quick:
        one = precise(next(SOURCES["toulouse"]()))
        few = one.hindcast.isel(time=slice(0, None, 4)), one.forecast.isel(time=slice(40))
        yield one._replace(hindcast=few[0], forecast=few[1])
        return
    for source, wanted in VARIANTS.items():
        for i, one in enumerate(SOURCES[source]()):
            if i in wanted:
                yield precise(reduced(one))
    yield hannover()
    for name in PRICES:
        yield prices(name, slice(0, None, 6))


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
    if model is None or not compares(model.method):
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


def sets(report: Report, quick: bool = False) -> list[Limit]:
    """Every method on real forecasts: scores, and how far beyond the record it goes."""
    report.start("sets: issued against the record of learned observations, in ranges of it")
    for one in every_set(quick):
        for label in METHODS:
            report.add(Row(f"{one.name}, {label}", judged(label, one)))
    return []


def quantiles_in(one: Set, label: str, slope: float, zero: float):
    """Quantiles and spread of forecasts made in another unit, converted back."""
    parts = one.hindcast, one.forecast, one.observations
    hindcast, forecast, observed = (slope * part + zero for part in parts)
    model = hindcast.recal.fit(observed, METHODS[label])
    quantiles, spread = model.quantile(forecast, LEVELS), model.std(forecast)
    return (quantiles - zero) / slope, spread / slope


def units(report: Report, quick: bool = False) -> list[Limit]:
    """The largest change of a quantile in units of the issued spread, if °C are K or °F.

    A unit is a convention: nothing that is issued may depend on it.
    """
    report.start("units: largest change of a quantile from °C, in issued standard deviations")
    step = 8 if quick else 1
    innsbruck, toulouse = (precise(next(SOURCES[name]())) for name in ("innsbruck", "toulouse"))
    toulouse = toulouse._replace(
        hindcast=toulouse.hindcast - 273.15,
        forecast=toulouse.forecast - 273.15,
        observations=toulouse.observations - 273.15,
    )
    worst = {}
    for one in (toulouse,) if quick else (innsbruck, toulouse):
        some = one.hindcast.isel(time=slice(None, None, step))
        one = one._replace(hindcast=some, forecast=one.forecast.isel(time=slice(0, None, 5 * step)))
        for label in METHODS:
            base, spread = quantiles_in(one, label, 1.0, 0.0)
            found = {}
            for unit, (slope, zero) in UNITS.items():
                change = abs(quantiles_in(one, label, slope, zero)[0] - base) / spread
                found[unit] = float(change.where(spread > 0).max())
            report.add(Row(f"{one.name}, {label}", found))
            worst[label] = max(worst.get(label, 0.0), *found.values())
    return [Limit(f"units: change of a quantile, {k}", 1e-3, seen) for k, seen in worst.items()]


def price_cells(one: Set) -> Iterator[tuple[str, dict[str, float]]]:
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

        def exceedance(threshold, model=model):
            return model.exceedance(one.forecast, threshold)

        found[f"{label} far"] = beyond(exceedance, low - width, high + width).mean("time")
    for i, hour in enumerate(one.hindcast["hour"].values):
        yield f"{one.name}, hour {hour}", {k: float(v.isel(hour=i)) for k, v in found.items()}


def rising_prices(report: Report, quick: bool = False) -> list[Limit]:
    """Prices whose level leaves the record, by the default fit and the pool.

    Raw forecasts follow the level. A method that does not is worse than they are.
    """
    report.start("prices: CRPS over the raw forecast's, mass beyond the record by its range")
    rows = []
    for name in PRICES[:1] if quick else PRICES:
        one = prices(name, slice(0, None, 12 if quick else 3))
        if quick:
            few = one.hindcast.isel(time=slice(80)), one.forecast.isel(time=slice(20))
            one = one._replace(hindcast=few[0], forecast=few[1])
        for row, cells in price_cells(one):
            report.add(Row(row, cells))
            rows.append(cells)
    default, pool = ([cells[f"{label}/raw"] for cells in rows] for label in ("default", "pool"))
    return [
        Limit("prices: default fit over raw, worst hour", 1.05, max(default)),
        Limit("prices: default fit over raw, median hour", 1.02, float(np.median(default))),
        Limit("prices: pool over raw, worst hour", 1.05, max(pool)),
        Limit("prices: pool over raw, median hour", 1.02, float(np.median(pool))),
    ]
