"""Monitors: equal to the functions of arrays at each place, lazy, from labels."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import points
from xrecal import arrays

from .calls import FORMS, hindcast

N = 500


@cache
def daily(dtype=np.float64):
    """Ensembles (time, member, lat, lon) of many days that are too narrow, and the truth."""
    days = np.datetime64("2020-01-01", "ns") + np.arange(N) * np.timedelta64(1, "D")
    return tuple(a.assign_coords(time=days) for a in hindcast(n=N, step=0.5, dtype=dtype))


ENSEMBLE, TRUTH = daily()
NORMAL = FORMS["normal"](ENSEMBLE)
NAMES = ["e_value", "alarm", "change_statistic", "change", "since"]


def of_arrays(pit, lag=1, stretch=None, alpha=0.01, run_length=3650):
    """E-values, alarms, statistics, changes and positions of their beginning, from (p, n)."""
    stretch = np.zeros(pit.shape[-1]) if stretch is None else stretch
    e_values = arrays.calibration_e_values(pit, lag, stretch)
    statistic, since = arrays.calibration_changes(pit, run_length, lag)
    alarm = np.zeros(e_values.size, bool)
    for part in np.unique(stretch):
        here = stretch == part
        alarm[here] = np.logical_or.accumulate(e_values[here] >= 1 / alpha)
    return e_values, alarm, statistic, statistic >= run_length, since


def labels(since, time):
    return np.append(time, np.datetime64("NaT"))[since]


@pytest.mark.parametrize("form", FORMS)
def test_at_each_place_it_is_that_of_the_transforms(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.monitor(TRUTH, seed=3, alpha=0.05, run_length=100)
    assert list(found) == NAMES
    pit = forecast.recal.pit(TRUTH, seed=3)
    years = TRUTH.time.dt.year.to_numpy()
    assert found.change.any()
    for point in points(TRUTH):
        row = pit.isel(point).to_numpy()[np.newaxis]
        expected = of_arrays(row, 1, years, 0.05, 100)
        for name, values in zip(NAMES, expected, strict=True):
            values = labels(values, TRUTH.time.to_numpy()) if name == "since" else values
            np.testing.assert_array_equal(found[name].isel(point), values, name)
    np.testing.assert_array_equal(found.restarts, np.diff(years, prepend=0) != 0)


def test_a_region_has_the_mean_of_its_places():
    found = NORMAL.recal.monitor(TRUTH, ["time", "lat", "lon"])
    pit = NORMAL.recal.pit(TRUTH)
    rows = pit.transpose("lat", "lon", "time").to_numpy().reshape(4, N)
    expected = of_arrays(rows, 1, TRUTH.time.dt.year.to_numpy())
    assert found.e_value.dims == ("time",)
    np.testing.assert_allclose(found.e_value, expected[0], rtol=1e-12)
    each = NORMAL.recal.monitor(TRUTH).e_value
    np.testing.assert_allclose(found.e_value, each.mean(["lat", "lon"]), rtol=1e-12)
    part = NORMAL.recal.monitor(TRUTH, ("lat", "time"))
    np.testing.assert_allclose(part.e_value, each.mean("lat"), rtol=1e-12)
    # a place without observations is no part of the region
    sea = TRUTH.where(TRUTH.lat > 45)
    with_sea = NORMAL.recal.monitor(sea, ["time", "lat"]).e_value
    np.testing.assert_allclose(with_sea, each.isel(lat=1), rtol=1e-12)
    assert np.isnan(NORMAL.recal.monitor(sea).e_value.isel(lat=0)).all()


def test_later_cases_change_nothing():
    now = ENSEMBLE[:300].recal.monitor(TRUTH)
    xr.testing.assert_identical(ENSEMBLE.recal.monitor(TRUTH).isel(time=slice(300)), now)


def test_missing_cases_leave_the_evidence():
    gappy = TRUTH.copy()
    gappy[40:60], gappy[70, 0, 0] = np.nan, np.nan
    found = ENSEMBLE.recal.monitor(gappy, restart=None)
    assert found.e_value.notnull().all()
    np.testing.assert_array_equal(found.e_value[40:60], found.e_value[[39] * 20])
    assert found.e_value[70, 0, 0] == found.e_value[69, 0, 0]


def test_attributes():
    forecast = ENSEMBLE.assign_attrs(history="made")
    forecast = forecast.assign_coords(height=2.0, name=("lat", [1, 2]))
    found = forecast.recal.monitor(TRUTH)
    assert found.attrs == {
        "alpha": 0.01,
        "run_length": 3650,
        "history": "made\nxrecal: monitoring over 'time'",
    }
    assert {"height", "name", "restarts"} <= set(found.coords)
    assert all(found[name].attrs["long_name"] for name in NAMES)
    assert found.e_value.attrs["units"] == found.change_statistic.attrs["units"] == "1"
    single = daily(np.float32)
    assert single[0].recal.monitor(single[1]).e_value.dtype == np.float64


def test_augmented_ensembles_are_calibrated():
    rng = np.random.default_rng(1)
    values = xr.DataArray(rng.normal(size=(3000, 8)), dims=["time", "member"])
    truth, rest = values.isel(member=0, drop=True), values.isel(member=slice(1, None))
    assert rest.recal.monitor(truth, restart=None).alarm[-1]
    assert not rest.recal.monitor(truth, restart=None, augmented=True).alarm[-1]


# restarts -----------------------------------------------------------------------------------------


def test_restarts():
    pit = NORMAL.recal.pit(TRUTH).isel(lat=0, lon=0).to_numpy()[np.newaxis]
    for restart, stretch in ((None, np.zeros(N)), (100, np.arange(N) // 100)):
        found = NORMAL.recal.monitor(TRUTH, restart=restart).isel(lat=0, lon=0)
        np.testing.assert_array_equal(found.e_value, of_arrays(pit, 1, stretch)[0])
        assert int(found.restarts.sum()) == np.unique(stretch).size
    with pytest.raises(ValueError, match="restart is 'month'; give 'year', a positive number"):
        NORMAL.recal.monitor(TRUTH, restart="month")
    with pytest.raises(ValueError, match="restart is 0; give 'year', a positive number of"):
        NORMAL.recal.monitor(TRUTH, restart=0)


def test_years_need_dates_and_cases():
    bare = ENSEMBLE.drop_vars("time"), TRUTH.drop_vars("time")
    with pytest.raises(ValueError, match=r"needs dates along 'time'; .* restart=365, or restart=N"):
        bare[0].recal.monitor(bare[1])
    monthly = hindcast(n=40)
    with pytest.warns(
        UserWarning, match="each year, but a year has at most 13 cases, too few to find errors"
    ):
        monthly[0].recal.monitor(monthly[1])
    monthly[0][:10].recal.monitor(monthly[1], restart=None)
    dates = xr.date_range("2025-12-20", periods=20)
    first = [a[{"time": slice(20)}].assign_coords(time=dates) for a in (ENSEMBLE, TRUTH)]
    first[0].recal.monitor(first[1])  # parts of two years
    two_years = monthly[0][:20], monthly[1][:20]
    with pytest.warns(
        UserWarning, match="each year, but a year has at most 12 cases, too few to find errors"
    ):
        two_years[0].recal.monitor(two_years[1])


@pytest.mark.parametrize(
    ("time", "none"),
    [
        (np.arange(N) + 7, np.isnan),
        (None, np.isnan),
        (
            xr.date_range("2020-01-01", periods=N, calendar="noleap", use_cftime=True),
            lambda s: s is None,
        ),
    ],
)
def test_labels_of_any_kind_say_since_when(time, none):
    given = [a.isel(lat=0, lon=0).drop_vars("time") for a in (ENSEMBLE, TRUTH)]
    if time is not None:
        given = [a.assign_coords(time=time) for a in given]
    found = given[0].recal.monitor(given[1], restart=None)
    expected = ENSEMBLE.isel(lat=0, lon=0).recal.monitor(TRUTH.isel(lat=0, lon=0), restart=None)
    before = expected.since.isnull().to_numpy()
    assert 0 < before.sum() < N
    assert all(none(s) for s in found.since.to_numpy()[before])
    begun = np.searchsorted(TRUTH.time, expected.since[~before])
    wanted = begun if time is None else time[begun]
    np.testing.assert_array_equal(found.since[~before], wanted)


# leads --------------------------------------------------------------------------------------------


def by_lead():
    """Standard normal forecasts (init, lead, place) of values that depend on each other for days.

    And what verified. Leads are one and five days.
    """
    rng = np.random.default_rng(4)
    days = np.datetime64("2020-01-01", "ns") + np.arange(N + 9) * np.timedelta64(1, "D")
    noise = rng.normal(size=(N + 9, 2))
    values = sum(np.roll(noise, i, axis=0) for i in range(5)) / 5**0.5
    truth = xr.DataArray(values, {"time": days}, ["time", "place"], "t2m")
    coords = {"init": days[:N], "lead": np.array([1, 5]) * np.timedelta64(1, "D")}
    loc = xr.DataArray(np.zeros((N, 2, 2)), coords, ["init", "lead", "place"], "t2m")
    return xrecal.gaussian(loc, 0 * loc + 1), truth


def test_each_lead_has_its_own_lag():
    forecast, truth = by_lead()
    found = forecast.recal.monitor(truth)
    pit = forecast.recal.pit(truth)
    years = pit.init.dt.year.to_numpy()
    for i, h in enumerate((1, 5)):
        row, here = pit.isel(lead=i, place=1).to_numpy()[np.newaxis], found.isel(lead=i, place=1)
        np.testing.assert_array_equal(here.e_value, of_arrays(row, h, years)[0])
        np.testing.assert_array_equal(here.change_statistic, of_arrays(row, h)[2])
    told = forecast.recal.monitor(truth, lag=5)
    np.testing.assert_array_equal(told.e_value.isel(lead=1), found.e_value.isel(lead=1))
    lazy = forecast.chunk(lead=1, place=1).recal.monitor(truth)
    xr.testing.assert_identical(lazy.compute(), found)


def test_a_single_lead_keeps_its_lag():
    forecast, truth = by_lead()
    expected = forecast.recal.monitor(truth)
    verified = truth.sel(time=forecast.init + forecast.lead).drop_vars("time")
    for i in (0, 1):
        found = forecast.isel(lead=i).recal.monitor(verified.isel(lead=i))
        xr.testing.assert_equal(found.e_value, expected.e_value.isel(lead=i))


def test_regions_of_each_lead():
    forecast, truth = by_lead()
    found = forecast.recal.monitor(truth, ["init", "place"])
    pit = forecast.recal.pit(truth).transpose("lead", "place", "init").to_numpy()
    years = found.init.dt.year.to_numpy()
    np.testing.assert_array_equal(found.e_value.isel(lead=1), of_arrays(pit[1], 5, years)[0])
    message = r"leads along 'lead' verify at different times, .*; leave them out of dim"
    with pytest.raises(ValueError, match=message):
        forecast.recal.monitor(truth, ["init", "lead"])


# errors -------------------------------------------------------------------------------------------


def test_what_cannot_be_watched():
    for alpha in (0, 1, -0.1, [0.1]):
        with pytest.raises(ValueError, match=r"alpha is .*; give a probability between 0 and 1"):
            ENSEMBLE.recal.monitor(TRUTH, alpha=alpha)
    with pytest.raises(ValueError, match="run_length is 0; give a whole number from 1"):
        ENSEMBLE.recal.monitor(TRUTH, run_length=0)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        ENSEMBLE.recal.monitor(TRUTH, seed=0.5)
    with pytest.raises(ValueError, match="lag is 0; give a whole number from 1"):
        ENSEMBLE.recal.monitor(TRUTH, lag=0)
    message = r"runs along 'time', in order of time, but dim is \['lat'\]; leave dim out"
    with pytest.raises(ValueError, match=message):
        ENSEMBLE.recal.monitor(TRUTH, "lat")


def test_a_selected_lead_begins_anew_with_the_year_of_its_starts():
    rng = np.random.default_rng(0)
    start = np.datetime64("2020-07-01", "ns") + np.arange(400) * np.timedelta64(1, "D")
    leads = np.array([5, 20]) * np.timedelta64(1, "D")
    valid = start[:, np.newaxis] + leads
    truth = xr.DataArray(
        rng.normal(size=430), {"time": start[0] + np.arange(430) * np.timedelta64(1, "D")}, ["time"]
    )
    at = np.arange(400)[:, np.newaxis] + np.array([5, 20])
    forecasts = xr.DataArray(
        truth.to_numpy()[at][..., np.newaxis] + rng.normal(size=(400, 2, 6)),
        {"init": start, "lead": leads, "valid_time": (("init", "lead"), valid)},
        ["init", "lead", "member"],
    )
    whole = forecasts.recal.monitor(truth, restart="year")
    for k in range(2):
        one = forecasts.isel(lead=k).recal.monitor(truth, restart="year")
        np.testing.assert_array_equal(one["e_value"], whole["e_value"].isel(lead=k))
        np.testing.assert_array_equal(one["restarts"], whole["restarts"])
