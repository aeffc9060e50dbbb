"""Observations over valid time, looked up for forecasts over starts and leads."""

from pathlib import Path

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute, requires_data
from xrecal.inputs.forms import read_forms
from xrecal.inputs.pairing import pair_cases

EXAMPLES = Path(__file__).parents[2] / "examples"
N = 40
STARTS = xr.date_range("2000-01-01", periods=N, freq="12D", use_cftime=False)
LEADS = [1, 4, 20]
SIZES = {"init": N, "time": N, "lead": 3, "lat": 2, "member": 4}
TIMES = xr.date_range("2000-01-05", periods=480, freq="D", use_cftime=False)


def hindcast(*dims, start="init", seed=0, **coords):
    """Forecasts over starts and leads."""
    coords = {start: STARTS, "lead": ("lead", LEADS, {"units": "days"})} | coords
    dims = dims or (start, "lead", "lat", "member")
    return random(*dims, seed=seed, sizes=SIZES | {start: N}, **coords)


def observed(*dims, time="time", dates=TIMES, seed=1, **coords):
    """Observations over valid time."""
    sizes = SIZES | {time: len(dates)}
    return random(
        *(dims or (time, "lat")), seed=seed, sizes=sizes, name="obs", **{time: dates}, **coords
    )


HINDCAST, OBSERVED = hindcast(), observed()


def by_hand(forecasts, observations, time="time", start="init"):
    """Observations at starts and leads in days: one by one, NaN where there is none."""
    known = {pd.Timestamp(t): i for i, t in enumerate(observations[time].to_numpy())}
    rest = [d for d in observations.dims if d != time]
    values = observations.transpose(time, *rest).to_numpy()
    found = np.full((forecasts.sizes[start], forecasts.sizes["lead"], *values.shape[1:]), np.nan)
    for i, first in enumerate(forecasts[start].to_numpy()):
        for j, lead in enumerate(forecasts["lead"].to_numpy()):
            place = known.get(pd.Timestamp(first) + pd.Timedelta(int(lead), "D"))
            if place is not None:
                found[i, j] = values[place]
    coords = {d: forecasts[d] for d in (start, "lead")}
    coords |= {d: observations[d] for d in rest if d in observations.indexes}
    return xr.DataArray(
        found.astype(observations.dtype), coords, [start, "lead", *rest], "obs", observations.attrs
    )


AT_LEADS = by_hand(HINDCAST, OBSERVED)


def pair(forecasts, observations, dim=None, require_dim=True):
    (form,) = read_forms(forecasts).values()
    return pair_cases(form, observations, dim, name="hindcast", require_dim=require_dim)


# matching -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"time": 50}, {"time": 50, "lat": 1}])
@pytest.mark.parametrize("chunked", [False, True])
def test_each_start_and_lead_gets_the_observation_at_its_valid_time(dtype, chunks, chunked):
    forecasts = HINDCAST.assign_attrs(units="K")
    forecasts = forecasts.chunk(lat=1) if chunked else forecasts
    observations = OBSERVED.astype(dtype).assign_attrs(units="K")
    lazy = observations if chunks is None else observations.chunk(chunks)
    with forbid_compute():
        pairs = pair(forecasts, lazy)
    expected = by_hand(HINDCAST, observations)
    found = pairs.observations.transpose("init", "lead", "lat")
    xr.testing.assert_identical(found, expected)
    assert found.dtype == dtype
    assert np.isnan(expected).any()
    assert (found.chunks is not None) == (chunks is not None)
    if chunks is not None:
        assert found.chunksizes["init"] == (N,)
        assert found.chunksizes["lead"] == (3,)
    counts = expected.notnull().isel(lat=0).sum("init")
    assert pairs.leads.n_matched == tuple(counts.to_numpy())
    assert pairs.n_matched == max(pairs.leads.n_matched)


@pytest.mark.parametrize(
    ("start", "time"),
    [("init", "time"), ("init", "valid_time"), ("init", "day"), ("time", "time"), ("init", "init")],
)
def test_names_of_dimensions_may_differ(start, time):
    forecasts, observations = hindcast(start=start), observed(time=time)
    found = pair(forecasts, observations).observations
    expected = by_hand(forecasts, observations, time, start)
    xr.testing.assert_identical(found.transpose(*expected.dims), expected)


def test_observations_may_lack_locations_or_be_unsorted():
    observations = OBSERVED.isel(lat=0, drop=True)
    mixed = observations.isel(time=np.random.default_rng(0).permutation(480))
    found = pair(HINDCAST, mixed.assign_coords(lead=3.0, init=7.0, station="x")).observations
    xr.testing.assert_identical(found, by_hand(HINDCAST, observations))


def test_observations_at_starts_and_leads_stay_as_they_are():
    pairs = pair(HINDCAST, AT_LEADS)
    xr.testing.assert_identical(pairs.observations, AT_LEADS)
    assert pairs.leads.n_matched == (N,) * 3


def test_a_dimension_of_valid_times_is_no_start():
    forecasts = hindcast(start="valid_time")
    observations = observed(time="valid_time", dates=STARTS)
    pairs = pair(forecasts, observations, "valid_time")
    xr.testing.assert_identical(pairs.observations, observations)
    assert pairs.leads is None


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_other_calendars(calendar):
    starts = xr.date_range("2000-01-30", periods=N, freq="MS", calendar=calendar, use_cftime=True)
    times = xr.date_range("2000-01-01", periods=60, freq="MS", calendar=calendar, use_cftime=True)
    forecasts = hindcast(init=starts, lead=("lead", [0, 1, 2], {"units": "months"}))
    observations = observed(dates=times)
    found = pair(forecasts, observations).observations
    for j in range(3):  # starts begin in the second month
        np.testing.assert_array_equal(
            found.isel(lead=j).transpose("init", "lat"), observations[1 + j : 1 + j + N]
        )


def test_years():
    forecasts = hindcast(
        init=np.arange(1960, 1960 + N), lead=("lead", [1, 2, 10], {"units": "years"})
    )
    observations = observed(time="year", dates=np.arange(1950, 2003))
    found = pair(forecasts, observations).observations.transpose("init", "lead", "lat")
    for j, lead in enumerate([1, 2, 10]):
        expected = observations.reindex(year=np.arange(1960, 1960 + N) + lead)
        np.testing.assert_array_equal(found[:, j], expected)


def test_a_single_forecast():
    one = HINDCAST.isel(init=3)
    for forecast in (one, one.drop_vars("init").assign_coords(time=STARTS[3])):
        pairs = pair(forecast, OBSERVED, require_dim=False)
        xr.testing.assert_identical(
            pairs.observations.transpose("lead", "lat"), AT_LEADS.isel(init=3, drop=True)
        )
    plain = random("lead", "lat", seed=4, sizes=SIZES)
    xr.testing.assert_identical(pair(one, plain, require_dim=False).observations, plain)
    alone = OBSERVED.isel(time=0, drop=True)
    xr.testing.assert_identical(pair(one, alone, require_dim=False).observations, alone)


def test_inputs_stay_unchanged():
    forecasts, observations = hindcast(), observed()
    before = forecasts.copy(deep=True), observations.copy(deep=True)
    pair(freeze(forecasts), freeze(observations))
    assert forecasts.identical(before[0])
    assert observations.identical(before[1])


# few or no matches --------------------------------------------------------------------------------


def test_less_than_half_matched_warns_where_the_user_called():
    few = OBSERVED.isel(time=slice(0, 120))
    n = int(by_hand(HINDCAST, few).notnull().isel(lat=0).sum())
    for call in (
        lambda: HINDCAST.recal.fit(few, xrecal.EMOS(), min_samples=5),
        lambda: HINDCAST.recal.crps(few),
    ):
        with pytest.warns(UserWarning, match=f"only {n} of 120 forecasts over starts and") as found:
            call()
        assert len(found) == 1
        assert found[0].filename == __file__


ERRORS = {
    "none": (
        HINDCAST,
        observed(dates=TIMES + np.timedelta64(9999, "D")),
        r"no valid time of hindcast \(first: 2000-01-02, 2000-01-05, 2000-01-21\) has an "
        r"observation along 'time' \(first: 2027-05-22, 2027-05-23, 2027-05-24",
    ),
    "nothing": (HINDCAST, OBSERVED[:0], r"no valid time of hindcast .* along 'time' \(first: none"),
    "times twice": (
        HINDCAST,
        OBSERVED.isel(time=[0, 0, 1, 2]),
        r"'time' of observations must be unique, but 2000-01-05 00:00:00 occurs .*drop_dup",
    ),
    "starts twice": (
        HINDCAST.isel(init=[0, 0, 1]),
        OBSERVED,
        "labels along 'init' of hindcast must be unique, but 2000-01-01",
    ),
    "no labels": (
        HINDCAST,
        OBSERVED.drop_vars("time"),
        "observations have no labels along 'time' to match by",
    ),
    "no dates": (
        HINDCAST,
        OBSERVED.assign_coords(time=np.arange(480)),
        r"are datetime64 \(first: 2000-01-02\), but labels of observations along 'time' are int64 "
        r"\(first: 0\); give them dates: observations.assign_coords\(time=DATES\)",
    ),
    "no time": (
        HINDCAST,
        OBSERVED.isel(time=0, drop=True),
        r"observations lack the calibration dimension 'init' of hindcast; they have \['lat'\]. As "
        "hindcast has lead times along 'lead', observations may be over valid time: a "
        "dimension with",
    ),
    "other dimension": (
        HINDCAST,
        OBSERVED.drop_vars("time").rename(time="x"),
        r"observations have dimensions \['x'\] that hindcast lacks.* may be over valid time",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    forecasts, observations, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        pair(forecasts, observations)


def cf_dates(calendar, start="2000-01-01", n=380):
    return xr.date_range(start, periods=n, freq="D", calendar=calendar, use_cftime=True)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("datetime64", "noleap"),
        ("datetime64", "standard"),
        ("datetime64", "360_day"),
        ("noleap", "datetime64"),
        ("standard", "datetime64"),
        ("360_day", "datetime64"),
        ("noleap", "360_day"),
    ],
)
def test_calendars_must_agree_and_the_message_helps(mine, theirs):
    starts, dates = (TIMES if kind == "datetime64" else cf_dates(kind) for kind in (mine, theirs))
    forecasts, observations = hindcast(init=starts[: 9 * N : 9]), observed(dates=dates)
    with pytest.raises(ValueError, match=rf"are {mine} \(first.* are {theirs} \(first") as error:
        pair(forecasts, observations)
    typed = str(error.value).rpartition("; use ")[2]
    converted = eval(typed, {"observations": observations})
    found = pair(forecasts, converted).observations
    first = forecasts.indexes["init"][5] + pd.Timedelta(4, "D").to_pytimedelta()
    np.testing.assert_array_equal(found[:, 5, 1], converted.sel(time=first))


def test_years_against_dates():
    forecasts = hindcast(
        init=np.arange(2000, 2000 + N), lead=("lead", [1, 2, 10], {"units": "years"})
    )
    dates = xr.date_range("1998-01-01", periods=60, freq="YS", use_cftime=False)
    observations = observed(dates=dates)
    with pytest.raises(ValueError, match="for years use observations") as error:
        pair(forecasts, observations)
    typed = str(error.value).rpartition(" use ")[2]
    found = pair(forecasts, eval(typed, {"observations": observations})).observations
    np.testing.assert_array_equal(found[:, 0, 2], observations[12])


def test_standard_calendar_of_cftime_on_both_sides():
    starts = np.array([cftime.datetime(2000, 1, 1 + i) for i in range(20)])
    forecasts = random(
        "init", "lead", "member", sizes={"init": 20}, init=starts,
        lead=("lead", [0.0, 0.5, 1.0], {"units": "days"}),
    )  # fmt: skip
    observations = observed("time", dates=cf_dates("standard", n=30))
    found = pair(forecasts, observations).observations
    np.testing.assert_array_equal(found.sel(lead=1.0), observations[1:21])
    assert found.sel(lead=0.5).isnull().all()


# real data ----------------------------------------------------------------------------------------


@requires_data("gmao_mjo_rmm1.nc", "glofas_discharge.nc")
@pytest.mark.parametrize("name", ["gmao_mjo_rmm1", "glofas_discharge"])
def test_a_series_over_valid_time_gives_back_the_observations_at_the_leads(name, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from multi_lead import series_of
    from real_data import open_data

    data = open_data(f"{name}.nc")
    series = series_of(data.observation)
    assert set(series.dims) == set(data.observation.dims) - {"init", "lead"} | {"time"}
    forecast = data.forecast.drop_vars("valid_time").isel(lead=slice(None, None, 3))
    expected = data.observation.isel(lead=slice(None, None, 3))
    for given in ((forecast, series), (forecast.chunk(), series.chunk(time=1000))):
        with forbid_compute():
            pairs = pair(*given)
        np.testing.assert_array_equal(pairs.observations.transpose(*expected.dims), expected)
        assert pairs.leads.n_matched == (data.sizes["init"],) * forecast.sizes["lead"]
