"""Leads of any unit are one, those of another length are not; valid times say how long leads are.

Valid times may have other names, and leads no labels.
"""

import cftime
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

STARTS = pd.date_range("2021-03-01", periods=40)
DAYS = np.array([1, 2, 4])
RNG = np.random.default_rng(5)
TIMES = STARTS.to_numpy()[:, np.newaxis] + DAYS.astype("timedelta64[D]")
OF_MODEL = [[cftime.DatetimeNoLeap(2021, 4, 1 + d) for d in DAYS]] * 40
FLOW = xr.DataArray(
    RNG.normal(size=60), {"time": pd.date_range("2021-03-01", periods=60)}, ["time"], name="flow"
)
TRUTH = FLOW.sel(time=xr.DataArray(TIMES, dims=["init", "lead"])).to_numpy()
SCALE = np.array([0.2, 1.0, 3.0])[:, np.newaxis]
MEMBERS = TRUTH[..., np.newaxis] * SCALE + RNG.normal(size=(40, 3, 5))

IN_DAYS = ("lead", DAYS, {"units": "days"})
SAME = {
    "hours": ("lead", DAYS * 24, {"units": "hours"}),
    "float32": ("lead", DAYS.astype(np.float32), {"units": "d"}),
    "timedelta": ("lead", DAYS.astype("timedelta64[D]").astype("timedelta64[ns]")),
}
OTHER = {
    "hours": ("lead", DAYS, {"units": "hours"}),
    "months": ("lead", DAYS, {"units": "months"}),
    "timedelta": ("lead", DAYS.astype("timedelta64[h]").astype("timedelta64[ns]")),
}
FORECAST = xr.DataArray(
    MEMBERS, {"init": STARTS, "lead": IN_DAYS}, ["init", "lead", "member"], name="flow"
)
OBSERVED = xr.DataArray(TRUTH, {"init": STARTS, "lead": IN_DAYS}, ["init", "lead"])
BACKWARDS = {"lead": slice(None, None, -1)}


def crps(members, truth):
    between = np.abs(members[..., :, np.newaxis] - members[..., np.newaxis, :]).mean((-1, -2))
    return np.abs(members - truth[..., np.newaxis]).mean(-1) - between / 2


CALLS = {
    "crps": lambda forecast, other: forecast.recal.crps(other),
    "exceedance": lambda forecast, other: forecast.recal.exceedance(other.mean("init")),
    "covariates": lambda forecast, other: MODEL.quantile(forecast, 0.5, covariates={"z": other}),
}
MODEL = FORECAST.recal.fit(OBSERVED, xrecal.EMOS(condition_on="z"), covariates={"z": OBSERVED})


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("at", [slice(None), 1], ids=["all", "single"])
def test_leads_in_another_unit_and_order_are_one_and_equal_numbers_are_not(at, call):
    forecast = FORECAST.isel(lead=at)
    expected = CALLS[call](forecast, OBSERVED)
    for unit in SAME.values():
        found = CALLS[call](forecast, OBSERVED.assign_coords(lead=unit).isel(BACKWARDS))
        np.testing.assert_allclose(found.transpose(*expected.dims), expected)
        assert (found.lead == forecast.lead).all()
    for unit in OTHER.values():
        with pytest.raises(ValueError, match="lead"):
            CALLS[call](forecast, OBSERVED.assign_coords(lead=unit))


def test_the_error_names_both_units():
    with pytest.raises(ValueError, match="units days in forecast, hours in observations"):
        FORECAST.recal.crps(OBSERVED.assign_coords(lead=OTHER["hours"]))
    reference = FORECAST.recal.crps(OBSERVED).assign_coords(lead=OTHER["months"])
    with pytest.raises(ValueError, match="units days in scores, months in reference"):
        xrecal.skill(FORECAST.recal.crps(OBSERVED), reference)


def test_one_lead_of_forecasts_and_of_observations():
    one = FORECAST.isel(lead=1)
    for same in SAME.values():
        found = one.recal.crps(OBSERVED.assign_coords(lead=same).isel(lead=1))
        np.testing.assert_allclose(found, crps(MEMBERS, TRUTH)[:, 1])
    for other in OTHER.values():
        with pytest.raises(ValueError, match="their own dates or the starts"):
            one.recal.crps(OBSERVED.assign_coords(lead=other).isel(lead=1))


def test_leads_in_parts_of_days_in_single_precision():
    hours = np.array([7, 31, 50])
    when = pd.date_range("2021-03-01", periods=24 * 50, freq="h")
    flow = xr.DataArray(RNG.normal(size=when.size), {"time": when}, ["time"])
    days = ("lead", (hours / 24).astype(np.float32), {"units": "days"})
    found = FORECAST.assign_coords(lead=days).recal.crps(flow)
    own = STARTS.to_numpy()[:, np.newaxis] + hours.astype("timedelta64[h]")
    truth = flow.sel(time=xr.DataArray(own, dims=["init", "lead"])).to_numpy()
    np.testing.assert_allclose(found.transpose("init", "lead"), crps(MEMBERS, truth))


@pytest.mark.parametrize("name", ["target_end_date", "verification_time", "validTime"])
def test_cases_along_valid_times_of_another_name(name):
    """A forecast of a day, of each lead, is verified on that day, not so many days later."""
    forecast = FORECAST.rename(init=name)
    flow = xr.DataArray(TRUTH[:, 0], {name: STARTS}, [name])
    found = forecast.recal.crps(flow).transpose(name, "lead")
    np.testing.assert_allclose(found, crps(MEMBERS, np.repeat(TRUTH[:, :1], 3, 1)))
    with pytest.raises(ValueError, match="Rename"):
        forecast.recal.crps(flow.rename({name: "time"}))


@pytest.mark.parametrize("name", ["target_date", "verif_time"])
def test_valid_times_of_another_name_beside_starts(name):
    """Starts two days before, where the lead itself is not written."""
    given = ("init", STARTS + pd.Timedelta(2, "D"))
    forecast = FORECAST.isel(lead=1, drop=True).assign_coords({name: given})
    expected = crps(MEMBERS[:, 1], FLOW.to_numpy()[2:42])
    np.testing.assert_allclose(forecast.recal.crps(FLOW), expected)
    assert forecast[name].attrs == {}


# leads without labels -----------------------------------------------------------------------------

BARE = FORECAST.drop_vars("lead").assign_coords(valid_time=(["init", "lead"], TIMES))
AT_VALID_TIMES = FORECAST.recal.fit(FLOW, xrecal.EMOS())
NEW = {"init": [3]}


def test_a_model_keeps_what_valid_times_say():
    model = BARE.recal.fit(FLOW, xrecal.EMOS())
    expected = AT_VALID_TIMES.quantile(FORECAST.isel(NEW), 0.5).isel(lead=[1, 0])
    for new in (FORECAST, BARE):
        found = model.quantile(new.isel(NEW).isel(lead=[1, 0]), 0.5)
        np.testing.assert_allclose(found, expected.transpose(*found.dims))
    assert "by position" not in repr(model)


def test_dates_of_another_calendar():
    starts = xr.date_range("2021-03-01", periods=40, calendar="noleap", use_cftime=True)
    valid = [[start + np.timedelta64(int(d), "D").astype(object) for d in DAYS] for start in starts]
    bare = BARE.assign_coords(init=starts, valid_time=(["init", "lead"], np.array(valid)))
    found = AT_VALID_TIMES.quantile(bare.isel(NEW).isel(lead=[2, 0]), 0.5)
    expected = AT_VALID_TIMES.quantile(FORECAST.isel(NEW), 0.5).isel(lead=[2, 0])
    np.testing.assert_allclose(found, expected.transpose(*found.dims))


def test_months_are_counted_by_position():
    """31, 59 and 90 days after January are other lengths after March."""
    starts = pd.date_range("1990-01-01", periods=40, freq="MS")
    valid = np.stack([starts + pd.DateOffset(months=int(m)) for m in DAYS], axis=1)
    coords = {"init": starts, "lead": ("lead", DAYS, {"units": "months"})}
    hindcast = FORECAST.assign_coords(coords)
    truth = xr.DataArray(TRUTH, hindcast.isel(member=0).coords, ["init", "lead"])
    model = hindcast.recal.fit(truth, xrecal.EMOS())
    bare = hindcast.drop_vars("lead").assign_coords(valid_time=(["init", "lead"], valid))
    expected = model.quantile(hindcast.isel(NEW), 0.5)
    np.testing.assert_allclose(model.quantile(bare.isel(NEW), 0.5), expected)


@pytest.mark.parametrize(
    "coords",
    [
        {"valid_time": (("init", "lead"), OF_MODEL)},
        {"valid_time": (("init", "lead"), TIMES), "lead": ("lead", DAYS, {"units": "furlongs"})},
    ],
    ids=["another calendar", "no unit of time"],
)
def test_valid_times_that_cannot_be_compared_with_leads_stay(coords):
    forecast = FORECAST.assign_coords(coords)
    found = forecast.recal.mean()
    for name in coords:
        xr.testing.assert_identical(found[name].variable, forecast[name].variable)


def test_cases_of_an_unknown_name_with_leads():
    forecast, observed = (a.rename(init="run") for a in (FORECAST, OBSERVED))
    forecast, observed = (a.assign_coords(run=np.arange(40.0)) for a in (forecast, observed))
    found = forecast.recal.crps(observed, ["run", "lead"])
    np.testing.assert_allclose(found, crps(MEMBERS, TRUTH).mean())
