"""Settings of fits of many places: sums of all cases for each of them, or what to type instead."""

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
    LATER,
    OBSERVED,
    TRUTH,
    array_cases,
    assert_states_close,
    features,
)
from tests.marks import forbid_compute
from xrecal.arrays.distributions.forms import equal_mass_levels
from xrecal.arrays.shared.folds import folds_of, parts_of
from xrecal.arrays.shared.issuing import issue
from xrecal.arrays.shared.passes import landmarks_for, run
from xrecal.arrays.shared.places import COUNT, NUMBER
from xrecal.inputs import pool as pooling
from xrecal.methods.shared_ckme import InMemory

NEW = FORECASTS[DATES:, :KNOWN]
AGE = (HINDCAST["time"][-1] - HINDCAST["time"]).dt.days.to_numpy()
YEARS = (HINDCAST["time"] - np.timedelta64(181, "D")).dt.year.to_numpy()
"""That begin in July."""


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)


def halved(age, half_life):
    """Weights by the formula: as many equal cases say as much as all of these."""
    weights = 2.0 ** (-age / half_life)
    return weights * weights.sum() / (weights**2).sum()


@pytest.mark.parametrize(
    ("settings", "gap", "weights", "groups"),
    [
        ({"gap": 2}, 2, np.ones(DATES), np.arange(DATES)),
        ({"gap": "90D"}, 2, np.ones(DATES), np.arange(DATES)),
        ({"gap": "30D"}, 0, np.ones(DATES), np.arange(DATES)),
        ({"half_life": 300}, 0, halved(AGE, 300), np.arange(DATES)),
        ({"half_life": 200.0, "gap": 1}, 1, halved(AGE, 200), np.arange(DATES)),
        ({"folds": "year", "year_start": "07-01"}, 0, np.ones(DATES), YEARS),
        ({"compare": "shapes", "support": "errors"}, 0, np.ones(DATES), np.arange(DATES)),
    ],
    ids=str,
)
def test_as_the_array_layer_with_parts_and_weights(settings, gap, weights, groups):
    fold = folds_of(groups)
    part, folds = parts_of(fold, (np.arange(DATES, dtype=float), gap), weights)
    cases = array_cases(HINDCAST, np.arange(KNOWN), part)._replace(
        observations=TRUTH.to_numpy().ravel(), weight=np.repeat(weights, KNOWN)
    )
    engine = InMemory(cases, np.repeat(np.arange(DATES), KNOWN))
    fit = run(engine, features(), folds, landmarks_for(DATES * KNOWN)).fit
    expected = issue(
        fit,
        array_cases(NEW, np.arange(KNOWN)),
        np.tile(features(), (LATER, 1)),
        equal_mass_levels(200),
    )
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(**settings), pool="station")
    assert int(model.state["n_cases"]) == DATES * KNOWN
    found = model.apply(NEW)["t2m"].transpose("time", "station", "member")
    np.testing.assert_allclose(
        found.to_numpy().reshape(-1, 200), expected.quantiles, rtol=1e-9, atol=1e-9
    )


def test_settings_make_a_difference():
    one, *others = (
        HINDCAST.recal.fit(TRUTH, xrecal.CKME(**settings), pool="station").crps(
            NEW, OBSERVED[:, :KNOWN]
        )
        for settings in ({}, {"gap": 3}, {"half_life": 60})
    )
    for other in others:
        assert float(abs(other - one).max()) > 1e-4


SETTINGS = xrecal.CKME(gap=1, half_life=400)


@pytest.mark.parametrize("chunks", [{"time": 9, "station": 7}, {"time": 1, "station": -1}], ids=str)
def test_any_chunks_give_the_same_lazily(chunks):
    hindcast = HINDCAST.chunk(chunks).assign_coords(HINDCAST.coords)
    with forbid_compute():
        lazy = hindcast.recal.fit(TRUTH.chunk(time=9), SETTINGS, pool="station")
    expected = HINDCAST.recal.fit(TRUTH, SETTINGS, pool="station")
    assert_states_close(dask.compute(lazy.state)[0], expected.state)


def test_updates_let_older_cases_fade():
    model = HINDCAST.recal.fit(TRUTH, SETTINGS, pool="station")
    more = FORECASTS[DATES:, :KNOWN], OBSERVED[DATES:, :KNOWN]
    once, by_date = model.update(*more), model
    for k in range(LATER):
        by_date = by_date.update(more[0][k : k + 1], more[1][k : k + 1])
    assert_states_close(by_date.state, once.state)
    days = FORECASTS["time"].to_numpy()
    weights = halved((days[-1] - days) / np.timedelta64(1, "D"), 400)
    sums = once.state["place_sums"].transpose("shared_place_sum", ...)
    np.testing.assert_allclose(sums[NUMBER], DATES + LATER)
    np.testing.assert_allclose(sums[COUNT], weights.sum())
    np.testing.assert_allclose(once.state["sum_weight"], KNOWN * weights.sum())
    assert int(once.state["n_cases"]) == KNOWN * (DATES + LATER)
    # Those of before come last, and are known.
    earlier, later = HINDCAST[4:], HINDCAST[:8]
    whole = earlier.recal.fit(TRUTH[4:], SETTINGS, pool="station").update(later, TRUTH[:8])
    first = halved(AGE, 400)
    np.testing.assert_allclose(whole.state["sum_weight"], KNOWN * first.sum())


def test_a_half_life_follows_errors_that_change():
    """Centres of the last third of the cases are others: a short memory has learned them."""
    moved = TRUTH + 5.0 * (np.arange(DATES) >= 2 * DATES // 3)[:, np.newaxis]
    scores = [
        HINDCAST.recal.fit(moved, xrecal.CKME(half_life=days), pool="station")
        .crps(NEW, OBSERVED[:, :KNOWN] + 5.0)
        .mean()
        for days in (None, 120)
    ]
    assert scores[1] < 0.8 * scores[0]


def test_cross_validation_is_the_fit_of_each_split(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", 100)
    options = {"by": "block", "blocks": 3, "pool": "station", "output": "crps"}
    found = HINDCAST.recal.cross_validate(TRUTH, SETTINGS, **options)
    third = DATES // 3
    once = HINDCAST[third:].recal.fit(TRUTH[third:], SETTINGS, pool="station")
    expected = once.crps(HINDCAST[:third], TRUTH[:third])
    np.testing.assert_allclose(found[:third], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (xrecal.CKME(kernel="laplace"), "CKME needs with kernel='laplace'; use kernel='gaussian'"),
        (xrecal.CKME(solver="exact"), "solver='exact'; use solver='auto' or solver='lowrank'"),
        (xrecal.CKME(bandwidth=2.0), "bandwidth=2.0; use bandwidth='median' or bandwidth='cv'"),
        (xrecal.CKME(support="observations"), "support='observations'; use support='auto' or"),
        (xrecal.CKME(support="ratio"), "needs with support='ratio'; use support='auto'"),
        (xrecal.CKME(half_life="cv"), "half_life='cv'; give days, such as half_life=730"),
    ],
    ids=repr,
)
def test_what_has_no_sums_is_refused_with_what_to_type(method, message):
    cases = "pool: 16 positions at 24 dates make 384 cases, but a fit compares at most 300 cases"
    with pytest.raises(ValueError, match=f"{cases} one by one, a comparison that .*{message}"):
        HINDCAST.recal.fit(TRUTH, method, pool="station")
    with pytest.raises(ValueError, match=r"one by one.*learning from 22 cases to predict"):
        HINDCAST.recal.cross_validate(TRUTH, method, pool="station", by="block", blocks=12)
    few = HINDCAST[:, :5].recal.fit(TRUTH[:, :5], method, pool="station")
    assert int(few.state["n_cases"].max()) == 5 * DATES


def test_windows_are_whole_or_refused():
    assert HINDCAST.recal.fit(TRUTH, pool={"station": 11}).state.sizes["calibration"] == 11 * DATES
    told = (
        r"a comparison that windows need; use narrower windows, of at most 12 positions, "
        r"or pool='station'"
    )
    with pytest.raises(ValueError, match=told):
        HINDCAST.recal.fit(TRUTH, xrecal.LinearPool(), pool={"station": 15})
    every = HINDCAST.recal.fit(TRUTH, xrecal.EMOS(), pool={"station": 15})
    assert int(every.state["n_cases"].max()) == 15 * DATES


def test_a_position_alone_may_have_any_number_of_cases(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", 10)
    one = HINDCAST[:, :1].recal.fit(TRUTH[:, :1], xrecal.CKME(gap=1), pool="station")
    assert int(one.state["n_cases"]) == DATES


def test_a_gap_that_leaves_nothing_is_refused():
    with pytest.raises(ValueError, match="gap='600D' leaves 3 of 5 folds no cases to learn from"):
        HINDCAST.recal.fit(TRUTH, xrecal.CKME(gap="600D"), pool="station")


def fault():
    """40 stations with 60 dates, and more dates to forecast."""
    rng, n = np.random.default_rng(0), 360
    coords = {
        "time": np.datetime64("2015-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D"),
        "station": np.arange(40),
        "lat": ("station", rng.uniform(45, 55, 40)),
        "lon": ("station", rng.uniform(5, 15, 40)),
    }
    mean, dims = rng.normal(size=(n, 40)), ("time", "station", "member")
    members = mean[..., np.newaxis] + rng.normal(size=(n, 40, 10))
    observed = mean + rng.normal(size=(n, 40))
    return xr.DataArray(members, coords, dims), xr.DataArray(observed, coords, dims[:2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:cases span 59 days")
@pytest.mark.parametrize("method", [xrecal.CKME(gap="5D"), xrecal.LinearPool(gap="5D")], ids=repr)
def test_as_good_as_a_dense_fit_of_all_cases_at_every_station(method, monkeypatch):
    forecasts, observed = fault()
    first, later = slice(0, 60), slice(60, None)
    scores = []
    for most in (1500, 10**6):
        monkeypatch.setattr(pooling, "MAX_POOLED", most)
        model = forecasts[first].recal.fit(observed[first], method, pool="station")
        assert int(model.state["n_cases"].sum()) == 2400
        scores.append(model.crps(forecasts[later], observed[later]).mean("time"))
    assert (scores[0] <= 1.005 * scores[1]).all()


def test_a_comparison_and_a_plan_compare_places_by_features():
    errors = (TRUTH - HINDCAST.mean("member")).mean("time")
    bare = HINDCAST.drop_vars([n for n in HINDCAST.coords if n not in HINDCAST.dims])
    hindcast = bare.assign_coords(slope=("station", errors.to_numpy()))
    given = {"pool": "station", "features": "slope"}
    methods = [xrecal.EMOS(), xrecal.CKME()]
    with_slope, plain = (
        xrecal.compare(hindcast, TRUTH, methods, blocks=8, **{**given, "features": names})["crps"]
        for names in ("slope", ())
    )
    assert abs(with_slope - plain).sel({"method": "CKME"}).max() > 1e-6
    xr.testing.assert_equal(with_slope.sel({"method": "EMOS"}), plain.sel({"method": "EMOS"}))
    assert xrecal.plan(hindcast, TRUTH, probe=False, **given).tasks == 1
    with pytest.raises(ValueError, match="no method compares features of places"):
        xrecal.compare(hindcast, TRUTH, methods[:1], **given)
