"""Forecasts of one step, selected or as read, pair as those of all steps do at that one.

The law of ``tests/labels`` has all other calls.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.labelled import random

N = 36
DAYS = pd.date_range("2001-01-01", periods=N + 6, freq="D")
HOURS = np.array([24, 72], "m8[h]").astype("m8[ns]")
ANALYSIS = random("time", "x", seed=1, sizes={"time": N + 6, "x": 2}, time=DAYS)
STEPS = random("time", "step", "x", "number", sizes={"time": N, "step": 2, "x": 2}, time=DAYS[:N])
STEPS = STEPS.assign_coords(step=HOURS, surface=0.0)
EMOS = xrecal.EMOS()


def dated(forecasts):
    """Forecasts with their valid time, over starts and steps."""
    return forecasts.assign_coords(valid_time=forecasts.time + forecasts.step)


OBSERVATIONS = {
    "series": ANALYSIS,
    "analysis": ANALYSIS.assign_coords(
        valid_time=("time", DAYS), step=np.timedelta64(0, "h"), number=0, surface=0.0
    ),
    "analysis without valid time": ANALYSIS.assign_coords(step=np.timedelta64(0, "h"), number=0),
    "short forecasts": ANALYSIS.assign_coords(
        time=DAYS - pd.Timedelta(hours=6), valid_time=("time", DAYS), step=np.timedelta64(6, "h")
    ),
    "valid time alone": ANALYSIS.rename(time="valid_time"),
    "record": ANALYSIS.rename(time="record")
    .assign_coords(time=("record", DAYS))
    .drop_vars("record", errors="ignore"),
}


FORECASTS = {
    "valid time": dated(STEPS),
    "no valid time, starts by name": STEPS.rename(time="init"),
    "valid time of another name": dated(STEPS).rename(time="init", valid_time="time").drop_attrs(),
}
WHOLE = STEPS.recal.crps(ANALYSIS)


@pytest.mark.each_value
@pytest.mark.parametrize("observed", OBSERVATIONS)
@pytest.mark.parametrize("given", FORECASTS)
@pytest.mark.parametrize("select", [1, [1]], ids=["scalar", "length one"])
def test_one_step_pairs_as_all_steps_do(given, observed, select):
    forecasts = FORECASTS[given].isel(step=select)
    found = forecasts.recal.crps(OBSERVATIONS[observed])
    expected = WHOLE.isel(step=select)
    np.testing.assert_array_equal(found.transpose(..., "x"), expected.transpose(..., "x"))


def test_files_of_one_step():
    """As cfgrib reads them: a step beside, valid times over the starts, or without the step."""
    read = dated(STEPS).isel(step=1)
    wanted = WHOLE.isel(step=1)
    for forecasts in (read, read.drop_vars("step")):
        for observations in OBSERVATIONS.values():
            np.testing.assert_array_equal(forecasts.recal.crps(observations), wanted)
        model = forecasts.recal.fit(ANALYSIS, EMOS)
        assert "observations are those at valid_time" in str(model)
        single = forecasts.isel(time=3)
        np.testing.assert_array_equal(single.recal.crps(ANALYSIS), wanted[3])
        np.testing.assert_array_equal(
            model.crps(single, ANALYSIS), model.crps(forecasts, ANALYSIS)[3]
        )


def test_one_date_for_all_starts():
    """Forecasts of a lagged ensemble, all valid on one day."""
    lagged = STEPS.isel(step=0, drop=True).isel(time=slice(4))
    lagged = lagged.assign_coords(valid_time=DAYS[9])
    observed = ANALYSIS.sel(time=DAYS[9]).drop_vars("time")
    expected = lagged.drop_vars("valid_time").recal.crps(observed.expand_dims(time=lagged.time))
    np.testing.assert_array_equal(lagged.recal.crps(ANALYSIS), expected)


def test_observations_along_starts():
    one = STEPS.rename(time="init").isel(step=1)
    whole = WHOLE.isel(step=1)
    at_leads = xr.concat(
        [ANALYSIS.sel(time=DAYS[:N] + h).assign_coords(time=DAYS[:N]) for h in HOURS], "step"
    )
    at_leads = at_leads.rename(time="init").assign_coords(step=HOURS)
    np.testing.assert_array_equal(one.recal.crps(at_leads), whole)
    np.testing.assert_array_equal(one.recal.crps(at_leads.isel(step=1)), whole)
    bare = at_leads.isel(step=1, drop=True)
    with pytest.raises(ValueError, match="along 'init' may be their own dates or") as told:
        one.recal.crps(bare)
    typed = str(told.value).partition("Use ")[2].partition(" if they are their own dates")[0]
    np.testing.assert_array_equal(
        one.recal.crps(eval(typed, {"observations": ANALYSIS.rename(time="init")})), whole
    )
    valid = bare.assign_coords(valid_time=("init", DAYS[:N] + HOURS[1]))
    np.testing.assert_array_equal(one.recal.crps(valid), whole)


def test_observations_of_a_lead_of_their_own_are_asked_for_their_valid_times():
    short = ANALYSIS.assign_coords(step=np.timedelta64(6, "h"))
    for forecasts in (STEPS, STEPS.isel(step=0), dated(STEPS).isel(step=1)):
        with pytest.raises(
            ValueError, match=r"observations have the lead 'step', 216.*valid_time=\."
        ):
            forecasts.recal.crps(short)


def test_several_leads_beside_are_named():
    one = STEPS.isel(step=0).assign_coords(run_length=np.timedelta64(10, "D"))
    with pytest.raises(ValueError, match=r"several lead times .* \['step', 'run_length'\]"):
        one.recal.crps(ANALYSIS)
    one.coords["step"].attrs["standard_name"] = "forecast_period"
    np.testing.assert_array_equal(one.recal.crps(ANALYSIS), WHOLE.isel(step=0))


def test_an_analysis_is_no_other_place():
    """Its step, a number with a unit as files hold it, differs from that of forecasts."""
    leads = STEPS.assign_coords(step=("step", [24, 72], {"units": "hours"}))
    analysis = ANALYSIS.assign_coords(step=((), 0, {"units": "hours"}))
    for forecasts, expected in ((leads, WHOLE), (leads.isel(step=1), WHOLE.isel(step=1))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = forecasts.recal.crps(analysis)
        np.testing.assert_array_equal(found, expected)
