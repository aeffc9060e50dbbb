import math
from pathlib import Path

import dask
import numpy as np
import pytest

import xrecal
from xrecal.chunks.malloc import KEPT_BYTES
from xrecal.inputs.dates import CaseAxis
from xrecal.plan import costs
from xrecal.plan.costs import (
    PROCESS,
    Resources,
    Setup,
    apply_workspace,
    available_memory,
    find_resources,
    fit_workspace,
    probe_of,
)

# memory -------------------------------------------------------------------------------------------


def test_a_machine_without_a_client_shares_its_memory_among_threads():
    with dask.config.set(num_workers=4):
        four = find_resources()
    with dask.config.set(scheduler="synchronous"):
        one = find_resources()
    assert (four.at_once, one.at_once) == (4, 1)
    assert one.memory == pytest.approx(4 * four.memory, rel=0.1)


def test_a_client_tells_the_limits_of_its_workers():
    from distributed import Client, LocalCluster

    options = {"processes": False, "dashboard_address": ":0", "memory_limit": "1GB"}
    with LocalCluster(n_workers=2, threads_per_worker=2, **options) as cluster, Client(cluster):
        assert find_resources() == Resources(int((0.8e9 - PROCESS) // 2) - KEPT_BYTES, 4)
    options["memory_limit"] = 0
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster, Client(cluster):
        assert find_resources() == Resources(None, 1)


def test_memory_of_the_machine(monkeypatch):
    assert 2**20 < available_memory() < 2**50
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert available_memory() > 2**20
    monkeypatch.setattr(costs.os, "sysconf_names", {})
    assert available_memory() is None
    with dask.config.set(num_workers=2):
        assert find_resources().memory is None


def test_matrices_of_the_solver():
    exact = fit_workspace(xrecal.CKME(), 1000, 10, 1)
    assert exact > 5 * 8 * 1000**2
    assert fit_workspace(xrecal.EMOS(), 1000, 10, 1) < exact / 10
    assert fit_workspace(xrecal.LinearPool(), 1000, 10, 1) > exact
    assert apply_workspace(xrecal.CKME(), 1000, 1, 10, 1) > 5 * 8 * 1000**2


def test_landmarks_take_less_than_all_pairs():
    many = 10_000
    saved = 6 * 8 * many * (many - 1000)
    exact = fit_workspace(xrecal.CKME(solver="exact"), many, 10, 1)
    assert exact - fit_workspace(xrecal.CKME(), many, 10, 1) == saved
    components = (xrecal.CKME(), xrecal.EMOS())
    assert fit_workspace(xrecal.LinearPool(components), many, 10, 1) < exact


def test_copies_are_bounded_by_the_workspace():
    small, large = (fit_workspace(xrecal.EMOS(), 100, 10, n) for n in (10, 10**6))
    assert small < 10**6
    assert large == 2 * 64_000_000
    dense, errors = (
        apply_workspace(xrecal.CKME(support=support), 100, 50, 10, 10**6)
        for support in ("observations", "errors")
    )
    assert dense == errors < 4 * 64_000_000 + 10**6


# time ---------------------------------------------------------------------------------------------

CLOCK = [0.0]


class Slow(xrecal.Climatology):
    """Takes a time, on a clock of its own, that grows with the square of the cases."""

    def fit_locations(self, cases, min_samples, choices=None):
        n_locations, n = cases.observations.shape
        CLOCK[0] += n_locations * 1e-6 * n**2
        return super().fit_locations(cases, min_samples, choices)

    def predict_locations(self, new, cases, fitted):
        CLOCK[0] += 0.5 + 0.001 * new.forecasts.loc.shape[1]
        return super().predict_locations(new, cases, fitted)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(costs, "perf_counter", lambda: CLOCK[0])


def setup(method, n=400, **changes):
    days = np.arange(n, dtype=float)
    axis = CaseAxis(2000 + np.arange(n) // 365, (days / 365.25) % 1, days)
    given = {"kind": "ensemble", "n_members": 5, "periods": {}, "min_samples": 20, "dtype": "f4"}
    return Setup(method=method, n_cases=n, axis=axis, **(given | changes))


def test_time_is_that_of_one_location(clock):
    found = probe_of(setup(Slow(), n=800))
    assert found.n_tried == 800
    assert found.fit == pytest.approx(0.64)
    assert found.rebuild == pytest.approx(0.501)
    assert found.each == pytest.approx(0.001)
    quick = probe_of(setup(Slow(), n=90))  # several locations together
    assert quick.fit == pytest.approx(0.0081)
    assert quick.rebuild == pytest.approx(0.501 / costs.SEVERAL_LOCATIONS)


def test_long_fits_are_extrapolated_by_the_power_that_trials_show(clock):
    found = probe_of(setup(Slow(), n=4000))
    assert found.n_tried == 1600
    assert found.fit == pytest.approx(16.0)
    assert found.rebuild == pytest.approx(0.501 * 2.5)  # at least in proportion


def test_a_single_trial_is_extrapolated_by_the_cube(clock, monkeypatch):
    monkeypatch.setattr(costs, "LONG_ENOUGH", 1e-9)
    found = probe_of(setup(Slow(), n=200))
    assert found.n_tried == 100
    assert found.fit == pytest.approx(8 * 0.01)


class Compiling(Slow):
    """Fits that take 30 s more the first time that they have at least 400 cases."""

    compiled = False

    def fit_locations(self, cases, min_samples, choices=None):
        fitted = super().fit_locations(cases, min_samples, choices)
        if cases.observations.shape[-1] >= 400 and not Compiling.compiled:
            Compiling.compiled = True
            CLOCK[0] += 30.0
        return fitted


def test_code_that_only_many_cases_need_is_not_counted(clock):
    found = probe_of(setup(Compiling(), n=4000))
    assert Compiling.compiled
    assert found.fit == pytest.approx(16.0)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["ensemble", "weighted", "quantile", "normal"])
@pytest.mark.parametrize("periods", [{}, {"season": 1.0, "wind": None}])
def test_forms_and_covariates(kind, periods):
    names = tuple(periods) or None
    method = xrecal.CKME(condition_on=names)
    found = probe_of(setup(method, n=40, kind=kind, periods=periods))
    assert all(math.isfinite(t) and t >= 0 for t in (found.fit, found.rebuild, found.each))
