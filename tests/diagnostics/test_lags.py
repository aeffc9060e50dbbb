import numpy as np
import pytest
import xarray as xr

from xrecal.diagnostics.lags import verification_lag

DAYS = xr.date_range("2020-01-01", periods=30)
MONTHS = xr.date_range("2000-01-01", periods=30, freq="MS")


def over(starts, leads, units=None, dim="init", lead="lead", **coords):
    """Forecasts over starts and leads."""
    attrs = {} if units is None else {"units": units}
    coords = {dim: starts, lead: (lead, leads, attrs)} | coords
    return xr.DataArray(np.zeros((len(starts), len(leads))), coords, [dim, lead])


def lags(forecasts, dim="init", lag=None):
    return verification_lag(forecasts, dim, lag).to_numpy().tolist()


HOURS = np.array([0, 6, 24, 25, 120])


@pytest.mark.parametrize(
    "forecasts",
    [
        over(DAYS, HOURS * np.timedelta64(1, "h")),
        over(DAYS, HOURS, "hours"),
        over(DAYS, HOURS / 24, "days"),
        over(DAYS.tz_localize(None).to_numpy(), HOURS, "h").rename(lead="step"),
        over(
            xr.date_range("2020-01-01", periods=30, calendar="noleap", use_cftime=True), HOURS, "h"
        ),
        over(DAYS, HOURS, "hours", dim="time").rename(time="valid_time").rename(valid_time="init"),
    ],
)
def test_leads_in_time(forecasts):
    assert lags(forecasts) == [1, 1, 1, 2, 5]


def test_labels_of_valid_times():
    forecasts = over(DAYS, HOURS, "hours", dim="time")
    forecasts.time.attrs["standard_name"] = "time"
    assert lags(forecasts, "time") == [1, 1, 1, 2, 5]


def test_starts_that_are_not_every_day():
    assert lags(over(DAYS[::3], HOURS, "hours")) == [1, 1, 1, 1, 2]
    gap = over(DAYS[[0, 1, 2, 9, 10, 20]], HOURS, "hours")  # three cases in a row at most
    assert lags(gap) == [1, 1, 1, 2, 3]
    assert lags(gap[:1]) == [1] * 5
    assert lags(gap[:0]) == [1] * 5


def test_months():
    """A month is known when it has ended, however its lead is written."""
    assert lags(over(MONTHS, [0, 1, 2, 3], "months")) == [1, 2, 3, 4]
    assert lags(over(MONTHS, [1, 2, 3, 4], lead="forecastMonth")) == [1, 2, 3, 4]


def test_leads_that_count_cases():
    assert lags(over(DAYS, [0, 1, 3])) == [1, 1, 3]
    assert lags(over(np.arange(30), [1, 3])) == [1, 3]
    assert lags(over(np.arange(1990, 2020), [1, 3], "years")) == [1, 3]
    valid = DAYS.to_numpy()[:, np.newaxis] + np.array([1, 2]) * np.timedelta64(2, "D")
    assert lags(over(DAYS, [1, 2], valid_time=(("init", "lead"), valid))) == [2, 4]


def test_a_single_lead():
    forecasts = over(DAYS, HOURS, "hours")
    told = forecasts.isel(lead=4, drop=True)
    told = told.assign_coords(valid_time=("init", DAYS.to_numpy() + np.timedelta64(5, "D")))
    assert lags(told) == 5
    assert lags(told.assign_coords(valid_time=("init", DAYS))) == 1
    assert lags(forecasts.isel(lead=4)) == 5
    assert lags(forecasts.isel(lead=4, drop=True)) == 1
    assert lags(forecasts.isel(lead=4, drop=True).drop_vars("init")) == 1


def test_what_the_user_knows():
    forecasts = over(DAYS, HOURS, "fortnights").drop_vars("init")
    assert lags(forecasts, lag=3) == 3
    with pytest.raises(ValueError, match="lag is 0; give a whole number from 1"):
        lags(forecasts, lag=0)
    with pytest.raises(ValueError, match="have units 'fortnights', which are not among"):
        lags(forecasts)
    with pytest.raises(ValueError, match=r"no labels along 'init' .* give dates, .*: lag=\.\.\."):
        lags(over(DAYS, HOURS, "hours").drop_vars("init"))
