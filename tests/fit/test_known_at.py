"""The last observation known at the start: never a later one."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute

STARTS = pd.date_range("2020-01-01", periods=8, freq="36h")
HOURS = pd.date_range("2019-12-30", periods=60, freq="6h")
LEADS = np.array([6, 24], "timedelta64[h]").astype("timedelta64[ns]")


def observed(times=HOURS):
    values = np.arange(2.0 * len(times)).reshape(len(times), 2)
    coords = {"time": times, "station": ["a", "b"]}
    return xr.DataArray(values, coords, ["time", "station"], "t2m", {"units": "K"})


def forecasts(starts=STARTS, name="init"):
    coords = {name: starts, "lead": LEADS}
    values = np.zeros((len(starts), 2, 3))
    return xr.DataArray(values, coords, [name, "lead", "member"], "t2m")


OBSERVED, FORECAST = observed(), forecasts()
DELAYS = [0, 2, "6h", "7h", "1D", np.timedelta64(3, "h"), pd.Timedelta("2D")]


def expected(start, delay, times=HOURS):
    """Position of the last date, as the words say it."""
    if isinstance(delay, int):
        return int((times <= start).sum()) - 1 - delay
    return int((times + pd.Timedelta(delay) <= start).sum()) - 1


@pytest.mark.parametrize("delay", DELAYS, ids=str)
@pytest.mark.parametrize("times", [HOURS, HOURS[[0, 3, 4, 9, 20, 21, 50]]], ids=["each", "some"])
def test_the_last_that_is_known_and_no_later_one(delay, times):
    given = observed(times)
    known = given.recal.known_at(FORECAST, delay=delay)
    assert known.dims == ("init", "station")
    assert known.attrs["units"] == "K"
    assert known.name == "t2m"
    for i, start in enumerate(STARTS):
        at = expected(start, delay, times)
        wanted = given.isel(time=at).to_numpy() if at >= 0 else [np.nan, np.nan]
        np.testing.assert_array_equal(known.isel(init=i), wanted)
    assert known.recal.known_at.__doc__.count("accessor passes its observations")


def test_any_order_single_starts_and_names():
    known = OBSERVED.recal.known_at(FORECAST, delay="1D")
    mixed = OBSERVED.isel(time=slice(None, None, -1), station=[1, 0]).transpose("station", "time")
    found = mixed.recal.known_at(FORECAST.isel(init=[4, 2]), delay="1D")
    xr.testing.assert_identical(found.sel(station=["a", "b"]), known.isel(init=[4, 2]))
    one = OBSERVED.recal.known_at(FORECAST.isel(init=3), delay="1D")
    xr.testing.assert_identical(one, known.isel(init=3))
    of_lead = OBSERVED.recal.known_at(FORECAST.isel(lead=1), delay="1D")
    xr.testing.assert_identical(of_lead, known)
    renamed = OBSERVED.rename(time="date").recal.known_at(forecasts(name="time"), delay="1D")
    xr.testing.assert_identical(renamed, known.rename(init="time"))
    same = OBSERVED.recal.known_at(forecasts(name="time"), delay="1D")
    xr.testing.assert_identical(same, renamed)
    bare = FORECAST.isel(lead=0, member=0, drop=True)
    xr.testing.assert_identical(OBSERVED.recal.known_at(bare, delay="1D"), known)
    xr.testing.assert_identical(OBSERVED.recal.known_at(FORECAST.to_dataset(), delay="1D"), known)


def test_a_missing_observation_is_missing():
    gaps = OBSERVED.copy()
    gaps.loc[{"time": STARTS[2], "station": "b"}] = np.nan
    known = gaps.recal.known_at(FORECAST)
    np.testing.assert_array_equal(known.isnull().any("init"), [False, True])
    assert np.isnan(known[2, 1])


def test_dask_stays_lazy():
    with forbid_compute():
        known = OBSERVED.chunk(time=7, station=1).recal.known_at(FORECAST.chunk(), delay="1D")
    assert known.chunks is not None
    xr.testing.assert_identical(known.compute(), OBSERVED.recal.known_at(FORECAST, delay="1D"))


def test_other_calendars():
    known = OBSERVED.recal.known_at(FORECAST, delay="9h")
    given = OBSERVED.convert_calendar("standard", use_cftime=True)
    starts = FORECAST.convert_calendar("standard", dim="init", use_cftime=True)
    np.testing.assert_array_equal(given.recal.known_at(starts, delay="9h"), known)
    with pytest.raises(ValueError, match="observations have labels of the kind standard, forecast"):
        given.recal.known_at(FORECAST)


def test_what_is_known_makes_better_forecasts():
    rng = np.random.default_rng(0)
    days = pd.date_range("2018-01-01", periods=200)
    walk = xr.DataArray(np.cumsum(rng.normal(size=200)), {"time": days}, ["time"], name="level")
    coords = {"init": days[:-1], "lead": np.array([1], "timedelta64[D]").astype("timedelta64[ns]")}
    noise = rng.normal(size=(199, 1, 4))
    forecast = xr.DataArray(5 * noise, coords, ["init", "lead", "member"], name="level")
    known = {"now": walk.recal.known_at(forecast)}
    past, new = {"init": slice(None, 150)}, {"init": slice(150, None)}
    given, later = ({"now": known["now"].isel(at)} for at in (past, new))
    model = forecast.isel(past).recal.fit(walk, xrecal.EMOS(), covariates=given)
    plain = forecast.isel(past).recal.fit(walk, xrecal.EMOS())
    score = model.crps(forecast.isel(new), walk, covariates=later).mean()
    assert score < 0.6 * plain.crps(forecast.isel(new), walk).mean()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: OBSERVED.recal.known_at(forecasts(name="time").isel(lead=0, drop=True)),
            r"forecast has no starts and leads, but \['time'\].*rename\(time=\"init\"\)",
        ),
        (
            lambda: OBSERVED.recal.known_at(FORECAST.drop_vars("init")),
            "forecast has no starts and leads",
        ),
        (
            lambda: OBSERVED.isel(time=0).recal.known_at(FORECAST),
            r"observations have no dimension of dates, but \['station'\]",
        ),
        (lambda: OBSERVED.recal.known_at(FORECAST, delay="soon"), "known_at: delay must be a num"),
        (lambda: OBSERVED.recal.known_at(FORECAST, delay=-1), "known_at: delay must be a number"),
    ],
)
def test_errors_say_what_to_type(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_dataset_is_refused():
    with pytest.raises(TypeError, match="known_at takes observations as a DataArray, got Dataset"):
        OBSERVED.to_dataset().recal.known_at(FORECAST)
