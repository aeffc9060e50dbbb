"""Members that are models with names: weights of their own against members that are exchangeable.

``python -m benchmarks.skill.named [SOURCE ...]``; a part of ``make skill``. Methods learn from the
first 60 % of the dates, or from the last few of these, and are scored on the others.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import xarray as xr

import xrecal
from benchmarks import record
from examples.real_data import open_data

from .scoring import in_common, paired_error, variable_of
from .sets import Set, by_share
from .streams import HOURS

RESULTS = record.FOLDER / "skill_named.csv"
METHODS = {"EMOS": xrecal.EMOS, "pool": xrecal.LinearPool}
SHORT = 15, 30
"""Dates of short records, fewer than those from which models get weights of their own"""
FEWEST = 10
"""Cases that a fit learns from"""
LOSS = 1.01
"""Of a short record at most, over members that are exchangeable"""
COLUMNS = (
    "set", "source", "places", "cases", "scored",
    *(f"{label}{of}" for label in METHODS for of in ("", " named", " ratio", " error")), "commit",
)  # fmt: skip

Row = dict[str, str | float]


def toulouse() -> Iterator[Set]:
    """Means of five ensembles."""
    given = open_data("toulouse_tigge_t2m.nc")
    issued = given["forecast"].mean("member").rename(model="member")
    yield by_share("Toulouse", issued, given["observation"], "time", season=False)


def prices(file: str, name: str) -> Iterator[Set]:
    """Prices at some hours of a day; models without names are numbered."""
    given = open_data(file).sel(hour=list(HOURS))
    issued, observed = given["forecast"], given["observation"]
    if "member" not in issued.coords:
        issued = issued.assign_coords(member=np.arange(issued.sizes["member"]))
    yield by_share(name, issued, observed, "time", season=False)


def uwme() -> Iterator[Set]:
    """Temperature at two airports in two months."""
    given = open_data("uwme_multivariable_small.nc")
    pair = given["t2m_forecast"], given["t2m_observation"]
    yield by_share("Washington", *pair, "time", season=False)


SOURCES: dict[str, Callable[[], Iterator[Set]]] = {
    "toulouse": toulouse,
    "prices DE": lambda: prices("epf_de.nc", "Prices DE"),
    "prices PJM": lambda: prices("epf_pjm.nc", "Prices PJM"),
    "prices EPEX": lambda: prices("epex_de.nc", "Prices EPEX"),
    "uwme": uwme,
}
"""Sets by source"""


def with_short(one: Set) -> Iterator[Set]:
    """A set, and the same with short records."""
    yield one
    for n in SHORT:
        if n < one.hindcast.sizes[one.case_dim]:
            short = one.hindcast.isel({one.case_dim: slice(-n, None)})
            yield one._replace(name=f"{one.name}, {n} cases", hindcast=short)


def scores_of(one: Set, method: xrecal.methods.base.Method) -> xr.DataArray:
    """CRPS of the forecasts of a set."""
    options = {"dim": one.case_dim, "min_samples": FEWEST}
    model = one.hindcast.recal.fit(one.observations, method, **options)
    return variable_of(model.crps(one.forecast, one.observations))


def score_set(one: Set, source: str) -> Row:
    """The row of a set."""
    dim, row = one.case_dim, {"set": one.name, "source": source}
    row |= {"places": one.n_places, "cases": one.hindcast.sizes[dim]}
    for label, method in METHODS.items():
        pair = {name: scores_of(one, method(exchangeable=not name)) for name in ("", " named")}
        common = in_common(pair)
        alike, named = (common[name] for name in pair)
        mean = float(alike.mean(dtype=np.float64)), float(named.mean(dtype=np.float64))
        row |= {"scored": int(named.count()), label: mean[0], f"{label} named": mean[1]}
        row |= {
            f"{label} ratio": mean[1] / mean[0],
            f"{label} error": paired_error(named, alike, dim),
        }
    return row | {"commit": record.commit()}


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """The table, and whether short records lose anything."""
    rows, numbers = list(rows), COLUMNS[5:-1]
    yield f"{'CRPS':<24}{'places':>7}{'cases':>6}" + "".join(f"{n:>14}" for n in numbers)
    for row in rows:
        found = "".join(f"{float(row[name]):>14.4f}" for name in numbers)
        yield f"{row['set']:<24}{row['places']:>7}{row['cases']:>6}{found}"
    short = [row for row in rows if int(row["cases"]) in SHORT]
    worst = max((float(row[f"{label} ratio"]) for row in short for label in METHODS), default=1.0)
    held = "holds" if worst <= LOSS else "MISSED"
    yield f"budget {held}: named over exchangeable, short records, at most {worst:.4f} (<= {LOSS})"


def main(names: Iterable[str] = ()) -> None:
    """Run all sources, or some, and store each row once it is scored."""
    warnings.simplefilter("ignore")
    record.commit()  # of the code that is run, also where it changes meanwhile
    for source in list(names) or list(SOURCES):
        for whole in SOURCES[source]():
            for one in with_short(whole):
                row = score_set(one, source)
                record.store_set(RESULTS, COLUMNS, row, SOURCES)
                print("\n".join(lines([row])), flush=True)
    print("\n".join(lines(record.stored(RESULTS))))


if __name__ == "__main__":
    main(sys.argv[1:])
