"""What holds for the settings of every method."""

import dataclasses
import pickle

import numpy as np
import pytest

import xrecal
from xrecal.arrays.forms import Forecasts
from xrecal.dims import CaseAxis
from xrecal.methods.base import State, is_positive, missing_forecasts

METHODS = [
    xrecal.CKME(),
    xrecal.CKME(kernel="laplace", bandwidth=2.0, ridge=0.1, loss="laplace", gap=3),
    xrecal.CKME(folds="random", projection="energy"),
    xrecal.Climatology(),
    xrecal.Climatology(window=30),
    xrecal.EMOS(),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=repr)


@each_method
def test_settings_are_values(method):
    twin = dataclasses.replace(method)
    assert twin is not method
    assert twin == method
    assert hash(twin) == hash(method)
    assert pickle.loads(pickle.dumps(method)) == method
    assert [other == method for other in METHODS].count(True) == 1
    assert eval(repr(method), vars(xrecal)) == method


@each_method
def test_settings_are_frozen_names_and_numbers(method):
    for field in dataclasses.fields(method):
        assert getattr(method, field.name) is None or isinstance(
            getattr(method, field.name), (str, int, float)
        )
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, getattr(method, field.name))


@each_method
def test_fit_returns_every_parameter_and_predict_one_forecast_per_case(method, rng):
    season = np.linspace(0, 0.99, 40)
    axis = CaseAxis(year=np.repeat(np.arange(2000, 2004), 10), season=season)
    cases = Forecasts(rng.normal(size=(2, 40, 5)))
    observations = cases.loc[..., 0] + rng.normal(size=(2, 40))
    observations[1, :30] = np.nan
    method.check(axis, 40)
    fitted = method.fit_locations(cases, observations, axis, 20)
    assert {"n_cases", "status", *method.parameters} <= set(fitted)
    np.testing.assert_array_equal(fitted["n_cases"], [40, 10])
    np.testing.assert_array_equal(
        np.asarray(fitted["status"]) & xrecal.arrays.status.TOO_FEW, [0, 1]
    )
    new = Forecasts(rng.normal(size=(2, 7, 5)).astype(np.float32))
    new.loc[0, 3] = np.nan
    new.loc[0, 4, 1:] = np.nan  # one member is a forecast
    state = State(observations, cases if method.keeps_cases else None, fitted)
    found = method.predict_locations(new, state, axis, season[:7])
    median = found.quantile(np.array([0.5]))[..., 0]
    assert median.shape == (2, 7)
    np.testing.assert_array_equal(np.isnan(median[0]), np.arange(7) == 3)
    assert np.isnan(median[1]).all()  # too few cases
    for part in found:
        assert part is None or part.dtype == np.float32 or part is observations


DEFAULTS = [xrecal.CKME(), xrecal.Climatology(), xrecal.EMOS()]


@pytest.mark.parametrize("method", DEFAULTS, ids=repr)
def test_inputs_stay_unchanged(method, rng):
    loc, observations = rng.normal(size=(1, 30, 3)), rng.normal(size=(1, 30))
    loc[0, 0, 1], loc[0, 1], observations[0, 4] = np.nan, np.inf, np.nan
    before = loc.copy(), observations.copy()
    loc.flags.writeable = observations.flags.writeable = False
    cases = Forecasts(loc)
    fitted = method.fit_locations(cases, observations, CaseAxis(), 20)
    method.predict_locations(cases, State(observations, cases, fitted), CaseAxis(), None)
    np.testing.assert_array_equal(loc, before[0])
    np.testing.assert_array_equal(observations, before[1])


@pytest.mark.parametrize("method", DEFAULTS, ids=repr)
@pytest.mark.parametrize("part", ["scale", "weights"])
@pytest.mark.parametrize("value", [np.nan, -1.0])
def test_missing_and_invalid_parts_give_nan_in_every_method(method, part, value, rng):
    parts = {"loc": rng.normal(size=(1, 30, 3)), part: rng.uniform(0.5, 1, (1, 30, 3))}
    cases, observations = Forecasts(**parts), rng.normal(size=(1, 30))
    state = State(observations, cases, method.fit_locations(cases, observations, CaseAxis(), 20))
    new = {name: a[:, :4].copy() for name, a in parts.items()}
    new[part][0, 2] = value
    found = method.predict_locations(Forecasts(**new), state, CaseAxis(), None)
    np.testing.assert_array_equal(np.isnan(found.mean()[0]), np.arange(4) == 2)


def test_missing_forecasts():
    loc = np.array([[[1.0, 2.0], [np.nan, 2.0], [np.nan, np.nan], [1.0, 2.0], [1.0, 2.0]]])
    weights = np.array([[[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [np.nan, 1.0]]])
    expected = [False, False, True, False, False]
    np.testing.assert_array_equal(missing_forecasts(Forecasts(loc))[0], expected)
    expected = [False, True, True, True, False]
    np.testing.assert_array_equal(missing_forecasts(Forecasts(loc, None, weights))[0], expected)
    np.testing.assert_array_equal(missing_forecasts(Forecasts(loc, -weights))[0, :2], [True, False])


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), 1e-300])
def test_positive_numbers(value):
    assert is_positive(value)


@pytest.mark.parametrize("value", [0, -1, np.inf, np.nan, True, "1", None, [1], np.array([1.0])])
def test_anything_else_is_not_a_positive_number(value):
    assert not is_positive(value)
