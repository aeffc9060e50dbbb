"""Covariates by name, on the way from coordinates or arguments to a fit and its forecasts."""

import cftime
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze, random
from tests.marks import forbid_compute
from xrecal import arrays
from xrecal.arrays.predictors import usual_of
from xrecal.arrays.status import CONSTANT, INVALID
from xrecal.inputs.covariates import period_of, read_covariates
from xrecal.inputs.forms import read_forms

N = 40
DATES = xr.date_range("2000-01-01", periods=N, freq="30D", use_cftime=False)
SIZES = {"time": N, "member": 4, "lat": 2}
HINDCAST = random("time", "lat", "member", sizes=SIZES, time=DATES)
OBSERVATIONS = HINDCAST.mean("member") + random("time", "lat", seed=1, sizes=SIZES, time=DATES)
LATER = DATES[-6:] + (DATES[-1] - DATES[0])
NEW = random("time", "lat", "member", seed=2, sizes=SIZES | {"time": 6}, time=LATER)
CLIMATOLOGY = xrecal.Climatology(condition_on="index")


def index_of(like, *dims, seed=3, **attrs):
    """Values of a covariate at the labels of a forecast."""
    sizes = {d: like.sizes[d] for d in dims}
    coords = {d: like[d] for d in dims if d in like.indexes}
    values = np.random.default_rng(seed).normal(size=list(sizes.values()))
    return xr.DataArray(values, coords, dims, name="index", attrs=attrs)


INDEX, NEW_INDEX = index_of(HINDCAST, "time"), index_of(NEW, "time", seed=4)


def weights(model, new=NEW, index=NEW_INDEX):
    covariates = None if index is None else {"index": index}
    return model.apply(new, covariates=covariates)["t2m_weight"]


def fit(index=INDEX, hindcast=HINDCAST, method=CLIMATOLOGY, **options):
    covariates = None if index is None else {"index": index}
    return hindcast.recal.fit(OBSERVATIONS, method, covariates=covariates, **options)


def read(names, forecast, given=None, dim="time", fitting=True):
    (form,) = read_forms(forecast).values()
    cases = (dim,) if fitting else ()
    return read_covariates(names, form, dim, given, name="hindcast", cases=cases)


# where values come from --------------------------------------------------------------------------


def test_weights_are_those_of_the_array_layer():
    model = fit()
    found = weights(model)
    of, new = (
        arrays.features(index.to_numpy()[np.newaxis, :, np.newaxis], (None,))
        for index in (INDEX, NEW_INDEX)
    )
    expected = arrays.climatology_weights(np.zeros((1, N)), 6, features=of, new_features=new)[0]
    for lat in range(2):
        np.testing.assert_allclose(found.isel(lat=lat).transpose("time", ...), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.state["covariate_index"], INDEX)


def test_a_coordinate_of_the_name_serves_as_well():
    model = fit(None, HINDCAST.assign_coords(index=INDEX))
    found = weights(model, NEW.assign_coords(index=NEW_INDEX), None)
    xr.testing.assert_equal(found.drop_vars("index"), weights(fit()))


def test_what_is_given_counts_before_coordinates():
    model = fit(INDEX, HINDCAST.assign_coords(index=0 * INDEX))
    found = weights(model, NEW.assign_coords(index=0 * NEW_INDEX)).drop_vars("index")
    xr.testing.assert_equal(found, weights(fit()))


def test_fit_fills_the_field_of_methods_that_leave_it_open():
    assert fit(None, condition_on="season", method=xrecal.EMOS()).method.condition_on == "season"
    kept = fit(condition_on="season")
    assert kept.method.condition_on == "index"


@pytest.mark.filterwarnings("ignore:.*are unlike all that the model:UserWarning")
@pytest.mark.parametrize("method", [CLIMATOLOGY, xrecal.CKME(condition_on="index", ridge=0.1)])
def test_each_location_may_have_its_own_values(method):
    own, new_own = index_of(HINDCAST, "lat", "time"), index_of(NEW, "time", "lat")
    together = weights(fit(own, method=method, choose="each"), index=new_own)
    for lat in range(2):
        one = {"lat": [lat]}
        hindcast, new = HINDCAST.isel(one), NEW.isel(one)
        model = hindcast.recal.fit(
            OBSERVATIONS.isel(one), method, covariates={"index": own.isel(one)}
        )
        alone = weights(model, new, new_own.isel(one))
        xr.testing.assert_allclose(together.isel(one), alone, rtol=1e-12)


def test_cases_without_labels_are_matched_by_position():
    plain = HINDCAST.drop_vars("time")
    model = plain.recal.fit(
        OBSERVATIONS.drop_vars("time"), CLIMATOLOGY, covariates={"index": INDEX.drop_vars("time")}
    )
    found = weights(model, NEW.drop_vars("time"), NEW_INDEX.drop_vars("time"))
    np.testing.assert_array_equal(found, weights(fit()))


# season and period -------------------------------------------------------------------------------


def test_season_is_the_fraction_of_the_year_with_period_1():
    found = read(("season",), HINDCAST)["season"]
    assert period_of(found) == 1
    assert found.dims == ("time",)
    year = DATES.year.to_numpy()
    length = np.where(year % 4 == 0, 366, 365)
    np.testing.assert_allclose(found, (DATES.day_of_year.to_numpy() - 1) / length)


def test_season_of_valid_times_and_of_other_calendars():
    late = HINDCAST.assign_coords(valid_time=("time", DATES + np.timedelta64(59, "D")))
    assert read(("season",), late)["season"][0] == pytest.approx(59 / 366)
    cf = [cftime.DatetimeNoLeap(2001, 3, 1)] * N
    other = HINDCAST.assign_coords(valid_time=("time", np.array(cf, dtype=object)))
    np.testing.assert_allclose(read(("season",), other)["season"], 59 / 365)


def test_a_single_forecast_is_dated_by_a_scalar():
    model = fit(None, method=xrecal.Climatology(condition_on="season"))
    single = weights(model, NEW.isel(time=2), None)
    expected = weights(model, NEW, None).isel(time=2)
    np.testing.assert_allclose(single, expected.transpose(*single.dims), rtol=1e-12)
    with pytest.raises(ValueError, match="season needs the dates of forecast: a datetime64"):
        weights(model, NEW.isel(time=2, drop=True), None)


def test_a_single_forecast_takes_a_single_value():
    expected = weights(fit()).isel(time=2, drop=True)
    new, index = NEW.isel(time=2, drop=True), NEW_INDEX.isel(time=2)
    bare = index.drop_vars("time")
    for forecast, given in ((new, index), (new, bare), (new.assign_coords(index=bare), None)):
        found = weights(fit(), forecast, given)
        np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12)


def test_a_period_makes_a_covariate_circular():
    hour, new_hour = ((5 * a % 24).assign_attrs(period=24.0) for a in (INDEX, NEW_INDEX))
    model = fit(hour)
    assert model.variables["t2m"].periods == {"index": 24.0}
    found = weights(model, index=new_hour)
    turned = weights(model, index=(new_hour + 24).assign_attrs(period=24))
    np.testing.assert_allclose(turned, found, rtol=1e-9)
    plain = weights(fit(hour.drop_attrs()), index=new_hour.drop_attrs())
    assert np.abs(plain - found).max() > 0.01
    apart = np.exp(
        -2 * np.sin(np.pi * (new_hour.to_numpy()[:, np.newaxis] - hour.to_numpy()) / 24) ** 2
    )
    expected = apart / apart.sum(-1, keepdims=True)
    np.testing.assert_allclose(found.isel(lat=0), expected, rtol=1e-9)


def test_fit_and_forecast_agree_on_the_period():
    model = fit(INDEX.assign_attrs(period=24.0))
    with pytest.raises(
        ValueError, match=r"'index' has the period None in forecast, but 24.0 in hindcast; set"
    ):
        weights(model)


# what depends on values --------------------------------------------------------------------------


METHODS = [
    xrecal.CKME(condition_on="index", ridge=0.1),
    CLIMATOLOGY,
    xrecal.EMOS(condition_on="index"),
    xrecal.IDR(condition_on="index"),
    xrecal.PITRecalibration(condition_on="index"),
    xrecal.ConformalPrediction(condition_on="index"),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


@pytest.mark.each_value
@each_method
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("period", [None, 24.0])
def test_missing_values_are_those_usual_in_the_record(method, value, period):
    attrs = {} if period is None else {"period": period}
    index = index_of(HINDCAST, "lat", "time", **attrs)
    new_index = index_of(NEW, "time", seed=4, **attrs)
    index[1, 7], new_index[3] = value, value
    model = fit(index, method=method)
    usual = xr.DataArray(usual_of(index.to_numpy(), period).middle[:, 0], dims="lat")
    observed, filled = OBSERVATIONS.copy(), index.where(np.isfinite(index), usual)
    if np.isinf(value):  # a case with an invalid value is left out
        observed[7, 1] = np.nan
    np.testing.assert_array_equal(model.state["n_cases"], [N, N - np.isinf(value)])
    np.testing.assert_array_equal(model.state["status"] & INVALID, [0, INVALID * np.isinf(value)])
    expected = HINDCAST.recal.fit(observed, method, covariates={"index": filled})
    new_filled = new_index.where(np.isfinite(new_index), usual)
    with pytest.warns(UserWarning, match="covariates of forecast are unlike .*'index'"):
        found = model.quantile(NEW, [0.2, 0.9], covariates={"index": new_index})
    other = expected.quantile(NEW, [0.2, 0.9], covariates={"index": new_filled})
    np.testing.assert_allclose(found, other, rtol=1e-6)
    assert np.isfinite(found).all()


def test_a_constant_covariate_has_a_status():
    index = index_of(HINDCAST, "time", "lat")
    index[:, 1] = 3.0
    model = fit(index, method=xrecal.CKME(condition_on="index"))
    np.testing.assert_array_equal(model.state["status"] & CONSTANT > 0, [False, True])


@each_method
def test_dask_gives_the_same(method):
    chunks = {"lat": 1}
    index, new_index = index_of(HINDCAST, "lat", "time"), index_of(NEW, "time", "lat", seed=4)
    eager = fit(index, method=method)
    expected = eager.quantile(NEW, [0.2, 0.9], covariates={"index": new_index})
    with forbid_compute():
        lazy = HINDCAST.chunk(chunks).recal.fit(
            OBSERVATIONS, method, covariates={"index": index.chunk({"lat": 1})}
        )
        found = lazy.quantile(
            NEW.chunk(chunks), [0.2, 0.9], covariates={"index": new_index.chunk({"time": 2})}
        )
    assert found.chunks is not None
    xr.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert lazy.compute().state.identical(eager.state)


def test_a_lazy_covariate_alone_makes_the_fit_lazy():
    with forbid_compute():
        model = fit(INDEX.chunk())
    assert not model.is_computed
    assert model.compute().state.identical(fit().state)


def test_inputs_stay_unchanged():
    inputs = [HINDCAST.copy(deep=True), INDEX.copy(deep=True), NEW.copy(deep=True)]
    before = [a.copy(deep=True) for a in inputs]
    hindcast, index, new = map(freeze, inputs)
    model = fit(index, hindcast, xrecal.CKME(condition_on="index"))
    weights(model, new, NEW_INDEX)
    for found, expected in zip(inputs, before, strict=True):
        assert found.identical(expected)


# what is known without values --------------------------------------------------------------------


def with_places(lat):
    """A fit at two places, with a covariate at others."""
    own = {"lat": [1, 2]}
    covariates = {"index": index_of(HINDCAST, "time", "lat").assign_coords(lat=lat)}
    hindcast, observed = (a.assign_coords(own) for a in (HINDCAST, OBSERVATIONS))
    return hindcast.recal.fit(observed, CLIMATOLOGY, covariates=covariates)


UNKNOWN = r"not on the covariates \['index'\]; name them"
PLAIN, GIVEN = (a.drop_vars("time") for a in (HINDCAST, OBSERVATIONS))
ERRORS = {
    "missing": (
        lambda: fit(None),
        r"the covariate 'index' is not known for hindcast, whose coordinates are \['time'\]; "
        r"pass covariates=\{'index': DataArray\} or add a coordinate",
    ),
    "missing for a forecast": (
        lambda: weights(fit(), index=None),
        "the covariate 'index' is not known for forecast, whose coordinates are",
    ),
    "not asked for": (
        lambda: fit(method=xrecal.LinearPool(condition_on=())),
        rf"the fit conditions on \[\], {UNKNOWN}",
    ),
    "not asked for by a forecast": (lambda: weights(fit(None, method=xrecal.IDR())), UNKNOWN),
    "dates": (
        lambda: fit(INDEX.copy(data=DATES.to_numpy())),
        r"'index' must hold numbers, got datetime64\[.s\]; for dates use condition_on='season'",
    ),
    "text": (lambda: fit(INDEX.astype(str)), "the covariate 'index' must hold numbers, got <U"),
    "too short": (
        lambda: fit(INDEX.isel(time=slice(3, None))),
        "the covariate 'index' has no value for 3 of 40 labels along 'time' of hindcast, first 2000"
        "-01-01",
    ),
    "too short without labels": (
        lambda: PLAIN.recal.fit(
            GIVEN, CLIMATOLOGY, covariates={"index": INDEX.drop_vars("time")[3:]}
        ),
        "differ along 'time': 40 against 37 labels",
    ),
    "no labels": (
        lambda: fit(INDEX.drop_vars("time")),
        "the covariate 'index' has no labels along 'time' to match by; add the coordinate",
    ),
    "labels twice": (
        lambda: fit(xr.concat([INDEX, INDEX], "time")),
        "labels along 'time' of the covariate 'index' must be unique",
    ),
    "other locations": (
        lambda: with_places([1, 3]),
        "labels along 'lat' differ, first at position 1: 2 in hindcast, 3 in the covariate",
    ),
    "another dimension": (
        lambda: fit(index_of(HINDCAST, "time", "member").rename(member="bin")),
        r"'index' has dimensions \['time', 'bin'\], but hindcast has \['time', 'lat'\]",
    ),
    "no cases": (lambda: fit(index_of(HINDCAST, "lat")), "a covariate varies along 'time' and per"),
    "period": (
        lambda: fit(INDEX.assign_attrs(period=0)),
        "the covariate 'index' has the period 0; it must be positive",
    ),
    "chunks": (lambda: fit(INDEX.chunk({"time": 10})), "the covariate 'index'.*chunk"),
    "season without dates": (
        lambda: read(("season",), PLAIN),
        "the season needs the dates of hindcast: a datetime64 or cftime coordinate along 'time'",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_to_type(case):
    function, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        function()


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="the covariate 'index' must be a DataArray, got ndarray"):
        fit(np.zeros(N))
    with pytest.raises(TypeError, match=r"must be a dict \{name: DataArray\}, got DataArray"):
        HINDCAST.recal.fit(OBSERVATIONS, CLIMATOLOGY, covariates=INDEX)


def test_a_covariate_of_another_calendar_is_refused_with_what_to_type():
    dates = {c: xr.date_range("2000-01-01", periods=40, calendar=c) for c in ("noleap", "standard")}
    x = random("time", sizes={"time": 40}, time=dates["noleap"])
    hindcast = random("time", "member", sizes={"time": 40}, time=dates["standard"])
    hindcast = hindcast.convert_calendar("standard", use_cftime=True)
    observations = hindcast.mean("member")
    method = xrecal.EMOS(condition_on="x")
    with pytest.raises(ValueError, match=r"use convert_calendar\('standard', dim='time', use_cf"):
        hindcast.recal.fit(observations, method, covariates={"x": x})
