import pickle

import cloudpickle
import pytest
import xarray as xr

import xrecal

from .marks import forbid_compute
from .strategies import METHODS, ensemble_and_truth, model_of, new_cases

HINDCAST, TRUTH = ensemble_and_truth()
NEW, VERIFIED = new_cases()
TWO = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
TWO_TRUE = xr.Dataset({"t2m": TRUTH, "dew": TRUTH - 2})


def lazy_model(method=xrecal.CKME()):  # noqa: B008  frozen settings
    return HINDCAST.chunk(lat=1).recal.fit(TRUTH, method)


@pytest.mark.parametrize("name", ["compute", "persist", "load"])
def test_a_new_object_holds_the_result(name):
    lazy = lazy_model()
    result = getattr(lazy, name)()
    assert not lazy.is_computed
    assert result.is_computed is (name != "persist")
    assert lazy.state.chunks  # the old one stays lazy
    assert result.compute().state.identical(HINDCAST.recal.fit(TRUTH).state)


def test_persisted_state_is_not_fitted_again(monkeypatch):
    persisted = lazy_model().persist()
    expected = HINDCAST.recal.fit(TRUTH).crps(NEW, VERIFIED)
    monkeypatch.setattr(xrecal.CKME, "fit_locations", None)  # fitting again would fail
    assert persisted.crps(NEW, VERIFIED).compute().identical(expected)


def test_computing_twice_is_free():
    model = HINDCAST.recal.fit(TRUTH)
    assert model.is_computed
    with forbid_compute():
        assert model.compute().state.identical(model.state)


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("library", [cloudpickle, pickle])
def test_models_travel(method, library):
    expected = model_of(method).crps(NEW, VERIFIED)
    for model in (lazy_model(METHODS[method]), model_of(method)):
        copy = library.loads(library.dumps(model))
        assert copy.crps(NEW, VERIFIED).compute().identical(expected)


def test_several_variables_at_once():
    model = TWO.recal.fit(TWO_TRUE)
    assert list(model.variables) == ["t2m", "dew"]
    for name in TWO:
        alone = TWO[name].recal.fit(TWO_TRUE[name])
        assert model[name].state.identical(alone.state)
    with pytest.raises(ValueError, match=r"several variables; use model\['t2m'\].state"):
        _ = model.state
    with pytest.raises(KeyError, match=r"no variable 'snow'; fitted are \['t2m', 'dew'\]"):
        model["snow"]


def test_all_variables_are_computed_in_one_go():
    computed = TWO.chunk(lat=1).recal.fit(TWO_TRUE).compute()
    assert computed["dew"].state.identical(TWO[["dew"]].recal.fit(TWO_TRUE[["dew"]]).state)


def test_models_are_frozen():
    with pytest.raises(AttributeError):
        HINDCAST.recal.fit(TRUTH).method = xrecal.EMOS()


def test_the_same_call_has_the_same_task_names():
    first, second = (lazy_model().state.status.data for _ in range(2))
    assert first.name == second.name
    assert any(layer.startswith("FitTask") for layer in first.dask.layers)
