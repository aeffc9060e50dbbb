"""The table of skill by source: how sets are scored, and how sources are counted."""

import csv

import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.skill import run, scoring, table
from benchmarks.skill.few_cases import left_out
from benchmarks.skill.sets import Set, by_share
from benchmarks.skill.sources import SOURCES
from tests.marks import requires_data

N = 60
QUICK = {"climatology": xrecal.Climatology(), "EMOS": xrecal.EMOS(), "IDR": xrecal.IDR()}
Q = (0.1, 0.5, 0.9)


def rain(n=N, members=8):
    """Forecasts and observations (time, place), half of them dry, and so at the bound."""
    rng = np.random.default_rng(3)
    signal = rng.normal(size=(n, 1, 2))
    values = np.maximum(signal + 0.5 * rng.normal(size=(n, members + 1, 2)), 0)
    days = {"time": np.datetime64("2001-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")}
    whole = xr.DataArray(values, days, ("time", "member", "place"))
    return whole.isel(member=slice(1, None)), whole.isel(member=0)


@pytest.fixture
def quick(monkeypatch):
    """The methods of the table by quick ones, which is all that scoring knows of them."""
    stand_in = QUICK | {"CKME": xrecal.EMOS(), "LinearPool": xrecal.IDR()}
    monkeypatch.setattr(scoring, "methods", lambda given: stand_in)


def test_a_row_of_a_set_that_is_split_in_time(quick):
    one = by_share("Rain", *rain(), "time", season=False)
    row = scoring.score_set(one, "somewhere")
    assert (row["set"], row["source"], row["cases"], row["scored"]) == ("Rain", "somewhere", 36, 48)
    model = one.hindcast.recal.fit(one.observations, xrecal.EMOS())
    exact = float(model.crps(one.forecast, one.observations, ["time", "place"]))
    assert row["EMOS"] == row["CKME"] == pytest.approx(exact, rel=1e-3)
    best = min(row[name] for name in scoring.BASELINES if name in row)
    assert row["LinearPool/best"] == row["IDR"] / best
    other = one.hindcast.recal.fit(one.observations, xrecal.IDR())
    brier = [
        float(m.brier_score(one.forecast, one.observations, 0.0, ["time", "place"]))
        for m in (model, other)
    ]
    assert row["CKME Brier of bound"] == 1.0  # of EMOS, which is the reference
    assert row["LinearPool Brier of bound"] == pytest.approx(brier[1] / brier[0], rel=0.01)
    assert np.isnan(row["LinearPool WIS"])
    assert row["fit s"] > 0
    for name in scoring.JUDGED:
        assert 0 <= row[f"{name} PIT p"] <= 1
        assert 0 <= row[f"{name} SKCE p"] <= 1


def test_quantiles_are_scored_by_wis_on_their_own_scale(quick):
    given, observed = rain()
    issued = given.quantile(Q, "member").transpose("time", "quantile", "place")
    parts = issued.isel(time=slice(40)), issued.isel(time=slice(40, None))
    one = Set("Flu", *parts, observed, False, levels=Q, scale="log(1 + x)")
    row = scoring.score_set(one, "flu")
    issues = {"raw": one.forecast}
    for name, method in QUICK.items():
        issues[name] = one.hindcast.recal.fit(observed, method).quantile(one.forecast, Q)
    scores = {
        name: float(np.expm1(each).recal.wis(np.expm1(observed)).mean())
        for name, each in issues.items()
    }
    assert row["LinearPool WIS"] == pytest.approx(scores["IDR"] / min(scores.values()))


def test_years_that_are_left_out_are_cross_validated():
    one = left_out("Few", *rain(n=14), guard=True)
    found = scoring.predict(one, xrecal.EMOS(), Q)
    last = one.hindcast.isel(time=slice(-1)).recal.fit(
        one.observations, xrecal.EMOS(), min_samples=9
    )
    expected = last.quantile(one.hindcast.isel(time=[-1]), Q)
    np.testing.assert_allclose(found.quantiles.isel(time=[-1]).transpose(*expected.dims), expected)
    assert np.isnan(found.seconds)
    pool = xrecal.LinearPool(methods=(xrecal.EMOS(), xrecal.Climatology()))
    found = scoring.predict(one, pool, Q)
    assert found.seconds > 0
    shares = [float(part.partition(":")[2]) for part in found.weights.split()]
    assert sum(shares) == pytest.approx(1, abs=0.02)


def test_calibration_takes_few_cases_in_shorter_blocks():
    forecast, observed = rain(n=25)
    quantiles = forecast.quantile(scoring.LEVELS, "member")
    found = scoring.calibration(quantiles, observed, "time")
    expected = quantiles.recal.skce_test(observed, "time", test="wild", block_length=2)
    assert found[1] == float(expected["p_value"].median())
    assert found[0] == float(quantiles.recal.pit_test(observed, "time")["p_value"].median())


def test_only_cases_of_all_methods_count():
    values = {"raw": [1.0, 2.0, np.nan], "EMOS": [3.0, np.nan, 1.0]}
    scores = {name: xr.DataArray(each, dims="time") for name, each in values.items()}
    assert scoring.means(scores) == ({"raw": 1.0, "EMOS": 3.0}, 1)


# the table ---------------------------------------------------------------------------------------


def row(source, name, pool, ckme=1.0, cases=500):
    empty = dict.fromkeys(table.COLUMNS, np.nan)
    told = {"set": name, "source": source, "cases": cases, "scored": 10, "weights": "idr:1.00"}
    return empty | told | {"LinearPool/best": pool, "CKME/best": ckme}


ROWS = [row("a", f"a{k}", r) for k, r in enumerate((0.9, 0.91, 0.95, 0.92))]
ROWS += [row("b", "b0", 1.0, 1.2), row("c", "c0", 1.05, cases=30), row("c", "c1", 1.03, cases=30)]


def test_each_source_counts_once():
    assert table.median_of_sources(ROWS, "LinearPool/best") == 1.0


def test_the_stored_tables_are_of_the_same_sets():
    tables = []
    for path in (table.RESULTS, table.BEFORE):
        with path.open() as file:
            tables.append(list(csv.DictReader(file)))
    sets = [{(one["source"], one["set"]) for one in rows} for rows in tables]
    assert sets[0] == sets[1]
    assert {source for source, _ in sets[0]} == set(SOURCES)
    assert len({one["commit"] for one in tables[1]}) == 1


@requires_data("toulouse_tigge_t2m.nc")
def test_one_source(quick):
    (found,) = run.run_source("toulouse", quick=True)
    assert found["set"] == "Toulouse temperature 1"
    assert (found["cases"], found["scored"]) == (55, 50)
