from dataclasses import dataclass, replace
from functools import cache

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute
from xrecal.fit.fitted import CASE
from xrecal.methods.emos import PREDICTORS

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
    xrecal.Raw(),
    xrecal.EMOS(),
    xrecal.EMOS(condition_on="season", vary_spread=True, bounds=(-100, None)),
]
"""Updated they are what they would be if they had been fitted to all cases."""

POOL = xrecal.LinearPool(
    (
        xrecal.CKME(support="errors"),
        xrecal.EMOS(),
        xrecal.IDR(condition_on="season"),
        xrecal.PITRecalibration(),
        xrecal.ConformalPrediction(alpha=0.3),
        xrecal.Climatology(),
    )
)


def part(cases):
    return FORECASTS.isel(time=cases), OBSERVED.isel(time=cases)


def fit(cases, method=FIXED, **options):
    forecasts, observed = part(cases)
    return forecasts.recal.fit(observed, method, **options)


@cache
def first(method):
    """A fit to the first cases, which no test changes."""
    return fit(FIRST, method)


def assert_same_state(a, b):
    assert list(a.data_vars) == list(b.data_vars)
    assert set(a.coords) == set(b.coords)
    for name in a.variables:
        np.testing.assert_array_equal(a[name], b[name], err_msg=str(name))
        assert a[name].dims == b[name].dims
        assert a[name].dtype == b[name].dtype
        assert repr(a[name].attrs) == repr(b[name].attrs)


@pytest.mark.parametrize("labels", ["numbers", "names"])
def test_places_may_come_in_another_order(labels):
    def named(a):
        return a.assign_coords(lat=["north", "south", "west"]) if labels == "names" else a

    past, observed, more = named(FORECASTS[FIRST]), named(OBSERVED), named(FORECASTS[LAST])
    model = past.recal.fit(observed, FIXED)
    turned = {"lat": [2, 0, 1]}
    found = model.update(more.isel(turned), observed.isel(turned))
    assert_same_state(found.state, model.update(more, observed).state)


@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_an_updated_model_is_one_fitted_on_all_cases(method):
    model = first(method).update(*part(LAST))
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


@pytest.mark.parametrize(
    ("method", "pool"),
    [
        *((m, None) for m in (FIXED, xrecal.IDR(), xrecal.PITRecalibration(), xrecal.EMOS(), POOL)),
        *((m, p) for m in (FIXED, xrecal.EMOS()) for p in ("lon", {"lon": 1})),
    ],
    ids=repr,
)
def test_lazy_stays_lazy(method, pool):
    model = fit(FIRST, method, pool=pool)
    whole = model.update(*part(LAST))
    forecasts, observed = FORECASTS.chunk(lat=1), OBSERVED.chunk(lat=1)
    with forbid_compute():
        lazy = forecasts[FIRST].recal.fit(observed[FIRST], method, pool=pool)
        lazy = lazy.update(forecasts[LAST].chunk(lat=2), observed[LAST])
        scores = lazy.crps(forecasts, observed)
    assert not lazy.is_computed
    assert scores.chunks is not None
    state, scores = dask.compute(lazy.state, scores)
    assert_same_state(state, whole.state)
    np.testing.assert_array_equal(scores, whole.crps(FORECASTS, OBSERVED))
    assert not model.update(forecasts[LAST], observed[LAST]).is_computed
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


@dataclass(frozen=True)
class Forgetful(xrecal.Raw):
    """A method that keeps nothing."""

    updates = False


def test_a_method_that_keeps_nothing_is_refused():
    with pytest.raises(ValueError, match=r"Forgetful does not store .*; fit again"):
        fit(FIRST, Forgetful()).update(*part(LAST))


def test_emos_is_fitted_to_all_cases_where_the_first_were_too_few():
    few = OBSERVED.copy()
    few[:15, 0, 0] = np.nan
    model = FORECASTS[FIRST].recal.fit(few[FIRST], xrecal.EMOS())
    assert int(model.state["status"][0, 0]) == 1
    whole = FORECASTS.recal.fit(few, xrecal.EMOS())
    assert int(whole.state["status"][0, 0]) == 0
    assert_same_state(model.update(FORECASTS[LAST], few[LAST]).state, whole.state)


def test_emos_forecasts_do_not_read_what_updates_learn_from():
    model = first(xrecal.EMOS())
    bare = replace(model.variables["t2m"], state=model.state.drop_vars(PREDICTORS))
    again = replace(model, variables={"t2m": bare})
    xr.testing.assert_identical(again.apply(FORECASTS), model.apply(FORECASTS))


def test_components_of_a_pool_learn_from_all_cases_and_weights_stay():
    model, whole = first(POOL), fit(slice(None), POOL)
    updated = model.update(*part(LAST)).state
    stays = [n for n in model.state if str(n).startswith(("pool_weight", "tail_", "ckme_"))]
    xr.testing.assert_identical(updated[stays], model.state[stays])
    learned = [n for n in whole.state if n not in (*stays, "status")]  # of the ridge, too
    assert {"emos_slope", "idr_season_index", "pitrecalibration_pit", "n_cases"} <= set(learned)
    assert not {*PREDICTORS, f"emos_{PREDICTORS[0]}"} & set(whole.state)
    for name in learned:
        # The pool keeps members sorted, and the optimiser of EMOS stops at a slope of 1e-9.
        options = {"rtol": 1e-7, "atol": 1e-9} if str(name).startswith("emos") else {"rtol": 1e-12}
        if name == "idr_season_index":  # a minimum, found in steps: coefficients near 0 are rounded
            options["atol"] = 1e-12
        np.testing.assert_allclose(updated[name], whole.state[name], **options, err_msg=str(name))


def test_an_updated_pool_is_about_as_good_as_one_fitted_anew():
    data = xrecal.datasets.lorenz96(n_inits=240, n_members=8, n_locations=4, lead_days=[5])
    data = data.isel(lead=0, drop=True)
    past, rest = (data.isel(init=part) for part in (slice(120), slice(120, 160)))
    new, both = data.isel(init=slice(160, None)), data.isel(init=slice(160))
    method = xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS(), xrecal.Climatology()))
    models = [a.forecast.recal.fit(a.observation, method) for a in (past, both)]
    models.append(models[0].update(rest.forecast, rest.observation))
    old, anew, updated = (float(m.crps(new.forecast, new.observation).mean()) for m in models)
    assert updated == pytest.approx(anew, rel=0.02)
    assert updated < old * 1.01


@pytest.mark.parametrize("method", [*EXACT, POOL], ids=repr)
def test_one_case_at_a_time_is_all_at_once(method):
    model = first(method)
    at_once = model.update(*part(slice(30, 34)))
    for case in range(30, 34):
        model = model.update(*part([case]))
    assert_same_state(model.state, at_once.state)


POOLS = ["lat", ("lat", "lon"), {"lat": 3}]


@pytest.mark.each_value
@pytest.mark.parametrize("pool", POOLS, ids=str)
@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_pooled_fits_get_the_cases_of_all_positions(method, pool):
    model = fit(FIRST, method, pool=pool).update(*part(LAST))
    whole = fit(slice(None), method, pool=pool)
    assert_same_state(model.state, whole.state)
    np.testing.assert_array_equal(model.quantile(FORECASTS, Q), whole.quantile(FORECASTS, Q))
    for name in ("year", "days", "step"):
        np.testing.assert_array_equal(
            *(getattr(m.variables["t2m"].axis, name) for m in (model, whole))
        )
    assert model.variables["t2m"].n_forecasts == 40


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_cases_between_those_of_a_pooled_fit(pool):
    model = fit(np.r_[0:12, 20:40], pool=pool).update(*part(slice(12, 20)))
    assert_same_state(model.state, fit(slice(None), pool=pool).state)


@pytest.mark.parametrize("pool", ["lat", {"lat": 3}], ids=str)
def test_covariates_of_pooled_fits(pool):
    wind = random("time", "lat", seed=4, sizes=SIZES, time=TIME, lat=FORECASTS["lat"].values)
    height = xr.DataArray([100.0, 200.0, 400.0], {"lat": FORECASTS["lat"]}, ["lat"])
    for given in ({"wind": wind}, {"wind": wind.isel(lat=0, drop=True)}, {"wind": height}):
        options = {"pool": pool, "covariates": given}
        method = xrecal.Climatology(condition_on="wind")
        model = fit(FIRST, method, **options).update(*part(LAST), covariates=given)
        assert_same_state(model.state, fit(slice(None), method, **options).state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lat": [0, 1]}, "with 3 positions along 'lat', but hindcast has 2; update with all"),
        ({"lat": 0}, "hindcast has no such dimension; update with all positions of the fit"),
        ({"lat": [2, 1, 0]}, r"'lat', which the fit pools, differ: 3.0, 2.0, 1.0 in hindcast, 1.0"),
    ],
)
def test_other_positions_than_those_pooled_are_refused(change, message):
    forecasts, observed = part(LAST)
    with pytest.raises(ValueError, match=message):
        fit(FIRST, pool="lat").update(forecasts.isel(change), observed.isel(change))


@pytest.mark.parametrize("method", [*EXACT, POOL], ids=repr)
def test_cases_that_are_known_are_left_as_they_are(method):
    model = fit(slice(0, 25), method).update(*part(slice(25, 30)))
    again = model.update((FORECASTS[20:30] + 1).assign_attrs(units="K"), OBSERVED[20:30])
    assert_same_state(again.state, model.state)
    assert again.variables["t2m"].n_added == 5
    both = model.update(*part(slice(20, 40)))
    assert_same_state(both.state, model.update(*part(LAST)).state)
    fitted = both.variables["t2m"]
    assert (fitted.n_matched, fitted.n_forecasts, fitted.n_added) == (40, 40, 15)


@pytest.mark.each_value
@pytest.mark.parametrize("pool", [None, *POOLS], ids=str)
@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_an_observation_that_was_missing_is_filled_in(method, pool):
    missing = OBSERVED.copy()
    missing[[5, 28, 29]] = np.nan
    missing[20, 1, 1] = np.nan
    model = FORECASTS[FIRST].recal.fit(missing[FIRST], method, pool=pool)
    filled = model.update(FORECASTS[20:40], OBSERVED[20:40])
    missing[20:] = OBSERVED[20:]
    whole = FORECASTS.recal.fit(missing, method, pool=pool)
    assert_same_state(filled.state, whole.state)
    assert filled.variables["t2m"].n_forecasts == 40


@pytest.mark.parametrize("method", EXACT, ids=repr)
def test_a_revised_observation_takes_the_place_of_the_first(method):
    revised = OBSERVED.copy()
    revised[25, 1] += 0.5
    model = fit(slice(None), method).update(FORECASTS[22:28], revised[22:28])
    assert_same_state(model.state, FORECASTS.recal.fit(revised, method).state)


def test_known_cases_do_not_lose_observations():
    model = fit(FIRST)
    missing = xr.full_like(OBSERVED, np.nan)
    assert_same_state(model.update(FORECASTS[20:30], missing[20:30]).state, model.state)


def test_known_cases_keep_their_covariates():
    wind = random("time", seed=4, sizes=SIZES, time=TIME)
    gap = wind.where(wind["time"] != TIME[29])
    method = xrecal.Climatology(condition_on="wind")
    model = fit(FIRST, method, covariates={"wind": gap})
    model = model.update(*part(slice(28, 40)), covariates={"wind": wind})
    assert_same_state(model.state, fit(slice(None), method, covariates={"wind": wind}).state)


@pytest.mark.parametrize("pool", [None, "lead"])
def test_each_lead_learns_when_it_verifies(pool):
    starts = xr.date_range("2000-01-01", periods=40, freq="1D", use_cftime=False)
    leads = np.array([1, 3, 6], "timedelta64[D]").astype("timedelta64[ns]")
    members = random("time", "lat", "member", sizes=SIZES, time=starts)
    hindcast = members.rename(time="init", lat="lead").assign_coords(lead=leads)
    valid = xr.date_range("2000-01-01", periods=60, freq="1D", use_cftime=False)
    truth = random("time", seed=3, sizes={"time": 60}, time=valid)
    method = xrecal.EMOS()
    model = hindcast[:30].recal.fit(truth[:30], method, pool=pool)
    for day in range(30, 40):
        model = model.update(hindcast[day - 8 : day + 1], truth[: day + 1])
    whole = hindcast.recal.fit(truth[:40], method, pool=pool)
    assert_same_state(model.state, whole.state)
    if pool is None:
        assert model.variables["t2m"].leads == whole.variables["t2m"].leads
        assert model.variables["t2m"].leads.n_matched == (39, 37, 34)
    lazy = hindcast[:30].chunk().recal.fit(truth[:30], method, pool=pool)
    with forbid_compute():
        lazy = lazy.update(hindcast[20:], truth[:40])
    assert_same_state(lazy.compute().state, whole.state)


@pytest.mark.each_value
@pytest.mark.parametrize("method", [xrecal.EMOS(), POOL], ids=repr)
@pytest.mark.parametrize("name", ["model.zarr", "model.nc"])
def test_stored_models_are_updated_as_if_they_had_never_been_stored(method, name, tmp_path):
    model = first(method)
    model.save(tmp_path / name)
    expected = model.update(*part(LAST))
    with forbid_compute():
        lazy = xrecal.open_recalibrator(tmp_path / name, chunks={}).update(*part(LAST))
    for opened in (xrecal.open_recalibrator(tmp_path / name).update(*part(LAST)), lazy):
        assert_same_state(opened.compute().state, expected.state)
    expected.save(tmp_path / f"updated_{name}")
    again = xrecal.open_recalibrator(tmp_path / f"updated_{name}")
    np.testing.assert_array_equal(again.quantile(FORECASTS, Q), expected.quantile(FORECASTS, Q))


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
