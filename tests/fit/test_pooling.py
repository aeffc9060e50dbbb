import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute
from xrecal.arrays.ckme.folds import arrange_folds, assign_folds
from xrecal.fit.fitted import CASE
from xrecal.inputs import pool as pooling
from xrecal.inputs.pool import Pool

LAT, LON, LEAD = [40.0, 41.0, 42.0, 43.0], [5.0, 6.0, 7.0], [1, 2]
N = 12
GAPS = st.integers(0, 2)
CKME = xrecal.CKME(support="observations", ridge=0.05, bandwidth=1.5)
METHODS = [
    CKME,
    xrecal.CKME(support="observations"),
    xrecal.CKME(support="errors", ridge=0.1),
    xrecal.CKME(support="regression", ridge=0.1, solver="lowrank"),
    xrecal.EMOS(),
    xrecal.IDR(),
    xrecal.Climatology(),
    xrecal.PITRecalibration(),
    xrecal.ConformalPrediction(alpha=0.4),
]


def hindcast(seed=0, n=N):
    sizes = {"time": n, "lead": 2, "lat": 4, "lon": 3, "member": 4}
    time = xr.date_range(
        "2000-01-01", periods=n, freq="300D" if n < 100 else "90D", use_cftime=False
    )
    coords = {"lat": LAT, "lon": LON, "lead": LEAD, "time": time}
    dims = ("time", "lead", "lat", "lon", "member")
    return random(*dims, seed=seed, sizes=sizes, **coords)


def observed(forecasts, seed=1):
    noise = random("time", "lead", "lat", "lon", seed=seed, sizes=dict(forecasts.sizes), time=None)
    return (forecasts.mean("member") + noise.values).rename("t2m")


FORECASTS = hindcast()
OBSERVED = observed(FORECASTS)


def stacked(array, dims):
    """Cases by date, then by position, as one unlabelled dimension: what pooling must equal."""
    found = array.stack(cases=("time", *dims)).reset_index("cases", drop=True)
    return found.drop_vars([c for c in found.coords if "cases" in found[c].dims])


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_pooled_by_name_is_a_fit_on_all_cases_as_one_sample(method):
    if method in (xrecal.CKME(support="observations"), METHODS[2]):
        pytest.skip("folds keep dates together, which one sample of cases does not")
    model = FORECASTS.recal.fit(OBSERVED, method, pool=("lat", "lon"))
    alone = stacked(FORECASTS, ("lat", "lon")).recal.fit(
        stacked(OBSERVED, ("lat", "lon")), method, dim="cases"
    )
    assert model.state["status"].dims == ("lead",)
    for name in alone.state:
        np.testing.assert_array_equal(model.state[name], alone.state[name])
    new = hindcast(seed=5)
    found = model.quantile(new, [0.1, 0.5, 0.9])
    expected = alone.quantile(
        stacked(new, ("lat", "lon")),
        [0.1, 0.5, 0.9],
    )
    # Tails are in units of the spread of the weighted members, whose last digit may differ.
    np.testing.assert_allclose(
        stacked(found, ("lat", "lon")), expected.transpose(..., "cases"), rtol=1e-13, atol=1e-15
    )


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("at", [(1, 1), (0, 0), (3, 1)])
def test_a_window_is_a_pool_of_the_neighbours(method, at):
    model = FORECASTS.recal.fit(OBSERVED, method, pool={"lat": 3, "lon": 3}, choose="lead")
    assert model.state["status"].dims == ("lead", "lat", "lon")
    place = {"lat": at[0], "lon": at[1]}
    window = {d: slice(max(i - 1, 0), i + 2) for d, i in place.items()}
    alone = FORECASTS.isel(window).recal.fit(OBSERVED.isel(window), method, pool=("lat", "lon"))
    np.testing.assert_array_equal(model.state["n_cases"].isel(place), alone.state["n_cases"])
    if isinstance(method, (xrecal.PITRecalibration, xrecal.ConformalPrediction)) and at != (1, 1):
        return  # observations within a jump get random numbers by slot, and slots differ
    new = hindcast(seed=5)
    found = model.quantile(new, [0.1, 0.5, 0.9]).isel(place)
    expected = alone.quantile(new.isel(place), [0.1, 0.5, 0.9])
    xr.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-6)
    xr.testing.assert_allclose(model.crps(new, OBSERVED), model.crps(new.chunk(lead=1), OBSERVED))


def test_windows_of_quantiles_learn_from_neighbours_at_the_edges_too():
    quantiles = FORECASTS.quantile([0.1, 0.5, 0.9], "member", keep_attrs=True)
    model = quantiles.recal.fit(OBSERVED, xrecal.EMOS(), pool={"lat": 3, "lon": 3}, choose="lead")
    window = {"lat": slice(2), "lon": slice(2)}
    alone = quantiles.isel(window).recal.fit(
        OBSERVED.isel(window), xrecal.EMOS(), pool=("lat", "lon")
    )
    corner = {"lat": 0, "lon": 0}
    np.testing.assert_allclose(model.state["slope"].isel(corner), alone.state["slope"], rtol=1e-6)


def test_windows_of_one_position_change_nothing():
    model = FORECASTS.recal.fit(OBSERVED, CKME, pool={"lat": 1, "lon": 1}, min_samples=5)
    alone = FORECASTS.recal.fit(OBSERVED, CKME, min_samples=5)
    xr.testing.assert_identical(model.state.drop_attrs(), alone.state.drop_attrs())


@pytest.mark.each_value
@pytest.mark.parametrize(
    "pool", ["lead", ("lat", "lon"), {"lat": 3}, {"lon": 3, "lat": 1}], ids=str
)
@pytest.mark.parametrize(
    ("order", "scheduler"), [(("member", "lon", "time", "lead", "lat"), "threads"), (None, "sync")]
)
def test_any_order_and_chunks_give_the_same_bits_and_stay_lazy(pool, order, scheduler):
    method = xrecal.CKME(support="errors")
    data, observed = (array.isel(lat=slice(3)) for array in (FORECASTS, OBSERVED))
    forecasts = data.transpose(*(order or data.dims))
    pooled = () if isinstance(pool, dict) else np.atleast_1d(pool)
    cut = {d: 1 for d in ("lead", "lat", "lon") if d not in pooled}
    lazy = forecasts.chunk(cut).recal.fit(observed.chunk(cut), method, pool=pool)
    assert not lazy.is_computed
    model = data.recal.fit(observed, method, pool=pool)
    scores = lazy.crps(forecasts.chunk(cut), observed)
    assert scores.chunks is not None
    of_rows = lazy.crps(forecasts.chunk({"time": 7, "lat": 1}), observed)
    computed, scores, of_rows = dask.compute(lazy.state, scores, of_rows, scheduler=scheduler)
    assert set(computed.variables) == set(model.state.variables)
    for name in model.state.variables:
        a = computed[name].transpose(*model.state[name].dims)
        np.testing.assert_array_equal(a, model.state[name])
    expected = model.crps(data, observed)
    np.testing.assert_array_equal(scores.transpose(*expected.dims), expected)
    np.testing.assert_allclose(of_rows.transpose(*expected.dims), expected, rtol=1e-9)


def test_float32_inputs_stay_as_they_are():
    forecasts, obs = freeze(FORECASTS.astype("float32").copy()), OBSERVED.astype("float32").copy()
    model = forecasts.recal.fit(freeze(obs), CKME, pool={"lat": 3})
    assert model.state["loc"].dtype == model.state["observations"].dtype == np.float32
    assert model.apply(forecasts)["t2m_weight"].dtype == np.float32


def test_forecasts_anywhere_along_pooled_dimensions():
    model = FORECASTS.recal.fit(OBSERVED, CKME, pool=("lat", "lon"))
    elsewhere = FORECASTS.isel(lat=[0, 2], lon=[1]).assign_coords(lat=[50.5, 51.5], lon=[9.0])
    with pytest.warns(UserWarning, match="along 'l(at|on)' that the hindcast of the model did not"):
        found = model.apply(elsewhere)
    assert found["t2m"].dims == ("lead", "member")
    assert found["t2m_weight"].dims == ("time", "lead", "lat", "lon", "member")
    whole = model.apply(FORECASTS)
    same = whole["t2m_weight"].isel(lat=[0, 2], lon=[1])
    np.testing.assert_allclose(found["t2m_weight"], same, atol=1e-12)
    one = model.apply(FORECASTS.isel(lat=2, lon=1, time=3, drop=True))
    np.testing.assert_allclose(
        one["t2m_weight"], whole["t2m_weight"].isel(lat=2, lon=1, time=3), atol=1e-12
    )
    np.testing.assert_array_equal(
        found["calibration_time"], np.repeat(FORECASTS["time"].values, 12)
    )
    np.testing.assert_array_equal(found["calibration_lat"], np.tile(np.repeat(LAT, 3), N))
    np.testing.assert_array_equal(found["calibration_lon"], np.tile(LON, 4 * N))
    best = found["t2m_weight"].isel(time=0, lead=0, lat=0, lon=0).argmax("member")
    case = found.isel(lead=0, member=int(best))
    place = {d: case[f"calibration_{d}"].item() for d in ("lat", "lon")}
    date = case["calibration_time"].values
    assert case["t2m"].item() == OBSERVED.isel(lead=0).sel(**place, time=date).item()
    with pytest.raises(ValueError, match=r"it lacks \['lead'\]"):
        model.apply(FORECASTS.isel(lead=0, drop=True))
    with pytest.raises(ValueError, match=r"fitted over \['lat', 'lon', 'time', 'lead'\]"):
        model.apply(FORECASTS.expand_dims(depth=2))


def test_members_from_no_case_have_missing_labels_of_positions():
    pool = xrecal.LinearPool(methods=(CKME, xrecal.EMOS()))
    model = FORECASTS.isel(lead=0).recal.fit(OBSERVED.isel(lead=0), pool, pool=("lat", "lon"))
    found = model.apply(FORECASTS.isel(lead=0, time=[0]))
    from_cases = ~found["component"].isin(["emos", "average", "tail"])
    assert 0 < int(from_cases.sum()) < from_cases.size
    np.testing.assert_array_equal(found["calibration_lat"].notnull(), from_cases)
    np.testing.assert_array_equal(found["calibration_time"].notnull(), from_cases)


def test_state_says_from_where():
    model = FORECASTS.recal.fit(OBSERVED, pool=("lat", "lon"))
    assert "pooled over lat, lon" in repr(model)
    assert "note" not in repr(model)
    fitted = model.variables["t2m"]
    assert (fitted.n_matched, fitted.axis.step.size) == (N, N * 12)
    window = FORECASTS.recal.fit(OBSERVED, pool={"lat": 3, "lon": 1})
    assert "pooled within 3 along lat, 1 along lon" in repr(window)
    np.testing.assert_array_equal(window.state["lat"], LAT)
    assert window.state["loc"].attrs["long_name"] == "calibration forecasts"


def test_pooled_cases_count_towards_min_samples():
    with pytest.raises(ValueError, match="only 12 cases along 'time' have"):
        FORECASTS.recal.fit(OBSERVED, xrecal.EMOS())
    with pytest.raises(ValueError, match=r"'time', at 12 pooled positions each, have .*=145"):
        FORECASTS.recal.fit(OBSERVED, xrecal.EMOS(), pool=("lat", "lon"), min_samples=145)
    holes = OBSERVED.copy()
    holes[:, :, 0] = np.nan
    model = FORECASTS.recal.fit(holes, xrecal.EMOS(), pool={"lat": 3})
    np.testing.assert_array_equal(model.state["n_cases"].isel(lead=0, lon=0), [12, 24, 36, 24])
    np.testing.assert_array_equal(model.state["status"].isel(lead=0, lon=0) > 0, [1, 0, 0, 0])


def test_covariates_follow_their_cases():
    height = xr.DataArray(np.arange(4.0), {"lat": LAT}, ["lat"]) + xr.zeros_like(
        OBSERVED["time"], float
    )
    wind = random("time", seed=9, sizes={"time": N}, time=FORECASTS["time"].values)
    method = xrecal.EMOS(condition_on=("height", "wind", "season"))
    given = {"height": height, "wind": wind}
    model = FORECASTS.recal.fit(OBSERVED, method, pool=("lat", "lon"), covariates=given)
    state = model.state
    np.testing.assert_array_equal(
        state["covariate_height"], np.tile(np.repeat(np.arange(4.0), 3), N)
    )
    np.testing.assert_array_equal(state["covariate_wind"], np.repeat(wind.values, 12))
    season = state["covariate_season"].values.reshape(N, 12)
    assert (season == season[:, :1]).all()
    whole = model.quantile(FORECASTS, 0.5, covariates=given)
    one = model.quantile(
        FORECASTS.isel(lat=2, lon=0), 0.5, covariates={"wind": wind, "height": height.isel(lat=2)}
    )
    np.testing.assert_allclose(one, whole.isel(lat=2, lon=0), rtol=1e-12)
    local = FORECASTS.recal.fit(OBSERVED, method, pool={"lat": 3}, covariates=given)
    edge = local.state["covariate_height"].transpose("lat", CASE)[0].values.reshape(N, 3)
    np.testing.assert_array_equal(edge, np.tile([np.nan, 0, 1], (N, 1)))
    assert np.isfinite(local.quantile(FORECASTS, 0.5, covariates=given)).all()


@pytest.mark.parametrize(
    "method",
    [
        xrecal.EMOS(),
        xrecal.IDR(),
        xrecal.Climatology(),
        xrecal.PITRecalibration(),
        xrecal.ConformalPrediction(alpha=0.4),
    ],
    ids=repr,
)
def test_methods_that_compare_no_cases_learn_from_all_of_them(method, monkeypatch):
    dims = ("lat", "lon")
    whole = FORECASTS.recal.fit(OBSERVED, method, pool=dims)
    monkeypatch.setattr(pooling, "MAX_POOLED", 5 * N)
    beyond = FORECASTS.recal.fit(OBSERVED, method, pool=dims)
    xr.testing.assert_identical(whole.state, beyond.state)
    assert "note" not in repr(beyond)
    crps = FORECASTS.recal.cross_validate(OBSERVED, method, by="block", pool=dims, output="crps")
    monkeypatch.undo()
    expected = FORECASTS.recal.cross_validate(
        OBSERVED, method, by="block", pool=dims, output="crps"
    )
    xr.testing.assert_identical(crps, expected)


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("depth", r"no location dimension 'depth'; it has \['lead', 'lat', 'lon'\]"),
        ("time", "names the calibration dimension 'time'"),
        (("lat", "member"), "names the member dimension 'member'"),
        (("lat", "lat"), "several different ones"),
        ((), "must name one location dimension"),
        ({"lat": 2}, "odd whole number.*got 2"),
        ({"lat": -1}, "odd whole number"),
        ({"lat": 3.0}, "odd whole number"),
        ({"lon": 5}, "window 5 along 'lon' is larger than its 3 positions; use pool='lon'"),
    ],
)
def test_what_cannot_be_pooled_is_refused(pool, message):
    with pytest.raises(ValueError, match=message):
        FORECASTS.recal.fit(OBSERVED, pool=pool)


def test_pooled_dimensions_must_be_in_one_chunk():
    with pytest.raises(ValueError, match=r"hindcast.chunk\(\{'lat': -1\}\)"):
        FORECASTS.chunk(lat=2).recal.fit(OBSERVED, pool="lat")
    with pytest.raises(ValueError, match=r"observations.chunk\(\{'lat': -1\}\)"):
        FORECASTS.recal.fit(OBSERVED.chunk(lat=2), pool="lat")


@pytest.mark.parametrize("cut", [{"lat": 2, "lon": 3}, {"lat": (1, 4, 2), "lon": -1}], ids=str)
def test_windows_reach_over_chunks(cut):
    """Wider ones too, and cases of which only some positions are taken, with covariates."""
    sizes = {"time": 12, "lat": 7, "lon": 4, "member": 3}
    along = {"lat": np.arange(7.0), "lon": np.arange(4.0)}
    forecasts = random(*sizes, seed=3, sizes=sizes, **along)
    observed = random("time", "lat", "lon", seed=4, sizes=sizes, **along)
    wind = random("time", "lon", seed=5, sizes=sizes, lon=along["lon"])
    pool, given = {"lon": 3, "lat": 5}, {"wind": wind}
    method = xrecal.EMOS(condition_on="wind")
    for obs in (observed, observed.chunk(lat=3, lon=1)):
        with forbid_compute():
            lazy = forecasts.chunk(cut).recal.fit(obs, method, pool=pool, covariates=given)
            issued = lazy.quantile(forecasts.chunk(cut), [0.1, 0.9], covariates=given)
        model = forecasts.recal.fit(observed, method, pool=pool, covariates=given)
        xr.testing.assert_identical(lazy.state.compute(), model.state)
        expected = model.quantile(forecasts, [0.1, 0.9], covariates=given)
        xr.testing.assert_identical(issued.compute(), expected)


def test_parts_and_observations_may_lack_a_pooled_dimension():
    levels = [0.1, 0.5, 0.9]
    sizes = {"time": N, "lat": 4, "quantile": 3}
    forecasts = random("time", "lat", "quantile", sizes=sizes, quantile=levels, lat=LAT)
    obs = random("time", seed=3, sizes=sizes)
    model = forecasts.recal.fit(obs, CKME, pool="lat")
    np.testing.assert_array_equal(model.state["observations"], np.repeat(obs.values, 4))
    assert model.state["weights"].shape == (N * 4, 3)
    assert np.isfinite(model.crps(forecasts, obs)).all()


def test_dates_are_held_out_together():
    """Were copies of a date in other folds, they would give the answer away: no ridge at all."""
    one = FORECASTS.isel(lat=[0], lon=0, lead=0)
    many = xr.concat([one.assign_coords(lat=[float(i)]) for i in range(6)], "lat")
    obs = random("time", seed=8, sizes={"time": N}, time=one["time"].values)
    for folds in ("year", "block", "random"):
        method = xrecal.CKME(support="observations", folds=folds)
        together = many.recal.fit(obs, method, pool="lat").state
        alone = one.isel(lat=0).recal.fit(obs, method, min_samples=5).state
        np.testing.assert_allclose(np.log10(together["ridge"]), np.log10(alone["ridge"]), atol=0.3)


@given(st.data())
def test_folds_and_gaps_follow_steps(data):
    """Folds of cases in steps are the folds of the steps; gaps leave out whole steps."""
    n, k, gap = data.draw(st.integers(6, 15)), data.draw(st.integers(1, 4)), data.draw(GAPS)
    groups = data.draw(st.permutations(range(n)))
    step = np.repeat(np.arange(n), k)
    of_steps = assign_folds(np.array(groups), np.ones((1, n), bool), 5)[0]
    fold = assign_folds(np.array(groups)[step], np.ones((1, n * k), bool), 5, step)[0]
    np.testing.assert_array_equal(fold, of_steps[step])
    alone = arrange_folds(of_steps, np.arange(n), gap, False)
    pooled = arrange_folds(fold, step, gap, False)
    if k > 1 and len(alone.n_held) < len(pooled.n_held):  # one step is enough to train on
        return
    np.testing.assert_array_equal(pooled.n_held, alone.n_held * k)
    np.testing.assert_array_equal(pooled.n_out, alone.n_out * k)
    for cases, steps, out in zip(pooled.cases, alone.cases, pooled.n_out, strict=True):
        assert set(step[cases[:out]]) == set(steps[: out // k])
        assert (np.diff(cases[out:]) > 0).all()


@given(st.data())
def test_a_group_is_never_split(data):
    n = data.draw(st.integers(1, 30))
    groups = data.draw(arrays(np.int64, n, elements=st.integers(0, 8)))
    usable = data.draw(arrays(bool, (2, n)))
    step = np.sort(data.draw(arrays(np.int64, n, elements=st.integers(0, 8))))
    fold = assign_folds(groups, usable, data.draw(st.integers(2, 6)))
    years = assign_folds(np.full(n, 2001), usable, 0, step)  # one year: blocks in time
    for of_location, in_time, counted in zip(fold, years, usable, strict=True):
        np.testing.assert_array_equal(of_location >= 0, counted)
        np.testing.assert_array_equal(in_time >= 0, counted)
        for group in np.unique(groups):
            assert np.unique(of_location[counted & (groups == group)]).size <= 1
        for one in np.unique(step):
            assert np.unique(in_time[counted & (step == one)]).size <= 1
        assert (np.diff(in_time[counted]) >= 0).all()


def test_repeat_gives_masks_of_dates_to_cases():
    pool = Pool(("lat",), (3,), None, (0, 1, 2))
    np.testing.assert_array_equal(pool.repeat(np.array([True, False])), [1, 1, 1, 0, 0, 0])
