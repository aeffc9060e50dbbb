import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import random
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import TOO_FEW
from xrecal.inputs.covariates import DAY
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.covariates import Covariates

from .of_arrays import as_cases, as_new, covariates_of

DATES = np.arange("2001-01-01", "2004-01-01", dtype="datetime64[D]").astype("datetime64[ns]")


@pytest.mark.parametrize("window", [0, -1, np.nan, np.inf, "30", True, [30]], ids=str)
def test_invalid_window(window):
    with pytest.raises(ValueError, match=r"Climatology: window must be a positive number of days"):
        xrecal.Climatology(window)


def test_window_needs_dates():
    method = xrecal.Climatology(window=30)
    assert method.covariates == ("calendar_day",)
    assert xrecal.Climatology().covariates == ()
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
    with pytest.raises(ValueError, match="needs the dates of forecast: a datetime64 or cftime"):
        model.quantile(random("member"), 0.5)


def day_of(values):
    return Covariates(np.asarray(values)[..., np.newaxis], (DAY,), (1.0,))


def test_no_case_in_the_window_gives_nan(rng):
    method = xrecal.Climatology(window=20)
    observations = rng.normal(size=(1, 30))
    cases = as_cases(None, observations, day_of([np.linspace(0.4, 0.6, 30)]))
    new = as_new(Forecasts(rng.normal(size=(1, 2, 3))), day_of([[0.5, 0.9]]))
    weights = method.predict_locations(new, cases, method.fit_locations(cases, 20)).weights
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), [False, True])


def test_without_window_every_known_observation_counts_equally(rng):
    method = xrecal.Climatology()
    observations = rng.normal(size=(3, 30))
    observations[0, 4], observations[1, 10:] = np.nan, np.nan
    cases = as_cases(None, observations)
    fitted = method.fit_locations(cases, 20)
    np.testing.assert_array_equal(fitted["n_cases"], [29, 10, 30])
    np.testing.assert_array_equal(fitted["status"], [0, TOO_FEW, 0])
    new = rng.normal(size=(3, 4, 5))
    new[2, 1] = np.nan
    found = method.predict_locations(as_new(Forecasts(new)), cases, fitted)
    assert found.members is observations
    np.testing.assert_array_equal(found.weights[0, :, 4], 0)
    np.testing.assert_allclose(found.weights[0, :, 5:], 1 / 29, rtol=1e-12)
    assert np.isnan(found.weights[1]).all()
    np.testing.assert_array_equal(np.isnan(found.weights[2]).all(-1), [False, True, False, False])
    np.testing.assert_allclose(found.mean()[2, 0], observations[2].mean(), rtol=1e-12)


@pytest.mark.parametrize("window", [None, 120])
def test_observations_count_by_covariates_and_within_the_window(window, rng):
    method = xrecal.Climatology(window=window, condition_on="lead")
    observations = rng.normal(size=(2, 30))
    observations[0, 4] = np.nan
    covariates, new_covariates = covariates_of(rng, 2, 30), covariates_of(rng, 2, 5)
    cases = as_cases(None, observations, covariates)
    new = as_new(Forecasts(rng.normal(size=(2, 5, 3))), new_covariates)
    found = method.predict_locations(new, cases, method.fit_locations(cases, 20)).weights
    lead, new_lead = (c.features(("lead",)) for c in (covariates, new_covariates))
    expected = arrays.climatology_weights(observations, 5, features=lead, new_features=new_lead)
    if window is not None:
        season, new_season = (c.values[..., 0] for c in (covariates, new_covariates))
        expected = arrays.in_window(expected, season, new_season, window)
        assert (found == 0).mean() > 0.5
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(np.round(found[1, 0], 9))) > 5


def test_the_season_of_a_window_is_not_weighed_by(rng):
    assert xrecal.Climatology(window=30).covariates == ("calendar_day",)
    assert xrecal.Climatology(window=30, condition_on="lead").covariates == ("lead", "calendar_day")
    method = xrecal.Climatology(window=400)
    observations, covariates = rng.normal(size=(1, 30)), covariates_of(rng, 1, 30)
    cases = as_cases(None, observations, covariates)
    new = as_new(Forecasts(rng.normal(size=(1, 2, 3))), covariates_of(rng, 1, 2))
    found = method.predict_locations(new, cases, method.fit_locations(cases, 20))
    np.testing.assert_allclose(found.weights, 1 / 30)


@pytest.mark.each_value
@pytest.mark.parametrize("calendar", ["standard", "proleptic_gregorian"])
@pytest.mark.parametrize("cftime", [False, True])
@pytest.mark.parametrize("window", [1, 3, 10, 30, 31])
def test_a_calendar_day_is_the_same_in_every_year(window, cftime, calendar):
    times = xr.date_range("2000-01-01", "2008-12-31", calendar=calendar, use_cftime=cftime)
    days = [
        "2004-02-29",
        "2004-03-01",
        "2005-02-28",
        "2005-03-01",
        "2004-12-25",
        "2005-01-03",
        "2012-07-01",
    ]
    dates = [
        xr.date_range(day, day, calendar=calendar, use_cftime=cftime)[0] for day in sorted(days)
    ]
    hindcast = random("time", "member", sizes={"time": len(times), "member": 2}, time=times)
    model = hindcast.recal.fit(hindcast.isel(member=0), xrecal.Climatology(window))
    new = random("time", "member", sizes={"time": len(dates), "member": 2}, time=dates)
    weights = model.apply(new)["t2m_weight"].transpose("time", ...).to_numpy()
    # Days of the year by name, in a year without 29 February.
    names = np.array([t.strftime("%m-%d") for t in times])
    plain = np.arange("2001-01-01", "2002-01-01", dtype="datetime64[D]")
    place = {str(day)[5:]: i for i, day in enumerate(plain)} | {"02-29": 58.5}
    for date, found in zip(sorted(days), weights, strict=True):
        apart = np.abs(np.array([place[name] for name in names]) - place[date[5:]])
        inside = np.minimum(apart, 365 - apart) <= window / 2
        np.testing.assert_allclose(found, inside / inside.sum(), rtol=1e-12, err_msg=date)
        count = dict(zip(*np.unique(names[inside], return_counts=True), strict=True))
        assert set(count) - {"02-29"} == {d for d in count if count[d] == 9}
