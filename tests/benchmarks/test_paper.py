"""The harness of the paper's experiments: sets, splits, forms of forecasts, rows that stay."""

import gzip

import numpy as np
import pytest

import xrecal
from benchmarks.paper import data, manifest, ridges, tables
from benchmarks.paper.data import Part, Split
from benchmarks.paper.experiments import scores
from benchmarks.paper.forecasts import Forecasted, Forecasts, labelled, observed
from benchmarks.paper.models import find_model
from benchmarks.paper.recalibration import METHODS, recalibrate
from benchmarks.record import commit
from benchmarks.speed import dense
from xrecal.arrays import crps, normal_crps


def write_set(folder, name="bostonHousing", n=50, splits=3):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(n, 4))
    orders = np.stack([rng.permutation(n) for _ in range(splits)])
    np.savez(
        folder / f"{name}.npz", data=table, index_features=np.array([0, 2, 3]),
        index_target=np.array(1), index_train=orders[:, : n - 5], index_test=orders[:, n - 5 :],
    )  # fmt: skip
    return table, orders


@pytest.fixture
def small(monkeypatch):
    """The synthetic set with few rows."""
    whole = data.load_split("sinus", 0)
    few = Split(*(Part(p.x[:n], p.y[:n]) for p, n in zip(whole, (10, 60, 40), strict=True)))
    monkeypatch.setattr(scores, "load_split", lambda name, number: few)
    return few


def test_split_of_a_file(tmp_path):
    table, orders = write_set(tmp_path)
    split = data.load_split("housing", 1, tmp_path)
    rows = orders[1]
    np.testing.assert_array_equal(split.train.x, table[rows[:36]][:, [0, 2, 3]])
    np.testing.assert_array_equal(split.calibration.y, table[rows[36:45], 1])
    np.testing.assert_array_equal(split.test.y, table[rows[45:], 1])
    np.testing.assert_array_equal(split.both.y, table[rows[:45], 1])
    assert data.n_splits("housing", tmp_path) == 3


def test_bike(tmp_path):
    names = ["instant", "dteday", "season", "temp", "casual", "registered", "cnt"]
    with gzip.open(tmp_path / data.BIKE, "wt") as file:
        file.write(",".join(names) + "\n")
        for i in range(40):
            file.write(f"{i},2011-01-01,{i % 4},{i / 10},1,{i - 1},{i}\n")
    table = data.load_table("bike", tmp_path)
    np.testing.assert_array_equal(table.targets, np.arange(40))
    np.testing.assert_array_equal(table.features[:, 0], np.arange(40) % 4)
    assert table.features.shape == (40, 2)  # neither the target nor its parts
    assert table.test.shape == (20, 4)
    every = np.sort(np.concatenate([table.train, table.test], axis=1))
    np.testing.assert_array_equal(every, np.tile(np.arange(40), (20, 1)))


def test_sinus_has_two_modes():
    table = data.load_table("sinus")
    x, apart = table.features[:, 0], np.abs(table.targets - table.features[:, 0])
    far = np.abs(x) > 0.3
    assert np.abs(apart - np.abs(np.sin(3 * x)))[far].mean() < 0.09
    printed = data.load_table("sinus_printed")
    variance = np.mean((printed.targets - printed.features[:, 0]) ** 2)
    assert variance == pytest.approx(0.01 + np.mean(np.sin(0.15 * x) ** 2), rel=0.05)


@pytest.mark.parametrize("k", [1, 3])
def test_normal_forecasts(rng, k):
    loc, scale, weights = (
        rng.normal(size=(9, k)),
        rng.uniform(1, 2, (9, k)),
        rng.dirichlet(np.ones(k), 9),
    )
    y = rng.normal(size=9)
    found = scores.only(labelled(Forecasts(loc, scale, weights)).recal.crps(observed(y)))
    np.testing.assert_allclose(found, normal_crps(y, loc, scale, weights), rtol=1e-12)


def test_weighted_forecasts(rng):
    support, weights, y = rng.normal(size=6), rng.dirichlet(np.ones(6), 4), rng.normal(size=4)
    found = scores.only(labelled(Forecasts(support, None, weights)).recal.crps(observed(y)))
    np.testing.assert_allclose(found, crps(y, np.tile(support, (4, 1)), weights), atol=1e-12)


def test_forest_weights(rng):
    pytest.importorskip("sklearn")
    x = rng.uniform(size=(300, 2))
    y = np.where(x[:, 0] > 0.5, 10.0, 0.0) + rng.normal(size=300)
    low, high = find_model("DRF")(Part(x, y), [np.array([[0.1, 0.5]]), np.array([[0.9, 0.5]])], 0)
    for found in (low, high):
        np.testing.assert_allclose(found.weights.sum(axis=1), 1)
        assert (found.weights >= 0).all()
    assert low.weights[0] @ low.loc < 1.5
    assert high.weights[0] @ high.loc > 8.5


def test_runs_go_on_where_they_stopped(small, tmp_path):
    run = {
        "sets": ["sinus"],
        "models": ["oracle"],
        "splits": 1,
        "folder": tmp_path,
        "cache": tmp_path,
    }
    assert scores.run(methods=["none"], **run) == 1
    assert scores.run(methods=["none", "conformal", "ckme"], **run) == 2
    assert scores.run(methods=["none", "conformal", "ckme"], **run) == 0
    rows = tables.read_rows(tmp_path / scores.FILE)
    assert [row["method"] for row in rows] == ["none", "conformal", "ckme"]
    assert rows[1]["crps"] == ""  # an interval has none
    assert float(rows[2]["ridge"]) > 0
    assert {row["n_test"] for row in rows} == {"40"}
    assert {row["commit"] for row in rows} == {commit()}


def test_row_of_the_base_model(small, tmp_path):
    row = scores.row_of("sinus", "oracle", 0, "none", small, tmp_path)
    x, y = small.test.x, small.test.y
    loc, scale = x.astype(np.float32), np.hypot(0.1, np.sin(3 * x)).astype(np.float32)
    assert row["crps"] == pytest.approx(normal_crps(y, loc, scale).mean(), rel=1e-5)
    z = np.abs(y - loc[:, 0]) / scale[:, 0]
    assert row["coverage"] == pytest.approx((z <= 1.959964).mean())
    assert row["width"] == pytest.approx(2 * 1.959964 * scale.mean(), rel=1e-5)
    assert 0 < row["skce_p"] <= 1
    assert set(row) <= set(scores.COLUMNS)


def test_pit_at_fewer_levels(rng):
    n = 2000
    cases, test = (
        Forecasts(rng.normal(size=(k, 1)), np.ones((k, 1)), np.ones((k, 1))) for k in (n, 50)
    )
    y, y_test = (f.loc[:, 0] + 2 * rng.normal(size=f.n) for f in (cases, test))
    found = recalibrate("pit", Forecasted(cases, test), y)
    model = labelled(cases).recal.fit(observed(y), xrecal.PITRecalibration(), dim="case")
    theirs = scores.only(model.crps(labelled(test), observed(y_test))).mean()
    mine = scores.only(found.forecast.recal.crps(observed(y_test))).mean()
    assert float(mine) == pytest.approx(float(theirs), rel=0.003)
    assert found.forecast.sizes["member"] == 500


def test_held_out_losses(rng):
    y = rng.normal(size=40)
    gram = np.exp(-(np.subtract.outer(y, y) ** 2))
    found = ridges.held_out_losses(gram, dense.energy_gram(y), dense.RIDGES)
    assert dense.RIDGES[found.argmin()] == dense.choose_ridge(gram, y)


def subtle(rng, n):
    """Forecasts whose spread says what is to come, and whose mean, which says nothing, differs."""
    x = rng.uniform(size=(n, 1))
    forecast = Forecasts(rng.uniform(size=(n, 1)), 0.1 + 0.1 * x, np.ones((n, 1)))
    return forecast, np.sin(5 * x[:, 0])


def test_smaller_ridges_where_the_search_ends(rng):
    (cases, y), (test, y_test) = subtle(rng, 150), subtle(rng, 400)
    found = recalibrate("ckme", Forecasted(cases, test), y)
    plain = labelled(cases).recal.fit(observed(y), METHODS["ckme"], dim="case")
    assert float(plain.state["ridge"]) <= ridges.FLOOR
    assert ridges.SMALLER.min() <= found.chosen["ridge"] < ridges.FLOOR / 10
    crps = found.forecast.recal.crps(observed(y_test)), plain.crps(labelled(test), observed(y_test))
    mine, theirs = (float(scores.only(each).mean()) for each in crps)
    assert mine < 0.95 * theirs
    noisy = y + rng.normal(size=y.size)
    chosen = recalibrate("ckme", Forecasted(cases, test), noisy).chosen["ridge"]
    plain = labelled(cases).recal.fit(observed(noisy), METHODS["ckme"], dim="case")
    assert chosen == float(plain.state["ridge"]) > ridges.FLOOR


@pytest.mark.parametrize("path", sorted(tables.RESULTS.glob("*.csv")), ids=lambda path: path.name)
def test_every_stored_row_tells_a_commit_that_the_manifest_has(path):
    known = {run["commit"] for run in manifest.read()["runs"]}
    assert {row["commit"] for row in tables.read_rows(path)} <= known
