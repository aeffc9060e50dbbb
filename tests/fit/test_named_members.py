"""Members that are models with names: their weights, matched by label, from fits to products."""

from functools import cache

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute

NAMES = ["ecmwf", "gfs", "icon", "ukmo"]
EMOS = xrecal.EMOS(exchangeable=False)
POOL = xrecal.LinearPool((xrecal.CKME(tails=None), xrecal.EMOS()), exchangeable=False)
METHODS = {
    "emos": EMOS,
    "ckme": xrecal.CKME(support="standardised", exchangeable=False),
    "idr": xrecal.IDR(exchangeable=False),
    "pool": POOL,
}
methods = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@cache
def network(n=90, n_places=3, seed=0):
    """Forecasts of four models, with errors and biases of their own, and what verified."""
    rng = np.random.default_rng(seed)
    truth = 3 * rng.normal(size=(n, n_places))
    errors = np.array([0.4, 1.0, 2.0, 2.0]) * rng.normal(size=(n, n_places, 4))
    members = truth[..., np.newaxis] + np.array([0.0, 1.0, -2.0, 2.0]) + errors
    members[rng.random(members.shape) < 0.05] = np.nan
    time = np.datetime64("2001-01-01", "ns") + np.arange(n) * np.timedelta64(9, "D")
    coords = {"time": time, "station": [f"s{i}" for i in range(n_places)]}
    dims = ("time", "station", "member")
    forecasts = xr.DataArray(members, {**coords, "member": NAMES}, dims, "t2m")
    return forecasts, xr.DataArray(truth, coords, dims[:2], "t2m")


@cache
def parts():
    """A hindcast with what verified, and new forecasts."""
    forecasts, observed = network()
    return forecasts[:70], observed, forecasts[70:]


@cache
def fitted(method=EMOS, **options):
    hindcast, observed, _ = parts()
    return hindcast.recal.fit(observed, method, **options)


def mean_crps(model, forecast):
    return model.crps(forecast, parts()[1]).mean().item()


def test_the_state_has_a_weight_for_each_model_the_same_at_all_places():
    state = fitted().state
    weights, offsets = state["model_weight"], state["model_offset"]
    assert weights["calibration_model"].values.tolist() == NAMES
    assert weights.dims == ("station", "calibration_model")
    np.testing.assert_array_equal(weights, weights[[0, 0, 0]])
    np.testing.assert_allclose(weights.sum("calibration_model"), 1)
    assert weights[0, 0] > weights[0, 1] > weights[0, 2:].max() > 0
    np.testing.assert_allclose((weights * offsets).sum("calibration_model"), 0, atol=1e-12)
    assert (offsets.sel(calibration_model="ukmo") > offsets.sel(calibration_model="icon")).all()


@methods
def test_a_fit_is_one_to_weighted_ensembles_without_the_offsets(method):
    hindcast, observed, new = parts()
    state = fitted(method).state

    def weighted(forecasts):
        known = {
            name: state[name].rename(calibration_model="member").drop_vars("member")
            for name in ("model_weight", "model_offset")
        }
        moved = forecasts - known["model_offset"]
        weights = known["model_weight"] + 0 * forecasts.fillna(0.0)
        return xrecal.weighted(moved.rename("t2m"), weights.where(moved.notnull(), 0.0))

    plain = type(method)(**{**vars(method), "exchangeable": True})
    expected = weighted(hindcast).recal.fit(observed, plain).quantile(weighted(new), [0.1, 0.7])
    found = fitted(method).quantile(new, [0.1, 0.7])
    np.testing.assert_allclose(found, expected["t2m"].transpose(*found.dims), rtol=1e-6)


def test_models_that_differ_are_worth_their_weights():
    hindcast, observed, new = parts()
    plain = hindcast.recal.fit(observed, xrecal.EMOS())
    assert mean_crps(fitted(), new) < 0.9 * mean_crps(plain, new)


@methods
def test_models_are_matched_by_label(method):
    new = parts()[2]
    model = fitted(method)
    expected = model.quantile(new, [0.2, 0.6])
    turned = model.quantile(new.isel(member=[2, 0, 3, 1]), [0.2, 0.6])
    np.testing.assert_allclose(turned, expected, rtol=1e-9)
    three = new.drop_sel(member="gfs")
    lacking = new.where(new.member != "gfs")
    np.testing.assert_allclose(
        model.quantile(three, [0.2]), model.quantile(lacking, [0.2]), rtol=1e-9
    )


def test_the_order_of_models_and_places_in_the_hindcast_does_not_matter():
    hindcast, observed, new = parts()
    turned = hindcast[:, ::-1, [3, 1, 0, 2]].recal.fit(observed, EMOS)
    np.testing.assert_allclose(turned.quantile(new, 0.3), fitted().quantile(new, 0.3), rtol=1e-6)


def test_unknown_models_and_those_without_names_are_refused():
    hindcast, observed, new = parts()
    other = new.assign_coords(member=["ecmwf", "gfs", "icon", "jma"])
    with pytest.raises(ValueError, match=r"the model 'jma' .*drop_sel\(member=\['jma'\]\)"):
        fitted().quantile(other, 0.5)
    with pytest.raises(ValueError, match=r"names of the models along 'member' of forecast"):
        fitted().quantile(new.drop_vars("member"), 0.5)
    with pytest.raises(ValueError, match=r"hindcast.assign_coords\(member="):
        hindcast.drop_vars("member").recal.fit(observed, EMOS)
    with pytest.raises(ValueError, match="a different name for each model"):
        hindcast.assign_coords(member=["a", "a", "b", "c"]).recal.fit(observed, EMOS)
    quantiles = hindcast.quantile([0.2, 0.5, 0.8], "member")
    with pytest.raises(ValueError, match=r"form 'quantile'; leave exchangeable out"):
        quantiles.recal.fit(observed, EMOS)
    bare = hindcast.drop_vars("member")
    with pytest.raises(ValueError, match=r"hindcast.assign_coords"):
        bare.recal.cross_validate(observed, EMOS, by="block", output="crps")


def test_settings_that_do_not_go_together_are_refused():
    with pytest.raises(ValueError, match=r"LinearPool\(methods, exchangeable=False\)"):
        xrecal.LinearPool((EMOS, xrecal.CKME()))
    with pytest.raises(ValueError, match="exchangeable must be True or False, got 1"):
        xrecal.EMOS(exchangeable=1)
    hindcast, observed, _ = parts()
    with pytest.raises(ValueError, match="leave jointly and period out"):
        hindcast.recal.fit(observed, xrecal.CKME(exchangeable=False), period=360.0)


def test_numbers_are_labels_too():
    hindcast, observed, new = parts()
    numbers = {"member": [0, 1, 2, 3]}
    model = hindcast.assign_coords(numbers).recal.fit(observed, EMOS)
    found = model.quantile(new.assign_coords(numbers), 0.3)
    np.testing.assert_array_equal(found, fitted().quantile(new, 0.3))


@methods
def test_held_out_observations_change_no_forecast_of_theirs(method):
    forecasts, observed = network()
    options = {"by": "block", "output": "quantile", "q": [0.3], "blocks": 2}
    held_out = slice(45, None)
    marked = observed.copy(data=observed.values.copy())
    marked[held_out] = 5.0 - marked[held_out]
    before, after = (
        forecasts.recal.cross_validate(o, method, **options)[held_out] for o in (observed, marked)
    )
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("options", [{}, {"choose": "each"}, {"pool": "station"}], ids=str)
def test_cross_validation_is_a_fit_to_the_training_cases_of_each_fold(options):
    forecasts, observed = network()
    found = forecasts.recal.cross_validate(
        observed, EMOS, by="block", blocks=2, output="quantile", q=[0.3], **options
    )
    model = forecasts[:45].recal.fit(observed, EMOS, **options)
    np.testing.assert_allclose(found[45:], model.quantile(forecasts[45:], [0.3]), rtol=1e-9)


def test_cross_validation_with_updates_keeps_the_weights_of_the_last_fit():
    forecasts, observed = network()
    options = {"by": "rolling", "every": 20, "refit": 1000, "output": "quantile", "q": [0.3]}
    found = forecasts.recal.cross_validate(observed, EMOS, blocks=3, gap=0, **options)
    model = forecasts[:30].recal.fit(observed, EMOS)
    np.testing.assert_allclose(found[30:50], model.quantile(forecasts[30:50], [0.3]), rtol=1e-9)
    model = model.update(forecasts[30:50], observed)
    np.testing.assert_allclose(found[50:70], model.quantile(forecasts[50:70], [0.3]), rtol=1e-6)


@methods
def test_dask_gives_the_same_bits_whatever_the_chunks(method):
    hindcast, observed, new = parts()
    with forbid_compute():
        model = hindcast.chunk(station=1).recal.fit(observed.chunk(station=2), method)
        lazy = model.quantile(new.chunk(station=2), [0.3])
    np.testing.assert_array_equal(lazy.compute(), fitted(method).quantile(new, [0.3]))
    state = model.compute().state
    for name in ("model_weight", "model_offset"):
        xr.testing.assert_identical(state[name], fitted(method).state[name])


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_a_stored_model_knows_its_models(tmp_path, suffix):
    fitted().save(tmp_path / f"model.{suffix}")
    opened = xrecal.open_recalibrator(tmp_path / f"model.{suffix}")
    new = parts()[2].isel(member=[1, 3, 0])
    np.testing.assert_array_equal(opened.quantile(new, 0.3), fitted().quantile(new, 0.3))
    assert opened.method == EMOS


@methods
def test_updates_keep_the_weights_and_match_models_by_label(method):
    hindcast, observed, new = parts()
    first = hindcast[:60].recal.fit(observed, method)
    one = first.update(hindcast[60:], observed)
    turned = first.update(hindcast[60:, ::-1, [3, 0, 2, 1]], observed)
    np.testing.assert_array_equal(one.state["model_weight"], first.state["model_weight"])
    np.testing.assert_allclose(turned.quantile(new, 0.3), one.quantile(new, 0.3), rtol=1e-6)
    if method is EMOS:
        assert mean_crps(one, new) < 1.1 * mean_crps(fitted(), new)
    with pytest.raises(ValueError, match="the model 'x'"):
        first.update(hindcast[60:].assign_coords(member=[*NAMES[:3], "x"]), observed)


def test_an_online_pool_keeps_the_weights_as_it_learns():
    hindcast, observed, new = (one[:, :1] for one in parts())
    pool = xrecal.OnlinePool((xrecal.EMOS(), xrecal.Climatology()), exchangeable=False)
    first = hindcast[:68].recal.fit(observed, pool)
    turned = first.update(hindcast[68:, :, [3, 0, 2, 1]], observed)
    np.testing.assert_array_equal(turned.state["model_weight"], first.state["model_weight"])
    expected = first.update(hindcast[68:], observed).quantile(new, 0.3)
    np.testing.assert_allclose(turned.quantile(new, 0.3), expected, rtol=1e-6)


def test_new_places_of_a_network_get_the_weights_of_all():
    forecasts, observed = network(n=50, n_places=33)
    names = {"lat": ("station", np.linspace(40.0, 50.0, 33))}
    forecasts = forecasts.assign_coords(names)
    pool = xrecal.LinearPool((xrecal.EMOS(),), exchangeable=False)
    model = forecasts[:, :32].recal.fit(observed[:, :32], pool, pool="station")
    assert model.method.exchangeable is False
    grown = model.update(forecasts[:2], observed)
    weights = grown.state["model_weight"]
    np.testing.assert_array_equal(weights, weights.isel(station=[0] * 33))
    some = forecasts[:2, :, [2, 0]]
    np.testing.assert_array_equal(grown.quantile(some, 0.3), grown.quantile(some[..., ::-1], 0.3))


def test_places_have_weights_of_their_own_where_each_chooses_alone():
    weights = fitted(choose="each").state["model_weight"]
    assert not np.array_equal(weights[0], weights[1])
    hindcast, observed, _ = parts()
    alone = hindcast[:, [1]].recal.fit(observed[:, [1]], EMOS).state["model_weight"]
    np.testing.assert_array_equal(alone[0], weights[1])


def test_leads_may_have_weights_of_their_own():
    hindcast, observed, _ = parts()
    leads = xr.concat([hindcast, hindcast[..., ::-1].assign_coords(member=NAMES)], "lead")
    leads = leads.assign_coords(lead=("lead", [0, 1], {"units": "hours"}))
    both = xr.concat([observed[:70], observed[:70]], "lead").assign_coords(lead=leads.lead)
    weights = leads.recal.fit(both, EMOS, choose="station").state["model_weight"]
    first, second = (weights.sel(lead=lead).isel(station=0).to_numpy() for lead in (0, 1))
    np.testing.assert_allclose(first, fitted().state["model_weight"][0])
    np.testing.assert_allclose(second, first[::-1], rtol=1e-6)


@pytest.mark.parametrize("pool", ["station", {"station": 3}], ids=str)
def test_pooled_places_share_their_offsets(pool):
    hindcast, observed, _ = parts()
    model = hindcast.recal.fit(observed, EMOS, pool=pool)
    offsets = model.state["model_offset"]
    assert offsets.dims[:-1] == (() if pool == "station" else ("station",))
    first = offsets.to_numpy().reshape(-1, 4)[0]
    np.testing.assert_array_equal(offsets, np.broadcast_to(first, offsets.shape))
    assert np.isfinite(model.quantile(parts()[2], 0.3)).all()


def test_compare_and_the_plan_take_both():
    hindcast, observed, _ = parts()
    table = xrecal.compare(hindcast, observed, [xrecal.EMOS(), EMOS])
    assert table.sel({"method": str(EMOS)}).crps.mean() < 0.9 * table.crps[-2].mean()
    assert xrecal.plan(hindcast, observed, EMOS, probe=False).fits


def test_text_names_the_setting():
    assert repr(EMOS) == "EMOS(exchangeable=False)"


def test_the_hindcast_stays_as_it_was():
    hindcast, observed, _ = parts()
    before = hindcast.copy(deep=True)
    hindcast.recal.fit(observed, EMOS)
    xr.testing.assert_identical(hindcast, before)
