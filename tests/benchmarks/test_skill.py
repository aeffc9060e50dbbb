"""The table of skill by source: how sets are scored, and how sources are counted."""

import csv

import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.skill import run, scoring, table
from benchmarks.skill.few_cases import left_out
from benchmarks.skill.sets import Set, alone, by_share
from benchmarks.skill.sources import SOURCES
from tests.marks import requires_data
from xrecal.arrays import standard_error

N = 60
QUICK = {"climatology": xrecal.Climatology(), "EMOS": xrecal.EMOS(), "IDR": xrecal.IDR()}
POOLS = {"CKME": xrecal.CKME(), "LinearPool": xrecal.LinearPool((xrecal.EMOS(), xrecal.Raw()))}
EACH_OF_CKME = ("CKME", "CKME each")
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
    (row,) = scoring.score_set(one, "somewhere")
    assert (row["set"], row["source"], row["places"]) == ("Rain", "somewhere", 2)
    assert (row["cases"], row["scored"]) == (36, 48)
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


def test_each_place_of_a_call_has_a_row_of_its_own(quick):
    given, observed = (part.assign_coords(place=["dry", "wet"]) for part in rain())
    given[45:50, :, 1] = np.nan  # dates that one place lacks
    positions = {f"Rain, {place}": {"place": place} for place in ("dry", "wet")}
    one = by_share("Rain", given, observed, "time", season=False, positions=positions)
    assert one.n_places == 2
    rows = scoring.score_set(one, "somewhere")
    assert [(row["set"], row["cases"], row["scored"]) for row in rows] == [
        ("Rain, dry", 36, 24), ("Rain, wet", 36, 19)
    ]  # fmt: skip
    for row, own in zip(rows, alone(one), strict=True):
        (single,) = scoring.score_set(own, "somewhere")
        assert own.name == row["set"]
        same = ("raw", "EMOS", "LinearPool", "LinearPool/best", "LinearPool/EMOS", "LinearPool WIS")
        assert [row[name] for name in same] == pytest.approx(
            [single[name] for name in same], nan_ok=True
        )
        assert (row["places"], single["places"]) == (2, 1)


def test_places_that_choose_for_themselves_are_compared_by_dates(monkeypatch):
    monkeypatch.setattr(scoring, "methods", lambda given: QUICK | POOLS)
    one = by_share("Rain", *rain(), "time", season=False)
    found = scoring.predict_all(one, Q)
    fitted = one.hindcast.recal.fit(one.observations, POOLS["CKME"], choose="each")
    expected = fitted.quantile(one.forecast, Q)
    np.testing.assert_array_equal(found["CKME each"].quantiles.transpose(*expected.dims), expected)
    (row,) = scoring.score_set(one, "somewhere")
    assert row["CKME/each"] == row["CKME"] / row["CKME each"] != 1
    scores = {name: found[name].quantiles.recal.crps(one.observations) for name in EACH_OF_CKME}
    apart = (scores["CKME"] - scores["CKME each"]).mean("place")
    error = scoring.paired_error(scores["CKME"], scores["CKME each"], "time")
    assert error == pytest.approx(
        float(standard_error(apart.values)) / float(scores["CKME each"].mean())
    )
    alone_there = one._replace(
        hindcast=one.hindcast[..., 0], forecast=one.forecast[..., 0],
        observations=one.observations[..., 0],
    )  # fmt: skip
    found = scoring.predict_all(alone_there, Q)
    assert found["CKME each"] is found["CKME"]


def test_quantiles_are_scored_by_wis_on_their_own_scale(quick):
    given, observed = rain()
    issued = given.quantile(Q, "member").transpose("time", "quantile", "place")
    parts = issued.isel(time=slice(40)), issued.isel(time=slice(40, None))
    one = Set("Flu", *parts, observed, False, levels=Q, scale="log(1 + x)")
    (row,) = scoring.score_set(one, "flu")
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
    shares = [float(part.partition(":")[2]) for part in scoring.in_words(found.weights).split()]
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


def row(source, name, pool, each=1.0, error=0.0, places=4):
    empty = dict.fromkeys(table.COLUMNS, np.nan)
    given = {"set": name, "source": source, "places": places, "cases": 500, "scored": 10}
    ratios = {"LinearPool/best": pool, "LinearPool/EMOS": pool, "CKME/best": pool, "CKME/each": 1.0}
    return empty | given | ratios | {"LinearPool/each": each, "LinearPool/each error": error}


ROWS = [row("a", f"a{k}", r, e) for k, (r, e) in enumerate(((0.9, 1.003), (0.81, 0.98)))]
ROWS += [row("b", "b0", 1.0, 1.01, 0.02), row("c", "c0", 1.03, places=1)]


def test_each_source_counts_once_with_the_geometric_mean_of_its_sets():
    found = table.ratios_of_sources(ROWS, "LinearPool/best")
    assert found == pytest.approx({"a": 0.9 * 0.9**0.5, "b": 1.0, "c": 1.03})
    assert list(table.ratios_of_sources(ROWS, "LinearPool/each")) == ["a", "b"]
    lines = list(table.by_source(ROWS))
    middle = (0.9 * 0.9**0.5 * 1.03) ** (1 / 3)
    assert lines[-3].split()[:4] == ["geometric", "mean", "4", f"{middle:.4f}"]
    assert lines[-2].split()[:3] == ["median", "4", "1.0000"]
    assert lines[-1].split()[:3] == ["worst", "4", "1.0300"]
    (own,) = (line for line in lines if line.startswith("c "))
    assert own.split() == ["c", "1", "1.0300", "1.0300", "-", "1.0300", "-"]


def test_a_verdict_of_each_bound():
    lines = list(table.verdicts(ROWS))
    assert [line.split(":")[0].split()[1] for line in lines] == [
        "holds", "MISSED", "MISSED", "MISSED", "MISSED", "holds"
    ]  # fmt: skip
    assert lines[-1].endswith("(b0), above 1.004 by more than a standard error: nowhere")
    *_, last = table.verdicts([*ROWS, row("d", "d0", 1.0, 1.01, 0.004)])
    assert last.startswith("budget MISSED")
    assert last.endswith("error: d0")


def test_all_rows_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "RESULTS", tmp_path / "skill.csv")
    table.store(ROWS)
    with table.RESULTS.open() as file:
        stored = list(csv.DictReader(file))
    assert [one["set"] for one in stored] == ["a0", "a1", "b0", "c0"]
    assert (stored[2]["LinearPool/each error"], stored[2]["raw"]) == ("0.02", "")
    assert next(table.by_set(ROWS)).split()[:4] == ["CRPS", "places", "train", "test"]
    assert len(list(table.by_set(ROWS))) == 5


def test_the_stored_table_has_all_sources():
    with table.RESULTS.open() as file:
        assert {one["source"] for one in csv.DictReader(file)} == set(SOURCES)


@requires_data("toulouse_tigge_t2m.nc")
def test_one_source(quick):
    found = run.run_source("toulouse", quick=True)
    assert [one["set"] for one in found] == [f"Toulouse temperature {n}" for n in range(1, 6)]
    assert {(one["cases"], one["scored"], one["places"]) for one in found} == {(55, 50, 5)}
