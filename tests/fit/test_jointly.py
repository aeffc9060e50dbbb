from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import xrecal
from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.vector_ckme import Vectors, fit_vector_ckme, vector_ckme_weights
from xrecal.arrays.scores.multivariate import energy_score
from xrecal.methods.vectors import SCALE

N, M, NEW = 40, 5, 6
NAMES = "u", "t"
PLACES = [{"lat": i, "lon": j} for i in range(2) for j in range(2)]


def wind_and_warmth(n=N, seed=0, start="2001-01-15"):
    """Ensembles of two variables (time, member, lat, lon) with one error, and the truth."""
    rng = np.random.default_rng(seed)
    times = np.datetime64(start, "ns") + np.arange(n) * np.timedelta64(30, "D")
    coords = {"time": times, "lat": [45.0, 46.0], "lon": [5.0, 6.0]}
    signal = rng.normal(size=(n, 2, 2))
    error = rng.normal(size=signal.shape)
    hindcast, truth = {}, {}
    for name, size, sign, units in (("u", 3.0, 1, "m s-1"), ("t", 0.5, -1, "K")):
        spread = rng.normal(size=(n, M, 2, 2))
        members = size * (1 + signal[:, np.newaxis] + 0.4 * spread)
        hindcast[name] = ("time", "member", "lat", "lon"), members, {"units": units}
        observed = size * (signal + sign * 0.6 * error)
        truth[name] = ("time", "lat", "lon"), observed, {"units": units}
    return freeze(xr.Dataset(hindcast, coords)), freeze(xr.Dataset(truth, coords))


HINDCAST, TRUTH = wind_and_warmth()
FORECAST, VERIFIED = wind_and_warmth(NEW, seed=1, start="2011-01-15")
SPREAD = TRUTH.std("time")


@cache
def pair():
    """The fit of both variables."""
    return HINDCAST.recal.fit(TRUTH, jointly=NAMES)


def vectors(dataset, point, *dims):
    """Values (..., variable) at a place."""
    here = dataset.isel(point)
    return np.stack([here[name].transpose(*dims).to_numpy() for name in NAMES], axis=-1)


def last(members):
    """Members (..., m, d) along the last axis."""
    return np.swapaxes(members, -1, -2)


@cache
def expected_weights(lat, lon):
    """Weights (T, n) from the array functions."""
    point = {"lat": lat, "lon": lon}
    y = vectors(TRUTH, point, "time")[np.newaxis]
    cases, new = (
        Vectors(np.swapaxes(vectors(d, point, "time", "member"), 1, 2)[np.newaxis])
        for d in (HINDCAST, FORECAST)
    )
    known = (None, None)
    fit, scale = fit_vector_ckme(cases, y, known, Settings(loss="energy"))
    return vector_ckme_weights(new, cases, np.isfinite(y).all(-1), fit, scale, known)[0]


# law: at each place as the array functions --------------------------------------------------------


@settings(max_examples=10)
@given(
    st.permutations(HINDCAST["u"].dims),
    st.permutations(HINDCAST["u"].dims),
    st.sampled_from([None, {"lat": 1}, {"lon": 1}, {"lat": 1, "lon": 1}]),
)
def test_each_place_has_weights_for_whole_vectors(dims, others, chunks):
    def arranged(dataset):
        dataset = dataset.assign(
            u=dataset["u"].transpose(*[d for d in dims if d in dataset["u"].dims]),
            t=dataset["t"].transpose(*[d for d in others if d in dataset["t"].dims]),
        )
        return dataset if chunks is None else dataset.chunk(chunks)

    model = arranged(HINDCAST).recal.fit(arranged(TRUTH), jointly=NAMES, choose="each")
    issued = arranged(FORECAST).recal.apply(model).compute()
    for point in PLACES:
        expected = expected_weights(**point)
        for name in NAMES:
            weights = issued[f"{name}_weight"].isel(point).transpose("time", "member")
            np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(issued[name].isel(point), TRUTH[name].isel(point))
    xr.testing.assert_equal(
        issued["u_weight"].transpose(*issued["t_weight"].dims), issued["t_weight"]
    )


@pytest.mark.parametrize("chunks", [None, {"lat": 1}, {"time": 2}, {"time": 1, "lon": 1}])
def test_members_are_observed_vectors_drawn_at_each_place(chunks):
    forecast = FORECAST if chunks is None else FORECAST.chunk(chunks)
    drawn = pair().members(forecast, 20, seed=3)
    assert (drawn["u"].chunks is None) == (chunks is None)
    drawn = drawn.compute()
    issued = pair().apply(FORECAST)
    for point in PLACES:
        past = vectors(TRUTH, point, "time")
        members = vectors(drawn, point, "time", "member")
        weights = issued["u_weight"].isel(point).transpose("time", "member").to_numpy()
        for t in range(NEW):
            which = [np.flatnonzero((past == member).all(-1)) for member in members[t]]
            assert all(w.size == 1 for w in which)
            counts = np.bincount(np.concatenate(which), minlength=N)
            assert (np.abs(counts - 20 * weights[t]) <= 1 + 1e-9).all()
    first, second = (drawn["u"].isel(p).isel(time=0).to_numpy() for p in PLACES[:2])
    assert not np.array_equal(np.argsort(first), np.argsort(second))
    again = pair().members(FORECAST, 20, seed=3)
    xr.testing.assert_identical(again, drawn)
    assert not pair().members(FORECAST, 20, seed=4).equals(drawn)


def test_products_of_each_variable_are_those_of_the_weighted_ensembles():
    issued = pair().apply(FORECAST)
    xr.testing.assert_allclose(pair().mean(FORECAST), issued.recal.mean().drop_attrs())
    q = [0.1, 0.5, 0.9]
    xr.testing.assert_allclose(pair().quantile(FORECAST, q), issued.recal.quantile(q))
    xr.testing.assert_allclose(pair().crps(FORECAST, VERIFIED), issued.recal.crps(VERIFIED))
    xr.testing.assert_allclose(
        pair().exceedance(FORECAST, 0.2), issued.recal.exceedance(0.2).drop_attrs()
    )
    one = pair()["t"].quantile(FORECAST, q)
    xr.testing.assert_allclose(one["t"], pair().quantile(FORECAST, q)["t"])
    assert list(one) == ["t"]
    for name in NAMES:
        assert issued[name].attrs["units"] == HINDCAST[name].attrs["units"]


def test_fields_of_dates_hold_vectors_of_one_date():
    drawn = pair().members(FORECAST, 8, coherence="dates")
    dates = drawn["calibration_time"]
    for name in NAMES:
        xr.testing.assert_equal(
            drawn[name].drop_vars("calibration_time").transpose("time", "member", ...),
            TRUTH[name].sel(time=dates).drop_vars(["time", "calibration_time"])
            .assign_coords(time=drawn["time"]).transpose("time", "member", ...),
        )  # fmt: skip
    assert pair().members(FORECAST, coherence="ecc").sizes["member"] == M
    assert pair().members(FORECAST, 9, coherence="schaake").sizes["member"] == 9


def test_other_variables_are_fitted_for_themselves():
    third = HINDCAST["u"].rename("p") + 1
    hindcast, truth = HINDCAST.assign(p=third), TRUTH.assign(p=TRUTH["u"] + 1)
    model = hindcast.recal.fit(truth, jointly=NAMES)
    assert list(model.variables) == ["u", "t", "p"]
    alone = third.recal.fit(truth["p"])
    new = FORECAST.assign(p=FORECAST["u"] + 1)
    found = model.quantile(new, 0.5)
    xr.testing.assert_allclose(found["p"], alone.quantile(new["p"], 0.5))
    xr.testing.assert_allclose(found[["u", "t"]], pair().quantile(FORECAST, 0.5))


def test_nothing_is_computed_before_it_is_asked_for():
    chunked, truth = HINDCAST.chunk(lat=1), TRUTH.chunk(lat=1)
    with forbid_compute():
        model = chunked.recal.fit(truth, jointly=NAMES)
        issued = model.apply(FORECAST.chunk(lat=1))
        drawn = model.members(FORECAST.chunk(lat=1), 5)
        scores = issued.recal.energy_score(VERIFIED, jointly=NAMES, scale=SPREAD)
    assert issued["u_weight"].data.name == issued["t_weight"].data.name
    xr.testing.assert_allclose(drawn.compute(), pair().members(FORECAST, 5))
    expected = pair().apply(FORECAST).recal.energy_score(VERIFIED, jointly=NAMES, scale=SPREAD)
    xr.testing.assert_allclose(scores.compute(), expected)


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_models_are_stored(tmp_path, suffix):
    path = tmp_path / f"model.{suffix}"
    pair().save(path)
    opened = xrecal.open_recalibrator(path)
    assert repr(opened.compute()) == repr(pair())
    xr.testing.assert_identical(
        opened.quantile(FORECAST, 0.3).drop_attrs(), pair().quantile(FORECAST, 0.3).drop_attrs()
    )
    assert opened.variables["t"].jointly == NAMES


def test_stored_vectors_stand_there_once():
    stored = pair().to_dataset()
    assert {"u.vector_0", "u.vector_1"} <= set(stored)
    assert not {"t.vector_0", "t.vector_1"} & set(stored)
    alone = pair()["t"].to_dataset()
    assert {"vector_0", "vector_1"} <= set(alone)
    assert sum(v.nbytes for v in stored.values()) < 1.5 * HINDCAST.nbytes


def test_pooled_cases_season_and_gaps():
    model = HINDCAST.recal.fit(
        TRUTH,
        xrecal.CKME(support="observations", gap=1),
        jointly=NAMES,
        pool="lat",
        condition_on="season",
    )
    assert model.variables["u"].state.sizes["calibration"] == 2 * N
    issued = model.apply(FORECAST)
    np.testing.assert_allclose(issued["u_weight"].sum("member"), 1)
    assert set(model.variables["t"].periods) == {"season"}


def test_a_member_or_case_that_one_variable_lacks_is_left_out():
    lacking = HINDCAST.copy(deep=True)
    lacking["t"][{"time": 3}] = np.nan
    lacking["u"][{"time": 5, "member": 2}] = np.nan
    truth = TRUTH.copy(deep=True)
    truth["t"][{"time": 7}] = np.nan
    model = lacking.recal.fit(truth, jointly=NAMES)
    for name in NAMES:
        state = model.variables[name].state
        assert (state["n_cases"] == N - 2).all()
        assert np.isnan(state["observations"].isel(calibration=[3, 7])).all()
    both = lacking.assign(t=lacking["t"].where(lacking["u"].notnull()))
    expected = both.recal.fit(truth, jointly=NAMES)
    xr.testing.assert_identical(
        model.quantile(FORECAST, 0.5).drop_attrs(), expected.quantile(FORECAST, 0.5).drop_attrs()
    )
    gone = FORECAST.assign(u=FORECAST["u"].where(FORECAST["time"] != FORECAST["time"][1]))
    assert np.isnan(model.mean(gone)["t"].isel(time=1)).all()
    assert np.isfinite(model.mean(gone)["t"].isel(time=0)).all()


def test_cases_count_that_all_variables_have():
    early, late = TRUTH["u"].isel(time=slice(30)), TRUTH["t"].isel(time=slice(10, None))
    model = HINDCAST.recal.fit({"u": early, "t": late}, jointly=NAMES)
    assert model.variables["u"].n_matched == 20
    assert (model.variables["t"].state["n_cases"] == 20).all()
    late = late.isel(time=slice(10, None))
    with (
        pytest.warns(UserWarning, match="only 10 of 40 forecasts along 'time' have an observation"),
        pytest.raises(ValueError, match="only 10 cases along 'time' have a label in hindcast and"),
    ):
        HINDCAST.recal.fit({"u": early, "t": late}, jointly=NAMES)


def test_the_model_tells_what_belongs_together():
    assert "recalibrated     jointly with t" in repr(pair())
    state = pair().variables["t"].state
    assert state["vector_1"].attrs["long_name"] == "calibration forecasts of t"
    np.testing.assert_allclose(
        state["variable_spread"].sel(vector_component="u"),
        HINDCAST["u"].std(["time", "member"]),
        rtol=1e-12,
    )


def test_many_variables_keep_their_order():
    names = tuple(f"x{k}" for k in range(12))
    rng = np.random.default_rng(2)
    size = 10.0 ** np.arange(12)
    members = rng.normal(size=(30, 4, 12))

    def both(factor):
        coords = {"time": HINDCAST["time"][:30]}
        return (
            xr.Dataset({n: (("time", "member"), members[..., k] * factor[k])
                        for k, n in enumerate(names)}, coords),
            xr.Dataset({n: ("time", members[:, 0, k] * factor[k])
                        for k, n in enumerate(names)}, coords),
        )  # fmt: skip

    found = [
        h.recal.fit(o, jointly=names).apply(h)["x3_weight"] for h, o in map(both, (size, size**0))
    ]
    np.testing.assert_allclose(*found, atol=1e-6)


def test_names_that_are_used_inside_are_free():
    def renamed(dataset):
        return dataset.rename(lat="variable").assign_coords(component=3)

    model = renamed(HINDCAST).recal.fit(renamed(TRUTH), jointly=NAMES)
    found = model.members(renamed(FORECAST), 3)
    assert found["u"].dims == ("time", "member", "variable", "lon")
    score = found.recal.energy_score(
        renamed(VERIFIED), jointly=NAMES, scale=SPREAD.rename(lat="variable")
    )
    assert score.notnull().all()


def test_plans_tell_what_vectors_take():
    plan = pair().plan(FORECAST)
    assert [part.variable for part in plan.variables] == ["u", "t"]
    assert all(part.seconds_per_location > 0 for part in plan.variables)
    vectors = 8 * 2 * NEW * M * 4
    state = pair().variables["u"].state
    assert plan.variables[0].input_bytes == vectors + sum(
        v.nbytes for v in state.data_vars.values()
    )


# energy scores ------------------------------------------------------------------------------------


def test_energy_scores_of_vectors_are_those_of_the_array_function():
    drawn, issued = pair().members(FORECAST, 7), pair().apply(FORECAST)
    found = drawn.recal.energy_score(VERIFIED, jointly=NAMES, scale=SPREAD)
    weighted = issued.recal.energy_score(VERIFIED, jointly=NAMES, scale=SPREAD)
    assert found.name == "energy_score"
    assert "units" not in found.attrs
    for point in PLACES:
        scale = vectors(SPREAD, point)
        y = vectors(VERIFIED, point, "time") / scale
        x = vectors(drawn, point, "time", "member") / scale
        np.testing.assert_allclose(found.isel(point), energy_score(y, last(x)), rtol=1e-12)
        w = issued["u_weight"].isel(point).transpose("time", "member")
        past = vectors(TRUTH, point, "time") / scale
        np.testing.assert_allclose(weighted.isel(point), energy_score(y, last(past), w), rtol=1e-12)
    mean = drawn.recal.energy_score(VERIFIED, dim=..., jointly=NAMES, scale=SPREAD)
    assert float(mean) == pytest.approx(float(found.mean()))
    fields = drawn.recal.energy_score(VERIFIED, "lat", jointly=NAMES, scale=SPREAD)
    assert set(fields.dims) == {"time", "lon"}


def test_variables_of_one_unit_need_no_scale():
    same = [d.assign(t=d["t"].assign_attrs(units="m s-1")) for d in (FORECAST, VERIFIED)]
    found = same[0].recal.energy_score(same[1], jointly=NAMES)
    assert found.attrs["units"] == "m s-1"
    point = PLACES[1]
    expected = energy_score(
        vectors(VERIFIED, point, "time"), last(vectors(FORECAST, point, "time", "member"))
    )
    np.testing.assert_allclose(found.isel(point), expected)


# errors -------------------------------------------------------------------------------------------


def fit(method=None, hindcast=HINDCAST, truth=TRUTH, **given):
    return hindcast.recal.fit(
        truth, method or xrecal.CKME(support="observations"), **{"jointly": NAMES, **given}
    )


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: fit(jointly="u"), "jointly must name two or more different variables, got 'u'"),
        (lambda: fit(jointly=("u", "u")), "two or more different variables"),
        (lambda: fit(jointly=("u", "w")), "jointly names 'w', but .* of the hindcast are"),
        (lambda: fit(xrecal.EMOS()), "u and t are recalibrated jointly, which EMOS cannot do"),
        (
            lambda: fit(xrecal.CKME(support="errors")),
            "support='errors' is not for u and t: members",
        ),
        (lambda: fit(xrecal.CKME(support="observations", loss="laplace")), "take loss='crps'"),
        (
            lambda: fit(xrecal.CKME(support="observations", projection="energy")),
            "vectors have no order",
        ),
        (
            lambda: fit(hindcast=HINDCAST.assign(t=HINDCAST["t"].isel(lat=0, drop=True)),
                        truth=TRUTH.assign(t=TRUTH["t"].isel(lat=0, drop=True))),
            r"only one of them has the dimensions \['lat'\]",
        ),
        (
            lambda: fit(hindcast=HINDCAST.assign(t=HINDCAST["t"].astype("float32"))),
            r"types float64 and float32; use .astype\('float64'\)",
        ),
        (
            lambda: fit(hindcast=HINDCAST.rename(member="quantile").assign_coords(
                quantile=[0.1, 0.3, 0.5, 0.7, 0.9])),
            "'u' of hindcast has the form 'quantile', but only members can be recalibrated jointly",
        ),
        (lambda: pair().apply(FORECAST[["u"]]), "jointly, but the forecast lacks 't'; pass a Data"),
        (lambda: pair().apply(FORECAST["u"]), "jointly, but the forecast lacks 't'|no variable"),
        (lambda: pair()["u"].crps(FORECAST, VERIFIED), "score them with the model of all these"),
        (
            lambda: pair()["u"].update(HINDCAST["u"], TRUTH["u"]),
            "'u' and 't' are recalibrated jointly and updated together, but this model lacks 't'",
        ),
        (
            lambda: pair()["u"].apply(FORECAST.assign(t=FORECAST["t"].assign_attrs(units="degC"))),
            r"forecast\['t'\]",
        ),
        (
            lambda: pair().members(HINDCAST.recal.fit(TRUTH).apply(FORECAST), 5),
            "'u' of forecast has the form 'weighted', but only members can be recalibrated joint",
        ),
        (
            lambda: FORECAST.recal.energy_score(VERIFIED, scale=SPREAD),
            "scale is for variables that are scored together; name them",
        ),
        (
            lambda: FORECAST.recal.energy_score(VERIFIED, jointly=NAMES, scale={"u": 1, "t": 0}),
            "scale of 't' must be positive, got 0",
        ),
        (
            lambda: FORECAST.recal.energy_score(VERIFIED, jointly=NAMES),
            "have the units .*; give a number to divide each variable by, such as "
            "scale=observations.std",
        ),
        (
            lambda: FORECAST.recal.energy_score(VERIFIED, jointly=NAMES, scale={"u": 1.0}),
            r"scale lacks 't'; it has \['u'\]",
        ),
        (
            lambda: HINDCAST.recal.fit(TRUTH).apply(FORECAST).recal.energy_score(
                VERIFIED, jointly=NAMES, scale=SPREAD),
            "'u' and 't' have different weights, .*; fit with jointly=...",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize("jointly", [3, True, {"u", "t"}])
def test_names_that_are_no_tuple_are_refused(jointly):
    with pytest.raises(TypeError, match="jointly must be a tuple of variables, such as"):
        fit(jointly=jointly)


def test_a_scale_that_is_no_mapping_is_refused():
    with pytest.raises(TypeError, match=r"scale must be a dict or Dataset with .*, got float"):
        FORECAST.recal.energy_score(VERIFIED, jointly=NAMES, scale=2.0)


def assert_same(found, expected):
    for name in expected.variables:
        a, b = found[name].state, expected[name].state
        assert set(a.variables) == set(b.variables)
        for array in b.variables:
            np.testing.assert_array_equal(a[array], b[array], err_msg=f"{name} {array}")
            assert a[array].dims == b[array].dims


def test_vectors_get_more_cases_together():
    method = xrecal.CKME(ridge=0.1, bandwidth=1.0)
    options = {"jointly": NAMES}
    seen = TRUTH.copy(deep=True)
    seen["t"][12, 0, 0] = seen["u"][33, 1, 1] = np.nan
    first, rest = {"time": slice(30)}, {"time": slice(28, None)}
    before = seen.isel(first).copy(deep=True)
    before["t"][29, 0, 1] = np.nan
    model = HINDCAST.isel(first).recal.fit(before, method, **options)
    updated = model.update(HINDCAST.isel(rest), seen.isel(rest))
    whole = HINDCAST.recal.fit(seen, method, **options)
    for name in NAMES:
        xr.testing.assert_identical(updated[name].state[SCALE], model[name].state[SCALE])
        a, b = (m[name].state.drop_vars(SCALE) for m in (updated, whole))
        for array in b.variables:
            np.testing.assert_array_equal(a[array], b[array], err_msg=f"{name} {array}")
    shared = [updated[name].state["vector_0"].data for name in NAMES]
    assert shared[0] is shared[1]
    found, expected = (m.quantile(FORECAST, 0.5) for m in (updated, whole))
    xr.testing.assert_allclose(found, expected, rtol=0.2, atol=0.2)
    cut = HINDCAST.chunk(lat=1)
    with forbid_compute():
        lazy = cut.isel(first).recal.fit(before, method, **options)
        lazy = lazy.update(cut.isel(rest), seen.isel(rest))
    assert_same(lazy.compute(), updated)


def test_updated_vectors_come_back_from_disk(tmp_path):
    first, rest = {"time": slice(30)}, {"time": slice(30, None)}
    model = HINDCAST.isel(first).recal.fit(TRUTH.isel(first), jointly=NAMES)
    model.save(tmp_path / "model.nc")
    updated = model.update(HINDCAST.isel(rest), TRUTH.isel(rest))
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    assert_same(opened.update(HINDCAST.isel(rest), TRUTH.isel(rest)), updated)
    updated.save(tmp_path / "updated.nc")
    again = xrecal.open_recalibrator(tmp_path / "updated.nc")
    xr.testing.assert_identical(again.quantile(FORECAST, 0.5), updated.quantile(FORECAST, 0.5))


def test_directions_get_more_cases():
    degrees = (40 * HINDCAST["u"]) % 360
    truth = (40 * TRUTH["u"]) % 360
    method = xrecal.CKME(ridge=0.1, bandwidth=1.0)
    model = degrees[:30].recal.fit(truth[:30], method, period=360)
    updated = model.update(degrees[28:], truth[28:])
    whole = degrees.recal.fit(truth, method, period=360)
    for name in set(whole.state.variables) - {SCALE}:
        np.testing.assert_array_equal(updated.state[name], whole.state[name])
    assert updated.crps((40 * FORECAST["u"]) % 360, (40 * VERIFIED["u"]) % 360).notnull().all()
