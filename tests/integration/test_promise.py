"""The promise: two calls, and a biased, overconfident ensemble has become a calibrated forecast."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import xrecal
from tests.marks import DATA, requires_data
from tests.strategies import ensemble_and_truth, new_cases


def pit(forecast, observations, seed=0):
    """Value of the forecast CDF at the observation, at random within a step of it."""
    ((name, values),) = [item for item in forecast.items() if not item[0].endswith("_weight")]
    values = values.broadcast_like(forecast[f"{name}_weight"])
    weights = forecast[f"{name}_weight"] / forecast[f"{name}_weight"].sum("member")
    below = weights.where(values < observations, 0).sum("member")
    upto = weights.where(values <= observations, 0).sum("member")
    share = np.random.default_rng(seed).random(below.shape)
    levels = (below + share * (upto - below)).where(observations.notnull())
    return levels.to_numpy()[np.isfinite(levels.to_numpy())]


def equally_weighted(ensemble):
    return xrecal.weighted(
        ensemble.rename("x"), xr.ones_like(ensemble).where(ensemble.notnull(), 0)
    )


def flatness(levels):
    """p-value of uniformity; small where the forecast is not calibrated."""
    return scipy.stats.kstest(levels, "uniform").pvalue


def test_synthetic_truth():
    hindcast, truth = ensemble_and_truth(n=120, m=10)
    new, verified = new_cases(n=60, m=10)
    model = hindcast.recal.fit(truth)
    calibrated = new.recal.apply(model)
    raw, score = new.recal.crps(verified).mean(), calibrated.recal.crps(verified).mean()
    ideal = 1 / np.sqrt(np.pi)  # of N(signal, 1), the law of the truth given the signal
    assert 0.9 * ideal < score < 1.25 * ideal < 0.5 * raw
    assert flatness(pit(equally_weighted(new), verified)) < 1e-10
    assert flatness(pit(calibrated, verified)) > 0.01
    assert score < hindcast.recal.fit(truth, xrecal.Climatology()).crps(new, verified).mean() / 2


@requires_data("toulouse_tigge_t2m.nc")
@pytest.mark.parametrize("method", [xrecal.CKME(support="observations"), xrecal.EMOS()])
def test_temperature_at_toulouse(method):
    with xr.open_dataset(DATA / "toulouse_tigge_t2m.nc") as data:
        forecast = data.forecast.isel(model=0).dropna("member", how="all").load()
        observation = data.observation.load()
    past, later = slice(None, "2019"), slice("2020", None)
    calibrated = forecast.sel(time=later).recal.apply(
        forecast.sel(time=past).recal.fit(observation, method)
    )
    new, verified = forecast.sel(time=later), observation.sel(time=later)
    raw = new.recal.crps(verified, "time")
    assert calibrated.recal.crps(verified, "time") < 0.5 * raw
    raw_levels = pit(equally_weighted(new), verified)
    bound = scipy.stats.kstest(raw_levels, "uniform").statistic / 3
    levels = pit_of(calibrated, verified)
    assert scipy.stats.kstest(levels, "uniform").statistic < bound


def pit_of(calibrated, verified):
    if "forecast_weight" in calibrated:
        return pit(calibrated, verified)
    levels = scipy.stats.norm.cdf(verified, calibrated.forecast_loc, calibrated.forecast_scale)
    return levels[np.isfinite(levels)]


@requires_data("gmao_mjo_rmm1.nc")
def test_madden_julian_index_at_several_leads():
    with xr.open_dataset(DATA / "gmao_mjo_rmm1.nc") as data:
        data = data.isel(lead=[1, 10, 30]).load()
    past, later = slice(None, "2007"), slice("2008", None)
    hindcast, new = data.forecast.sel(init=past), data.forecast.sel(init=later)
    verified = data.observation.sel(init=later)
    model = hindcast.chunk(lead=1).recal.fit(data.observation.sel(init=past)).compute()
    calibrated = new.recal.apply(model)
    scores = calibrated.recal.crps(verified, "init")
    assert (scores < new.recal.crps(verified, "init")).all()
    for lead in range(3):
        raw = pit(equally_weighted(new.isel(lead=lead)), verified.isel(lead=lead))
        levels = pit(calibrated.isel(lead=lead), verified.isel(lead=lead))
        distance = scipy.stats.kstest(levels, "uniform").statistic
        assert distance < 0.6 * scipy.stats.kstest(raw, "uniform").statistic
