"""Calibration of real forecasts before and after recalibration: python -m benchmarks.evidence.

Ensemble hindcasts of the skill benchmark, recalibrated by a CKME that is fitted without the year or
block it predicts; and a perfect-model ensemble, where one member is the truth.
"""

import warnings

import numpy as np

import xrecal
from benchmarks.record import FOLDER, one_process_a_core, store
from benchmarks.skill.sources import single_sets
from examples.real_data import open_data

RESULTS = FOLDER / "evidence.csv"
LEVELS = (np.arange(200) + 0.5) / 200
TESTED = (
    "innsbruck", "frankfurt", "toulouse", "glofas", "mjo", "decadal", "iberia", "mediterranean"
)  # fmt: skip
"""Sources of hindcasts that are long enough, of ensembles."""

COLUMNS = ("crps", "50 %", "90 %", "PIT p", "SKCE p", "PIT p, serial", "SKCE p, serial")


def evidence(forecast, observations, dim):
    """Score, coverage and p-values; over several locations the medians."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "successive cases depend on each other")  # so it says
        found = forecast.recal.summary(observations, dim, test="bootstrap")
    serial = forecast.recal.summary(observations, dim)
    numbers = {
        "crps": found["crps"],
        "50 %": found["coverage"].sel(level=0.5),
        "90 %": found["coverage"].sel(level=0.9),
        "PIT p": found["pit_p_value"],
        "SKCE p": found["skce_p_value"],
        "PIT p, serial": serial["pit_p_value"],
        "SKCE p, serial": serial["skce_p_value"],
    }
    return {name: float(value.median()) for name, value in numbers.items()}


def recalibrated(one, dim):
    """Quantiles of the hindcast, each case predicted by a fit that has not seen it."""
    method = xrecal.CKME(support="auto", condition_on="season" if one.season else None)
    by_year = one.season or one.pool is not None
    years = np.unique(one.hindcast[dim].dt.year).size if by_year else 0
    return one.hindcast.recal.cross_validate(
        one.observations,
        method,
        dim=dim,
        by="year" if years >= 5 else "block",
        output="quantile",
        q=LEVELS,
        pool=one.pool,
    )


def run_source(source, quick=False):
    """Rows of the sets of one source; quick: of the first, on a part of its cases."""
    warnings.filterwarnings("ignore", "season learned from")  # ten months at Toulouse
    rows = []
    for one in single_sets(source):
        dim = next(d for d in one.hindcast.dims if d in ("time", "init"))
        if quick:
            one = one._replace(hindcast=one.hindcast.isel({dim: slice(0, None, 8)}))
        predicted = recalibrated(one, dim)
        # The same cases before and after: those that were predicted.
        known = one.observations.where(predicted.isel(quantile=0, drop=True).notnull())
        for name, forecast in (("raw", one.hindcast), ("CKME", predicted)):
            cases = int(known.count(dim).median())
            row = {"set": one.name, "cases": cases, "forecast": name}
            rows.append(row | evidence(forecast, known, dim))
        if quick:
            break
    return rows


def perfect_model():
    """One member of an ensemble as the truth of the others, as they are and with half the spread.

    Exchangeable, so calibrated with the observation pooled into its ensemble: at each lead alone,
    and with the cases of all leads together, of which those of one start depend on each other.
    """
    members = open_data("mpi_perfect_model.nc")["forecast_tos"]
    truth, rest = members.isel(member=0, drop=True), members.isel(member=slice(1, None))
    mean = rest.mean("member")
    half = (mean + (rest - mean) / 2).transpose(*rest.dims)
    alone = rest.recal.skce_test(truth, "init", test="montecarlo", augmented=True)["p_value"]
    smallest = float(xrecal.diagnostics.adjusted_p_values(alone).min())
    print(
        f"perfect model at each of {alone.size} leads, areas and seasons: p < 0.05 in "
        f"{float((alone < 0.05).mean()):.1%}; smallest p after control of false discoveries "
        f"{smallest:.2f}"
    )
    options = {"test": "wild", "augmented": True, "block_length": members.sizes["lead"]}
    whole, narrow = (
        forecast.recal.skce_test(truth, ["init", "lead"], **options)["p_value"]
        for forecast in (rest, half)
    )
    for name, p in (("as it is", whole), ("with half the spread", narrow)):
        print(
            f"perfect model {name}, all leads together: p from {float(p.min()):.3f} to "
            f"{float(p.max()):.3f} over areas and seasons"
        )
    holds = smallest > 0.05 and float(whole.min()) > 0.05 and float(narrow.max()) < 0.05
    return (
        f"budget {'holds' if holds else 'MISSED'}: the perfect model is accepted at each lead and "
        "with all together, and rejected with half the spread"
    )


def main(quick=False):
    """Print the table, and store it."""
    if quick:
        rows = run_source("innsbruck", quick=True)
    else:
        with one_process_a_core() as pool:
            rows = [row for found in pool.map(run_source, TESTED) for row in found]
    width = max(len(row["set"]) for row in rows)
    print(f"{'':<{width}}{'cases':>6}  {'':<6}" + "".join(f"{name:>16}" for name in COLUMNS))
    for row in rows:
        first = f"{row['set']:<{width}}{row['cases']:>6}" if row["forecast"] == "raw" else ""
        cells = "".join(f"{row[name]:>16.4g}" for name in COLUMNS)
        print(f"{first:<{width + 6}}  {row['forecast']:<6}{cells}")
    if not quick:
        columns = ["set", "cases", "forecast", *COLUMNS]
        store(RESULTS, columns, ([row[name] for name in columns] for row in rows))
    rejected = {
        name: [sum(row[p] < 0.05 for row in rows if row["forecast"] == name) for p in COLUMNS[3:]]
        for name in ("raw", "CKME")
    }
    for name, counts in rejected.items():
        told = ", ".join(
            f"{p.removesuffix(' p')} {n}" for p, n in zip(COLUMNS[3:], counts, strict=True)
        )
        print(f"{name}: of {len(rows) // 2} sets rejected at 5%: {told}")
    print(perfect_model())


if __name__ == "__main__":
    main()
