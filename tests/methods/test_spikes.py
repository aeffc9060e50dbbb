"""A few spikes of the record, and forecasts that later reach as high."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

YEAR = 364


@pytest.fixture(scope="module")
def prices():
    """Forecasts of two years, the second one higher, and prices with four spikes in the first."""
    rng = np.random.default_rng(5)
    time = pd.date_range("2017-01-01", periods=2 * YEAR)
    day = np.arange(time.size)
    level = (
        30 + 5 * np.sin(2 * np.pi * day / 365) + 12 * (day >= YEAR) + 2 * rng.normal(size=day.size)
    )
    price = level + rng.standard_t(5, day.size)
    price[20:24] += [25, 40, 30, 20]
    level[20:24] += [8, 12, 10, 6]
    members = level[:, np.newaxis] + rng.normal(0, 0.7, (day.size, 8))
    of = {"time": time}
    forecast = xr.DataArray(members, of, ("time", "member"), name="price")
    return forecast, xr.DataArray(price, of, "time", name="price")


def score(prices, method):
    forecast, observed = prices
    model = forecast[:YEAR].recal.fit(observed[:YEAR], method)
    return float(model.crps(forecast[YEAR:], observed[YEAR:]).mean())


@pytest.mark.parametrize(
    "method", [xrecal.CKME(support="regression"), xrecal.LinearPool()], ids=["CKME", "pool"]
)
def test_a_spike_of_the_record_tilts_no_line(prices, method):
    assert score(prices, method) <= 1.02 * score(prices, xrecal.EMOS())


def test_the_index_of_idr_stays_that_of_most_cases(prices):
    forecast, observed = (part[:YEAR] for part in prices)
    usual = np.r_[0:20, 24:YEAR]
    method = xrecal.IDR(condition_on="season")
    one, other = (
        part.recal.fit(observed, method).state["index_coefficient"].values
        for part in (forecast, forecast[usual])
    )
    np.testing.assert_allclose(one[..., 1], other[..., 1], atol=0.1)  # 0.47 by least squares


@pytest.mark.parametrize("far", [1e6, -1e100, 1e200, -1e308])
@pytest.mark.parametrize("in_record", [False, True])
@pytest.mark.parametrize(
    "method", ["CKME", "Climatology", "ConformalPrediction", "EMOS", "IDR", "PITRecalibration"]
)
def test_a_forecast_is_issued_however_far_a_predictor_lies(method, in_record, far):
    rng = np.random.default_rng(7)
    time = {"time": pd.date_range("2017-01-01", periods=66)}
    level = rng.normal(size=66)
    wind = xr.DataArray(rng.normal(size=66), time, "time")
    wind[5 if in_record else 62] = far
    members = level[:, np.newaxis] + rng.normal(size=(66, 5))
    forecast = xr.DataArray(members, time, ("time", "member"), name="heat")
    observed = xr.DataArray(level + 0.3 * rng.normal(size=66), time, "time", name="heat")
    past, new = slice(60), slice(60, None)
    made = getattr(xrecal, method)(condition_on="wind")
    model = forecast[past].recal.fit(observed[past], made, covariates={"wind": wind[past]})
    with nullcontext() if in_record else pytest.warns(UserWarning, match="'wind' in 1 of 6 cases"):
        issued = model.quantile(forecast[new], [0.1, 0.9], covariates={"wind": wind[new]})
    assert np.isfinite(issued).all()
