"""Every part of the table of budgets runs; its references compute the results of the package."""

import csv

import numpy as np
import pytest

from benchmarks.speed import dense, main
from benchmarks.speed.data import gram_of, make_data
from benchmarks.speed.fit import fit, weights_of
from benchmarks.speed.processes import PeakMemory
from benchmarks.speed.run import PARTS, TABLES
from benchmarks.speed.timing import in_turn
from xrecal.arrays import Forecasts, Settings, ckme_weights, crps, fit_ckme, squared_energy_distance

IN_PROCESS = ("distance", "fit", "storage", "forecasts", "pool", "crps", "members")
"""Parts that start no processes and are done in a second."""


@pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning")
@pytest.mark.filterwarnings("ignore:keys will default to True:DeprecationWarning")  # of xsdba
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(IN_PROCESS, id="in this process"),
        pytest.param(tuple(PARTS), id="all", marks=pytest.mark.slow),
    ],
)
def test_every_part_is_measured_and_stored(tmp_path, parts):
    report = main(quick=True, parts=parts, results=tmp_path / "bench.csv")
    with (tmp_path / "bench.csv").open() as file:
        rows = list(csv.DictReader(file))
    titles = {"Budgets", *(title for name, (title, _) in TABLES.items() if name in parts)}
    assert {row["table"] for row in rows} == {"", *titles}
    assert {line.work for line in report.lines} <= {row["row"] for row in rows}


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
