"""What holds for all methods: text and checks of settings, folds, and fits and predictions."""

import dataclasses
import datetime
import pickle

import numpy as np
import pytest

import xrecal
from tests.strategies import ensemble_and_truth
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import BOUNDS, TOO_FEW
from xrecal.fit.together import fit_with
from xrecal.inputs.dates import CaseAxis, date_axis
from xrecal.methods.base import CHOSEN_FROM, missing_forecasts, names_of
from xrecal.methods.covariates import Covariates, count_features
from xrecal.methods.folds import (
    BLOCKS,
    check_folds,
    check_gap_in_time,
    fold_groups,
    near_other_folds,
)
from xrecal.methods.settings import in_days, is_positive

from .of_arrays import PERIODS, as_cases, as_new, axis_of, covariates_of

HINDCAST, TRUTH = ensemble_and_truth()
CLASSES = [
    xrecal.CKME,
    xrecal.Climatology,
    xrecal.ConformalPrediction,
    xrecal.EMOS,
    xrecal.IDR,
    xrecal.LinearPool,
    xrecal.PITRecalibration,
    xrecal.Raw,
]
YEARS = CaseAxis(year=np.repeat(np.arange(2000, 2006), 8))
NO_DATES = CaseAxis()
BOTH = ("season", "lead")
METHODS = [
    xrecal.CKME(support="observations"),
    xrecal.CKME(
        support="observations", kernel="laplace", bandwidth=2.0, ridge=0.1, loss="laplace", gap=3
    ),
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
    xrecal.Raw(),  # the last one, as it takes no covariates
]
each_method = pytest.mark.parametrize("method", METHODS, ids=repr)
each_class = pytest.mark.parametrize(
    "kind", [*dict.fromkeys(type(m) for m in METHODS[:-1])], ids=lambda k: k.__name__
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


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), 1e-300])
def test_positive_numbers(value):
    assert is_positive(value)


@pytest.mark.parametrize("value", [0, -1, np.inf, np.nan, True, "1", None, [1], np.array([1.0])])
def test_anything_else_is_not_a_positive_number(value):
    assert not is_positive(value)


# text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_defaults_are_not_told(kind):
    assert repr(kind()) == f"{kind.__name__}()"


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (xrecal.CKME(support="errors", gap=3), "CKME(gap=3, support='errors')"),
        (xrecal.CKME(bandwidth="median", bounds=None), "CKME(bounds=None)"),
        (
            xrecal.CKME(half_life=datetime.timedelta(days=90)),
            "CKME(half_life=90.0)",
        ),
        (xrecal.EMOS(condition_on=("season", "wind")), "EMOS(condition_on=('season', 'wind'))"),
        (
            xrecal.LinearPool((xrecal.CKME(), xrecal.IDR(condition_on="lead"))),
            "LinearPool(methods=(CKME(), IDR(condition_on='lead')))",
        ),
        (xrecal.LinearPool(condition_on=()), "LinearPool(condition_on=())"),
    ],
)
def test_what_differs_is_told_in_the_order_of_the_signature(method, text):
    assert repr(method) == str(method) == text


# covariates --------------------------------------------------------------------------------------


def test_names_of_covariates():
    assert names_of(None) == ()
    assert names_of("season") == ("season",)
    assert names_of(BOTH) == BOTH


@each_class
@pytest.mark.parametrize("value", [1, (), [], ("season", 1), ["season", 1], True], ids=str)
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
    np.testing.assert_array_equal(found.circular, [False, True, True, True])  # an indicator last
    np.testing.assert_array_equal(found.values[..., 0], covariates.values[..., 1])
    angle = 2 * np.pi * covariates.values[..., 0]
    np.testing.assert_allclose(found.values[..., 1], np.sin(angle))
    assert Covariates(np.zeros((2, 5, 0))).features(()).values.shape == (2, 5, 0)


# bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [xrecal.CKME, xrecal.EMOS], ids=lambda k: k.__name__)
@pytest.mark.parametrize(
    "bounds", ["other", 0, (0,), (1, 0), (0, 0), [1, 0], ("0", 1), (0, 1, 2), (np.nan, 1)], ids=str
)
def test_bounds_must_be_a_pair(kind, bounds):
    with pytest.raises(
        ValueError, match=rf"{kind.__name__}: bounds must be 'auto', None or \(lower, upper\)"
    ):
        kind(bounds=bounds)


# time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folds", "axis", "by_year"),
    [
        ("auto", YEARS, True),
        ("auto", CaseAxis(year=np.repeat(np.arange(2000, 2005), 8)), True),  # five are enough
        ("auto", CaseAxis(year=np.repeat(np.arange(2000, 2004), 8)), False),
        ("auto", NO_DATES, False),
        ("year", CaseAxis(year=np.repeat([2000, 2007], 8)), True),
        ("block", YEARS, False),
    ],
)
def test_folds_are_years_or_blocks(folds, axis, by_year):
    n = 48 if axis.year is None else axis.year.size
    groups, blocks = fold_groups(folds, axis, n)
    assert blocks == (0 if by_year else BLOCKS)
    np.testing.assert_array_equal(groups, axis.year if by_year else np.arange(n))


def test_random_folds_are_one_fixed_shuffle():
    groups, blocks = fold_groups("random", YEARS, 48)
    again, _ = fold_groups("random", NO_DATES, 48)
    assert blocks == BLOCKS
    np.testing.assert_array_equal(groups, again)
    np.testing.assert_array_equal(np.sort(groups), np.arange(48))
    assert np.abs(np.diff(groups)).mean() > 5  # neighbours are torn apart


@pytest.mark.parametrize("folds", ["block", "auto", "random"])
def test_pooled_cases_of_one_step_share_their_group(folds):
    step = np.repeat(np.arange(12), 4)
    groups, blocks = fold_groups(folds, CaseAxis(step=step), 48)
    assert blocks == BLOCKS
    assert np.unique(groups).size == 12
    for i in range(12):
        assert np.unique(groups[step == i]).size == 1
    if folds != "random":
        np.testing.assert_array_equal(groups, step)


def test_year_folds_need_dates_of_two_years():
    check_folds("CKME", "year", YEARS)
    one_year = CaseAxis(year=np.full(48, 2003))
    with pytest.raises(
        ValueError, match=r"CKME: folds='year' needs dates along the calibration dimension"
    ):
        check_folds("CKME", "year", NO_DATES)
    with pytest.raises(
        ValueError, match="needs two years, but all cases are from 2003; use folds='block'"
    ):
        check_folds("CKME", "year", one_year)
    for folds in ("auto", "block", "random"):
        check_folds("CKME", folds, NO_DATES)
        check_folds("CKME", folds, one_year)


def days_axis(start, n, step=1):
    """Dates that follow each other."""
    dates = np.datetime64(start, "s") + step * np.arange(n) * np.timedelta64(1, "D")
    return date_axis(dates)


def winters(n, days=90):
    """Dates of so many winters, from December on."""
    starts = [np.datetime64(f"{2000 + y}-12-01", "s") for y in range(n)]
    return date_axis(np.concatenate([s + np.arange(days) * np.timedelta64(1, "D") for s in starts]))


@pytest.mark.parametrize("folds", ["auto", "year"])
def test_a_winter_is_one_fold(folds):
    groups, blocks = fold_groups(folds, winters(5), 450)
    assert blocks == 0
    np.testing.assert_array_equal(groups, np.repeat(2001 + np.arange(5), 90))
    cut, _ = fold_groups(folds, winters(5), 450, "01-01")
    np.testing.assert_array_equal(cut, winters(5).year)


def test_one_winter_is_no_two_years():
    with pytest.raises(
        ValueError,
        match=r"all cases are from 2001, as years begin in the longest time .*year_start='01-01'",
    ):
        check_folds("CKME", "year", winters(1))
    check_folds("CKME", "year", winters(1), "01-01")
    with pytest.raises(ValueError, match="CKME: year_start needs dates along the calibration"):
        check_folds("CKME", "auto", YEARS, "07-01")


def test_a_gap_in_time_needs_dates():
    check_gap_in_time("CKME", "5D", winters(1))
    check_gap_in_time("CKME", 5, NO_DATES)
    with pytest.raises(
        ValueError, match=r"CKME: gap='5D' needs dates .* or give a number of cases"
    ):
        check_gap_in_time("CKME", "5D", NO_DATES)


@pytest.mark.parametrize(
    ("folds", "axis", "year_start", "near"),
    [
        ("auto", days_axis("2001-01-01", 300), None, 56),  # 7 days on either side of four cuts
        ("auto", days_axis("2001-01-01", 300, step=7), None, None),  # ten of 300
        ("block", days_axis("2001-01-01", 300, step=8), None, None),
        ("auto", days_axis("2001-01-01", 3652), None, None),  # many days, few ends of years
        ("auto", winters(6), None, None),
        ("auto", winters(6), "01-01", 84),
        ("random", days_axis("2001-01-01", 300), None, None),  # as asked for
        ("auto", NO_DATES, None, None),
    ],
)
def test_folds_that_part_neighbours_in_time_are_told(folds, axis, year_start, near):
    n = 300 if axis.days is None else axis.days.size
    found = near_other_folds(folds, axis, year_start)
    if near is None:
        assert found is None
    else:
        assert found.startswith(
            f"{near} of {n} cases have a neighbour within a week in another fold"
        )
        assert found.endswith(
            "give the method gap='7D', or a gap as long as the memory of the weather"
        )


@pytest.mark.parametrize("kind", [xrecal.CKME, xrecal.LinearPool])
def test_a_gap_is_the_answer_to_the_remark(kind):
    axis = days_axis("2001-01-01", 300)
    assert "within a week" in kind().check(axis, 300)[1]
    note = kind(gap="7D").check(axis, 300)[1]
    assert note is None or "within a week" not in note


@pytest.mark.parametrize(
    ("length", "days"),
    [
        (None, None),
        ("cv", "cv"),
        (90, 90.0),
        (np.float32(0.5), 0.5),
        (datetime.timedelta(days=2, hours=12), 2.5),
        (np.timedelta64(36, "h"), 1.5),
        (np.timedelta64(3, "W"), 21.0),
    ],
    ids=str,
)
def test_half_lives_in_days(length, days):
    found = in_days("CKME", length)
    assert found == days
    assert found is None or isinstance(found, (str, float))


@pytest.mark.parametrize(
    "length",
    [0, -1.0, np.nan, np.inf, True, "month", datetime.timedelta(0), np.timedelta64("NaT", "D")],
    ids=str,
)
def test_invalid_half_lives(length):
    with pytest.raises(
        ValueError, match="CKME: half_life must be a positive timedelta or number of days, 'cv'"
    ):
        in_days("CKME", length)


# fits and predictions ----------------------------------------------------------------------------


def test_missing_forecasts():
    loc = np.array([[[1.0, 2.0], [np.nan, 2.0], [np.nan, np.nan], [1.0, 2.0], [1.0, 2.0]]])
    weights = np.array([[[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [np.nan, 1.0]]])
    expected = [False, False, True, False, False]
    np.testing.assert_array_equal(missing_forecasts(Forecasts(loc))[0], expected)
    expected = [False, True, True, True, False]
    np.testing.assert_array_equal(missing_forecasts(Forecasts(loc, None, weights))[0], expected)
    np.testing.assert_array_equal(missing_forecasts(Forecasts(loc, -weights))[0, :2], [True, False])


def make_cases(rng, n=40):
    cases = Forecasts(rng.normal(size=(2, n, 5)))
    observations = cases.loc[..., 0] + rng.normal(size=(2, n))
    return as_cases(cases, observations, covariates_of(rng, 2, n), axis_of(n))


@each_method
def test_fit_returns_every_parameter_and_predict_one_forecast_per_case(method, rng):
    cases = make_cases(rng)
    cases.observations[1, :30] = np.nan
    used, _ = method.check(cases.axis, 40)
    fitted = fit_with(used, cases, 20, {})
    n_features = count_features({name: PERIODS[name] for name in method.covariates})
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
        elif name == CHOSEN_FROM:
            np.testing.assert_array_equal(found, 1)
        elif not parameter.for_updates:
            assert np.isnan(found[1]).all(), name
    np.testing.assert_array_equal(fitted["n_cases"], [40, 10])
    np.testing.assert_array_equal(np.asarray(fitted["status"]) & TOO_FEW, [0, TOO_FEW])
    new = Forecasts(rng.normal(size=(2, 7, 5)).astype(np.float32))
    new.loc[0, 3] = np.nan
    new.loc[0, 4, 1:] = np.nan  # one member is a forecast
    covariates = covariates_of(rng, 2, 7)
    missing = np.arange(7) == 3
    if method.covariates:
        covariates.values[0, 5, 1] = np.nan  # its median is issued
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


def test_models_and_history_tell_the_same():
    model = HINDCAST.recal.fit(TRUTH, xrecal.CKME(ridge=0.1))
    assert "\n  method           CKME(ridge=0.1)\n" in repr(model)
    assert "method: <b>CKME(ridge=0.1)</b>" in model._repr_html_()
    issued = model.quantile(HINDCAST, 0.5)
    assert issued.attrs["history"].endswith("quantiles after recalibration by CKME(ridge=0.1)")
