"""Laws of all verbs of a model: each makes of forecasts what its door makes of those issued."""

import inspect
from functools import cache

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import (
    FORMS,
    METHODS,
    PAIRS,
    PAPER,
    close,
    ensemble_and_truth,
    model_of,
    new_cases,
)
from xrecal import arrays

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
THRESHOLDS = [278.0, 281.5, 284.0]
CLIMATE = TRUTH.quantile([0.2, 0.8], "time").rename(quantile="level").assign_attrs(units="K")
LEVELS = [0.1, 0.5, 0.9]
PRODUCTS = {
    "mean": ("mean", {}),
    "std": ("std", {}),
    "quantile": ("quantile", {"q": LEVELS}),
    "exceedance": ("exceedance", {"threshold": THRESHOLDS}),
    "exceedance by place": ("exceedance", {"threshold": CLIMATE}),
    "cdf": ("cdf", {"threshold": THRESHOLDS}),
    "members": ("members", {"n": 7, "seed": 5}),
    "categories": ("categories", {"q": [0.2, 0.4, 0.6, 0.8]}),
    "categories in season": ("categories", {"window": 120}),
}
SCORES = {
    "crps": ("crps", {}),
    "log_score": ("log_score", {}),
    "brier_score": ("brier_score", {"threshold": TRUTH.mean("time")}),
    "ranked_probability_score": ("ranked_probability_score", {"edges": [280.0, 281.5]}),
    "quantile_score": ("quantile_score", {"q": LEVELS}),
    "wis": ("wis", {"levels": LEVELS}),
    "error_spread": ("error_spread", {}),
    "pit": ("pit", {"seed": 3}),
}
VERBS = PRODUCTS | SCORES
"""Verbs of a model that are doors of forecasts too, with their own parameters."""


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


def edges_of(found):
    """Edges between categories, as a user would take them from a result."""
    name = "upper_edge" if "upper_edge" in found.coords else "t2m_upper_edge"
    return found.coords[name].isel(category=slice(-1)).drop_vars("category")


def verb(name, model, forecast, verified=VERIFIED, **more):
    """What a model makes of forecasts."""
    verb, options = VERBS[name]
    given = (forecast, verified) if name in SCORES else (forecast,)
    return getattr(model, verb)(*given, **options, **more)


def door(name, issued, found):
    """What the door of the same name makes of issued forecasts; categories at the same edges."""
    verb, options = VERBS[name]
    if name.startswith("categories"):
        return issued.recal.categories(edges_of(found))
    given = (VERIFIED,) if name in SCORES else ()
    return getattr(issued.recal, verb)(*given, **options)


def require_alike(name, found, issued):
    """Values up to rounding; the issued distribution may have another member dimension."""
    found, expected = array(found), array(door(name, issued, array(found)))
    np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-9, atol=1e-9)
    assert found.notnull().all()
    assert found.attrs["units"] == expected.attrs["units"]
    if name in SCORES and name != "pit":
        assert found.attrs["estimator"] == expected.attrs["estimator"]


# laws ---------------------------------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:.*are unlike all that the model:UserWarning")
@pytest.mark.parametrize(("form", "method"), PAIRS)
def test_verbs_agree_with_the_distribution_that_is_issued(form, method):
    model, forecast = model_of(method, form), FORMS[form](NEW)
    issued = model.apply(forecast)
    for name in VERBS:
        require_alike(name, verb(name, model, forecast), issued)
    if method == "emos":  # distances of censored normals have no closed form
        issued = issued.drop_vars(["t2m_lower", "t2m_upper"])
    again = issued.recal.fit(VERIFIED, PAPER, min_samples=3)
    assert np.isfinite(again.crps(issued, VERIFIED)).all()


@pytest.mark.each_value
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", range(3))
def test_every_form_lazily_and_bit_equal(form, part):
    """A third of the verbs at once: the form matters for the weights alone, which all share."""
    model, forecast = model_of("ckme", form), FORMS[form](NEW)
    names = list(VERBS)[part::3]
    with forbid_compute():
        lazy_model = FORMS[form](HINDCAST).chunk(lat=1).recal.fit(TRUTH, PAPER)
        lazy = {name: verb(name, lazy_model, forecast.chunk(lon=1)) for name in names}
        cut = {name: verb(name, model, forecast.chunk(time=4)) for name in names}
    lazy, cut = dask.compute(lazy, cut)
    for name in names:
        expected = verb(name, model, forecast)
        xr.testing.assert_identical(lazy[name], expected)
        close(cut[name], expected)


@pytest.mark.parametrize("name", [name for name in VERBS if name != "members"])
def test_a_single_forecast_has_what_it_has_among_others(name):
    model, single = model_of("ckme"), NEW.isel(time=2)
    found = verb(name, model, single, VERIFIED.isel(time=2))
    expected = verb(name, model, NEW).isel(time=2)
    if name == "pit":  # whose places within jumps are numbered by case
        assert found.dims == expected.dims
        return
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert found.dims == expected.dims
    assert found.name == expected.name


def test_covariates_reach_the_verbs():
    bias = xr.DataArray(np.linspace(0, 1, 48), dims="time", coords={"time": HINDCAST.time})
    now = xr.DataArray(np.linspace(0, 1, 7), dims="time", coords={"time": NEW.time})
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(condition_on="extra"), covariates={"extra": bias})
    issued = model.apply(NEW, covariates={"extra": now})
    for name in VERBS:
        require_alike(name, verb(name, model, NEW, covariates={"extra": now}), issued)
        with pytest.raises(ValueError, match="the covariate 'extra' is not known for forecast"):
            verb(name, model, NEW)


@cache
def of_two_variables():
    """A model that no test changes."""
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    return hindcast.recal.fit(xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2}), PAPER)


@pytest.mark.parametrize("name", VERBS)
def test_several_variables_have_their_own(name):
    model = of_two_variables()
    new, verified = xr.Dataset({"t2m": NEW, "dew": NEW - 3}), {"t2m": VERIFIED, "dew": VERIFIED - 2}
    found = verb(name, model, new, verified)
    assert list(found.data_vars) == ["t2m", "dew"]
    alone = verb(name, model["dew"], new["dew"], verified["dew"])
    np.testing.assert_array_equal(found["dew"], alone)
    for end in {"lower_edge", "upper_edge"} & {*alone.coords}:
        np.testing.assert_array_equal(found[f"dew_{end}"], alone[end])


@pytest.mark.each_value
@pytest.mark.parametrize("types", [("f4", "f8"), ("f8", "f4"), ("f4", "f4")])
@pytest.mark.parametrize("method", ["ckme", "idr", "pool", "pit", "errors"])
def test_thresholds_are_rounded_as_the_members_that_are_issued(method, types):
    of_forecast, of_truth = types
    truth = TRUTH.round(1).astype(of_truth)
    model = HINDCAST.astype(of_forecast).recal.fit(truth, METHODS[method])
    new = NEW.astype(of_forecast)
    thresholds = [279.7, 280.3, 281.1, 282.2]
    assert np.isin(truth, np.array(thresholds, of_truth)).any()
    found = model.exceedance(new, thresholds)
    expected = model.apply(new).recal.exceedance(thresholds).t2m
    # In a tail the rounding of thresholds counts as well, by the density times 1e-5.
    np.testing.assert_allclose(found, expected.transpose(*found.dims), atol=1e-5)


@pytest.mark.parametrize("name", [*SCORES, "mean", "std", "quantile", "exceedance", "cdf"])
def test_every_parameter_of_a_verb_is_described(name):
    verb = getattr(xrecal.Recalibrator, name)
    parameters = inspect.getdoc(verb).partition("\nParameters\n----------\n")[2]
    described = [line for line in parameters.partition("\n\n")[0].splitlines() if line[0] != " "]
    names = [name for line in described for name in line.partition(" :")[0].split(", ")]
    assert names == list(inspect.signature(verb).parameters)[1:]


# scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORES)
def test_names_and_means_of_scores(name):
    model = model_of("ckme")
    found = verb(name, model, NEW)
    assert found.name == name
    assert found.attrs["long_name"]
    if name == "pit":
        assert "seed 3" in found.attrs["estimator"]
        return
    over = ["time", "lat"]
    mean = verb(name, model, NEW, dim=over)
    np.testing.assert_allclose(mean, found.mean(over), rtol=1e-12)
    assert mean.attrs["history"].endswith(", mean over 'time' and 'lat'")


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_missing_where_the_truth_is(name):
    model, verified = model_of("ckme"), VERIFIED.copy()
    verified[2] = np.nan
    expected = verb(name, model, NEW, verified)
    assert expected.isnull().all(["lat", "lon"]).isel(time=2).all()
    with forbid_compute():
        lazy = verb(name, model, NEW.chunk(time=3), verified.chunk(lon=1))
    np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="forecast is in K but observations are in degC"):
        verb(name, model, NEW, VERIFIED.assign_attrs(units="degC"))


@pytest.mark.parametrize("threshold", [280.5, [280.0, 281.0]])
def test_brier_score_is_that_of_the_exceedance(threshold):
    model = model_of("ckme")
    found = model.brier_score(NEW, VERIFIED, threshold)
    probability = model.exceedance(NEW, threshold)
    value = probability.threshold if isinstance(threshold, list) else threshold
    expected = (probability - (value < VERIFIED)) ** 2
    np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12, atol=1e-15)
    assert found.dims == probability.dims


def test_jumps_are_drawn_by_location_and_case():
    """On a support of two values every case is within a jump."""
    coarse = TRUTH.copy(data=np.where(TRUTH > 280, 281.0, 279.0))
    model = HINDCAST.recal.fit(coarse, xrecal.Climatology())
    verified = VERIFIED.copy(data=np.where(VERIFIED > 280, 281.0, 279.0))
    found, other = model.pit(NEW, verified, seed=1), model.pit(NEW, verified, seed=2)
    assert np.unique(found).size == found.size
    assert not (found == other).any()
    low = (coarse < 280).mean("time")
    u = arrays.uniform_at(1, np.arange(4).reshape(2, 2)[:, :, None], np.arange(7))
    u = xr.DataArray(u, dims=["lat", "lon", "time"])
    expected = xr.where(verified < 280, low * u, low + (1 - low) * u).transpose(*found.dims)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="seed must be a whole number, got 'a'"):
        model.pit(NEW, VERIFIED, seed="a")


def test_calls_that_a_verb_does_not_take_are_explained():
    model = model_of("emos")
    with pytest.raises(TypeError, match=r"^model.crps has no parameter 'fair'"):
        model.crps(NEW, VERIFIED, fair=True)
    with pytest.raises(TypeError, match=r"^model.wis needs observations \(DataArray, Dataset or"):
        model.wis(NEW)
    with pytest.raises(ValueError, match=r"one minus the level is missing for 0\.1"):
        model.wis(NEW, VERIFIED, levels=[0.1, 0.5])


# members ------------------------------------------------------------------------------------------


def ranks(members):
    return np.argsort(np.argsort(members.transpose(..., "member").to_numpy(), axis=-1), axis=-1)


def test_members_lie_within_the_distribution_and_differ_in_order():
    model = model_of("ckme")
    members = model.members(NEW, 40)
    assert members.dims == NEW.dims
    levels = (np.arange(40) + 0.5) / 40
    np.testing.assert_array_equal(np.sort(members, axis=1), model.quantile(NEW, levels))
    here, there = ranks(members.isel(lat=0, lon=0)), ranks(members.isel(lat=1, lon=1))
    assert abs(np.corrcoef(here.ravel(), there.ravel())[0, 1]) < 0.2
    today = model.members(NEW.isel(time=2), 40)
    assert today.dims == ("member", "lat", "lon")
    np.testing.assert_array_equal(np.sort(today, axis=0), np.sort(members[2], axis=0))


def test_pooled_models_number_their_locations():
    model = HINDCAST.recal.fit(TRUTH, PAPER, pool=("lat", "lon"))
    whole, cut = model.members(NEW, 6), model.members(NEW.chunk(lat=1, lon=1, time=2), 6)
    close(cut.compute(), whole)
    assert (ranks(whole.isel(lat=0)) != ranks(whole.isel(lat=1))).any()


def test_what_history_tells():
    model = model_of("ckme")
    told = model.members(NEW, 3, seed=8).attrs["history"]
    assert told.startswith("xrecal: 3 equally likely members, order of seed 8, after recalibration")
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.members(NEW, 0)
