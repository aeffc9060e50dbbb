"""Pools at each place, one component of which is shared: against a loop over array functions."""

from dataclasses import replace
from functools import partial

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.shared.network import draw_dates, draw_network
from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal.arrays import pool_weights
from xrecal.arrays.distributions.continuous import Tailed
from xrecal.arrays.distributions.forms import Forecasts, equal_mass_levels
from xrecal.arrays.shared.folds import folds_of, parts_of
from xrecal.arrays.shared.held_out import hold_out
from xrecal.arrays.shared.network import Cases as ArrayCases
from xrecal.arrays.shared.passes import landmarks_for, run
from xrecal.inputs import pool as pooling
from xrecal.methods.base import N_HELD_OUT, Cases
from xrecal.methods.components import held_out_by_refits
from xrecal.methods.covariates import Covariates
from xrecal.methods.shared_ckme import InMemory

from .networks import labelled

P, DATES, LATER, M = 8, 40, 5, 4
FEW = 200
"""Cases beyond which places share here, so that tests are fast."""
CKME = xrecal.CKME(ridge=0.1, support="regression", tails=None, novelty=None)
POOL = xrecal.LinearPool((CKME, xrecal.EMOS()), tails=None, novelty=None)
SHARED = "ckme_shared"
LEVELS = [0.1, 0.5, 0.9]
NETWORK = draw_network(P, 5)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", FEW)


def draw():
    members, observed = draw_dates(NETWORK, 0, DATES + LATER, M, 5)
    time = np.datetime64("2001-01-01", "ns") + np.arange(DATES + LATER) * np.timedelta64(20, "D")
    return labelled(NETWORK, members, observed, time)


FORECASTS, OBSERVED = map(freeze, draw())
HINDCAST, TRUTH, NEW = FORECASTS[:DATES], OBSERVED[:DATES].copy(deep=True), FORECASTS[DATES:]
TRUTH[:, 6] = np.nan  # no record
TRUTH[:-9, 7] = np.nan  # a short one
TRUTH[20:25, 2] = np.nan
freeze(TRUTH)
WITH = [p for p in range(P) if p not in (6, 7)]


def fitted(method=POOL, hindcast=HINDCAST, truth=TRUTH, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_POOLED", FEW)
        return hindcast.recal.fit(truth, method, pool="station", **options)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def shared():
    return fitted(xrecal.CKME())


def held_out_by_arrays(gap):
    """Quantiles (2, date, place, Q) of the shared component, by passes of the array layer."""
    middle = np.rad2deg(np.angle(np.exp(1j * np.deg2rad(NETWORK.lon)).mean()))
    features = np.stack([NETWORK.lat, NETWORK.lon - np.round(middle, 6), NETWORK.height], -1)
    date = np.repeat(np.arange(DATES), P)
    part, folds = parts_of(folds_of(np.arange(DATES)), (np.arange(DATES), gap), np.ones(DATES))
    cases = ArrayCases(
        HINDCAST.to_numpy().reshape(-1, M),
        TRUTH.to_numpy().ravel(),
        np.tile(np.arange(P), DATES),
        part[date],
        np.empty((DATES * P, 0)),
        np.ones(DATES * P),
    )
    known = run(InMemory(cases, date), features, folds, landmarks_for(DATES * P))
    held = hold_out(known.fit, known.started, known.place_sums, known.law_sums)
    found = held.quantiles(cases, equal_mass_levels(N_HELD_OUT))
    return found.reshape(2, DATES, P, N_HELD_OUT)


@pytest.mark.parametrize("gap", [0, 3])
def test_weights_are_those_of_a_loop_over_array_functions(gap):
    pool = replace(POOL, gap=gap)
    model = fitted(pool, choose="each")
    of_all = held_out_by_arrays(gap)
    axis = model.variables["t2m"].axis
    for place in WITH:
        forecasts = Forecasts(HINDCAST[:, place].to_numpy()[np.newaxis])
        observed = TRUTH[:, place].to_numpy()[np.newaxis]
        cases = Cases(forecasts, observed, Covariates(np.empty((1, DATES, 0))), axis)
        refits = partial(held_out_by_refits, cases=cases, gap=gap)
        trials = [one for m in pool.mixed for one in m.try_locations(cases, 20, refits)]
        own = [trial.held_out for trial in trials]
        every = np.stack([*own, of_all[np.newaxis, :, :, place]], axis=2)
        expected = pool_weights(every, observed)[0]
        np.testing.assert_allclose(model.state["pool_weight"][place], expected, atol=1e-6)
    assert (model.state["pool_weight"].sel(component=SHARED) > 0.01).any()
    assert list(model.state["component"].values) == ["ckme", "emos", SHARED]


def test_quantiles_are_half_a_mixture_and_half_an_average(model, shared):
    q = equal_mass_levels(200)
    for place in WITH:
        here, truth, new = (part[:, [place]] for part in (HINDCAST, TRUTH, NEW))
        own = [here.recal.fit(truth, method) for method in POOL.mixed]
        weights = model.state["pool_weight"][place].to_numpy()
        said = [one.quantile(new, q) for one in own] + [shared.quantile(NEW, q)[:, [place]]]
        said = [one.transpose("time", "station", "quantile").to_numpy()[:, 0] for one in said]
        issued = own[0].apply(new).transpose("time", "station", "member")
        members = [issued["t2m"].to_numpy()[:, 0], said[1], said[2]]
        masses = [issued["t2m_weight"].to_numpy()[:, 0], *[np.full(said[1].shape, 1 / 200)] * 2]
        masses = [w * mass / 2 for w, mass in zip(weights, masses, strict=True)]
        average = sum(w * quantiles for w, quantiles in zip(weights, said, strict=True))
        values = np.concatenate([*members, average], -1)
        mass = np.concatenate([*masses, np.full(average.shape, 1 / 400)], -1)
        expected = Tailed(values, mass).quantile(np.array(LEVELS))
        found = model.quantile(NEW, LEVELS)[:, place].transpose("time", "quantile")
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_place_without_enough_cases_has_what_is_shared_alone(model, shared):
    alone = model.quantile(NEW, LEVELS)[:, 6:]
    xr.testing.assert_allclose(alone, shared.quantile(NEW, LEVELS)[:, 6:], rtol=1e-12)
    assert model.state["pool_weight"][6:].sel(component=SHARED).values.tolist() == [1, 1]
    assert model.state["status"].values.tolist() == [0] * 6 + [1, 1]
    assert model.state["n_cases"].values.tolist() == [40, 40, 35, 40, 40, 40, 0, 9]
    with pytest.warns(UserWarning, match="40 of 40 forecasts of 't2m' are unlike"):
        novelty, other = (one.novelty(NEW + 30) for one in (model, shared))
    assert (novelty[:, 6:] == other[:, 6:]).all()
    assert (novelty > 0.9).all()
    whole = fitted(xrecal.LinearPool()).quantile(NEW, LEVELS)  # with tails, and giving way
    assert whole.notnull().all()


def same_states(found, expected):
    assert set(found.variables) == set(expected.variables)
    for name in expected.variables:
        a, b = found[name].transpose(*expected[name].dims), expected[name]
        np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize(("places", "scheduler"), [(3, "threads"), (-1, "sync")])
def test_any_chunks_of_places_give_the_same_lazily(model, places, scheduler):
    hindcast = HINDCAST.chunk(station=places).assign_coords(HINDCAST.coords)
    with forbid_compute():
        lazy = fitted(hindcast=hindcast, truth=TRUTH.chunk(station=5))
        assert not lazy.is_computed
        issued = lazy.quantile(NEW.chunk(time=3), LEVELS)
    state, issued = dask.compute(lazy.state, issued, scheduler=scheduler)
    same_states(state, model.state)
    xr.testing.assert_allclose(issued, model.quantile(NEW, LEVELS), rtol=1e-7)


def test_what_is_shared_is_learned_once():
    seen = []

    def noted(block):
        seen.append(block.shape)
        return block

    data = HINDCAST.chunk(station=4)
    data = data.copy(data=data.data.map_blocks(noted, dtype=float, meta=np.empty((0, 0, 0))))
    lazy = fitted(hindcast=data)
    seen.clear()
    dask.compute(lazy.state, scheduler="sync")
    assert len(seen) <= 6 * 2  # four passes over two chunks, what places choose, and their fits


def test_several_dimensions_and_others_with_fits_of_their_own():
    values = HINDCAST.to_numpy().reshape(DATES, 2, 4, M), TRUTH.to_numpy().reshape(DATES, 2, 4)
    time = HINDCAST["time"].to_numpy()
    coords = {"time": time, "lat": [40.0, 45.0], "lon": [1.0, 2.0, 3.0, 4.0]}
    dims = ("time", "lat", "lon", "member")
    both = xr.DataArray(values[0], coords, dims, "t2m"), xr.DataArray(values[1], coords, dims[:3])
    factor = xr.DataArray([1.0, 2.0], dims=["model"])
    hindcast, truth = (one * factor for one in both)
    known = {"pool": ("lat", "lon"), "choose": ("lat", "lon")}
    one = hindcast.recal.fit(truth, POOL, **known)
    assert set(one.state["pool_weight"].dims) == {"lat", "lon", "model", "component"}
    assert one.state[f"{SHARED}_ridge"].dims == ("model", "shared_law")
    turned = {name: dims[::-1] for name, dims in known.items()}
    other = hindcast.chunk(lat=1, lon=3, model=1).recal.fit(truth, POOL, **turned)
    same_states(other.compute().state, one.state)
    alone = both[0].recal.fit(both[1], POOL, pool=("lat", "lon"))
    same_states(one.state.isel(model=0), alone.state)
    some = hindcast.isel(lon=[3, 1], time=0)
    whole = one.mean(hindcast.isel(time=0))
    xr.testing.assert_allclose(one.mean(some), whole.isel(lon=[3, 1]))


def test_covariates_and_leads_as_features():
    season = xrecal.LinearPool((CKME, xrecal.IDR()), condition_on="season", tails=None)
    assert fitted(season).state["component"].values.tolist() == [
        "ckme_season",
        "idr_season",
        "ckme_shared_season",
    ]
    leads, truth = (
        one.drop_vars(["station", "lat", "lon", "height"])
        .rename(station="lead", time="init")
        .assign_coords(lead=np.arange(1, P + 1, dtype=float))
        for one in (HINDCAST, TRUTH)
    )
    method = xrecal.LinearPool(POOL.methods, condition_on="lead", tails=None)
    known = leads.recal.fit(truth, method, pool="lead")
    assert known.state["component"].values.tolist()[-1] == "ckme_shared_lead"
    assert known.quantile(leads[:2], LEVELS).notnull().all()


def test_stored_and_opened_again(model, tmp_path):
    issued = model.apply(NEW)
    for ending in ("nc", "zarr"):
        model.save(tmp_path / f"m.{ending}")
        again = xrecal.open_recalibrator(tmp_path / f"m.{ending}", chunks={"station": 3})
        assert not again.is_computed
        xr.testing.assert_identical(again.apply(NEW).compute().drop_attrs(), issued.drop_attrs())


def test_places_are_found_by_their_labels(model):
    some = NEW.isel(station=[5, 7, 1])
    found = model.quantile(some, LEVELS)
    xr.testing.assert_allclose(found, model.quantile(NEW, LEVELS).isel(station=[5, 7, 1]))


def test_updates_add_cases_to_each_place(model):
    updated = model.update(NEW, OBSERVED[DATES:])
    assert updated.state["n_cases"].values.tolist() == [45, 45, 40, 45, 45, 45, 5, 14]
    same = [n for n in model.state if str(n).startswith((SHARED, "pool_weight"))]
    assert len(same) > 20
    same_states(updated.state[same], model.state[same])
    assert updated.crps(NEW, OBSERVED).notnull().all()


@pytest.mark.parametrize("choose", ["together", "each"])
def test_cross_validation_is_the_loop_of_fit_and_apply(choose):
    options = {"pool": "station", "by": "block", "blocks": 3, "q": LEVELS, "choose": choose}
    found = HINDCAST.recal.cross_validate(TRUTH, POOL, **options)
    lazy = HINDCAST.chunk().recal.cross_validate(TRUTH, POOL, **options)
    train = slice(14, None)
    once = fitted(hindcast=HINDCAST[train], truth=TRUTH[train], choose=choose)
    xr.testing.assert_allclose(found[:14], once.quantile(HINDCAST[:14], LEVELS), rtol=1e-12)
    xr.testing.assert_allclose(lazy, found)
    assert found.notnull().all()


def test_a_rolling_model_is_updated():
    options = {"pool": "station", "by": "rolling", "refit": 20, "every": 5, "blocks": 2}
    found = HINDCAST.recal.cross_validate(TRUTH, POOL, output="crps", **options)
    assert found[-5:, WITH].notnull().all()


def test_windows_have_no_component_for_all_places():
    windows = HINDCAST.recal.fit(TRUTH, POOL, pool={"station": 3})
    assert SHARED not in windows.state["component"].values


def test_records_are_whole_in_each_task():
    with pytest.raises(ValueError, match=r"hindcast\.chunk\(\{'time': -1\}\)"):
        fitted(hindcast=HINDCAST.chunk(time=10))
    assert "one component from the cases of all 8 places" in repr(fitted())


def test_plans_are_those_of_the_fits_at_each_place(model):
    part = xrecal.plan(HINDCAST.chunk(station=4), TRUTH, POOL, pool="station").largest
    assert (part.tasks, part.locations, part.cases) == (2, P, DATES)
    assert part.seconds_per_location > 0
    assert model.plan(NEW, probe=True).largest.seconds_per_location > 0
    with pytest.raises(
        ValueError,
        match=r"splits of a fit to many cases pooled over station.*leave out the argument by",
    ):
        xrecal.plan(HINDCAST, TRUTH, POOL, pool="station", by="block", probe=False)
