import numpy as np
import pytest

import xrecal
from tests.labelled import random
from xrecal.arrays.forms import Forecasts
from xrecal.arrays.status import TOO_FEW
from xrecal.dims import CaseAxis
from xrecal.methods.base import State

DATES = np.arange("2001-01-01", "2004-01-01", dtype="datetime64[D]").astype("datetime64[ns]")


@pytest.mark.parametrize("window", [0, -1, np.nan, np.inf, "30", True, [30]], ids=str)
def test_invalid_window(window):
    with pytest.raises(ValueError, match=r"Climatology: window must be a positive number of days"):
        xrecal.Climatology(window)


def test_window_needs_dates():
    method = xrecal.Climatology(window=30)
    assert method.needs_season
    assert not xrecal.Climatology().needs_season
    xrecal.Climatology().check(CaseAxis(), 30)
    for axis in (CaseAxis(), CaseAxis(year=np.arange(2000, 2030))):  # years have no season
        with pytest.raises(
            ValueError, match=r"Climatology\(window=30\) needs dates .*; use Climatology\(\)"
        ):
            method.check(axis, 30)


def test_forecasts_need_dates_too():
    hindcast = random("time", "member", sizes={"time": 1095}, time=DATES)
    observations = hindcast.isel(member=0)
    model = hindcast.recal.fit(observations, xrecal.Climatology(window=30))
    with pytest.raises(
        ValueError, match="needs the dates of the forecasts: a datetime64 or cftime"
    ):
        model.quantile(random("member"), 0.5)


def days_in_window(date, window):
    """Which of the dates lie at most window / 2 days from the date in any year, by counting."""
    offsets = np.arange(-(window // 2), window // 2 + 1)
    days = {str(day)[5:] for day in np.datetime64(date) + offsets.astype("timedelta64[D]")}
    return np.array([str(day)[5:10] in days for day in DATES])


@pytest.mark.parametrize("window", [11, 31])
@pytest.mark.parametrize("date", ["2002-01-03", "2002-12-30", "2002-07-01", "2002-01-01"])
def test_window_takes_the_days_around_the_date_over_new_year(date, window):
    hindcast = random("time", "member", sizes={"time": 1095}, time=DATES)
    observations = hindcast.isel(member=0)
    model = hindcast.recal.fit(observations, xrecal.Climatology(window))
    weights = model.apply(random("member").assign_coords(time=np.datetime64(date, "ns")))
    inside = days_in_window(date, window)
    assert inside.sum() == 3 * window
    np.testing.assert_allclose(weights["t2m_weight"], inside / inside.sum(), rtol=1e-12)


def test_no_case_in_the_window_gives_nan(rng):
    method, axis = xrecal.Climatology(window=20), CaseAxis(season=np.linspace(0.4, 0.6, 30))
    observations = rng.normal(size=(1, 30))
    state = State(observations, None, method.fit_locations(None, observations, axis, 20))
    new = Forecasts(rng.normal(size=(1, 2, 3)))
    weights = method.predict_locations(new, state, axis, np.array([0.5, 0.9])).weights
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), [False, True])


def test_without_window_every_known_observation_counts_equally(rng):
    method = xrecal.Climatology()
    observations = rng.normal(size=(3, 30))
    observations[0, 4], observations[1, 10:] = np.nan, np.nan
    fitted = method.fit_locations(None, observations, CaseAxis(), 20)
    np.testing.assert_array_equal(fitted["n_cases"], [29, 10, 30])
    np.testing.assert_array_equal(fitted["status"], [0, TOO_FEW, 0])
    new = rng.normal(size=(3, 4, 5))
    new[2, 1] = np.nan
    state = State(observations, None, fitted)
    found = method.predict_locations(Forecasts(new), state, CaseAxis(), None)
    assert found.members is observations
    np.testing.assert_array_equal(found.weights[0, :, 4], 0)
    np.testing.assert_allclose(found.weights[0, :, 5:], 1 / 29, rtol=1e-12)
    assert np.isnan(found.weights[1]).all()
    np.testing.assert_array_equal(np.isnan(found.weights[2]).all(-1), [False, True, False, False])
    np.testing.assert_allclose(found.mean()[2, 0], observations[2].mean(), rtol=1e-12)
