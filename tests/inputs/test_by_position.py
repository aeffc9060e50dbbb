"""Results say where nothing identified the places, so that their position counted."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

TIMES = pd.date_range("2001-01-01", periods=30, freq="8D")
RNG = np.random.default_rng(9)
TRUTH = xr.DataArray(
    RNG.normal(size=(30, 2)), {"time": TIMES, "station": ["Ulm", "Bonn"]}, ["time", "station"]
)
FORECAST = (TRUTH + xr.DataArray(RNG.normal(size=(30, 2, 4)), dims=[*TRUTH.dims, "member"])).rename(
    "level"
)
SCORES = FORECAST.recal.crps(TRUTH)

RESULTS = {
    "skill": lambda bare: xrecal.skill(SCORES, bare(2 * SCORES)),
    "cross_validate": lambda bare: FORECAST.recal.cross_validate(
        bare(TRUTH), xrecal.Climatology(), by="block", output="crps"
    ),
    "cross_validate of a Dataset": lambda bare: FORECAST.to_dataset().recal.cross_validate(
        bare(TRUTH), xrecal.Climatology(), by="block"
    ),
}


@pytest.mark.filterwarnings("ignore:.*neighbour")
@pytest.mark.parametrize("name", RESULTS)
def test_the_history_says_so(name):
    bare = RESULTS[name](lambda array: array.drop_vars("station"))
    assert bare.attrs["history"].endswith("; paired by position along 'station'")
    assert "position" not in RESULTS[name](lambda array: array).attrs["history"]
