import math

import numpy as np
import pytest

import xrecal
from xrecal.inputs.dates import CaseAxis
from xrecal.plan import probe
from xrecal.plan.probe import Setup, probe_of

CLOCK = [0.0]


class Slow(xrecal.Climatology):
    """Takes a time, on a clock of its own, that grows with the square of the cases."""

    def fit_locations(self, cases, min_samples):
        n_locations, n = cases.observations.shape
        CLOCK[0] += n_locations * 1e-6 * n**2
        return super().fit_locations(cases, min_samples)

    def predict_locations(self, new, cases, fitted):
        CLOCK[0] += 0.5 + 0.001 * new.forecasts.loc.shape[1]
        return super().predict_locations(new, cases, fitted)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(probe, "perf_counter", lambda: CLOCK[0])


def setup(method, n=400, **changes):
    days = np.arange(n, dtype=float)
    axis = CaseAxis(2000 + np.arange(n) // 365, (days / 365.25) % 1, days)
    given = {"kind": "ensemble", "n_members": 5, "periods": (), "min_samples": 20, "dtype": "f4"}
    return Setup(method=method, n_cases=n, axis=axis, **(given | changes))


def test_time_is_that_of_one_location(clock):
    found = probe_of(setup(Slow(), n=800))
    assert found.n_tried == 800
    assert found.fit == pytest.approx(0.64)
    assert found.rebuild == pytest.approx(0.501)
    assert found.each == pytest.approx(0.001)
    quick = probe_of(setup(Slow(), n=90))  # several locations together
    assert quick.fit == pytest.approx(0.0081)
    assert quick.rebuild == pytest.approx(0.501 / probe.SEVERAL_LOCATIONS)


def test_long_fits_are_extrapolated_by_the_power_that_trials_show(clock):
    found = probe_of(setup(Slow(), n=4000))
    assert found.n_tried == 1600
    assert found.fit == pytest.approx(16.0)
    assert found.rebuild == pytest.approx(0.501 * 2.5)  # at least in proportion


def test_a_single_trial_is_extrapolated_by_the_cube(clock, monkeypatch):
    monkeypatch.setattr(probe, "LONG_ENOUGH", 1e-9)
    found = probe_of(setup(Slow(), n=200))
    assert found.n_tried == 100
    assert found.fit == pytest.approx(8 * 0.01)


@pytest.mark.parametrize("kind", ["ensemble", "weighted", "quantile", "normal"])
@pytest.mark.parametrize("periods", [(), (("season", 1.0), ("wind", None))])
def test_forms_and_covariates(kind, periods):
    names = tuple(name for name, _ in periods) or None
    method = xrecal.CKME(condition_on=names)
    found = probe_of(setup(method, n=40, kind=kind, periods=periods))
    assert all(math.isfinite(t) and t >= 0 for t in (found.fit, found.rebuild, found.each))
