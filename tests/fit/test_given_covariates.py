"""Covariates as users hand them over: all that are given count, or the part that is named."""

import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute

N, LATER = 60, 12
TIME = pd.date_range("2018-01-01", periods=N + LATER, freq="11D")
PAST, NEW = slice(None, N), slice(N, None)
POOL = xrecal.LinearPool((xrecal.CKME(ridge=0.1), xrecal.EMOS()))


@cache
def cases():
    """Forecasts and what verified at two places, and two covariates."""
    rng = np.random.default_rng(3)
    signal, noise = rng.normal(size=(2, TIME.size, 2))
    wind, cloud = rng.normal(size=(2, TIME.size))
    truth = signal + wind[:, np.newaxis] - 0.5 * cloud[:, np.newaxis] + 0.3 * noise
    members = signal[..., np.newaxis] + 0.3 * rng.normal(size=(TIME.size, 2, 4))
    coords = {"time": TIME, "lat": [50.0, 51.0]}
    given = {"wind": wind, "cloud": cloud}
    return (
        xr.DataArray(members, coords, ("time", "lat", "member"), name="t2m"),
        xr.DataArray(truth, coords, ("time", "lat"), name="t2m"),
        {name: xr.DataArray(values, {"time": TIME}, ["time"]) for name, values in given.items()},
    )


def part(covariates, at):
    return {name: value[at] for name, value in covariates.items()}


def fit(method, covariates=None, **options):
    forecast, observed, known = cases()
    given = part(known if covariates is None else covariates, PAST)
    return forecast[PAST].recal.fit(observed[PAST], method, covariates=given, **options)


def quantiles(model, covariates=None):
    known = cases()[2] if covariates is None else covariates
    return model.quantile(cases()[0][NEW], [0.2, 0.7], covariates=part(known, NEW))


# all that are given ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [xrecal.EMOS(), xrecal.CKME(ridge=0.1), POOL], ids=repr)
def test_a_fit_conditions_on_all_that_are_given(method):
    model, named = fit(method), fit(method, condition_on=("wind", "cloud"))
    assert [*model.variables["t2m"].periods] == ["wind", "cloud"]
    assert model.method == named.method
    xr.testing.assert_identical(quantiles(model), quantiles(named))


@pytest.mark.parametrize("kind", [xrecal.LinearPool, xrecal.OnlinePool])
def test_a_pool_conditions_on_the_season_too(kind):
    model = fit(kind())
    named = fit(kind(condition_on=("season", "wind", "cloud")))
    covariates = [name for name in model.variables["t2m"].periods if name != "days_ahead"]
    assert covariates == ["season", "wind", "cloud"]
    xr.testing.assert_equal(quantiles(model), quantiles(named))


def test_a_pool_of_undated_cases_conditions_on_what_is_given_alone():
    forecast, observed, known = (
        xr.Dataset({"forecast": cases()[0], "observed": cases()[1], **cases()[2]})
        .isel(time=PAST)
        .drop_vars("time")[names]
        for names in ("forecast", "observed", ["wind"])
    )
    with pytest.warns(UserWarning, match="no dates, so the pool leaves the season out"):
        model = forecast.recal.fit(observed, xrecal.LinearPool(), covariates=dict(known))
    assert [*model.variables["forecast"].periods] == ["wind"]


def test_folds_condition_on_all_that_are_given():
    forecast, observed, known = (a[PAST] if hasattr(a, "dims") else part(a, PAST) for a in cases())
    options = {"by": "block", "blocks": 3, "output": "crps", "covariates": known}
    found, named = (
        forecast.recal.cross_validate(observed, method, **options)
        for method in (xrecal.LinearPool(), xrecal.LinearPool(condition_on=("season", *known)))
    )
    np.testing.assert_array_equal(found, named)


@cache
def network():
    """Forecasts and what verified at more than 1500 cases of 26 stations."""
    latitude = {"latitude": ("station", np.linspace(40, 50, 26))}
    return tuple(
        xr.concat([a.isel(lat=0, drop=True) + 0.1 * k for k in range(26)], "station")
        .transpose("time", "station", ...)
        .assign_coords(latitude)
        for a in cases()[:2]
    )


def test_a_pool_that_shares_conditions_on_all_that_are_given():
    forecast, observed = network()
    for method in (xrecal.CKME(), xrecal.LinearPool()):
        model = forecast.recal.fit(observed, method, covariates=cases()[2], pool="station")
        covariates = [*model.variables["t2m"].periods]
        assert [name for name in covariates if name != "season"] == ["wind", "cloud"]


# a part of them ----------------------------------------------------------------------------------


def test_condition_on_names_a_part():
    wind = {"wind": cases()[2]["wind"]}
    model, expected = fit(xrecal.EMOS(), condition_on="wind"), fit(xrecal.EMOS(), wind)
    assert [*model.variables["t2m"].periods] == ["wind"]
    xr.testing.assert_equal(quantiles(model), quantiles(expected, wind))
    own = fit(xrecal.EMOS(condition_on="wind"))
    xr.testing.assert_equal(quantiles(own), quantiles(expected, wind))


@pytest.mark.parametrize(
    "method", [xrecal.LinearPool(condition_on=()), xrecal.EMOS(condition_on="season"), xrecal.Raw()]
)
def test_covariates_of_which_none_counts_are_refused(method):
    with pytest.raises(ValueError, match=r"not on the covariates \['wind', 'cloud'\]"):
        fit(method)
    with pytest.raises(ValueError, match=r"not on the covariates \['wind', 'cloud'\]"):
        quantiles(fit(xrecal.EMOS(), {}))


def test_compare_conditions_all_methods_but_the_reference():
    forecast, observed, known = cases()
    methods = {"EMOS": xrecal.EMOS()}
    named = {"EMOS": xrecal.EMOS(condition_on=("wind", "cloud"))}
    given = {"covariates": known, "blocks": 3}
    found, expected = (
        xrecal.compare(forecast, observed, m, **given).crps for m in (methods, named)
    )
    np.testing.assert_array_equal(found, expected)
    plain = xrecal.compare(forecast, observed, methods, blocks=3).crps
    labels = ["raw", "climatology"]
    np.testing.assert_array_equal(found.sel({"method": labels}), plain.sel({"method": labels}))
    assert (found.sel({"method": "EMOS"}) < 0.8 * plain.sel({"method": "EMOS"})).all()
    both = xrecal.compare(forecast, observed, {**methods, "with": named["EMOS"]}, **given).crps
    np.testing.assert_array_equal(both.sel({"method": "EMOS"}), plain.sel({"method": "EMOS"}))


def test_a_plan_and_a_ridge_curve_condition_on_all_that_are_given():
    forecast, observed, known = cases()
    assert xrecal.plan(forecast, observed, xrecal.LinearPool(), covariates=known, probe=False).fits
    curves = [
        forecast.recal.ridge_curve(observed, covariates=known, condition_on=names)
        for names in (None, ("wind", "cloud"))
    ]
    xr.testing.assert_identical(*curves)


# forecasts as covariates -------------------------------------------------------------------------


@cache
def wind_forecast(form):
    """Forecasts of the wind in a form, and their mean and spread."""
    rng = np.random.default_rng(8)
    spread = np.exp(0.5 * rng.normal(size=TIME.size))
    loc = cases()[2]["wind"].assign_attrs(units="m s-1")
    scale = loc.copy(data=spread)
    if form == "normal":
        return xrecal.gaussian(loc.rename("ff"), scale.rename("ff")), loc, scale
    members = loc + scale * xr.DataArray(rng.normal(size=(TIME.size, 7)), dims=["time", "number"])
    members = members.rename("ff").assign_attrs(units="m s-1")
    if form == "weighted":
        weights = xr.DataArray(rng.dirichlet(np.ones(7), TIME.size), dims=["time", "number"])
        members = xrecal.weighted(members, weights)
    if form == "quantile":
        members = members.recal.quantile([0.1, 0.3, 0.5, 0.7, 0.9])
    mean, std = members.recal.mean(), members.recal.std()
    both = (a["ff"] if form == "weighted" else a for a in (mean, std))
    return members, *both


FORMS = ["ensemble", "weighted", "quantile", "normal"]


@pytest.mark.parametrize("form", FORMS)
def test_mean_and_log_spread_of_a_forecast_enter(form):
    forecast, mean, std = wind_forecast(form)
    known = {"wind": mean, "wind_spread": np.log(std), "cloud": cases()[2]["cloud"]}
    given = {"wind": forecast, "cloud": cases()[2]["cloud"]}
    at = {"time": PAST}
    model = fit_to(given, at)
    assert [*model.variables["t2m"].periods] == ["wind", "wind_spread", "cloud"]
    assert model.state["covariate_wind"].attrs["units"] == "m s-1"
    expected = fit_to(known, at)
    xr.testing.assert_allclose(issued(model, given), issued(expected, known), rtol=1e-10)
    named = fit_to(given, at, condition_on=("wind", "cloud"))
    assert named.method == model.method
    alone = fit_to(given, at, xrecal.EMOS(condition_on="wind_spread"))
    assert [*alone.variables["t2m"].periods] == ["wind_spread"]


def at_cases(covariates, at):
    return {name: value.isel(at) for name, value in covariates.items()}


def fit_to(covariates, at, method=xrecal.EMOS(), **options):  # noqa: B008
    forecast, observed, _ = cases()
    given = at_cases(covariates, at)
    return forecast.isel(at).recal.fit(observed.isel(at), method, covariates=given, **options)


def issued(model, covariates, new=NEW):
    at = {"time": new}
    given = at_cases(covariates, at)
    return model.quantile(cases()[0].isel(at), [0.2, 0.7], covariates=given)


def test_forecasts_of_each_place_in_any_order_and_of_dask():
    forecast = wind_forecast("ensemble")[0]
    places = xr.DataArray([1.0, 2.0], {"lat": [50.0, 51.0]}, ["lat"])
    given = {"wind": (forecast * places).astype("float32")}
    at = {"time": PAST}
    expected = issued(fit_to(given, at), given)
    mixed = {
        "wind": given["wind"].isel(lat=[1, 0], time=slice(None, None, -1)).transpose("lat", ...)
    }
    past, new = ({"wind": mixed["wind"].sel(time=TIME[which][::-1])} for which in (PAST, NEW))
    hindcast, observed = (a.isel(at) for a in cases()[:2])
    model = hindcast.recal.fit(observed, xrecal.EMOS(), covariates=past)
    found = model.quantile(cases()[0][NEW], [0.2, 0.7], covariates=new)
    xr.testing.assert_allclose(found, expected, rtol=1e-6)
    chunked = {"wind": past["wind"].chunk(lat=1)}
    with forbid_compute():
        lazy = hindcast.recal.fit(observed, xrecal.EMOS(), covariates=chunked)
        later = lazy.quantile(
            cases()[0][NEW].chunk(lat=1), [0.2, 0.7], covariates={"wind": new["wind"].chunk(lat=1)}
        )
    xr.testing.assert_allclose(later.compute(), found)


def test_a_forecast_without_spread_has_the_usual_one():
    forecast = wind_forecast("ensemble")[0].copy()
    forecast[::2] = forecast[::2, :1]
    model = fit_to({"wind": forecast}, {"time": PAST})
    spread = model.state["covariate_wind_spread"].isel(calibration=slice(None, None, 2))
    assert spread.isnull().all()
    assert (model.state["n_cases"] == N).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda a: {"wind": a.assign_attrs(period=360.0)}, "'wind' is a forecast of a circular"),
        (
            lambda a: {"wind": xr.Dataset({"a": a, "b": a})},
            r"'wind' holds the forecasts \['a', 'b'",
        ),
        (
            lambda a: {"wind_spread": a[:, 0], "wind": a},
            "two covariates are called 'wind_spread': one that you pass, and the spread of",
        ),
        (lambda a: {"wind": a.chunk(number=3)}, "the covariate 'wind'.*chunk"),
        (
            lambda a: {"wind": a.to_dataset()["ff"].isel(number=0).to_dataset()},
            "no variable of the",
        ),
    ],
)
def test_forecasts_that_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fit_to(given(wind_forecast("ensemble")[0]), {"time": PAST})


def test_new_covariates_are_forecasts_if_those_of_the_fit_are():
    forecast, mean, _ = wind_forecast("ensemble")
    at = {"time": PAST}
    of_members, of_means = fit_to({"wind": forecast}, at), fit_to({"wind": mean}, at)
    with pytest.raises(ValueError, match=r"'wind_spread' \(of 'wind' as a forecast with members\)"):
        issued(of_members, {"wind": mean})
    message = "'wind' is a forecast with members, but had one value per case"
    with pytest.raises(ValueError, match=message):
        issued(of_means, {"wind": forecast})


# forecasts without a covariate -------------------------------------------------------------------

LACKING = r"covariates of forecast are unlike .*'wind', which is missing"


@pytest.mark.parametrize("method", [xrecal.EMOS(), POOL], ids=repr)
def test_a_forecast_without_a_covariate_is_refused_or_does_without_it(method):
    forecast, known = cases()[0][NEW], part(cases()[2], NEW)
    model, cloud = fit(method), {"cloud": known["cloud"]}
    with pytest.raises(ValueError, match=r"'wind' is not known for forecast.*covariates='without'"):
        model.apply(forecast, covariates=cloud)
    with pytest.warns(UserWarning, match=LACKING):
        found = model.apply(forecast, covariates=cloud, missing_covariates="without")
    gone = {**known, "wind": known["wind"] * np.nan}
    with pytest.warns(UserWarning, match=LACKING):
        expected = forecast.recal.apply(model, covariates=gone)
    xr.testing.assert_identical(found, expected)
    assert (found["t2m_status"] == 1).all()
    given = model.apply(forecast, covariates=known, missing_covariates="without")
    xr.testing.assert_identical(given, model.apply(forecast, covariates=known))


@pytest.mark.filterwarnings("ignore:covariates of forecast are unlike")
def test_every_product_does_without_a_covariate():
    forecast, known = cases()[0][NEW], part(cases()[2], NEW)
    model, cloud = fit(POOL), {"cloud": known["cloud"]}
    truth, gone = cases()[1][NEW], {**known, "wind": known["wind"] * np.nan}
    products = {
        "mean": (),
        "quantile": ([0.1, 0.5],),
        "exceedance": (280,),
        "members": (4,),
        "categories": (),
        "novelty": (),
        "crps": (truth,),
        "pit": (truth,),
    }
    for name, arguments in products.items():
        call = partial(getattr(model, name), forecast, *arguments)
        with pytest.raises(ValueError, match="missing_covariates='without'"):
            call(covariates=cloud)
        found = call(covariates=cloud, missing_covariates="without")
        xr.testing.assert_identical(found, call(covariates=gone))
    plan = model.plan(forecast, covariates=cloud, missing_covariates="without", probe=False)
    assert plan.variables == model.plan(forecast, covariates=known, probe=False).variables


def test_a_forecast_does_without_all_covariates():
    model, one = fit(xrecal.EMOS()), {"time": 0}
    with pytest.warns(UserWarning, match="covariates of forecast are unlike"):
        found = model.apply(cases()[0][NEW].chunk(lat=1), missing_covariates="without").compute()
    assert found["t2m_loc"].notnull().all()
    single = cases()[0][NEW].isel(one)
    with pytest.warns(UserWarning, match="covariates of forecast are unlike"):
        alone = model.apply(single, missing_covariates="without")
    np.testing.assert_allclose(alone["t2m_loc"], found["t2m_loc"].isel(one))
    with pytest.raises(ValueError, match="missing_covariates must be 'refuse' or 'without', got 1"):
        model.apply(single, missing_covariates=1)


def test_a_forecast_does_without_the_members_of_a_covariate_but_not_without_dates():
    at, forecast = {"time": PAST}, cases()[0]
    model = fit_to({"wind": wind_forecast("ensemble")[0]}, at)
    with pytest.warns(
        UserWarning, match="'wind', which is missing.*'wind_spread', which is missin"
    ):
        model.apply(forecast[NEW], missing_covariates="without")
    seasonal = fit(xrecal.EMOS(), condition_on=("season", "wind"))
    with pytest.raises(ValueError, match="the season needs the dates of forecast"):
        seasonal.apply(forecast[NEW].drop_vars("time"), missing_covariates="without")


# covariates that say nothing ---------------------------------------------------------------------


@pytest.mark.parametrize(("value", "how"), [(np.nan, "missing"), (3.0, "the same")])
@pytest.mark.parametrize("method", [xrecal.EMOS(), xrecal.CKME(ridge=0.1), POOL], ids=repr)
def test_a_covariate_that_says_nothing_has_a_warning_and_no_effect(method, value, how):
    known = cases()[2]
    idle = {**known, "cloud": known["cloud"] * 0 + value}
    with pytest.warns(
        UserWarning, match=f"covariate 'cloud' is {how} in all cases of hindcast, so"
    ):
        model = fit(method, idle)
    wind = {"wind": known["wind"]}
    expected = quantiles(fit(method, wind), wind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.testing.assert_allclose(quantiles(model, idle), expected, rtol=1e-6)


@pytest.mark.parametrize("stored", [False, True])
def test_a_shared_fit_knows_units_and_dates_of_its_covariates(tmp_path, stored):
    forecast, observed = network()
    wind = cases()[2]["wind"].assign_attrs(units="m s-1")
    model = forecast.recal.fit(observed, xrecal.CKME(), covariates={"wind": wind}, pool="station")
    if stored:
        model.save(tmp_path / "model.nc")
        model = xrecal.open_recalibrator(tmp_path / "model.nc")
    assert "wind (m s-1)" in repr(model)
    new, other = forecast[NEW], (wind * 3.6).assign_attrs(units="km h-1")
    assert model.quantile(new, 0.5, covariates={"wind": wind}).notnull().all()
    with pytest.raises(ValueError, match=r"'wind' of the fit is in m s-1 but .* is in km h-1; if"):
        model.quantile(new, 0.5, covariates={"wind": other})
