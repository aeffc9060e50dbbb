"""All that is known at the start: pools with predictors against what else one could take.

``python -m benchmarks.skill.predictors [SOURCE or SET ...]``; a part of ``make skill``. Each set is
stored once it is scored, so sets that were stopped can be run by name.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from benchmarks import record

from .forest import forest_crps
from .predictor_sets import SOURCES
from .scoring import in_common, paired_error, variable_of
from .sets import Set
from .table import MEASURES, ratios_of_sources

RESULTS = record.FOLDER / "skill_predictors.csv"
REFERENCE, WITHOUT, WITH = "EMOS + season", "pool without", "pool with"
OTHERS = (REFERENCE, "EMOS with all", WITHOUT, "forest")
"""What one could take instead of the pool with predictors; the best is that on the scored cases."""
LABELS = (*OTHERS, "CKME with all", WITH)
COLUMNS = (
    "set", "source", "places", "predictors", "cases", "scored", *LABELS,
    "with / reference", "reference error", "best", "with / best", "best error", "commit",
)  # fmt: skip

MEDIAN, WORST = 0.985, 1.01
"""Of the pool over the best of the others: of the sources, and of any set unless within a standard
error."""
OVER_REFERENCE = {"Dillingen": 0.87, "Innsbruck": 0.86, "Seoul, one": 0.95, "Network, one": 0.95}
"""Of sets by the start of their name, over EMOS with season of each place"""

Row = dict[str, str | float]


class Fit(NamedTuple):
    """A method, with the options of its fit."""

    method: xrecal.methods.base.Method
    informed: bool = False
    """Whether it is given the predictors"""
    pooled: bool = True
    """Whether places are pooled, where they are in the set"""


def methods(one: Set) -> Mapping[str, Fit]:
    """The methods that xrecal fits, by label."""
    given, season = one.condition_on, ("season",) * one.season or None
    return {
        REFERENCE: Fit(xrecal.EMOS(condition_on=season), pooled=False),
        "EMOS with all": Fit(xrecal.EMOS(condition_on=given), True, pooled=False),
        WITHOUT: Fit(xrecal.LinearPool()),
        "CKME with all": Fit(xrecal.CKME(condition_on=given), True),
        WITH: Fit(xrecal.LinearPool(condition_on=given), True),
    }


def fit(one: Set, given: Fit) -> xrecal.Recalibrator:
    """The model of a method on the hindcast of a set."""
    options = {"covariates": one.covariates} if given.informed else {}
    if one.pool is not None and given.pooled:
        options |= {"pool": one.pool}
        options |= {"features": one.features} if one.features else {}
    return one.hindcast.recal.fit(one.observations, given.method, dim=one.case_dim, **options)


def scores_of(one: Set, given: Fit) -> xr.DataArray:
    """CRPS of the forecasts of a set."""
    model = fit(one, given)
    known = {"covariates": one.covariates} if given.informed else {}
    return variable_of(model.crps(one.forecast, one.observations, **known))


def scores_of_forest(one: Set, reference: xrecal.Recalibrator) -> xr.DataArray:
    """CRPS of the forecasts of a set by a forest on the errors of EMOS at each place.

    Where places are pooled there is one forest, with their coordinates among the predictors.
    """
    dim = one.case_dim
    parts = one.hindcast, one.forecast
    own = [moments(part) for part in parts]
    normal = [moments(reference.apply(part)) for part in parts]
    mean, std, loc, scale = (
        xr.concat(each, dim) for pairs in (own, normal) for each in zip(*pairs, strict=True)
    )
    like = mean.transpose(..., dim)
    columns = [mean, std, *(one.covariates or {}).values()]
    if one.season:
        angle = 2 * np.pi * mean[dim].dt.dayofyear / 365.25
        columns += [np.sin(angle), np.cos(angle)]
    if one.pool is not None:
        columns += [c for c in mean.coords.values() if c.dims == one.pool and c.dtype.kind == "f"]
    learned = mean[dim].isin(one.hindcast[dim])

    def table(columns: Iterable[xr.DataArray]) -> np.ndarray:
        """Columns (forests, n, k) of the cases of each forest."""
        each = (c.sel({dim: mean[dim]}) if dim in c.dims else c for c in columns)
        values = [c.broadcast_like(like).transpose(*like.dims).values for c in each]
        n_cases = mean.sizes[dim] if one.pool is None else mean.size
        return np.stack(values, axis=-1).reshape(-1, n_cases, len(values))

    given = table(columns), table([loc, scale]), table([one.observations]), table([learned])
    crps = [forest_crps(x, m, y[:, 0], known[:, 0]) for x, m, y, known in zip(*given, strict=True)]
    found = like.copy(data=np.reshape(crps, like.shape))
    return found.sel({dim: one.forecast[dim]})


def moments(forecast: xr.DataArray | xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean and standard deviation of members, or of normal distributions."""
    if isinstance(forecast, xr.DataArray):
        return forecast.mean("member"), forecast.std("member")
    parts = {str(name).rpartition("_")[2]: part for name, part in forecast.items()}
    return parts["loc"], parts["scale"]


def run_set(source: str, name: str) -> Row:
    """The row of a set, by its name."""
    warnings.simplefilter("ignore")
    return score_set(next(one for one in SOURCES[source]() if one.name == name), source)


def score_set(one: Set, source: str) -> Row:
    """The row of a set."""
    dim = one.case_dim
    scores = {label: scores_of(one, given) for label, given in methods(one).items()}
    scores["forest"] = scores_of_forest(one, fit(one, methods(one)[REFERENCE]))
    common = in_common(scores)
    mean = {label: float(score.mean(dtype=np.float64)) for label, score in common.items()}
    best = min(OTHERS, key=lambda label: mean[label])
    known = common[WITH].notnull()
    return {
        "set": one.name,
        "source": source,
        "places": int(known.any(dim).sum()),
        "predictors": len(one.covariates or ()),
        "cases": one.hindcast.sizes[dim],
        "scored": int(known.sum()),
        **mean,
        "with / reference": mean[WITH] / mean[REFERENCE],
        "reference error": paired_error(common[WITH], common[REFERENCE], dim),
        "best": best,
        "with / best": mean[WITH] / mean[best],
        "best error": paired_error(common[WITH], common[best], dim),
        "commit": record.commit(),
    }


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """The table."""
    ratios = ("with / reference", "reference error", "with / best", "best error")
    yield f"{'CRPS':<24}{'places':>7}{'cases':>6}" + "".join(
        f"{name:>17}" for name in (*LABELS, *ratios)
    )
    for row in rows:
        numbers = "".join(f"{float(row[name]):>17.4f}" for name in (*LABELS, *ratios))
        yield f"{row['set']:<24}{row['places']:>7}{row['cases']:>6}{numbers}"


def verdicts(rows: Iterable[Row]) -> Iterator[str]:
    """Lines that say whether predictors gain as much as they are to."""
    rows = list(rows)
    ratios = ratios_of_sources(rows, "with / best")
    for source, ratio in ratios.items():
        yield f"{source:<24}{ratio:.4f} of the best of the others"
    middle = MEASURES["median"](ratios.values())
    worst = max(rows, key=lambda row: float(row["with / best"]))
    above = [str(row["set"]) for row in rows if _is_above(row)]
    yield f"{_held(middle <= MEDIAN)}: over the best, median of sources {middle:.4f} (<= {MEDIAN})"
    yield (
        f"{_held(not above)}: over the best at most {float(worst['with / best']):.4f} "
        f"({worst['set']}), above {WORST} by more than a standard error: "
        f"{', '.join(above) or 'nowhere'}"
    )
    for name, limit in OVER_REFERENCE.items():
        for row in rows:
            if str(row["set"]).startswith(name):
                ratio = float(row["with / reference"])
                yield f"{_held(ratio <= limit)}: {row['set']} over EMOS {ratio:.4f} (<= {limit})"


def _is_above(row: Row) -> bool:
    ratio = float(row["with / best"])
    return ratio > WORST and ratio - 1 > float(row["best error"])


def _held(holds: bool) -> str:
    return f"budget {'holds' if holds else 'MISSED'}"


def main(names: Iterable[str] = ()) -> None:
    """Run all sources, or some sources and sets, and store each row once the set is scored."""
    record.commit()  # of the code that is run, also where it changes meanwhile
    chosen = list(names) or list(SOURCES)
    every = ((one, source) for source, sets in SOURCES.items() for one in sets())
    wanted = [(source, one.name) for one, source in every if {source, one.name} & {*chosen}]
    with record.one_process_a_core() as workers:
        for row in workers.map(run_set, *zip(*wanted, strict=True)):
            record.store_set(RESULTS, COLUMNS, row, SOURCES)
            print("\n".join(lines([row])), flush=True)
    rows = record.stored(RESULTS)
    print("\n".join((*lines(rows), *verdicts(rows))))


if __name__ == "__main__":
    main(sys.argv[1:])
