"""Places without an index, known by numbers of any name that both objects have."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

TIMES = pd.date_range("2001-01-01", periods=30, freq="8D")
RNG = np.random.default_rng(8)
TRUTH = RNG.normal(size=(30, 3)) + np.array([0, 20, 50])
MEMBERS = TRUTH[..., np.newaxis] + RNG.normal(size=(30, 3, 4))
ORDER = [2, 0, 1]
BARE = xr.DataArray(MEMBERS, {"time": TIMES}, ["time", "gauge", "member"], name="level")
BARE_TRUTH = xr.DataArray(TRUTH, {"time": TIMES}, ["time", "gauge"])
NUMBERS = {
    "wmo": [10384, 10381, 10400],
    "elevation": [55.0, 12.5, 130.0],
    "Latitude": [52.5, 52.4, 52.6],
    "easting": [4.1e5, 3.9e5, 4.0e5],
    "row": [0, 1, 2],
}


def known_by(name):
    """Forecasts in one order of places, observations in another."""
    own = ("gauge", NUMBERS[name])
    return [one.assign_coords({name: own}) for one in (BARE, BARE_TRUTH)]


@pytest.mark.parametrize("name", NUMBERS)
class TestByNumbers:
    def test_scores(self, name):
        forecast, truth = known_by(name)
        found = forecast.recal.crps(truth.isel(gauge=ORDER))
        xr.testing.assert_equal(found, forecast.recal.crps(truth))

    def test_a_fit_applied_in_another_order(self, name):
        forecast, truth = known_by(name)
        model = forecast.recal.fit(truth.isel(gauge=ORDER), xrecal.EMOS())
        expected = BARE.recal.fit(BARE_TRUTH, xrecal.EMOS()).quantile(BARE, 0.5)
        found = model.quantile(forecast.isel(gauge=ORDER), 0.5)
        np.testing.assert_array_equal(found, expected.isel(gauge=ORDER))
        assert "by position" not in repr(model)

    def test_thresholds(self, name):
        forecast, truth = known_by(name)
        found = forecast.recal.exceedance(truth.mean("time").isel(gauge=ORDER))
        np.testing.assert_array_equal(found, BARE.recal.exceedance(BARE_TRUTH.mean("time")))


def test_numbers_that_differ_identify_nothing():
    """Heights of a model and of its stations are no names."""
    forecast, truth = known_by("elevation")
    model = forecast.recal.fit(
        truth.assign_coords(elevation=truth.elevation + 3), xrecal.Climatology()
    )
    assert "paired by position along 'gauge'" in repr(model)


def test_two_numbers_that_contradict_each_other_identify_nothing():
    forecast, truth = (
        one.assign_coords(wmo=("gauge", NUMBERS["wmo"]), height=("gauge", heights))
        for one, heights in ((BARE, [3.0, 2.0, 1.0]), (BARE_TRUTH, [1.0, 2.0, 3.0]))
    )
    assert "paired by position" in repr(forecast.recal.fit(truth, xrecal.Climatology()))
