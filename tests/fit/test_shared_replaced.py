"""Covariates that are missing or broken in fits that places share, by their median."""

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.fit.test_shared_fit import (
    DATES,
    FEW,
    FORECASTS,
    HINDCAST,
    KNOWN,
    OBSERVED,
    TRUTH,
    N,
    assert_states_close,
)
from tests.marks import forbid_compute
from xrecal.arrays.shared import samples
from xrecal.inputs import pool as pooling

NAMES = ("wind", "cloud")
SETTINGS = xrecal.CKME(condition_on=NAMES, ridge=0.01)
POOL = xrecal.LinearPool((xrecal.CKME(ridge=0.1), xrecal.EMOS()), condition_on=NAMES, tails=None)
PAST, NEW = slice(DATES), slice(DATES, None)
LEVELS = [0.1, 0.5, 0.9]
REPLACED = "covariates of forecast are unlike those of the fit.* replaced by their median"


def draw():
    rng = np.random.default_rng(2)
    stations = FORECASTS["station"][:KNOWN]
    coords = {"time": FORECASTS["time"], "station": stations}
    return {
        name: xr.DataArray(rng.uniform(-3.0, 3.0, (N, KNOWN)), coords, ["time", "station"])
        for name in NAMES
    }


COVARIATES = draw()
VERIFIED = TRUTH + 2 * np.sign(COVARIATES["wind"][PAST].to_numpy())


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)


def changed(which, value=np.nan):
    """The predictors, with other values of wind in some cases."""
    return {**COVARIATES, "wind": COVARIATES["wind"].where(~which, value)}


def some(*at):
    """True at some cases (date, place)."""
    which = np.zeros((N, KNOWN), bool)
    which[tuple(np.transpose(at))] = True
    return which


def part(covariates, at):
    return {name: value[at] for name, value in covariates.items()}


def fit(covariates=COVARIATES, method=SETTINGS, truth=VERIFIED, hindcast=HINDCAST):
    given = part(covariates, PAST)
    return hindcast.recal.fit(truth, method, covariates=given, pool="station")


def quantiles(model, covariates):
    return model.quantile(FORECASTS[NEW, :KNOWN], LEVELS, covariates=part(covariates, NEW))


MEDIAN = float(np.median(COVARIATES["wind"][PAST]))
GAPS = some((3, 2), (7, 0), (20, 15))
OF_KNOWN = float(np.nanmedian(changed(GAPS)["wind"][PAST]))


@pytest.mark.parametrize("method", [SETTINGS, POOL], ids=["CKME", "pool"])
def test_a_missing_value_of_the_record_is_its_median(method):
    truth = VERIFIED.copy(deep=True)
    truth[:-3, 4] = np.nan
    truth[:, 5] = np.nan
    model = fit(changed(GAPS), method, truth)
    expected = fit(changed(GAPS, OF_KNOWN), method, truth)
    assert int(model.state["n_cases"].sum()) == int(truth.notnull().sum())
    # A place of a pool has a median of its own, which the component that places share has not.
    places = slice(None) if method is SETTINGS else [4, 5]
    found, right = (quantiles(m, COVARIATES)[:, places] for m in (model, expected))
    xr.testing.assert_allclose(found, right, rtol=1e-9)
    assert found.notnull().all()


@pytest.mark.parametrize("value", [np.nan, 1e3, -50.0])
def test_a_missing_or_broken_value_of_a_forecast_is_the_median(value):
    model, at = fit(), some((DATES + 1, 3), (DATES + 2, 0))
    with pytest.warns(UserWarning, match=f"{REPLACED}.*'wind'.* in 2 of 96 cases"):
        found = quantiles(model, changed(at, value))
    xr.testing.assert_identical(found, quantiles(model, changed(at, MEDIAN)))
    with pytest.warns(UserWarning, match=REPLACED):
        issued = model.apply(FORECASTS[NEW, :KNOWN], covariates=part(changed(at, value), NEW))
    status = issued["t2m_status"].transpose("time", "station")
    assert status.attrs["flag_meanings"] == "wind cloud"
    np.testing.assert_array_equal(status, at[NEW])
    assert issued["t2m_novelty"].notnull().all()
    lazy = model.apply(
        FORECASTS[NEW, :KNOWN].chunk(time=4, station=5),
        covariates={
            n: v.chunk(time=4, station=5) for n, v in part(changed(at, value), NEW).items()
        },
    )
    xr.testing.assert_allclose(lazy.compute(), issued)


def test_warnings_name_the_range_of_the_record():
    wind = COVARIATES["wind"][PAST]
    ends = f"the record has {float(wind.min()):.4g} to {float(wind.max()):.4g}"
    with pytest.warns(UserWarning, match=f"'wind' in 1 of 96 cases .*{ends}"):
        quantiles(fit(), changed(some((DATES, 1)), 400.0))


@pytest.mark.filterwarnings("ignore:covariates of forecast are unlike")  # at each place of a pool
@pytest.mark.parametrize("method", [SETTINGS, POOL], ids=["CKME", "pool"])
def test_an_indicator_learns_what_missing_values_mean(method):
    gone = np.add.outer(np.arange(N), np.arange(KNOWN)) % 3 == 0
    shifted = OBSERVED[:, :KNOWN] + 12.0 * gone
    model = fit(changed(gone), method, shifted[PAST])
    scores = model.crps(
        FORECASTS[NEW, :KNOWN], shifted[NEW], covariates=part(changed(gone), NEW)
    ).mean()
    blind = fit(COVARIATES, method, shifted[PAST])
    given = part(COVARIATES, NEW)
    other = blind.crps(FORECASTS[NEW, :KNOWN], shifted[NEW], covariates=given).mean()
    assert scores < 0.7 * other


@pytest.mark.filterwarnings("ignore:covariates of forecast are unlike")
@pytest.mark.parametrize("method", [SETTINGS, POOL], ids=["CKME", "pool"])
def test_any_chunks_give_the_same_lazily(method):
    gaps = changed(np.add.outer(np.arange(N), np.arange(KNOWN)) % 5 == 0)
    expected = fit(gaps, method)
    dates = 9 if method is SETTINGS else -1
    cut = {name: value.chunk(time=dates, station=7) for name, value in gaps.items()}
    hindcast = HINDCAST.chunk(time=dates, station=7).assign_coords(HINDCAST.coords)
    with forbid_compute():
        lazy = fit(cut, method, VERIFIED.chunk(time=-1), hindcast)
    (state,) = dask.compute(lazy.state)
    usual = "usual" if method is SETTINGS else "ckme_shared_wind_cloud_usual"
    xr.testing.assert_identical(state[usual], expected.state[usual])
    xr.testing.assert_allclose(
        quantiles(lazy.compute(), gaps), quantiles(expected, gaps), rtol=1e-6, atol=1e-6
    )


def test_values_of_all_cases_bound_those_of_a_sample(monkeypatch):
    monkeypatch.setattr(samples, "SAMPLE", 100)
    rng = np.random.default_rng(0)
    values, place, date = rng.normal(size=(1000, 2)), np.arange(1000) % 10, np.arange(1000) // 10
    values[:300, 1] = np.nan
    values[7, 0] = 0.0
    halves = [
        samples.draw_values(values[rows], place[rows], date[rows])
        for rows in (slice(400), slice(400, None))
    ]
    whole = samples.draw_values(values, place, date)
    joined = samples.join_values(*halves[::-1])
    for a, b in zip(joined, whole, strict=True):
        np.testing.assert_array_equal(a, b)
    usual = xrecal.arrays.predictors.unstacked(whole.usual([None, None]))
    for one, column in zip(usual, values.T, strict=True):
        assert one.first == np.nanmin(column)
        assert one.last == np.nanmax(column)
        assert abs(one.middle - np.nanmedian(column)) < 0.4
    assert usual[1].mixed
    assert not usual[0].mixed
    assert not usual[0].never_zero


def test_stored_and_updated(tmp_path):
    gaps = changed(np.add.outer(np.arange(N), np.arange(KNOWN)) % 5 == 0)
    model = fit(gaps)
    model.save(tmp_path / "m.nc")
    opened = xrecal.open_recalibrator(tmp_path / "m.nc").compute()
    xr.testing.assert_identical(quantiles(opened, gaps), quantiles(model, gaps))
    more = FORECASTS[NEW, :KNOWN], OBSERVED[NEW, :KNOWN]
    broken = {**gaps, "cloud": gaps["cloud"] * 1e4}
    median = float(np.median(COVARIATES["cloud"][PAST]))
    usual = {**gaps, "cloud": xr.full_like(gaps["cloud"], median)}
    with pytest.warns(UserWarning, match="'cloud' in 96 of 96 cases"):
        updated = model.update(*more, covariates=part(broken, NEW))
    expected = model.update(*more, covariates=part(usual, NEW))
    assert_states_close(updated.state, expected.state)
    assert int(updated.state["n_cases"]) == N * KNOWN
