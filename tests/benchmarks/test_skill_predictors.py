"""Skill with predictors: the forest that pools are compared with, rows, verdicts and ridges."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from benchmarks import record
from benchmarks.skill import parts, predictor_sets, predictors, ridges
from benchmarks.skill.sets import by_share
from tests.marks import requires_data

forest = pytest.importorskip("benchmarks.skill.forest", exc_type=ImportError)

N, PLACES = 90, 3


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setitem(forest.SETTINGS, "n_estimators", 15)


def given(**more):
    """Forecasts at three places, whose errors follow a predictor."""
    rng = np.random.default_rng(5)
    time = pd.date_range("2015-01-01", periods=N, freq="8D")
    mean, noise = rng.normal(size=(2, N, PLACES))
    known = rng.normal(size=(N, PLACES))
    coords = {"time": time, "station": ["a", "b", "c"], "slope": ("station", [0.1, 0.2, 0.3])}
    issued = xr.DataArray(mean[..., np.newaxis], coords, ("time", "station", "member"), name="t")
    observed = xr.DataArray(mean + known + 0.3 * noise, {"time": time}, ("time", "station"))
    observed = observed.assign_coords(station=coords["station"])
    covariates = {"x": observed.copy(data=known)}
    return by_share("Set", issued, observed, "time", season=True, covariates=covariates, **more)


def test_weights_are_mean_shares_of_leaves():
    train, new = np.array([[1, 4], [1, 5], [2, 5]]), np.array([[1, 5], [2, 4]])
    expected = np.zeros((2, 3))
    for i, j, tree in np.ndindex(2, 3, 2):
        same = train[:, tree] == new[i, tree]
        expected[i, j] += same[j] / same.sum() / 2
    np.testing.assert_allclose(forest.leaf_weights(train, new), expected)


def test_crps_of_weighted_errors():
    rng = np.random.default_rng(2)
    errors, y = np.sort(rng.normal(size=8)), rng.normal(size=4)
    weights = rng.dirichlet(np.ones(8), size=4)
    expected = [
        w @ np.abs(errors - one) - 0.5 * w @ np.abs(errors[:, np.newaxis] - errors) @ w
        for w, one in zip(weights, y, strict=True)
    ]
    np.testing.assert_allclose(forest.weighted_crps(errors, weights, y), expected)


def test_a_forest_learns_from_its_cases_alone():
    rng = np.random.default_rng(0)
    columns, learned = rng.normal(size=(N, 2)), np.arange(N) < 60
    observed, normal = columns[:, 0].copy(), np.tile([0.0, 1.0], (N, 1))
    found = forest.forest_crps(columns, normal, observed, learned)
    assert np.isnan(found[:60]).all()
    assert found[60:].mean() < 0.5
    changed = np.where(np.arange(N) == 80, 50.0, observed)
    np.testing.assert_array_equal(
        forest.forest_crps(columns, normal, changed, learned)[60:80], found[60:80]
    )
    doubled = forest.forest_crps(columns, 2 * normal, 2 * observed, learned)
    np.testing.assert_allclose(doubled, 2 * found)
    few = forest.forest_crps(columns, normal, observed, np.arange(N) < forest.FEWEST - 1)
    assert np.isnan(few).all()


@pytest.mark.parametrize("pool", [None, ("station",)])
def test_the_forest_of_a_set(pool):
    one = given(pool=pool)
    reference = predictors.fit(one, predictors.methods(one)[predictors.REFERENCE])
    found = predictors.scores_of_forest(one, reference)
    assert found.sizes == {"station": PLACES, "time": 36}
    whole = xr.concat([one.hindcast, one.forecast], "time")
    issued, slope = reference.apply(whole), np.repeat(whole["slope"].values, N)
    angle = 2 * np.pi * whole["time"].dt.dayofyear.values / 365.25
    normal = np.stack([issued[f"t_{part}"].T.values for part in ("loc", "scale")], -1)
    columns = np.stack([
        whole[..., 0].T.values, np.zeros((PLACES, N)), one.covariates["x"].T.values,
        *(np.broadcast_to(f(angle), (PLACES, N)) for f in (np.sin, np.cos)),
    ], -1)  # fmt: skip
    observed, learned = one.observations.T.values, np.arange(N) < 54
    if pool is None:
        expected = [
            forest.forest_crps(x, m, y, learned)
            for x, m, y in zip(columns, normal, observed, strict=True)
        ]
    else:
        columns = np.column_stack([columns.reshape(-1, 5), slope])
        every = normal.reshape(-1, 2), observed.ravel(), np.tile(learned, PLACES)
        expected = forest.forest_crps(columns, *every).reshape(PLACES, N)
    np.testing.assert_allclose(found, np.array(expected)[:, 54:], rtol=1e-6)


def test_a_row_has_the_ratios_of_its_scores(monkeypatch):
    one = given()
    fits = predictors.methods(one)
    stand_in = {
        predictors.WITHOUT: predictors.Fit(xrecal.EMOS()),
        predictors.WITH: fits["EMOS with all"],
        "CKME with all": fits["EMOS with all"],
    }
    monkeypatch.setattr(predictors, "methods", lambda one: {**fits, **stand_in})
    row = predictors.score_set(one, "somewhere")
    assert (row["cases"], row["scored"], row["places"], row["predictors"]) == (54, 108, 3, 1)
    model = one.hindcast.recal.fit(
        one.observations, xrecal.EMOS(condition_on=("season", "x")), covariates=one.covariates
    )
    crps = model.crps(one.forecast, one.observations, covariates=one.covariates)
    assert row[predictors.WITH] == pytest.approx(float(crps.mean()))
    assert row["best"] == "EMOS with all"
    assert (row["with / best"], row["best error"]) == (1.0, 0.0)
    assert row["with / reference"] == row[predictors.WITH] / row[predictors.REFERENCE] < 0.6


def row(source, name, best, error=0.001, reference=0.9):
    empty = dict.fromkeys(predictors.COLUMNS, 1.0)
    ratios = {"with / best": best, "best error": error, "with / reference": reference}
    return {**empty, "source": source, "set": name, "places": 1, **ratios}


def test_verdicts():
    rows = [row("dillingen", "Dillingen", 0.98), row("seoul", "Seoul, one fit", 1.02, 0.03)]
    last = row("network", "Network", 0.97, reference=0.96)
    middle, worst, dillingen, seoul = list(predictors.verdicts([*rows, last]))[3:]
    assert middle.startswith("budget holds: over the best, median of sources 0.9800")
    assert worst.startswith("budget holds: over the best at most 1.0200 (Seoul, one fit)")
    assert (dillingen[:13], seoul[:13]) == ("budget MISSED", "budget holds:")
    *_, worst, _, _ = predictors.verdicts([*rows, {**last, "with / best": 1.011}])
    assert worst.startswith("budget MISSED")
    assert worst.endswith("error: Network")


def test_the_stored_table_has_all_sources():
    assert {one["source"] for one in record.stored(predictors.RESULTS)} == set(
        predictor_sets.SOURCES
    )


@requires_data("epf_de.nc")
def test_prices_are_those_of_the_day_before():
    (one,) = predictor_sets.prices("epf_de.nc", "Prices")
    before, day = one.observations["time"].values[[10, 11]]
    known = one.covariates["hour_8"].sel(time=day)
    assert known == one.observations.sel(time=before, hour=8)
    assert np.isnan(one.covariates["hour_8"][0])


@requires_data("uwme_t2m_network.nc")
def test_the_last_error_of_the_network_is_known_at_the_start():
    one = next(predictor_sets.network())
    whole = xr.concat([one.hindcast, one.forecast], "time").isel(member=0)
    error = (one.observations - whole).reset_coords(drop=True)
    dates = whole["time"].values
    for at in (40, 90):
        last = dates[dates <= dates[at] - predictor_sets.LEAD][-1]
        expected = error.sel(time=last, drop=True)
        found = one.covariates["last_error"].sel(time=dates[at], drop=True)
        np.testing.assert_array_equal(found, expected)


def test_rules_of_the_ridge_are_judged_by_sources_left_out(monkeypatch):
    rules = {"as it is": {}, "none at all": {"RIDGES": (np.inf,)}}
    monkeypatch.setattr(ridges, "CANDIDATES", rules)
    found = ridges.score_set(given(), "a")
    assert found["none at all"] == pytest.approx(1.0, abs=1e-3)
    assert found["as it is"] < 0.6
    rows = [found, {"set": "b", "source": "b", "as it is": 1.0, "none at all": 0.9}]
    lines = list(ridges.report(rows))
    assert lines[0].split()[-3:] == ["a", "b", "together"]
    assert [float(one) for one in lines[-2].split()[-3:-1]] == pytest.approx([1.0, 1.0], abs=1e-3)


def test_each_part_is_left_out_of_the_pool():
    usual = xrecal.LinearPool(condition_on=("season", *"abcde")).with_forest(200)
    left = {name: part(usual) for name, part in parts.PARTS.items()}
    labels = {name: {c.label for c in pool.components} for name, pool in left.items()}
    own = labels.pop(parts.PRESENT)
    gone = {name: own - found for name, found in labels.items()}
    assert {label.split("_")[0] for label in gone["without the forest"]} == {"forest"}
    assert {label.split("_")[0] for label in gone["without IDR"]} == {"idr"}
    assert len(gone["without the joint kernel"]) == 5
    for name, support in (
        ("without the centre with predictors", "standardised_plain"),
        ("without the centre without", "standardised"),
    ):
        found = {c.support for c in left[name].components if parts.is_given(c.method)}
        assert found == {support}


def test_parts_are_judged_by_sources_left_out():
    ratios = dict.fromkeys(parts.PARTS, 1.0)
    rows = [
        {"set": name, "source": name, **ratios, "without IDR": ratio, "forest": "True"}
        for name, ratio in (("a", 0.9), ("b", 1.1), ("c", 0.95))
    ]
    *_, last = parts.lines(rows)
    assert last.split()[-4:] == ["1.0000", "1.1000", "0.9500", "1.0148"]
