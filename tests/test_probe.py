import math
from time import sleep

import numpy as np
import pytest

import xrecal
from xrecal import probe
from xrecal.dims import CaseAxis
from xrecal.probe import Setup, probe_of


class Slow(xrecal.Climatology):
    """Takes a time that grows with the square of the cases."""

    def fit_locations(self, cases, min_samples):
        found = super().fit_locations(cases, min_samples)
        sleep(len(cases.observations) * 2e-7 * cases.observations.shape[1] ** 2)
        return found


def setup(method, n=400, **changes):
    days = np.arange(n, dtype=float)
    axis = CaseAxis(2000 + np.arange(n) // 365, (days / 365.25) % 1, days)
    given = {"kind": "ensemble", "n_members": 5, "periods": (), "min_samples": 20, "dtype": "f4"}
    return Setup(method=method, n_cases=n, axis=axis, **(given | changes))


def test_time_is_that_of_one_location():
    found = probe_of(setup(Slow(), n=200))
    assert found.n_tried == 200
    assert found.fit == pytest.approx(2e-7 * 200**2, rel=0.6)
    assert found.rebuild > 0


def test_long_fits_are_extrapolated(monkeypatch):
    """By the power that the last two trials show."""
    monkeypatch.setattr(probe, "LONG_ENOUGH", 0.006)
    found = probe_of(setup(Slow(), n=1600))
    assert found.n_tried < 1600
    assert found.fit == pytest.approx(2e-7 * 1600**2, rel=0.6)


def test_a_single_trial_is_extrapolated_by_the_cube(monkeypatch):
    monkeypatch.setattr(probe, "LONG_ENOUGH", 1e-9)
    found = probe_of(setup(Slow(), n=200))
    assert found.n_tried == 100
    assert found.fit == pytest.approx(8 * 2e-7 * 100**2, rel=0.6)


@pytest.mark.parametrize("kind", ["ensemble", "weighted", "quantile", "normal"])
@pytest.mark.parametrize("periods", [(), (("season", 1.0), ("wind", None))])
def test_forms_and_covariates(kind, periods):
    names = tuple(name for name, _ in periods) or None
    method = xrecal.CKME(condition_on=names)
    found = probe_of(setup(method, n=40, kind=kind, periods=periods))
    assert all(math.isfinite(t) and t >= 0 for t in (found.fit, found.rebuild, found.each))
