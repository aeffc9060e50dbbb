"""One fit of many places: labelled against the array layer, in any chunks and order of dims."""

import functools

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.shared.network import draw_dates, draw_network
from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal.arrays.distributions.forms import equal_mass_levels
from xrecal.arrays.shared.folds import FOLDS, folds_of, whole_folds
from xrecal.arrays.shared.issuing import issue
from xrecal.arrays.shared.network import Cases
from xrecal.arrays.shared.passes import landmarks_for, run
from xrecal.fit import shared_fit
from xrecal.inputs import pool as pooling
from xrecal.methods import SharedCKME
from xrecal.methods.shared_ckme import InMemory

KNOWN, NEW, DATES, LATER, M = 16, 4, 24, 6, 5
P, N = KNOWN + NEW, DATES + LATER
FEW = 300
"""Cases beyond which fits are shared here, so that tests are fast."""


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)


NETWORK = draw_network(P, 3)


def draw():
    members, observed = draw_dates(NETWORK, 0, N, M, 3)
    time = np.datetime64("2001-01-01", "ns") + np.arange(N) * np.timedelta64(40, "D")
    coords = {
        "time": time,
        "station": [f"s{i:02}" for i in range(P)],
        "lat": ("station", NETWORK.lat),
        "lon": ("station", NETWORK.lon, {"units": "degrees_east"}),
        "elevation": ("station", NETWORK.height),
    }
    attrs = {"units": "degC", "standard_name": "air_temperature"}
    dims = ("time", "station", "member")
    forecasts = xr.DataArray(members.astype(float), coords, dims, "t2m", attrs)
    return forecasts, xr.DataArray(observed.astype(float), coords, dims[:2], attrs=attrs)


FORECASTS, OBSERVED = map(freeze, draw())
DAYS = FORECASTS["time"].dt.dayofyear.to_numpy()
HINDCAST, TRUTH = FORECASTS[:DATES, :KNOWN], OBSERVED[:DATES, :KNOWN]


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        return HINDCAST.recal.fit(TRUTH, pool="station")


def array_cases(forecasts, place, fold=0):
    """Cases by date and then by place, as the array layer takes them."""
    n, p, m = forecasts.shape
    return Cases(
        forecasts.to_numpy().reshape(-1, m),
        np.full(n * p, np.nan),
        np.tile(place, n),
        np.repeat(np.broadcast_to(fold, n), p),
        np.empty((n * p, 0)),
        np.ones(n * p),
    )


@functools.cache
def by_arrays():
    fold = folds_of(np.arange(DATES))
    cases = array_cases(HINDCAST, np.arange(KNOWN), fold)
    cases = cases._replace(observations=TRUTH.to_numpy().ravel())
    engine = InMemory(cases, np.repeat(np.arange(DATES), KNOWN))
    return run(engine, features(), whole_folds(FOLDS), landmarks_for(DATES * KNOWN))[0]


def features(which=slice(KNOWN)):
    middle = np.rad2deg(np.angle(np.exp(1j * np.deg2rad(NETWORK.lon[:KNOWN])).mean()))
    return np.stack(
        [NETWORK.lat[which], NETWORK.lon[which] - np.round(middle, 6), NETWORK.height[which]], -1
    )


LEVELS = equal_mass_levels(200)


def test_as_the_array_layer_at_every_place(model):
    new = FORECASTS[DATES:]
    place = np.where(np.arange(P) < KNOWN, np.arange(P), -1)
    cases = array_cases(new, place)
    expected = issue(by_arrays(), cases, np.tile(features(slice(None)), (LATER, 1)), LEVELS)
    found = model.apply(new)
    values = found["t2m"].transpose("time", "station", "member").to_numpy()
    np.testing.assert_allclose(values.reshape(-1, 200), expected.quantiles, rtol=1e-9, atol=1e-9)
    novelty = found["t2m_novelty"].transpose("time", "station").to_numpy().ravel()
    np.testing.assert_allclose(novelty, expected.novelty, atol=1e-9)
    assert (found["t2m_weight"] == 1 / 200).all()


def test_results_are_labelled_as_those_of_other_fits(model):
    few = HINDCAST[:, :5].recal.fit(TRUTH[:, :5], pool="station")
    assert not isinstance(few.variables["t2m"].method, SharedCKME)
    issued, other = (m.apply(FORECASTS[DATES:, :5]) for m in (model, few))
    assert set(other) == {*issued, "t2m_tail_shape"}  # quantiles of equal mass have no tails
    beside = [one["t2m"].attrs.pop("ancillary_variables").split() for one in (issued, other)]
    assert beside[1] == [*beside[0], "t2m_tail_shape"]
    ways = [one["t2m_weight"].attrs.pop("between_members") for one in (issued, other)]
    assert ways == ["linear", "mean"]
    for name in issued:
        assert set(issued[name].dims) == set(other[name].dims)
        assert str(issued[name].attrs) == str(other[name].attrs)
        assert issued[name].dtype == other[name].dtype
    assert issued["t2m"].attrs["units"] == "degC"
    assert set(issued.coords) <= set(other.coords)
    assert str(model.state["status"].attrs) == str(few.state["status"].attrs)
    assert "pool             pooled over station" in repr(model)
    assert f"used             {DATES * KNOWN} cases" in repr(model)
    assert "record           own_record: 16" in repr(model)


def assert_states_close(found, expected):
    """States that are equal but for rounding."""
    assert set(found.variables) == set(expected.variables)
    for name in expected.variables:
        a = found[name].transpose(*expected[name].dims)
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a, expected[name], rtol=1e-7, atol=1e-7, err_msg=name)
        else:
            np.testing.assert_array_equal(a, expected[name])


def assert_same_states(found, expected):
    assert set(found.variables) == set(expected.variables)
    for name, array in expected.variables.items():
        a = found[name].transpose(*array.dims)
        np.testing.assert_array_equal(a, array, err_msg=str(name))


@pytest.mark.parametrize(
    ("chunks", "scheduler"),
    [
        ({"time": 9, "station": 7}, "threads"),
        pytest.param({"time": -1, "station": 1}, "sync", marks=pytest.mark.slow),
        ({"time": 1, "station": -1}, "sync"),
    ],
    ids=str,
)
def test_any_chunks_give_the_same_lazily(model, chunks, scheduler):
    # Coordinates, which xarray cuts too, are read.
    new = FORECASTS.chunk(time=16, station=6).assign_coords(FORECASTS.coords)
    hindcast = HINDCAST.chunk(chunks).assign_coords(HINDCAST.coords)
    with forbid_compute():
        lazy = hindcast.recal.fit(TRUTH.chunk(time=9), pool="station")
        assert not lazy.is_computed
        issued = lazy.quantile(new, [0.1, 0.5, 0.9])
    assert len(issued.chunksizes["station"]) > 1
    state, issued = dask.compute(lazy.state, issued, scheduler=scheduler)
    assert_same_states(state, model.state)
    xr.testing.assert_allclose(issued, model.quantile(FORECASTS, [0.1, 0.5, 0.9]), rtol=1e-12)


def test_no_task_has_all_cases(monkeypatch):
    monkeypatch.setattr(shared_fit, "IN_SAME_PIECES", 0)  # as if there were more
    seen = []

    def noted(block):
        seen.append(block.shape)
        return block

    data = HINDCAST.chunk(time=4, station=4)
    data = data.copy(data=data.data.map_blocks(noted, dtype=float, meta=np.empty((0, 0, 0))))
    lazy = data.recal.fit(TRUTH, pool="station")
    seen.clear()
    dask.compute(lazy.state, scheduler="sync")
    # Each of four passes reads every chunk once, and lets it go.
    assert set(seen) == {(4, 4, M)}
    assert len(seen) == 4 * (DATES // 4) * (KNOWN // 4)


def test_any_order_of_dimensions_gives_the_same(model):
    turned = HINDCAST.transpose("member", "station", "time")
    assert_same_states(turned.recal.fit(TRUTH.T, pool="station").state, model.state)


def grid():
    """The same cases on a grid of latitudes and longitudes, with a lead each."""
    lat, lon = [50.0, 40.0, 45.0, 42.0], [359.0, 2.0, 5.0, 8.0]
    values = HINDCAST.to_numpy().reshape(DATES, 4, 4, M)
    coords = {"time": HINDCAST["time"].to_numpy(), "lat": lat, "lon": lon}
    forecasts = xr.DataArray(values, coords, ("time", "lat", "lon", "member"), "t2m")
    truth = xr.DataArray(TRUTH.to_numpy().reshape(DATES, 4, 4), coords, ("time", "lat", "lon"))
    both = [one.expand_dims(lead=[1, 2]) for one in (forecasts, truth)]
    factor = xr.DataArray([1.0, 2.0], dims=["lead"])
    return both[0] * factor, both[1] * factor


def test_several_dimensions_in_any_order_and_others_with_fits_of_their_own():
    forecasts, truth = grid()
    one = forecasts.recal.fit(truth, pool=("lat", "lon"))
    other = forecasts.recal.fit(truth, pool=("lon", "lat"))
    assert one.state["status"].dims == ("lead",)
    assert_same_states(other.state, one.state)
    alone = forecasts.sel(lead=2, drop=True).recal.fit(
        truth.sel(lead=2, drop=True), pool=("lat", "lon")
    )
    assert_same_states(one.state.sel(lead=2, drop=True), alone.state)
    chunked = forecasts.chunk(lead=1, lat=3, lon=2, time=13).recal.fit(truth, pool=("lat", "lon"))
    assert_same_states(chunked.compute().state, one.state)
    # Neighbours across the meridian of Greenwich are near each other.
    features = np.sort(np.unique(alone.state["features"][:, 1]))
    np.testing.assert_allclose(np.diff(features), 3.0, atol=1e-6)
    some = forecasts.isel(lat=[2, 0], lon=slice(1, 3), time=0)
    whole = one.mean(forecasts.isel(time=0))
    xr.testing.assert_allclose(one.mean(some), whole.isel(lat=[2, 0], lon=slice(1, 3)))


def test_pooled_leads_have_the_lead_as_a_feature():
    lead = np.arange(KNOWN).astype("timedelta64[D]").astype("timedelta64[ns]")
    leads, truth = (
        one.drop_vars(["station", "lat", "lon", "elevation"])
        .rename(station="lead", time="init")
        .assign_coords(lead=lead)
        for one in (HINDCAST, TRUTH)
    )
    model = leads.recal.fit(truth, pool="lead")
    assert model.variables["t2m"].method.features == ("lead",)
    np.testing.assert_array_equal(model.state["features"][:, 0], np.arange(KNOWN))


def test_covariates_count_beside_the_place():
    season = xrecal.CKME(condition_on="season")
    model = HINDCAST.recal.fit(TRUTH, season, pool="station")
    assert model.state.sizes["shared_feature"] == 5
    assert model.crps(FORECASTS[DATES:, :KNOWN], OBSERVED[:, :KNOWN]).notnull().all()
    unknown = FORECASTS[DATES:, :KNOWN].drop_vars("time")
    with pytest.raises(ValueError, match="season needs the dates"):
        model.mean(unknown)


def test_several_covariates_count_as_far_as_they_tell_errors():
    rng = np.random.default_rng(0)
    noise, told = (rng.normal(size=(DATES, KNOWN)) for _ in range(2))
    hindcast = HINDCAST.assign_coords(
        noise=(("time", "station"), noise), told=(("time", "station"), told)
    )
    truth = TRUTH + 2 * np.sign(told)
    method = xrecal.CKME(condition_on=("noise", "told"))
    model = hindcast.recal.fit(truth, method, pool="station")
    counts = model.state["feature_precision"][0, 3:] > 0
    assert counts.values.tolist() == [False, True, False, False]  # none is ever missing
    bare = HINDCAST.recal.fit(truth, pool="station")
    score = model.crps(hindcast, truth).mean()
    assert score < 0.75 * bare.crps(HINDCAST, truth).mean()
    chunked = hindcast.chunk(time=5, station=6)  # and the coordinates with it
    lazy = chunked.recal.fit(truth, method, pool="station")
    assert_same_states(lazy.compute().state, model.state)
    few = hindcast[:1, :3]
    usual = model.novelty(few)

    def beyond(name, known):
        """Values beyond those of the record by nearly half their range: by more is broken."""
        return {name: xr.full_like(few[name], known.max() + 0.45 * np.ptp(known))}

    with pytest.warns(UserWarning, match="3 of 3 forecasts of 't2m' are unlike"):
        assert (model.novelty(few.assign_coords(beyond("told", told))) > 0.9).all()
    np.testing.assert_array_equal(model.novelty(few.assign_coords(beyond("noise", noise))), usual)


def test_other_forms_of_forecasts_are_learned_from(model):
    mean, std = HINDCAST.mean("member"), HINDCAST.std("member")
    normal = xr.Dataset({"t2m_loc": mean, "t2m_scale": std})
    fitted = normal.recal.fit(TRUTH, pool="station")
    assert fitted.variables["t2m"].kind == "normal"
    score = fitted.crps(normal, TRUTH).mean()
    assert score < 1.1 * model.crps(HINDCAST, TRUTH).mean()


def test_single_precision_stays():
    small = HINDCAST.astype("float32")
    issued = small.recal.fit(TRUTH.astype("float32"), pool="station").apply(small[:2])
    assert issued["t2m"].dtype == np.float32


def test_bounds_hold():
    rain = np.maximum(HINDCAST - 12, 0.0), np.maximum(TRUTH - 12, 0.0)
    model = rain[0].recal.fit(rain[1], pool="station")
    assert model.state["lower"] == 0
    assert model.apply(rain[0])["t2m"].min() >= 0
    free = rain[0].recal.fit(rain[1], xrecal.CKME(bounds=None), pool="station")
    assert free.apply(rain[0])["t2m"].min() < 0


def test_ensembles_of_one_member():
    one = HINDCAST.isel(member=[0])
    model = one.recal.fit(TRUTH, pool="station")
    assert model.crps(one, TRUTH).mean() < one.recal.crps(TRUTH).mean()


def test_missing_cases_and_short_records(model):
    truth = TRUTH.copy(deep=True)
    truth[3:, 2], truth[:, 5] = np.nan, np.nan
    members = HINDCAST.copy(deep=True)
    members[7, 1], members[8, 1, 2] = np.nan, np.inf
    young = members.recal.fit(truth, pool="station", min_samples=10)
    record = young.state["record"]
    assert record[[0, 2, 5]].values.tolist() == [0, 1, 2]
    assert record.attrs["flag_meanings"].split()[3] == "unlike_others"
    assert young.state["n_cases"] == DATES * KNOWN - (DATES - 3) - DATES - 2
    assert young.state["status"] == 8  # invalid values were left out
    new = FORECASTS[DATES:, :KNOWN]
    assert young.crps(new, OBSERVED[:, :KNOWN]).notnull().all()
    lazy = members.chunk(time=6, station=5).recal.fit(truth, pool="station", min_samples=10)
    assert_same_states(lazy.compute().state, young.state)
    gone = new.copy(deep=True)
    gone[0, 0] = np.nan
    issued = young.apply(gone)
    assert issued["t2m"].isnull().any("member").sum() == 1
    assert np.isnan(issued["t2m_novelty"][0, 0])


def test_a_place_with_a_unit_of_its_own_is_named():
    truth = TRUTH.copy(deep=True)
    truth[:, 7] += 273.15
    kelvin = HINDCAST.recal.fit(truth, pool="station")
    assert np.flatnonzero(kelvin.state["record"] == 3).tolist() == [7]
    assert "own_record: 15, unlike_others: 1" in repr(kelvin)
    others = np.flatnonzero(np.arange(KNOWN) != 7)
    new, verified = (one[DATES:, others] for one in (FORECASTS, OBSERVED))
    assert kelvin.crps(new, verified).mean() < 0.95 * new.recal.crps(verified).mean()


def test_nothing_to_learn_is_a_status():
    bare = HINDCAST.recal.fit(TRUTH * np.nan, pool="station")
    assert bare.state["status"] == 1
    assert bare.mean(HINDCAST).isnull().all()
    exact = HINDCAST.recal.fit(HINDCAST.mean("member"), pool="station")
    assert exact.state["status"] == 16
    assert exact.apply(HINDCAST)["t2m"].isnull().all()
    few = HINDCAST.recal.fit(TRUTH, pool="station", min_samples=DATES * KNOWN)
    assert few.state["status"] == 0


def test_forecasts_of_new_places_need_their_features(model):
    new = FORECASTS[DATES:, KNOWN:]
    issued = model.apply(new)
    assert issued["t2m"].notnull().all()
    far = new.assign_coords(lat=new["lat"] + 40)
    with pytest.warns(UserWarning, match="24 of 24 forecasts of 't2m' are unlike all"):
        assert (model.novelty(far) > 0.9).all()
    assert model.novelty(new).max() < 0.9
    single = new.isel(time=0, station=1)
    xr.testing.assert_allclose(model.mean(single), model.mean(new).isel(time=0, station=1))
    for lacking in (new.drop_vars("lat"), new.assign_coords(lat=new["lat"].where(new["lat"] < 0))):
        with pytest.raises(ValueError, match=r"has 4 places .*s16, s17, s18.*lacks their latitude"):
            model.apply(lacking)
    known = FORECASTS[DATES:, :KNOWN].drop_vars(["lat", "lon", "elevation"])
    expected = model.mean(FORECASTS[DATES:, :KNOWN])
    np.testing.assert_array_equal(model.mean(known), expected)
    bare = HINDCAST.drop_vars(["lat", "lon", "elevation"]).recal.fit(TRUTH, pool="station")
    assert bare.mean(FORECASTS[:, :KNOWN]).notnull().all()
    with pytest.raises(ValueError, match=r"had no features of its places: fit with coordinates"):
        bare.mean(new)


def test_places_that_cannot_be_told_apart_are_refused(model):
    unknown = HINDCAST.assign_coords(lat=HINDCAST["lat"].where(HINDCAST["station"] != "s03"))
    with pytest.raises(ValueError, match=r"'lat' of hindcast is unknown at 1 of 16 .*station=s03"):
        unknown.recal.fit(TRUTH, pool="station")
    twice = {"station": ["a", "a", *range(KNOWN - 2)]}
    with pytest.raises(ValueError, match=r"labels along 'station' of hindcast must be unique"):
        HINDCAST.assign_coords(twice).recal.fit(TRUTH.assign_coords(twice), pool="station")
    with pytest.raises(
        ValueError, match="20 positions along 'station', but the model was fitted on 16"
    ):
        model.mean(FORECASTS.drop_vars([n for n, c in FORECASTS.coords.items() if n != "time"]))


def test_constant_features_are_told():
    flat = HINDCAST.assign_coords(elevation=("station", np.full(KNOWN, 7.0)))
    model = flat.recal.fit(TRUTH, pool="station")
    assert "note             elevation left out: the same at all places" in repr(model)
    assert model.state.sizes["shared_place_feature"] == 2


def test_a_ridge_may_be_given():
    ridge = HINDCAST.recal.fit(TRUTH, xrecal.CKME(ridge=0.01), pool="station")
    assert (ridge.state["ridge"] == 0.01).all()


def test_cross_validation_is_the_fit_of_each_split():
    options = {"by": "block", "blocks": 2, "pool": "station", "output": "crps"}
    whole = FORECASTS[:, :KNOWN], OBSERVED[:, :KNOWN]
    pooling.MAX_POOLED = 200
    found = whole[0].recal.cross_validate(whole[1], **options)
    half = N // 2
    for train, test in ((slice(half, None), slice(half)), (slice(half), slice(half, None))):
        fitted = whole[0][train].recal.fit(whole[1], pool="station")
        assert isinstance(fitted.variables["t2m"].method, SharedCKME)
        expected = fitted.crps(whole[0][test], whole[1])
        np.testing.assert_allclose(found[test], expected, rtol=1e-6)
    with pytest.raises(ValueError, match="refit is not for a model pooled over station"):
        whole[0].recal.cross_validate(
            whole[1], by="rolling", every=5, refit=10, pool="station", output="crps"
        )


def test_updates_add_sums(model):
    new, truth = FORECASTS[DATES:, :KNOWN], OBSERVED[DATES:, :KNOWN]
    whole = model.update(new, truth)
    parts = model.update(new[3:], truth[3:]).update(new[:3], truth[:3])
    xr.testing.assert_allclose(parts.state, whole.state, rtol=1e-7, atol=1e-7)
    assert whole.state["n_cases"] == N * KNOWN
    assert whole.state["sum_weight"][0] == N * KNOWN
    np.testing.assert_array_equal(whole.state["observations"], OBSERVED[:, :KNOWN])
    assert (whole.state["ridge"] == model.state["ridge"]).all()
    assert "updated          6 cases added" in repr(whole)
    lazy = HINDCAST.chunk(time=6).recal.fit(TRUTH, pool="station")
    updated = [lazy.update(more, truth) for more in (new.chunk(time=4), new)]  # one in memory
    assert not any(one.is_computed for one in updated)
    for state in dask.compute(*(one.state for one in updated)):
        assert_same_states(state, whole.state)


def test_known_cases_are_ignored_and_revised_ones_refused(model):
    again = model.update(FORECASTS[:, :KNOWN], OBSERVED[:, :KNOWN])
    expected = model.update(FORECASTS[DATES:, :KNOWN], OBSERVED[DATES:, :KNOWN])
    assert_same_states(again.state, expected.state)
    late = TRUTH.copy(deep=True)
    late[4, 3:] = np.nan
    filled = HINDCAST.recal.fit(late, pool="station").update(HINDCAST, TRUTH)
    np.testing.assert_array_equal(filled.state["observations"], TRUTH)
    assert filled.state["n_cases"] == DATES * KNOWN
    revised = TRUTH.copy(deep=True)
    revised[5, 2] += 1
    with pytest.raises(ValueError, match=r"1 observations .* have changed.*pool='station'\)"):
        model.update(HINDCAST, revised)


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_stored_and_opened_bit_by_bit(model, suffix, tmp_path):
    model.save(tmp_path / f"model.{suffix}")
    opened = xrecal.open_recalibrator(tmp_path / f"model.{suffix}")
    assert opened.variables["t2m"].method == model.variables["t2m"].method
    xr.testing.assert_identical(opened.compute().state.drop_attrs(), model.state.drop_attrs())
    xr.testing.assert_identical(opened.apply(FORECASTS).compute(), model.apply(FORECASTS))
    more = FORECASTS[DATES:, :KNOWN], OBSERVED[:, :KNOWN]
    assert_same_states(opened.update(*more).compute().state, model.update(*more).state)


@pytest.mark.filterwarnings("ignore:the edges of the categories are those of all positions")
def test_products_of_a_shared_fit(model):
    new = FORECASTS[DATES:]
    shares = model.categories(new)
    np.testing.assert_allclose(shares.sum("category"), 1.0)
    edges = model.categories(new, window=60)["upper_edge"]
    near = np.abs((DAYS[:DATES] - DAYS[DATES] + 182) % 365 - 182) <= 30
    expected = np.quantile(TRUTH[near], 1 / 3)  # of all places
    assert float(edges[0, 0]) == pytest.approx(expected, abs=1.0)
    members = model.members(new, 7, seed=1)
    assert members.sizes["member"] == 7
    probability = model.exceedance(new, 10.0)
    values = np.sort(model.apply(new)["t2m"].transpose("station", "time", "member"))
    up_to = [[np.interp(10, own, LEVELS, 0, 1) for own in of] for of in values]  # on lines
    expected = 1 - xr.DataArray(up_to, dims=["station", "time"])
    np.testing.assert_allclose(probability.transpose(*expected.dims), expected, atol=1e-12)


def test_plans(model):
    whole = xrecal.plan(HINDCAST, TRUTH, pool="station", probe=False).largest
    assert (whole.work, whole.tasks, whole.cases) == ("shared fit", 1, DATES * KNOWN)
    assert model.plan(FORECASTS.chunk(time=10)).tasks == 3


def test_splits_with_too_few_cases_for_features_warn(recwarn):
    options = {"pool": "station", "features": "height", "gap": "1D"}
    with pytest.warns(UserWarning, match="features='height' has no effect in 2 of 2") as found:
        HINDCAST.recal.cross_validate(TRUTH, by="block", blocks=2, **options)
    text = str(found[0].message)
    assert "the smallest learns from 192 pooled cases, and only" in text
    assert text.endswith("give more cases, use condition_on='height', or leave features out")
    recwarn.clear()
    HINDCAST.recal.cross_validate(TRUTH, by="block", blocks=12, **{**options, "gap": 0})
    assert not [w for w in recwarn if "features" in str(w.message)]
