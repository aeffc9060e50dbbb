"""One fit for many places on real forecasts: against each place alone, and 1500 pooled cases.

``python -m benchmarks.skill.places [SOURCE ...]``; a part of ``make skill``.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import xarray as xr

import xrecal
from benchmarks import record
from examples.real_data import open_data
from xrecal.inputs import pool as pooling

from .sets import Set, by_share
from .streams import SECOND_SEASON_ENDS

RESULTS = record.FOLDER / "skill_places.csv"
FEW = 60  # cases of a place, below which what is shared is to gain
LEAST = 20  # cases of a fit
GAIN, WORST = 0.97, 1.005
"""CRPS over that of EMOS where cases are few; of the pool with what is shared over the one without
"""
LABELS = ("raw", "EMOS", "1500 cases", "shared", "LinearPool", "with shared")
COLUMNS = ("set", "source", "places", "cases", "scored", *LABELS, "shared / EMOS", "weight", "s")
CELLS, LEADS, DAYS = 3, 3, 2  # one in so many

Row = dict[str, str | float]


def prices(file: str, name: str) -> Iterator[Set]:
    given = open_data(file)
    given = given.assign_coords(lead=("hour", given["hour"].values.astype(float)))
    given = given.isel(time=slice(None, None, -(-given.sizes["time"] // 800)))
    pair = given["forecast"], given["observation"]
    yield by_share(name, *pair, "time", season=True, pool=("hour",))


def flusight() -> Iterator[Set]:
    given = np.log1p(open_data("flusight_admissions.nc"))
    early = (given["time"] < SECOND_SEASON_ENDS).values
    parts = given["forecast"].isel(time=early), given["forecast"].isel(time=~early)
    yield Set("FluSight", *parts, given["observation"], True, pool=("location", "lead"))


def glofas() -> Iterator[Set]:
    flow = open_data("glofas_discharge.nc").drop_vars(["lat", "lon"])
    flow = flow.isel(lead=slice(None, None, LEADS), init=slice(None, None, DAYS))
    for station in flow["station"].values[:2]:
        one = flow.sel(station=station, drop=True)
        pair = one["forecast"], one["observation"]
        yield by_share(f"GloFAS {station}", *pair, "init", season=True, pool=("lead",))


def iberia() -> Iterator[Set]:
    rain = open_data("cfs_iberia_precip.nc")[["forecast", "observation"]]
    cells = rain.stack(cell=("lat", "lon"))
    land = cells["observation"].notnull().mean("time") > 0.9
    cells = cells.isel(cell=np.flatnonzero(land)[::CELLS]).reset_index("cell")
    pair = cells["forecast"].transpose("time", "member", "cell"), cells["observation"]
    yield by_share("Iberia rain", *pair, "time", season=True, pool=("cell",))


def mediterranean() -> Iterator[Set]:
    """Six years, of which the last is forecast from the others."""
    one = open_data("seas5_mediterranean_t2m.nc").isel(lead=0, drop=True)
    parts = one["forecast"].isel(init=slice(-1)), one["forecast"].isel(init=slice(-1, None))
    yield Set("SEAS5", *parts, one["observation"], False, pool=("lat", "lon"))


def uwme() -> Iterator[Set]:
    """Samples of a latitude are those of a station: there is no other name for it."""
    given = open_data("uwme_precip_samples.nc").to_dataframe()
    samples = given.groupby(["time", "lat", "member"]).first().to_xarray()
    pair = samples["forecast"].rename(lat="place"), samples["observation"].rename(lat="place")
    pair = pair[0].assign_coords(lat=("place", samples["lat"].values)), pair[1].isel(member=0)
    yield by_share(
        "UWME rain", pair[0], pair[1].drop_vars("member"), "time", season=False, pool=("place",)
    )


SOURCES: dict[str, Callable[[], Iterator[Set]]] = {
    "flusight": flusight,
    "uwme": uwme,
    "mediterranean": mediterranean,
    "prices DE": lambda: prices("epf_de.nc", "Prices DE"),
    "prices PJM": lambda: prices("epf_pjm.nc", "Prices PJM"),
    "prices EPEX": lambda: prices("epex_de.nc", "Prices EPEX"),
    "glofas": glofas,
    "iberia": iberia,
}


def methods(one: Set) -> dict[str, tuple[xrecal.methods.base.Method, bool]]:
    """The methods that are compared, and whether places are pooled."""
    given = one.condition_on or None
    return {
        "EMOS": (xrecal.EMOS(), False),
        "1500 cases": (xrecal.CKME(solver="exact", condition_on=given), True),
        "shared": (xrecal.CKME(condition_on=given), True),
        "LinearPool": (xrecal.LinearPool(), False),
        "with shared": (xrecal.LinearPool(), True),
    }


def score_set(one: Set, source: str) -> Row:
    """A row of the table."""
    start, dim = time.perf_counter(), one.case_dim
    known = one.hindcast.notnull() & one.observations.notnull()
    cases = int(known.any([d for d in known.dims if d not in (dim, *one.pool)]).sum(dim).median())
    least = min(LEAST, max(cases // 2, 3))
    scores = {"raw": one.forecast.recal.crps(one.observations)}
    weight = np.nan
    for label, (method, pooled) in methods(one).items():
        options = {"pool": one.pool} if pooled else {}
        if label == "LinearPool" and cases < LEAST:
            continue  # no place has a pool of its own
        most = pooling.MAX_POOLED // one.hindcast.sizes[dim]
        if label == "1500 cases" and most < 2:
            continue  # they are of one place
        few = least if label in ("EMOS", "1500 cases", "shared") else LEAST
        pair = one.hindcast, one.observations
        if label == "1500 cases":
            pair = at_some_places(*pair, one.pool, most)
        model = pair[0].recal.fit(pair[1], method, dim=dim, min_samples=few, **options)
        if label == "with shared":
            weight = float(model.state["pool_weight"].isel(component=-1).mean())
        scores[label] = model.crps(one.forecast, one.observations)
    return row_of(one, source, scores) | {
        "cases": cases, "weight": weight, "s": time.perf_counter() - start
    }  # fmt: skip


def at_some_places(
    hindcast: xr.DataArray, observations: xr.DataArray, dims: tuple[str, ...], most: int
) -> tuple[xr.DataArray, xr.DataArray]:
    """Every second place along the longest dimension, again and again, until they are few."""
    while np.prod([hindcast.sizes[d] for d in dims]) > most:
        d = max(dims, key=lambda name: hindcast.sizes[name])
        half = {d: slice(None, None, 2)}
        hindcast, observations = hindcast.isel(half), observations.isel(half, missing_dims="ignore")
    return hindcast, observations


def row_of(one: Set, source: str, scores: dict[str, xr.DataArray]) -> Row:
    """Mean scores over the cases that all methods have, and the median ratio over places."""
    dim = one.case_dim
    scores = {label: score.transpose(dim, ...) for label, score in scores.items()}
    there = {label: score for label, score in scores.items() if score.notnull().any()}
    every = xr.concat(list(there.values()), "method", coords="minimal", compat="override")
    common = every.notnull().all("method")
    mean = {label: float(score.where(common).mean()) for label, score in there.items()}
    places = {label: there[label].where(common).mean(dim) for label in ("shared", "EMOS")}
    return {
        "set": one.name,
        "source": source,
        "places": int(common.any(dim).sum()),
        "scored": int(common.sum()),
        **dict.fromkeys(LABELS, np.nan),
        **mean,
        "shared / EMOS": float((places["shared"] / places["EMOS"]).median()),
    }


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """The table."""
    ratios = ("shared / EMOS", "with / without", "shared / 1500", "weight", "s")
    yield f"{'many places':<14}{'places':>8}{'cases':>7}" + "".join(
        f"{name:>15}" for name in (*LABELS, *ratios)
    )
    for row in rows:
        numbers = [float(row[name]) for name in LABELS]
        found = row["shared / EMOS"], gain(row), old(row), row["weight"], row["s"]
        cells = [f"{number:>15.4f}" for number in (*numbers, *map(float, found))]
        yield f"{row['set']:<14}{row['places']:>8}{row['cases']:>7}" + "".join(cells)


def gain(row: Row) -> float:
    """CRPS of the pool with what is shared over the one without."""
    return float(row["with shared"]) / float(row["LinearPool"])


def old(row: Row) -> float:
    """CRPS of what is shared over that of 1500 cases compared one by one."""
    return float(row["shared"]) / float(row["1500 cases"])


def verdict(rows: Iterable[Row]) -> str:
    """Whether what is shared is as good as it is to be."""
    rows = list(rows)
    few = [float(row["shared / EMOS"]) for row in rows if float(row["cases"]) < FEW]
    worst = max(gain(row) for row in rows if not np.isnan(gain(row)))
    middle = float(np.median(few)) if few else np.nan
    holds = not middle > GAIN and worst <= WORST
    return (
        f"budget {'holds' if holds else 'MISSED'}: below {FEW} cases a place, what is shared over "
        f"EMOS: median {middle:.3f} (<= {GAIN}); pool with it over pool without: worst set "
        f"{worst:.4f} (<= {WORST})"
    )


def run_source(source: str) -> list[Row]:
    """Rows of one source."""
    warnings.simplefilter("ignore")
    return [score_set(one, source) for one in SOURCES[source]()]


def report(rows: Iterable[Row]) -> None:
    """Store rows in place of those of their sets; print the table of all, and the verdict."""
    for row in rows:
        record.store_set(RESULTS, COLUMNS, row, SOURCES)
    every = record.stored(RESULTS)
    print("\n".join(lines(every)))
    print(verdict(every))


def main(sources: Iterable[str] = ()) -> None:
    """Run all sources, or some; each is stored once it has run."""
    for source in list(sources) or SOURCES:
        report(run_source(source))


if __name__ == "__main__":
    main(sys.argv[1:])
