"""What is of one place or lead, beside forecasts of another: a warning, as of observations."""

import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

TIMES = pd.date_range("2001-01-01", periods=30, freq="8D")
RNG = np.random.default_rng(8)
TRUTH = xr.DataArray(
    RNG.normal(size=(30, 2)), {"time": TIMES, "station": ["Ulm", "Bonn"]}, ["time", "station"]
)
FORECAST = (TRUTH + xr.DataArray(RNG.normal(size=(30, 2, 4)), dims=[*TRUTH.dims, "member"])).rename(
    "level"
)
SCORES = FORECAST.recal.crps(TRUTH)


def at(station):
    return {"station": ["Ulm", "Bonn"].index(station)}


CALLS = {
    "threshold": lambda one, other: one.recal.exceedance(other.mean("time")),
    "covariate": lambda one, other: one.recal.fit(
        TRUTH, xrecal.CKME(condition_on="z"), covariates={"z": other}
    ),
    "reference": lambda one, other: xrecal.skill(one.mean("member"), abs(other)),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_station_beside_another(name):
    with pytest.warns(UserWarning, match=f"at station Ulm, but .*{name}.* at Bonn: do they"):
        CALLS[name](FORECAST.isel(at("Ulm")), TRUTH.isel(at("Bonn")))


@pytest.mark.parametrize("name", CALLS)
def test_the_same_station_is_no_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[name](FORECAST.isel(at("Bonn")), TRUTH.isel(at("Bonn")))
        CALLS[name](FORECAST.isel(at("Bonn")), TRUTH.isel(at("Bonn"), drop=True))


def test_leads_in_another_unit_and_labels_of_other_things_are_no_warning():
    scores = SCORES.assign_coords(lead=((), 2, {"units": "days"}), model="new")
    same = scores.assign_coords(lead=((), 48, {"units": "hours"}), model="old")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xrecal.skill(scores, same)
    with pytest.warns(UserWarning, match="scores is at lead 2, but reference at 24"):
        xrecal.skill(scores, same.assign_coords(lead=((), 24, {"units": "hours"})))
