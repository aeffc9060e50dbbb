import numpy as np
import pytest
import xarray as xr

from tests.marks import forbid_compute
from xrecal import plot
from xrecal.diagnostics.evidence import read_evidence
from xrecal.plot.annual import CYCLE, quantile_reliability

LEVELS = [0.1, 0.5, 0.9]


def daily(amplitude=10.0, n=800, m=9):
    """Forecasts that are too sure beyond an annual cycle, and the truth."""
    rng = np.random.default_rng(0)
    time = np.datetime64("2018-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    cycle = amplitude * np.sin(2 * np.pi * np.arange(n) / 365.25)
    signal = rng.normal(size=n)
    coords = {"time": time}
    truth = xr.DataArray(cycle + signal + rng.normal(size=n), coords, ["time"], "t2m")
    members = (cycle + 2 * signal)[:, None] + rng.normal(size=(n, m))
    forecast = xr.DataArray(members, coords, ["time", "member"], "t2m")
    return forecast, truth, xr.DataArray(cycle, coords, ["time"])


def slope(found):
    """Of the medians, given the issued ones."""
    x, y = (found[name].sel(quantile=0.5) for name in ("forecast_quantile", "conditional_quantile"))
    return np.polyfit(x, y, 1)[0]


def test_what_the_cycle_hides_is_seen():
    forecast, truth, cycle = daily()
    found = quantile_reliability(forecast, truth, LEVELS)
    known = (forecast - cycle).recal.quantile_reliability(truth - cycle, LEVELS)
    assert slope(found) == pytest.approx(slope(known), abs=0.05)
    assert slope(known) < 0.6
    assert slope(forecast.recal.quantile_reliability(truth, LEVELS)) > 0.9
    assert found[CYCLE] == pytest.approx(20, rel=0.05)
    np.testing.assert_array_equal(
        found.below, forecast.recal.quantile_reliability(truth, LEVELS).below
    )


def test_nothing_changes_without_a_cycle_or_dates():
    forecast, truth, _ = daily(amplitude=0.5)
    found = quantile_reliability(forecast, truth, LEVELS)
    assert found[CYCLE] == 0
    expected = forecast.recal.quantile_reliability(truth, LEVELS)
    xr.testing.assert_equal(found.drop_vars(CYCLE), expected)
    forecast, truth, _ = daily()
    forecast, truth = (a.assign_coords(time=np.arange(800)) for a in (forecast, truth))
    found = quantile_reliability(forecast, truth, LEVELS)
    xr.testing.assert_equal(found, forecast.recal.quantile_reliability(truth, LEVELS))


def test_other_forms_many_places_and_tasks():
    forecast, truth, _ = daily()
    both = xr.concat([forecast, forecast + 3], "place"), xr.concat([truth, truth], "place")
    missing = both[0].where(both[0].time != both[0].time[5])
    with forbid_compute():
        lazy = quantile_reliability(missing.chunk(place=1), both[1].chunk(), 0.5)
    found = quantile_reliability(missing, both[1], 0.5)
    xr.testing.assert_allclose(lazy.compute(), found)
    one = quantile_reliability(missing.isel(place=1), truth, 0.5)
    for name in ("forecast_quantile", "conditional_quantile", "below"):
        np.testing.assert_allclose(found[name].isel(place=1), one[name])
    quantiles = forecast.recal.quantile(LEVELS)
    of_quantiles = quantile_reliability(quantiles, truth, 0.5)
    np.testing.assert_allclose(of_quantiles.below, quantile_reliability(forecast, truth, 0.5).below)


def test_the_figure_says_so():
    forecast, truth, _ = daily()
    assert forecast.recal.plot.quantile_reliability(truth).get_title("right") == (
        "without the annual cycle"
    )
    plain = plot.quantile_reliability(forecast.recal.quantile_reliability(truth))
    assert not plain.get_title("right")
    forecast, truth, _ = daily(amplitude=0.1)
    assert not forecast.recal.plot.quantile_reliability(truth).get_title("right")


def test_the_cycle_of_another_forecast():
    """Both are relative to one cycle, so that they are of the same observations."""
    forecast, truth, cycle = daily()
    raw = (forecast - 0.9 * cycle + 3).transpose(*forecast.dims)  # has no cycle that dominates
    beside = read_evidence(forecast, truth, None, None)
    found = quantile_reliability(raw, truth, 0.5, beside=beside)
    assert found[CYCLE] == quantile_reliability(forecast, truth, 0.5)[CYCLE]
    assert quantile_reliability(raw, truth, 0.5)[CYCLE] == 0
    known = (raw - cycle).recal.quantile_reliability(truth - cycle, 0.5)
    for name in ("forecast_quantile", "conditional_quantile"):
        a, b = found[name], known[name]
        assert abs(a - b).max() < 1
    absent = forecast.where(forecast.time != forecast.time[7])
    beside = read_evidence(absent, truth, None, None)
    assert quantile_reliability(raw, truth, 0.5, beside=beside).n_cases == 799


def test_raw_curves_on_the_page_are_relative_to_the_cycle_of_the_other():
    forecast, truth, cycle = daily()
    raw = (forecast - 0.9 * cycle + 3).transpose(*forecast.dims)
    figure = forecast.recal.report(truth, raw=raw, n_resamples=100)
    (ax,) = [ax for ax in figure.axes if ax.get_title("left") == "Quantiles"]
    assert ax.get_title("right") == "without the annual cycle"
    of_raw = ax.lines[-2].get_xdata()  # the last one is its label
    issued = (raw - cycle).recal.quantile(0.9)
    ends = [issued.min(), issued.max()]
    np.testing.assert_allclose(of_raw[[0, -1]], ends, atol=1)
