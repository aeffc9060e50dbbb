import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute
from xrecal.fit.fitted import CASE

SIZES = {"time": 40, "lat": 3, "lon": 2, "member": 5}
TIME = xr.date_range("2000-01-01", periods=40, freq="100D", use_cftime=False)
FORECASTS = random("time", "lat", "lon", "member", sizes=SIZES, time=TIME, lat=[1.0, 2.0, 3.0])
FORECASTS.attrs["units"] = "K"
OBSERVED = (FORECASTS.mean("member") + random("time", "lat", "lon", seed=1, sizes=SIZES, time=None)
            .values).assign_attrs(units="K")  # fmt: skip
OBSERVED[3, 1, 0] = OBSERVED[35, 0, 1] = np.nan
FIRST, LAST = slice(0, 30), slice(30, None)
Q = [0.1, 0.5, 0.9]
FIXED = xrecal.CKME(support="observations", ridge=0.05, bandwidth=1.5)
EXACT = [
    FIXED,
    xrecal.CKME(
        support="observations", ridge=0.05, bandwidth=1.5, kernel="laplace", half_life=500.0
    ),
    xrecal.IDR(),
    xrecal.Climatology(),
    xrecal.Climatology(window=90),
    xrecal.PITRecalibration(condition_on="season"),
    xrecal.ConformalPrediction(alpha=0.3),
]


def part(cases):
    return FORECASTS.isel(time=cases), OBSERVED.isel(time=cases)


def fit(cases, method=FIXED, **options):
    forecasts, observed = part(cases)
    return forecasts.recal.fit(observed, method, **options)


def assert_same_state(a, b):
    assert set(a.variables) == set(b.variables)
    for name in a.variables:
        np.testing.assert_array_equal(a[name], b[name], err_msg=str(name))
        assert a[name].dims == b[name].dims
        assert a[name].dtype == b[name].dtype
        assert repr(a[name].attrs) == repr(b[name].attrs)


@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_an_updated_model_is_one_fitted_on_all_cases(method):
    model = fit(FIRST, method).update(*part(LAST))
    whole = fit(slice(None), method)
    assert_same_state(model.state, whole.state)
    new = random("time", "lat", "lon", "member", seed=7, sizes=SIZES, time=TIME)
    new.attrs["units"] = "K"
    np.testing.assert_array_equal(model.quantile(new, Q), whole.quantile(new, Q))
    np.testing.assert_array_equal(model.crps(new, OBSERVED), whole.crps(new, OBSERVED))
    fitted = model.variables["t2m"]
    assert (fitted.n_matched, fitted.n_forecasts, fitted.n_added) == (40, 40, 10)
    assert "10 cases added, with the choices of the fit" in repr(model)
    assert "40 of 40 matched along 'time', 2000-01-01 to 2010-09-05" in repr(model)


@pytest.mark.parametrize(
    ("kept", "added"),
    [(slice(10, 40), slice(0, 10)), (np.r_[0:12, 20:40], slice(12, 20)), (FIRST, [33, 31, 39])],
)
def test_cases_before_between_and_unsorted_are_put_in_order(kept, added):
    model = fit(kept).update(*part(added))
    every = np.sort(np.r_[np.arange(40)[kept], np.arange(40)[added]])
    assert_same_state(model.state, fit(every).state)
    assert (np.diff(model.variables["t2m"].axis.days) > 0).all()


def test_what_was_chosen_stays():
    method = xrecal.CKME(support="auto", condition_on="season", half_life="cv")
    model = fit(FIRST, method)
    updated = model.update(*part(LAST))
    for name in ("ridge", "bandwidth", "strength", "support", "centre", "half_life", "precision"):
        xr.testing.assert_identical(updated.state[name], model.state[name])
    assert int(updated.state["n_cases"].sum()) == 40 * 6 - 2
    assert updated.state.sizes[CASE] == 40
    at = {"lat": 1, "lon": 1}
    plain = fit(FIRST, xrecal.CKME(support="observations"))
    chosen = plain.state.isel(at)
    given = xrecal.CKME(
        support="observations", ridge=float(chosen["ridge"]), bandwidth=float(chosen["bandwidth"])
    )
    alone = FORECASTS.isel(at).recal.fit(OBSERVED.isel(at), given)
    new = random("time", "lat", "lon", "member", seed=7, sizes=SIZES, time=TIME)
    new.attrs["units"] = "K"
    found = plain.update(*part(LAST)).quantile(new, Q).isel(at)
    np.testing.assert_allclose(found, alone.quantile(new.isel(at), Q), rtol=1e-12)


@pytest.mark.parametrize("kept", [2, 5])
def test_numbers_of_members_may_differ(kept):
    few = FORECASTS.where((FORECASTS["time"] < TIME[30]) | (FORECASTS["member"] < kept))
    few = few.transpose(*FORECASTS.dims)
    model = fit(FIRST).update(FORECASTS[LAST, ..., :kept], OBSERVED[LAST])
    whole = few.recal.fit(OBSERVED, FIXED)
    np.testing.assert_array_equal(model.state["loc"], whole.state["loc"])
    np.testing.assert_array_equal(model.quantile(FORECASTS, Q), whole.quantile(FORECASTS, Q))
    back = FORECASTS[LAST, ..., :kept].recal.fit(OBSERVED[LAST], FIXED, min_samples=5)
    np.testing.assert_array_equal(back.update(*part(FIRST)).state["loc"], whole.state["loc"])


def test_an_ensemble_and_one_with_weights_may_join():
    weights = xr.ones_like(FORECASTS)
    weighted = xrecal.weighted(FORECASTS[LAST], weights[LAST] * 3)
    model = fit(FIRST).update(weighted, {"t2m": OBSERVED[LAST]})
    whole = fit(slice(None))
    np.testing.assert_allclose(
        model.quantile(FORECASTS, Q), whole.quantile(FORECASTS, Q), rtol=1e-12
    )
    other = xrecal.weighted(FORECASTS[FIRST], weights[FIRST]).recal.fit(
        {"t2m": OBSERVED[FIRST]}, FIXED
    )
    np.testing.assert_array_equal(other.update(*part(LAST)).state["weights"], 1)


def test_normal_distributions():
    mean, spread = FORECASTS.mean("member"), FORECASTS.std("member")
    normal = xrecal.gaussian(mean.rename("t2m_loc"), spread)
    observed = {"t2m": OBSERVED}
    first, last = (
        (normal.isel(time=cases), {"t2m": OBSERVED.isel(time=cases)}) for cases in (FIRST, LAST)
    )
    model = first[0].recal.fit(first[1], FIXED).update(*last)
    assert_same_state(model.state, normal.recal.fit(observed, FIXED).state)
    with pytest.raises(ValueError, match="normal distributions and ensembles"):
        model.update(*part(LAST))


def test_covariates_join_too():
    wind = random("time", "lat", seed=4, sizes=SIZES, time=TIME, lat=FORECASTS["lat"].values)
    method = xrecal.IDR(condition_on="wind")
    model = fit(FIRST, method, covariates={"wind": wind})
    updated = model.update(*part(LAST), covariates={"wind": wind})
    np.testing.assert_array_equal(updated.state["covariate_wind"], wind.transpose("lat", "time"))
    assert updated.state["index"].dims[-1] == CASE
    assert np.isfinite(updated.crps(FORECASTS[:3], OBSERVED, covariates={"wind": wind})).all()
    with pytest.raises(ValueError, match=r"'wind' has the period 2.0 in the new hindcast"):
        model.update(*part(LAST), covariates={"wind": wind.assign_attrs(period=2.0)})


def test_a_covariate_may_gain_locations():
    wind = random("time", seed=4, sizes=SIZES, time=TIME)
    wide = (wind + xr.zeros_like(FORECASTS["lat"])).transpose("time", "lat")
    method = xrecal.CKME(support="observations", ridge=0.1, bandwidth=1.0, condition_on="wind")
    model = fit(FIRST, method, covariates={"wind": wind})
    updated = model.update(*part(LAST), covariates={"wind": wide})
    same = model.update(*part(LAST), covariates={"wind": wind})
    assert updated.state["covariate_wind"].dims == ("lat", CASE)
    scores = (m.crps(FORECASTS, OBSERVED, covariates={"wind": wind}) for m in (updated, same))
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("method", [FIXED, xrecal.IDR(), xrecal.PITRecalibration()], ids=repr)
def test_lazy_stays_lazy(method):
    whole = fit(FIRST, method).update(*part(LAST))
    forecasts, observed = FORECASTS.chunk(lat=1), OBSERVED.chunk(lat=1)
    with forbid_compute():
        lazy = forecasts[FIRST].recal.fit(observed[FIRST], method)
        lazy = lazy.update(forecasts[LAST].chunk(lat=2), observed[LAST])
        scores = lazy.crps(forecasts, observed)
    assert not lazy.is_computed
    assert scores.chunks is not None
    assert_same_state(lazy.compute().state, whole.state)
    np.testing.assert_array_equal(scores, whole.crps(FORECASTS, OBSERVED))
    assert not fit(FIRST, method).update(forecasts[LAST], observed[LAST]).is_computed
    with pytest.raises(ValueError, match=r"hindcast.chunk\(\{'time': -1\}\)"):
        lazy.update(forecasts[LAST].chunk(time=2), observed[LAST])


def test_inputs_and_the_old_model_stay_as_they_are():
    forecasts, observed = (freeze(a.copy().astype("float32")) for a in (FORECASTS, OBSERVED))
    model = forecasts[FIRST].recal.fit(observed[FIRST], FIXED)
    before = model.state.copy(deep=True)
    updated = model.update(forecasts[LAST].transpose("member", ...), observed[LAST])
    xr.testing.assert_identical(model.state, before)
    assert updated.state["loc"].dtype == np.float32
    assert model.update(FORECASTS[LAST], OBSERVED[LAST]).state["loc"].dtype == np.float32
    assert updated.state["observations"].attrs == before["observations"].attrs


def test_twice_is_once():
    once = fit(FIRST).update(*part(LAST))
    twice = fit(FIRST).update(*part(slice(36, 40))).update(*part(slice(30, 36)))
    assert_same_state(once.state, twice.state)
    assert twice.variables["t2m"].n_added == 10


def test_years_and_unlabelled_cases():
    bare, observed = FORECASTS.drop_vars("time"), OBSERVED.drop_vars("time")
    model = bare[FIRST].recal.fit(observed[FIRST], FIXED).update(bare[LAST], observed[LAST])
    assert_same_state(model.state, bare.recal.fit(observed, FIXED).state)
    with pytest.raises(ValueError, match="the model has no labels along 'time', but hindcast has"):
        model.update(*part(LAST))
    years = {"time": np.arange(1980, 2020)}
    dated, verified = FORECASTS.assign_coords(years), OBSERVED.assign_coords(years)
    model = dated[1:].recal.fit(verified[1:], FIXED).update(dated[:1], verified[:1])
    np.testing.assert_array_equal(model.variables["t2m"].axis.year, years["time"])
    with pytest.raises(ValueError, match="the type Timestamp in hindcast, but int64 in"):
        model.update(*part(LAST))


def test_locations_without_a_fit_stay_without():
    gone = OBSERVED.copy()
    gone[:25, 0, 0] = np.nan
    for method in (FIXED, xrecal.PITRecalibration(), xrecal.Climatology(), xrecal.IDR()):
        model = FORECASTS[FIRST].recal.fit(gone[FIRST], method).update(*part(LAST))
        assert int(model.state["status"][0, 0]) == 1
        found = model.quantile(FORECASTS, 0.5)
        assert np.isnan(found[:, 0, 0]).all()
        assert np.isfinite(found[:, 1, 1]).all()


def test_an_invalid_value_gives_its_status():
    forecasts, observed = part(LAST)
    bad = forecasts.copy()
    bad[2, 1, 1, 0] = np.inf
    updated = fit(FIRST).update(bad, observed)
    assert (updated.state["status"] != 0).sum() == 1
    assert int(updated.state["n_cases"][1, 1]) == 39


def test_datasets():
    both = xr.Dataset({"a": FORECASTS, "b": FORECASTS + 1})
    observed = xr.Dataset({"a": OBSERVED, "b": OBSERVED})
    model = both.isel(time=FIRST).recal.fit(observed.isel(time=FIRST), FIXED)
    updated = model.update(both.isel(time=LAST), observed.isel(time=LAST))
    assert_same_state(updated["b"].state, both[["b"]].recal.fit(observed["b"], FIXED).state)
    with pytest.raises(ValueError, match=r"update all of them, or one alone: model\[name\]"):
        model.update(both[["a"]].isel(time=LAST), observed[["a"]].isel(time=LAST))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, o: (FORECASTS[28:32], OBSERVED[28:32]), "2 of 4 labels .* first 2007-09-01"),
        (lambda f, o: (f.assign_attrs(units="degC"), o.assign_attrs(units="degC")), "units"),
        (lambda f, o: (f.isel(lat=[0, 1]), o.isel(lat=[0, 1])), "model.state and hindcast differ"),
        (lambda f, o: (f.isel(lat=0), o.isel(lat=0)), r"it lacks \['lat'\]"),
        (lambda f, o: (f.assign_coords(lat=[1.0, 2, 4]), o.drop_vars("lat")), "labels along 'lat'"),
        (lambda f, o: (f.isel(time=0), o.isel(time=0)), "hindcast has no dimension 'time'"),
        (lambda f, o: (f, o.assign_coords(time=TIME[:10])), "no label along 'time' is common"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        fit(FIRST).update(*change(*part(LAST)))


def test_half_lives_and_seasons_need_dates():
    model = fit(
        FIRST, xrecal.CKME(support="observations", half_life=100.0, ridge=0.1, bandwidth=1.0)
    )
    label = {"time": ("time", np.arange(10) + 3000)}
    forecasts, observed = (a.drop_vars("time").assign_coords(label) for a in part(LAST))
    with pytest.raises(ValueError, match="of the type int"):
        model.update(forecasts, observed)


def test_methods_without_cases_and_pools_are_refused():
    for method in (xrecal.EMOS(), xrecal.LinearPool(methods=(FIXED, xrecal.EMOS()))):
        with pytest.raises(ValueError, match=f"{type(method).__name__} keeps nothing .*; fit anew"):
            fit(FIRST, method).update(*part(LAST))
    with pytest.raises(ValueError, match="the model is pooled over lat, and a pooled one cannot"):
        fit(FIRST, pool="lat").update(*part(LAST))


def test_landmarks_are_the_same_cases_after_earlier_ones_have_been_added():
    method = xrecal.CKME(support="observations", ridge=0.003, bandwidth=1.5, solver="lowrank")
    before = fit(LAST, method, min_samples=5)
    after = before.update(*part(FIRST))
    for lat, lon in np.ndindex(3, 2):
        old, new = (model.state.isel(lat=lat, lon=lon) for model in (before, after))
        kept = old.landmark.values >= 0
        assert kept.any()
        assert (new.landmark.values[~kept] == -1).all()
        np.testing.assert_array_equal(
            new["loc"][{CASE: new.landmark.values[kept]}],
            old["loc"][{CASE: old.landmark.values[kept]}],
        )


@pytest.mark.parametrize("ridge", [0.003, 0.1])
def test_forecasts_after_an_update_are_as_good_as_those_of_an_exact_solution(ridge):
    new = random("time", "lat", "lon", "member", seed=7, sizes=SIZES, time=TIME)
    new.attrs["units"] = "K"
    found = {
        solver: fit(
            LAST,
            xrecal.CKME(support="observations", ridge=ridge, bandwidth=1.5, solver=solver),
            min_samples=5,
        )
        .update(*part(FIRST))
        .crps(new, OBSERVED)
        for solver in ("exact", "lowrank")
    }
    assert float(found["lowrank"].mean()) == pytest.approx(float(found["exact"].mean()), rel=2e-3)
