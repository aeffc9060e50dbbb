"""Places that come and go: new ones are issued by their features, then by their own cases."""

import warnings

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.fit.test_shared_fit import (
    DATES,
    FORECASTS,
    HINDCAST,
    KNOWN,
    LATER,
    NETWORK,
    OBSERVED,
    TRUTH,
    N,
    P,
    assert_states_close,
)
from tests.marks import forbid_compute
from xrecal.inputs import pool as pooling

FEW = 150
"""Cases beyond which places share fits here."""
LEVELS = [0.1, 0.5, 0.9]
LATE = FORECASTS[DATES:], OBSERVED[DATES:]
NEW = slice(KNOWN, None)
POOL = xrecal.LinearPool((xrecal.CKME(ridge=0.1), xrecal.EMOS()), tails=None)
ONLINE = xrecal.OnlinePool((xrecal.CKME(ridge=0.1), xrecal.EMOS()))
METHODS = {"CKME": xrecal.CKME(), "pool": POOL, "online": ONLINE}
each_method = pytest.mark.parametrize("method", METHODS)


def fit(method="CKME", hindcast=HINDCAST, truth=TRUTH, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        return hindcast.recal.fit(truth, METHODS[method], pool="station", **options)


@pytest.fixture(scope="module")
def models():
    return {method: fit(method) for method in METHODS}


def part(both, *at):
    return [one[at] for one in both]


@each_method
def test_a_forecast_of_new_places_needs_no_fit_of_them(models, method):
    model, turned = models[method], [18, 3, 17, 0]
    every = model.quantile(LATE[0], LEVELS)
    known = model.quantile(LATE[0][:, :KNOWN], LEVELS)
    xr.testing.assert_allclose(every[:, :KNOWN], known, rtol=1e-12)
    shared = models["CKME"].quantile(LATE[0], LEVELS)
    tolerance = 0.1 if method == "online" else 1e-8  # which says 100 quantiles, not 200
    xr.testing.assert_allclose(every[:, NEW], shared[:, NEW], rtol=1e-12, atol=tolerance)
    back = model.quantile(LATE[0][:, ::-1], LEVELS)
    xr.testing.assert_allclose(back[:, ::-1], every, rtol=1e-12)
    if method == "online":  # forecasts of a time depend on each other, a little, at known places
        turned = turned[:1] + turned[2:3]
    some = model.quantile(LATE[0][:, turned], LEVELS)
    xr.testing.assert_allclose(some, every[:, turned], rtol=1e-12)
    single = model.quantile(LATE[0][2, 18], LEVELS)
    xr.testing.assert_allclose(single, every[2, 18], rtol=1e-12)
    lazy = model.quantile(LATE[0].chunk(time=4, station=7), LEVELS)
    xr.testing.assert_allclose(lazy.compute(), every, rtol=1e-7)
    issued = model.apply(LATE[0])
    assert issued["t2m_novelty"].notnull().all()
    assert issued["station"].equals(LATE[0]["station"])


@each_method
def test_a_new_place_without_features_is_refused_by_name(models, method):
    bare = LATE[0].drop_vars("elevation")
    message = r"4 places that the model was not fitted on .*s16, s17, s18.* lacks their height"
    with pytest.raises(ValueError, match=message):
        models[method].apply(bare)
    with pytest.raises(ValueError, match=message.replace("forecast", "hindcast")):
        models[method].update(bare, LATE[1])
    gone = LATE[0].assign_coords(lat=LATE[0]["lat"].where(LATE[0]["station"] != "s17"))
    with pytest.raises(ValueError, match=r"s17.* lacks their latitude"):
        models[method].update(gone, LATE[1])


@each_method
def test_new_places_join_and_are_issued_at_once(models, method):
    """Without an observation they are what they were as places unknown."""
    model = models[method]
    unknown = LATE[1].where(LATE[1]["station"].isin(TRUTH["station"]))
    joined = model.update(LATE[0], unknown)
    expected = model.update(*part(LATE, slice(None), slice(KNOWN)))
    issued = joined.quantile(LATE[0], LEVELS)
    assert issued.notnull().all()
    xr.testing.assert_allclose(issued, expected.quantile(LATE[0], LEVELS), rtol=1e-9)
    name = "observations" if method == "CKME" else "n_cases"
    assert joined.state[name].shape[-1] == P
    assert joined.state["n_cases"].sum() == KNOWN * N


@pytest.mark.parametrize("method", ["CKME", "pool"])  # an online pool learns cases in order
def test_it_does_not_matter_in_how_many_updates_they_come(models, method):
    model = models[method]
    once = model.update(*LATE)
    parts = model
    for at in (slice(2), slice(2, None)):
        for places in ([18, 16, 4, 2], [*range(4), 17, *range(5, KNOWN), 19]):
            some = [place for place in places if place >= KNOWN or at.start or place not in (2, 4)]
            parts = parts.update(*part(LATE, at, some))
        parts = parts.update(*part(LATE, at, slice(None)))
    assert once.state["n_cases"].sum() == KNOWN * DATES + P * LATER
    order = [f"s{i}" for i in (16, 18, 17, 19)]
    label = "shared_place_station" if method == "CKME" else "station"
    assert parts.state[label][KNOWN:].values.tolist() == order
    assert once.state[label][KNOWN:].values.tolist() == [f"s{i}" for i in range(KNOWN, P)]
    found, expected = (m.quantile(LATE[0], LEVELS) for m in (parts, once))
    xr.testing.assert_allclose(found, expected, rtol=1e-7)


@each_method
def test_places_learn_from_their_own_cases_as_these_come(method):
    """Two new places have errors of their own, which their features do not say."""
    moved = OBSERVED.copy(deep=True)
    moved[:, KNOWN] += 8.0
    moved[:, KNOWN + 1] -= 8.0
    model = fit(method, HINDCAST[:12], TRUTH[:12], min_samples=10)
    before, after = slice(12, 24), slice(24, None)
    new = [KNOWN, KNOWN + 1]
    later = part((FORECASTS, moved), after, new)
    scores = [float(model.crps(*later).mean())]
    for dates in (slice(12, 15), before):
        updated = model.update(*part((FORECASTS, moved), dates))
        scores.append(float(updated.crps(*later).mean()))
    assert max(scores[1:]) < 0.75 * scores[0]
    if method == "CKME":
        assert (updated.state["record"][new] != 2).all()


def test_the_law_of_records_learns_nothing_from_places_without_one(models):
    model = models["CKME"]
    updated = model.update(*LATE)
    known = model.update(*part(LATE, slice(None), slice(KNOWN)))
    weight = updated.state["sum_weight"] - known.state["sum_weight"]
    np.testing.assert_allclose(weight, [0.0, (P - KNOWN) * LATER])


@each_method
def test_places_that_end_stay_readable(models, method):
    model, going = models[method], [0, 3, 5]
    updated = model.update(*part(LATE, slice(None), going))
    assert updated.state["n_cases"].sum() == KNOWN * DATES + 3 * LATER
    assert updated.quantile(LATE[0], LEVELS).notnull().all()
    turned = model.update(*part(LATE, slice(None), slice(KNOWN - 1, None, -1)))
    expected = model.update(*part(LATE, slice(None), slice(KNOWN)))
    assert_states_close(turned.state, expected.state)


@each_method
def test_models_with_new_places_are_stored_and_lazy(models, method, tmp_path):
    updated = models[method].update(*LATE)
    updated.save(tmp_path / "m.nc")
    opened = xrecal.open_recalibrator(tmp_path / "m.nc")
    expected = updated.quantile(LATE[0], LEVELS)
    xr.testing.assert_identical(opened.quantile(LATE[0], LEVELS).compute(), expected)
    again = opened.update(*LATE)
    assert_states_close(again.compute().state, updated.state)
    dates = 7 if method == "CKME" else -1
    hindcast = HINDCAST.chunk(time=dates, station=6).assign_coords(HINDCAST.coords)
    with forbid_compute():
        lazy = fit(method, hindcast, TRUTH.chunk(station=5)).update(*LATE)
    (state,) = dask.compute(lazy.state)
    assert_states_close(state, updated.state)


def test_positions_without_labels_are_those_of_the_fit():
    bare = [n for n in HINDCAST.coords if n != "time"]
    model = fit(hindcast=HINDCAST.drop_vars(bare), truth=TRUTH.drop_vars(bare))
    late = [one.drop_vars(bare, errors="ignore") for one in LATE]
    assert model.update(*part(late, slice(None), slice(KNOWN))).state["n_cases"] == KNOWN * N
    with pytest.raises(
        ValueError, match="hindcast has 20 positions along 'station', but the model"
    ):
        model.update(*late)


def test_places_of_several_dimensions():
    lat, lon = np.linspace(40.0, 50.0, 4), np.linspace(2.0, 12.0, 4)
    values = HINDCAST.to_numpy().reshape(DATES, 4, 4, -1)
    coords = {"time": HINDCAST["time"].to_numpy(), "lat": lat, "lon": lon}
    forecasts = xr.DataArray(values, coords, ("time", "lat", "lon", "member"), "t2m")
    truth = xr.DataArray(TRUTH.to_numpy().reshape(DATES, 4, 4), coords, ("time", "lat", "lon"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        models = [
            forecasts.recal.fit(truth, method, pool=("lat", "lon")) for method in METHODS.values()
        ]
    moved = forecasts[:3].assign_coords(lat=[40.0, lat[1], 44.5, 50.0], lon=[2.0, 3.0, *lon[2:]])
    shared, pool, online = (model.quantile(moved, LEVELS) for model in models)
    assert online.notnull().all()
    known = models[1].quantile(forecasts[:3], LEVELS)
    old = {"lat": [0, 1, 3], "lon": [0, 2, 3]}
    xr.testing.assert_allclose(pool.isel(old), known.isel(old), rtol=1e-12)
    for at in ({"lat": [2]}, {"lon": [1]}):
        xr.testing.assert_allclose(pool.isel(at), shared.isel(at), rtol=1e-12)


def test_covariates_at_new_places_are_judged_by_all_places():
    rng = np.random.default_rng(0)
    stations = {"station": OBSERVED["station"]}
    wind = xr.DataArray(rng.normal(size=(N, P)), stations, OBSERVED.dims)
    forecasts = FORECASTS.assign_coords(wind=wind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        method = xrecal.LinearPool(POOL.methods, condition_on="wind", tails=None)
        model = forecasts[:DATES, :KNOWN].recal.fit(TRUTH, method, pool="station")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        issued = model.apply(forecasts[DATES:])
    assert (issued["t2m_status"] == 0).all()
    broken = forecasts[DATES:].assign_coords(wind=1e4 * abs(wind[DATES:]) + 1e4)
    with pytest.warns(UserWarning, match="'wind' in 120 of 120 cases"):
        issued = model.apply(broken)
    assert (issued["t2m_status"] == 1).all()


@each_method
def test_other_dimensions_have_fits_of_their_own(method):
    """At two leads, with a covariate that both have in common."""
    rng = np.random.default_rng(1)
    wind = xr.DataArray(rng.uniform(size=N), dims=["time"])
    factor = xr.DataArray([1.0, 2.0], {"lead": [1, 2]}, ["lead"], attrs={"units": "d"})
    forecasts = (FORECASTS * factor).assign_coords(FORECASTS.coords).assign_coords(wind=wind)
    forecasts.coords["lead"].attrs["units"] = "d"
    observed = (OBSERVED * factor).assign_coords(OBSERVED.coords)
    observed.coords["lead"].attrs["units"] = "d"
    settings = METHODS[method]
    settings = type(settings)(**{**vars(settings), "condition_on": "wind"})
    past = forecasts[:DATES, :KNOWN], observed[:DATES, :KNOWN]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        both, alone = (
            one.recal.fit(truth, settings, pool="station", choose="station")
            for one, truth in (past, [a.sel(lead=[2]) for a in past])
        )
    late = forecasts[DATES:], observed[DATES:]
    found = both.quantile(late[0], LEVELS)
    assert found.notnull().all()
    if method == "online":  # regrets are common to places at all leads
        assert both.update(*late).quantile(late[0], LEVELS).notnull().all()
        return
    expected = alone.quantile(late[0].sel(lead=[2]), LEVELS)
    xr.testing.assert_allclose(found.sel(lead=[2]), expected, rtol=1e-9)
    updated = both.update(*late).quantile(late[0], LEVELS)
    expected = alone.update(*(a.sel(lead=[2]) for a in late)).quantile(
        late[0].sel(lead=[2]), LEVELS
    )
    xr.testing.assert_allclose(updated.sel(lead=[2]), expected, rtol=1e-9)


SLOPE = NETWORK.height[::-1] / 1000.0


def sloping():
    """Errors that depend on the slope of a place alone."""
    forecasts = FORECASTS.assign_coords(slope=("station", SLOPE), wmo=("station", np.arange(P)))
    return forecasts, OBSERVED + 6.0 * (SLOPE - SLOPE.mean()) / SLOPE.std()


def test_features_are_coordinates_that_the_user_names():
    forecasts, observed = sloping()
    known = forecasts[:DATES, :KNOWN], observed[:DATES, :KNOWN]
    model = fit("CKME", *known, features="slope")
    bare = fit("CKME", *known)
    assert model.variables["t2m"].method.features == ("latitude", "longitude", "height", "slope")
    np.testing.assert_array_equal(model.state["features"][:, 3], SLOPE[:KNOWN])
    later = part((forecasts, observed), slice(DATES, None), NEW)
    assert model.crps(*later).mean() < 0.8 * bare.crps(*later).mean()
    same = fit("CKME", *known, features=("slope", "lat", "elevation"))
    assert_states_close(same.state, model.state)
    with pytest.raises(ValueError, match=r"4 places .*s16, s17, s18.*lacks their slope"):
        model.apply(later[0].drop_vars("slope"))
    pool = fit("pool", *known, features=["slope"])
    found, expected = (m.quantile(later[0], LEVELS) for m in (pool, model))
    xr.testing.assert_allclose(found, expected, rtol=1e-12)


def test_features_in_cross_validation(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)
    forecasts, observed = sloping()
    known = forecasts[:DATES, :KNOWN], observed[:DATES, :KNOWN]
    options = {"by": "block", "blocks": 2, "pool": "station", "output": "crps"}
    found = known[0].recal.cross_validate(known[1], features="slope", **options)
    half = DATES // 2
    once = known[0][half:].recal.fit(known[1][half:], pool="station", features="slope")
    np.testing.assert_allclose(found[:half], once.crps(*part(known, slice(half))), rtol=1e-6)


def test_features_that_no_fit_compares_are_refused(monkeypatch):
    forecasts, observed = sloping()
    both = forecasts[:DATES, :KNOWN], observed[:DATES, :KNOWN]
    with pytest.raises(ValueError, match=r"features names 'coast', .*\['elevation', .*'slope', "):
        fit("CKME", *both, features=("slope", "coast"))
    told = r"features are for places that share one fit.*condition_on=\('slope',\)"
    with pytest.raises(ValueError, match=told):
        both[0].recal.fit(both[1], features="slope")
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)
    with pytest.raises(ValueError, match=told):
        both[0].recal.fit(both[1], xrecal.EMOS(), pool="station", features="slope")
    with pytest.raises(ValueError, match=told):
        part(both, slice(5))[0].recal.fit(both[1], pool="station", features="slope")
    with pytest.raises(TypeError, match="features must be names of coordinates, got 3"):
        both[0].recal.fit(both[1], pool="station", features=(3,))
