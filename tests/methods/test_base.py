"""What holds for the settings of every method."""

import dataclasses
import pickle

import numpy as np
import pytest

import xrecal
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import BOUNDS, TOO_FEW
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Covariates, is_positive, missing_forecasts, names_of

from .of_arrays import PERIODS, as_cases, as_new, axis_of, covariates_of

BOTH = ("season", "lead")
METHODS = [
    xrecal.CKME(),
    xrecal.CKME(kernel="laplace", bandwidth=2.0, ridge=0.1, loss="laplace", gap=3),
    xrecal.CKME(solver="lowrank", support="errors"),
    xrecal.CKME(support="auto", half_life="cv", bandwidth="cv", condition_on=BOTH),
    xrecal.CKME(support="errors", half_life=100.0, bounds=(None, 9.0)),
    xrecal.Climatology(),
    xrecal.Climatology(window=90),
    xrecal.Climatology(window=200, condition_on="lead"),
    xrecal.EMOS(),
    xrecal.EMOS(bounds=None, condition_on=BOTH),
    xrecal.EMOS(condition_on="lead", vary_spread=True),
    xrecal.IDR(),
    xrecal.IDR(condition_on=BOTH),
    xrecal.PITRecalibration(),
    xrecal.PITRecalibration(condition_on=BOTH),
    xrecal.ConformalPrediction(),
    xrecal.ConformalPrediction(alpha=0.3, condition_on="lead"),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=repr)
each_class = pytest.mark.parametrize(
    "kind", [*dict.fromkeys(type(m) for m in METHODS)], ids=lambda k: k.__name__
)


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
        value = getattr(method, field.name)
        for part in value if isinstance(value, tuple) else [value]:
            assert part is None or isinstance(part, (str, int, float))
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(method, field.name, value)


def make_cases(rng, n=40):
    cases = Forecasts(rng.normal(size=(2, n, 5)))
    observations = cases.loc[..., 0] + rng.normal(size=(2, n))
    return as_cases(cases, observations, covariates_of(rng, 2, n), axis_of(n))


@each_method
def test_fit_returns_every_parameter_and_predict_one_forecast_per_case(method, rng):
    cases = make_cases(rng)
    cases.observations[1, :30] = np.nan
    used, _ = method.check(cases.axis, 40)
    fitted = used.fit_locations(cases, 20)
    n_features = sum(1 if PERIODS[name] is None else 2 for name in method.covariates)
    n_features -= isinstance(method, xrecal.Climatology) and method.window is not None and 2
    for name, parameter in used.parameters(n_features).items():
        sizes = (40 if size < 0 else size for size in parameter.sizes(40).values())
        assert np.shape(fitted[name]) == (2, *sizes), name
        found = np.asarray(fitted[name])
        assert found.dtype == parameter.dtype, name
        if parameter.flags:
            assert found.max() < len(parameter.flags)
        elif parameter.of_slots:
            assert (found[1] == -1).all(), name
        else:
            assert np.isnan(found[1]).all(), name
    np.testing.assert_array_equal(fitted["n_cases"], [40, 10])
    np.testing.assert_array_equal(np.asarray(fitted["status"]) & TOO_FEW, [0, TOO_FEW])
    new = Forecasts(rng.normal(size=(2, 7, 5)).astype(np.float32))
    new.loc[0, 3] = np.nan
    new.loc[0, 4, 1:] = np.nan  # one member is a forecast
    covariates = covariates_of(rng, 2, 7)
    missing = np.arange(7) == 3
    if method.covariates:
        covariates.values[0, 5] = np.nan
        missing |= np.arange(7) == 5
    kept = cases if method.keeps_cases else dataclasses.replace(cases, forecasts=None)
    found = used.predict_locations(as_new(new, covariates), kept, fitted)
    median = found.quantile(np.array([0.5]))[..., 0]
    assert median.shape == (2, 7)
    np.testing.assert_array_equal(np.isnan(median[0]), missing)
    assert np.isnan(median[1]).all()  # too few cases
    for part in found:
        assert part is None or part.dtype == np.float32 or part is cases.observations
    if method.output == "weighted":
        slots, _ = method.slots(40)
        assert found.weights.shape == (2, 7, slots.size)
        assert found.members.shape == ((2, 40) if method.shares_members else (2, 7, slots.size))
        np.testing.assert_allclose(found.weights[0].sum(-1)[~missing], 1, rtol=1e-5)


@each_method
def test_locations_are_independent(method, rng):
    cases = make_cases(rng)
    new, covariates = Forecasts(rng.normal(size=(2, 3, 5))), covariates_of(rng, 2, 3)

    def of(part):
        some = cases.take(part)
        fitted = method.fit_locations(some, 20)
        given = as_new(new.take(part), covariates.take((part,)))
        return method.predict_locations(given, some, fitted).quantile(np.array([0.2, 0.9]))

    np.testing.assert_array_equal(of(slice(0, 2))[1:], of(slice(1, 2)))


@each_class
def test_inputs_stay_unchanged(kind, rng):
    loc, observations = rng.normal(size=(1, 30, 3)), rng.normal(size=(1, 30))
    loc[0, 0, 1], loc[0, 1], observations[0, 4] = np.nan, np.inf, np.nan
    observations[0, 1] = np.nan
    covariates = covariates_of(rng, 1, 30)
    arrays = loc, observations, covariates.values
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    for method in (kind(), kind(condition_on=BOTH)):
        cases = as_cases(Forecasts(loc), observations, covariates, axis_of(30))
        fitted = method.fit_locations(cases, 20)
        method.predict_locations(as_new(cases.forecasts, covariates), cases, fitted)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@each_class
@pytest.mark.parametrize("part", ["scale", "weights"])
@pytest.mark.parametrize("value", [np.nan, -1.0])
def test_missing_and_invalid_parts_give_nan_in_every_method(kind, part, value, rng):
    parts = {"loc": rng.normal(size=(1, 30, 3)), part: rng.uniform(0.5, 1, (1, 30, 3))}
    method, cases = kind(), as_cases(Forecasts(**parts), rng.normal(size=(1, 30)))
    fitted = method.fit_locations(cases, 20)
    new = {name: a[:, :4].copy() for name, a in parts.items()}
    new[part][0, 2] = value
    found = method.predict_locations(as_new(Forecasts(**new)), cases, fitted)
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


# covariates --------------------------------------------------------------------------------------


def test_names_of_covariates():
    assert names_of(None) == ()
    assert names_of("season") == ("season",)
    assert names_of(BOTH) == BOTH


@each_class
@pytest.mark.parametrize("value", [1, (), ["season"], ("season", 1), True], ids=str)
def test_condition_on_must_name_covariates(kind, value):
    with pytest.raises(
        ValueError, match=f"{kind.__name__}: condition_on must be 'season', the name of a covariate"
    ):
        kind(condition_on=value)


@each_class
def test_a_covariate_is_named_once(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__}: condition_on names a covariate twice"):
        kind(condition_on=("lead", "lead"))


@each_class
def test_season_needs_dates_of_most_of_a_year(kind):
    method = kind(condition_on="season")
    assert method.covariates == ("season",)
    name = kind.__name__
    for axis in (CaseAxis(), CaseAxis(year=np.arange(2000, 2030))):  # years have no season
        with pytest.raises(
            ValueError, match=rf"{name}: condition_on='season' needs dates .*add a coordinate"
        ):
            method.check(axis, 30)
    with pytest.raises(
        ValueError,
        match=rf"{name}: condition_on='season' needs cases from 240 days or more, .* 210",
    ):
        method.check(axis_of(8), 8)
    assert method.check(axis_of(14), 14) == (method, None)
    used, note = method.check(axis_of(11), 11)
    assert used == method
    assert "season learned from 300 days" in note
    for condition_on in (None, "lead"):  # need no dates
        assert kind(condition_on=condition_on).check(CaseAxis(), 30)[1] is None


def test_covariates_become_features_in_the_order_asked_for(rng):
    covariates = covariates_of(rng, 2, 5)
    found = covariates.features(("lead", "season"))
    np.testing.assert_array_equal(found.circular, [False, True, True])
    np.testing.assert_array_equal(found.values[..., 0], covariates.values[..., 1])
    angle = 2 * np.pi * covariates.values[..., 0]
    np.testing.assert_allclose(found.values[..., 1], np.sin(angle))
    assert Covariates(np.zeros((2, 5, 0))).features(()).values.shape == (2, 5, 0)


# bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [xrecal.CKME, xrecal.EMOS], ids=lambda k: k.__name__)
@pytest.mark.parametrize(
    "bounds", ["other", 0, (0,), (1, 0), (0, 0), [0, 1], ("0", 1), (0, 1, 2), (np.nan, 1)], ids=str
)
def test_bounds_must_be_a_pair(kind, bounds):
    with pytest.raises(
        ValueError, match=rf"{kind.__name__}: bounds must be 'auto', None or \(lower, upper\)"
    ):
        kind(bounds=bounds)


@pytest.mark.parametrize(
    "method", [xrecal.EMOS(bounds=(0, None)), xrecal.CKME(support="errors", bounds=(0, None))]
)
def test_violated_bounds_are_told_and_left_out(method, rng):
    cases = make_cases(rng)
    cases.observations[0] = np.abs(cases.observations[0])
    fitted = method.fit_locations(cases, 20)
    np.testing.assert_array_equal(np.asarray(fitted["status"]) & BOUNDS, [0, BOUNDS])
    np.testing.assert_array_equal(fitted["lower"], [0, -np.inf])
    np.testing.assert_array_equal(fitted["upper"], np.inf)
    new = as_new(Forecasts(rng.normal(size=(2, 9, 5)) - 2), covariates_of(rng, 2, 9))
    least = method.predict_locations(new, cases, fitted).quantile(np.array([0.001]))[..., 0]
    np.testing.assert_array_equal(least.min(-1) < 0, [False, True])
