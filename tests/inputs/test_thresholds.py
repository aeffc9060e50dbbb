"""Thresholds by part of the year; numbers and locations are tested with the products."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import FORMS, ensemble_and_truth, new_cases

HINDCAST, TRUTH = ensemble_and_truth(n=30)
NEW, VERIFIED = new_cases(n=15)
RNG = np.random.default_rng(3)
LABELS = {
    "month": np.arange(1, 13),
    "dayofyear": np.arange(1, 367),
    "season": np.array(["DJF", "MAM", "JJA", "SON"]),
}
PLACES = {"lat": NEW.lat, "lon": NEW.lon}


def by(part, *places):
    """Thresholds by part of the year, and perhaps location."""
    sizes = [LABELS[part].size, *(NEW.sizes[d] for d in places)]
    coords = {part: LABELS[part], **{d: PLACES[d] for d in places}}
    values = 280 + 3 * RNG.normal(size=sizes)
    return xr.DataArray(values, coords, [part, *places], attrs={"units": "K"})


def by_date(threshold, part, dates=NEW.time):
    """The same for each date, as xarray selects it."""
    return threshold.sel({part: getattr(dates.dt, part)}).drop_vars(part)


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


@pytest.mark.parametrize("places", [(), ("lon", "lat")])
@pytest.mark.parametrize("part", LABELS)
@pytest.mark.parametrize("dims", [NEW.dims, ("lon", "member", "lat", "time")])
def test_the_part_of_the_year_is_that_of_each_case(part, places, dims):
    threshold, forecast = by(part, *places), NEW.transpose(*dims)
    dated = by_date(threshold, part)
    assert np.unique(dated).size > 3
    found = forecast.recal.exceedance(threshold.transpose(*places, part))
    assert found.dims == tuple(d for d in dims if d != "member")
    np.testing.assert_array_equal(found, (forecast > dated).mean("member").transpose(*found.dims))
    xr.testing.assert_identical(found, forecast.recal.exceedance(dated))


@pytest.mark.parametrize("form", FORMS)
def test_every_product_and_score_takes_them(form):
    forecast, model = FORMS[form](NEW), FORMS[form](HINDCAST).recal.fit(TRUTH, xrecal.EMOS())
    threshold = by("month", "lat")
    dated = by_date(threshold, "month")
    two = xr.concat([threshold, threshold + 1], "edge").transpose("edge", ...)
    calls = {
        "exceedance": lambda t, _: forecast.recal.exceedance(t),
        "cdf": lambda t, _: forecast.recal.cdf(t),
        "categories": lambda _, e: forecast.recal.categories(e),
        "of a model": lambda t, _: model.exceedance(forecast, t),
        "cdf of a model": lambda t, _: model.cdf(forecast, t),
        "brier score": lambda t, _: forecast.recal.brier_score(VERIFIED, t),
        "ranked": lambda _, e: forecast.recal.ranked_probability_score(VERIFIED, e),
        "reliability": lambda t, _: forecast.recal.reliability(VERIFIED, t),
        "crps": lambda t, _: forecast.recal.crps(VERIFIED, lower=t),
    }
    for call in calls.values():
        found, expected = call(threshold, two), call(dated, by_date(two, "month"))
        xr.testing.assert_identical(found, expected)
        assert array(found).notnull().all() if isinstance(found, xr.DataArray) else True


@pytest.mark.each_value
@pytest.mark.parametrize("chunks", [{"lat": 1}, {"time": (4, 10, 1)}, {"lon": 1, "time": 5}])
@pytest.mark.parametrize("lazy_threshold", [False, True])
def test_chunks_are_bit_equal_and_lazy(chunks, lazy_threshold):
    threshold, model = by("month", "lat", "lon"), HINDCAST.recal.fit(TRUTH)
    cut = threshold.chunk(month=5, lat=1) if lazy_threshold else threshold
    with forbid_compute():
        found = NEW.chunk(chunks).recal.exceedance(cut)
        of_model = model.exceedance(NEW.chunk(chunks), cut)
        score = NEW.chunk(chunks).recal.brier_score(VERIFIED, cut)
    xr.testing.assert_identical(found.compute(), NEW.recal.exceedance(threshold))
    xr.testing.assert_allclose(of_model.compute(), model.exceedance(NEW, threshold), rtol=1e-12)
    xr.testing.assert_identical(score.compute(), NEW.recal.brier_score(VERIFIED, threshold))
    if not lazy_threshold:
        assert found.chunksizes["time"] == NEW.chunk(chunks).chunksizes["time"]
    with forbid_compute():
        assert NEW.recal.exceedance(threshold.chunk()).chunks is not None


def test_few_thresholds_of_many_cases_fill_no_memory():
    import dask.array

    values = dask.array.zeros((10_000, 2, 2000, 2000), chunks=(1, 2, 2000, 2000), dtype="f4")
    dates = xr.date_range("1900-01-01", periods=10_000, freq="D", use_cftime=False)
    forecast = xr.DataArray(values, {"time": dates}, ["time", "member", "lat", "lon"])
    monthly = xr.DataArray(np.zeros((12, 2000, 2000), "f4"), dims=["month", "lat", "lon"])
    with forbid_compute():  # repeated for each day they would take 160 GB
        found = forecast.recal.exceedance(monthly.assign_coords(month=LABELS["month"]))
    assert found.shape == (10_000, 2000, 2000)


# dates --------------------------------------------------------------------------------------------


def test_valid_time_counts_before_the_date_of_issue():
    threshold = by("month", "lat")
    valid = NEW.assign_coords(valid_time=("time", NEW.time.to_numpy() + np.timedelta64(61, "D")))
    found, expected = (
        valid.recal.exceedance(threshold),
        by_date(threshold, "month", valid.valid_time),
    )
    np.testing.assert_array_equal(found, valid.recal.exceedance(expected.drop_vars("valid_time")))
    assert not found.equals(NEW.recal.exceedance(threshold))
    named = valid.rename(valid_time="t")
    named["t"].attrs["standard_name"] = "time"
    np.testing.assert_array_equal(named.recal.exceedance(threshold), found)


def test_valid_times_over_start_and_lead():
    leads = xr.DataArray([20, 50], dims="lat").astype("timedelta64[D]").astype("timedelta64[ns]")
    forecast = NEW.rename(lat="lead", time="init")
    valid = forecast.init + leads.rename(lat="lead").drop_vars("lat", errors="ignore")
    forecast = forecast.drop_vars("lead").assign_coords(valid_time=valid)
    threshold = by("month")
    by_lead = xr.concat([threshold, threshold + 2], "lead")
    for given in (threshold, by_lead):
        found = forecast.recal.exceedance(given)
        for lead in range(2):
            one = forecast.isel(lead=lead)
            here = given.isel(lead=lead) if "lead" in given.dims else given
            expected = here.sel(month=one.valid_time.dt.month).drop_vars(["month", "valid_time"])
            np.testing.assert_array_equal(found.isel(lead=lead), one.recal.exceedance(expected))
    with pytest.raises(
        ValueError, match=r"have a lead time, 'lead', and 'init' may be their dates of issue"
    ):
        forecast.drop_vars("valid_time").recal.exceedance(threshold)
    now = forecast.drop_vars("valid_time").isel(lead=0).assign_coords(lead=np.timedelta64(0, "ns"))
    assert now.recal.exceedance(threshold).notnull().all()
    lazy = forecast.assign_coords(valid_time=forecast.valid_time.chunk())
    expected = forecast.recal.exceedance(threshold)
    np.testing.assert_array_equal(lazy.recal.exceedance(threshold), expected)


@pytest.mark.parametrize("part", LABELS)
def test_dates_of_other_calendars(part):
    dates = xr.date_range("2011-01-15", periods=15, freq="25D", calendar="360_day", use_cftime=True)
    forecast, threshold = NEW.assign_coords(time=dates), by(part, "lat")
    expected = by_date(threshold, part, forecast.time)
    np.testing.assert_array_equal(
        forecast.recal.exceedance(threshold), forecast.recal.exceedance(expected)
    )
    none = forecast.isel(time=slice(0))
    assert none.recal.exceedance(threshold).sizes == {"time": 0, "lat": 2, "lon": 2}


def test_a_single_forecast_is_dated_by_its_scalar():
    threshold, model = by("month", "lat", "lon"), HINDCAST.recal.fit(TRUTH)
    today = NEW.isel(time=4)
    assert today.recal.exceedance(threshold).equals(NEW.recal.exceedance(threshold).isel(time=4))
    np.testing.assert_allclose(
        model.exceedance(today, threshold), model.exceedance(NEW, threshold).isel(time=4)
    )


def test_a_dimension_of_the_forecast_is_no_part_of_the_year():
    monthly = NEW.isel(lat=slice(2)).rename(lat="month").assign_coords(month=[1, 2])
    threshold = xr.DataArray([279.0, 281.0], {"month": [1, 2]}, ["month"])
    found = monthly.recal.exceedance(threshold)
    np.testing.assert_array_equal(found, (monthly > threshold).mean("member"))


# errors -------------------------------------------------------------------------------------------


TWO_DATES = NEW.rename(lat="day").assign_coords(day=NEW.time[:2].to_numpy()).rename(time="when")
MONTHLY, WINTER = by("month", "lat"), ["winter", "MAM", "JJA", "SON"]
ERRORS = [
    (NEW.drop_vars("time"), MONTHLY, "needs the dates of the forecasts, but these have none"),
    (NEW.assign_coords(time=np.arange(15)), MONTHLY, r"threshold\.rename\(month='level'\)"),
    (
        NEW,
        MONTHLY.sel(month=[1, *range(4, 13)]),
        "threshold has no value for month 2, 3, in which .*; it has 1, 4, 5",
    ),
    (NEW, MONTHLY.drop_vars("month"), r"assign_coords\(month=range\(1, 13\)\)"),
    (NEW, MONTHLY[[0, 0, 1]], "labels along 'month' of threshold must be unique"),
    (NEW, by("season").assign_coords(season=WINTER), "threshold has no value for season DJF"),
    (
        NEW.assign_coords(valid_time=NEW.time.where(NEW.time > NEW.time[0])),
        MONTHLY,
        "some dates in 'valid_time' are missing",
    ),
    (NEW, MONTHLY.assign_attrs(units="degC"), "forecast is in K but threshold is in degC"),
    (TWO_DATES, by("month"), r"these have several, \['when', 'day'\]"),
]


@pytest.mark.parametrize(("forecast", "threshold", "message"), ERRORS)
def test_errors_say_what_to_type(forecast, threshold, message):
    with pytest.raises(ValueError, match=message):
        forecast.recal.exceedance(threshold)


def test_inputs_stay_as_they_are():
    threshold = by("month", "lat")
    before, forecast = threshold.copy(deep=True), NEW.copy(deep=True)
    forecast.recal.exceedance(threshold)
    assert threshold.identical(before)
    assert forecast.identical(NEW)
