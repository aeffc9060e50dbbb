"""The table of budgets has every line, and its references compute what the package does."""

import csv

import numpy as np
import pytest

from benchmarks.speed import dense, main
from benchmarks.speed.data import gram_of, make_data, rank_of
from benchmarks.speed.fit import fit, weights_of
from benchmarks.speed.processes import PeakMemory
from benchmarks.speed.run import BUDGETS, PARTS, TABLES
from benchmarks.speed.tables import Line, Missing, Report, Row
from benchmarks.speed.timing import in_turn
from xrecal.arrays import Forecasts, Settings, ckme_weights, crps, fit_ckme, squared_energy_distance

IN_PROCESS = {
    "distance": ("naive merge / ours", "SciPy loop / ours"),
    "fit": ('solver="auto": dense / ours', 'solver="auto": CRPS off by'),
    "storage": ("stored model / hindcast",),
    "forecasts": ("forecasts with rebuild / fit", "each further one / fit"),
    "pool": ("LinearPool fit / season fit",),
    "crps": ("weighted CRPS",),
    "members": (),
}
"""Lines of the parts that start no processes and are done in a second."""

OTHERS = (
    "numpy cholesky of n²",
    "peak memory",
    "import xrecal, over import xarray",
    "first CKME fit, code on disk, over the second",
    "first LinearPool fit, code on disk, over the second",
    "a day, CKME: open, update, issue",
    "a day, LinearPool: open, issue",
    "a day, CKME: xrecal apply",
    "CKME fit, 2 locations, n=80 m=5: one / two threads",
    "LinearPool fit, 2 locations, n=80 m=5: one / two threads",
    "CKME fit, 2 locations, n=80 m=5: one / two processes",
    "LinearPool fit, 2 locations, n=80 m=5: one / two processes",
    "Dask overhead on one chunk, fit",
    "Dask overhead on one chunk, quantiles",
    "peak of chunked quantiles",
    "one location",
    "locations a minute",
)


@pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning")
@pytest.mark.filterwarnings("ignore:keys will default to True:DeprecationWarning")  # of xsdba
@pytest.mark.parametrize(
    ("parts", "others"),
    [
        pytest.param(tuple(IN_PROCESS), (), id="in this process"),
        pytest.param(tuple(PARTS), OTHERS, id="all", marks=pytest.mark.slow),
    ],
)
def test_every_line(capsys, tmp_path, parts, others):
    report = main(quick=True, parts=parts, results=tmp_path / "results" / "bench.csv")
    printed = capsys.readouterr().out
    budgeted = [line.work for line in report.lines if line.budget is not None]
    for text in (*sum(IN_PROCESS.values(), ()), *others):
        assert any(text in work for work in budgeted), text
    assert all(line.work in printed for line in report.lines)
    with (tmp_path / "results" / "bench.csv").open() as file:
        rows = list(csv.DictReader(file))
    titles = {"Budgets", *(title for name, (title, _) in TABLES.items() if name in parts)}
    assert {row["table"] for row in rows} == {"", *titles}
    assert {row["row"] for row in rows if not row["table"]} >= {"machine", "BLAS", "versions"}
    assert {line.work for line in report.lines} <= {row["row"] for row in rows}
    assert printed.splitlines()[-1].startswith("budget lines measured")


def test_parts():
    assert set(PARTS) == {*BUDGETS, *TABLES}
    report = main(quick=True, parts=["crps"])
    assert [line.unit for line in report.lines] == ["x"]


@pytest.mark.parametrize(
    ("figure", "budget", "at_least", "verdict"),
    [(1, 2, False, "holds"), (3, 2, False, "MISSED"), (3, 2, True, "holds"), (3, None, True, "")],
)
def test_verdict(figure, budget, at_least, verdict):
    assert Line("work", figure, "x", "", budget, at_least).verdict == verdict


def test_report(capsys, tmp_path):
    report = Report()
    report.start("Budgets")
    report.add(Line("slow", 3.0, "x", "3 s v 1 s", 2))
    report.add(Line("quick", 1.0, "x", "1 s v 1 s", 2))
    report.add(Missing("peer", "no module"))
    report.start("Costs")
    report.add(Row("n=1", {"fit": 0.123456, "exact": ""}))
    report.store(tmp_path / "rows.csv")
    printed = capsys.readouterr().out
    assert "MISSED" in printed
    assert "not measured: no module" in printed
    assert "0.1235 " in printed
    assert report.verdict == "budget lines that hold: 1 of 2; MISSED: slow"
    stored = (tmp_path / "rows.csv").read_text()
    assert "Costs,n=1,fit,0.12346" in stored
    assert "Budgets,slow,budget,≤ 2 x" in stored


def test_dense_weights_are_ours():
    data = make_data(80, 6)
    cases, new = Forecasts(data.x[np.newaxis]), Forecasts(data.x_new[np.newaxis])
    fitted = fit_ckme(cases, data.y[np.newaxis], Settings(ridge=0.01, solver="exact"))
    ours = ckme_weights(new, cases, data.y[np.newaxis], fitted)[1][0]
    both = np.concatenate([data.x, data.x_new])
    gram = np.exp(-squared_energy_distance(both) / fitted.bandwidth[0])
    eigen = np.linalg.eigh(gram[:80, :80])
    theirs = dense.project_simplex(dense.signed_weights(*eigen, gram[:80, 80:], 0.01)).T
    np.testing.assert_allclose(theirs, ours, atol=1e-9)


def test_dense_loss_is_the_crps(rng):
    y, held = rng.normal(size=30), rng.normal(size=4)
    weights = rng.dirichlet(np.ones(30), 4).T
    gram = dense.energy_gram(np.concatenate([y, held]))
    loss = dense.held_out_crps(weights, gram[:30, :30], gram[:30, 30:], np.diag(gram)[30:])
    np.testing.assert_allclose(loss, crps(held, y, weights.T), atol=1e-12)


def test_dense_ridge_is_ours():
    """Ours is refined between the points of the same grid."""
    data = make_data(200, 10)
    found = dense.choose_ridge(gram_of(data.x), data.y)
    assert abs(np.log10(fit(data, "exact").ridge[0] / found)) < 0.5


def test_kernel_ridge_regression_is_ours():
    pytest.importorskip("sklearn")
    from benchmarks.speed import kernel_ridge

    data = make_data(60, 5)
    data = data._replace(x_new=data.x_new[:10], y_new=data.y_new[:10])
    theirs = kernel_ridge.forecast(data)
    ours = weights_of(data, fit(data, "exact"), data.x_new)
    means = [float(crps(data.y_new, data.y, weights).mean()) for weights in (ours, theirs)]
    assert means[1] == pytest.approx(means[0], rel=0.03)


def test_rank():
    assert rank_of(np.ones((5, 5))) == 1
    assert rank_of(np.eye(4)) == 4
    assert rank_of(gram_of(make_data(300, 50).x)) < 120


def test_peak_memory():
    with PeakMemory() as peak:
        held = np.ones(8_000_000)
        del held
    assert 60e6 < peak.bytes < 100e6


def test_in_turn():
    calls = []
    found = in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b"] * 3
    assert len(found) == 2
    assert min(found) >= 0
