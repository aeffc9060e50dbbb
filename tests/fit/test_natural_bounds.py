"""Variables that cannot be negative get 0 as lower bound, others none, by labelled calls."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal

PRICE = {"units": "EUR/MWh", "long_name": "day-ahead price"}


def pair(attrs, observed=None, shift=0.0):
    """Forecasts and observations above 1, or above 1 and ``shift``, with attributes."""
    rng = np.random.default_rng(5)
    dates = np.datetime64("2021-01-01", "ns") + np.arange(60) * np.timedelta64(7, "D")
    coords = {"time": dates, "station": ["Oslo", "Bergen"]}
    truth = 1 + rng.gamma(1.0, 2.0, (60, 2)) + shift
    members = truth[..., np.newaxis] + rng.normal(size=(60, 2, 6))
    forecasts = xr.DataArray(members, coords, ["time", "station", "member"], "v", attrs)
    return forecasts, xr.DataArray(truth, coords, ["time", "station"], "v", observed or attrs)


def bounds(model):
    (fitted,) = model.variables.values()
    found = fitted.state["emos_lower" if "emos_lower" in fitted.state else "lower"]
    return found.fillna(-np.inf).to_numpy().tolist()


@pytest.mark.parametrize(
    ("attrs", "why"),
    [
        ({"standard_name": "precipitation_flux", "units": "kg m-2 s-1"}, "precipitation_flux"),
        ({"standard_name": "wind_speed", "units": "m/s"}, "wind_speed"),
        ({"standard_name": "relative_humidity", "units": "%"}, "relative_humidity"),
        ({"units": "m**3/s"}, "unit 'm**3/s"),
        ({"units": "µg m-3"}, "unit 'µg m-3"),
        ({"units": "count"}, "unit 'count"),
    ],
)
def test_what_cannot_be_negative_is_bounded_and_the_text_says_so(attrs, why):
    hindcast, observed = pair(attrs)
    model = hindcast.recal.fit(observed, xrecal.EMOS())
    assert bounds(model) == [0, 0]
    assert f"{why}' (bounds=None removes this bound)" in repr(model)
    assert model.method == xrecal.EMOS()
    low = hindcast - 8
    assert (model.quantile(low, [0.01, 0.5]) == 0).any()
    assert (model.quantile(low, [0.01, 0.5]) >= 0).all()


@pytest.mark.parametrize(
    "attrs",
    [
        PRICE,
        {},
        {"standard_name": "air_temperature", "units": "K"},
        {"standard_name": "eastward_wind", "units": "m s-1"},
        {"standard_name": "precipitation_flux", "cell_methods": "time: mean (anomaly)"},
        {"standard_name": "wind_speed", "long_name": "Anomaly of wind speed"},
        {"standard_name": "lwe_precipitation_minus_evaporation_flux"},
        {"standard_name": "tendency_of_specific_humidity"},
        {"standard_name": "ocean_volume_transport_across_line", "units": "m3 s-1"},
    ],
)
def test_other_variables_have_no_bound(attrs):
    hindcast, observed = pair(attrs)
    model = hindcast.recal.fit(observed, xrecal.EMOS())
    assert bounds(model) == [-np.inf] * 2
    assert "below 0" not in repr(model)


@pytest.mark.parametrize("given", [None, (1.0, None), (None, None)])
def test_bounds_that_are_given_stay(given):
    hindcast, observed = pair({"standard_name": "wind_speed"})
    model = hindcast.recal.fit(observed, xrecal.EMOS(bounds=given))
    assert model.variables["v"].method == model.method == xrecal.EMOS(bounds=given)
    assert "below 0" not in repr(model)
    assert (model.quantile(hindcast - 8, 0.01) < 1).any() == (given != (1.0, None))


@pytest.mark.parametrize(
    "method",
    [
        xrecal.CKME(support="errors"),
        xrecal.LinearPool(),
        xrecal.LinearPool((xrecal.EMOS(), xrecal.CKME())),
        xrecal.OnlinePool(),
        xrecal.OnlinePool((xrecal.EMOS(), xrecal.Climatology())),
    ],
    ids=["ckme", "pool", "given_pool", "online", "given_online"],
)
def test_every_method_with_bounds_keeps_to_them(method):
    hindcast, observed = pair({"units": "m3 s-1"})
    low = hindcast[-3:] - 8
    assert (hindcast.recal.fit(observed, method).quantile(low, [0.01, 0.1]) >= 0).all()
    free = {"attrs": {"units": "m"}}
    hindcast, observed = pair(**free)
    low = hindcast[-3:] - 8
    assert (hindcast.recal.fit(observed, method).quantile(low, [0.01, 0.1]) < 0).any()


def test_an_upper_bound_is_still_found():
    hindcast, observed = pair({"standard_name": "relative_humidity", "units": "%"}, shift=90)
    model = hindcast.recal.fit(observed.clip(max=94), xrecal.EMOS())
    assert bounds(model) == [0, 0]
    assert model["v"].state["upper"].to_numpy().tolist() == [94, 94]


def test_a_place_with_negative_observations_has_no_bound_and_a_status():
    hindcast, observed = pair({"standard_name": "wind_speed"})
    observed = observed.where(observed["station"] == "Oslo", observed - 5)
    model = hindcast.recal.fit(observed, xrecal.EMOS())
    assert bounds(model) == [0, -np.inf]
    assert "bounds_violated" in repr(model)


@pytest.mark.parametrize(
    ("attrs", "shift", "method", "noted"),
    [
        ({}, 0.0, xrecal.EMOS(), True),
        ({"units": "m s-1"}, 0.0, xrecal.EMOS(), True),
        ({}, 0.0, xrecal.EMOS(bounds=None), False),
        ({}, 0.0, xrecal.EMOS(bounds=(0, None)), False),
        ({}, 100.0, xrecal.EMOS(), False),
        ({}, -3.0, xrecal.EMOS(), False),
        ({"units": "degC"}, 0.0, xrecal.EMOS(), False),
        ({"units": "m", "long_name": "anomaly"}, 0.0, xrecal.EMOS(), False),
        ({"units": "m s-1", "standard_name": "eastward_wind"}, 0.0, xrecal.EMOS(), False),
    ],
)
def test_a_bound_that_nothing_shows_is_noted(attrs, shift, method, noted):
    hindcast, observed = pair(attrs, shift=shift)
    hindcast = hindcast if shift < 0 else hindcast.clip(0.1)
    model = hindcast.recal.fit(observed, method)
    assert (
        "but recalibrated values may be (bounds=(0, None) prevents this)" in repr(model)
    ) == noted
    lazy = hindcast.chunk(station=1).recal.fit(observed, method)
    assert "prevents this" not in repr(lazy)


@pytest.mark.filterwarnings("ignore:the first 10 cases to predict are NaN")
def test_held_out_forecasts_and_comparisons_have_the_bound():
    hindcast, observed = pair({"standard_name": "wind_speed"})
    for by in ({"by": "block"}, {"by": "rolling", "every": 10, "refit": 20}):
        free, issued = (
            hindcast.recal.cross_validate(observed, method, q=[0.001], **by)
            for method in (xrecal.EMOS(bounds=None), xrecal.EMOS())
        )
        assert free.min() < 0 == issued.min()
    methods = {"auto": xrecal.EMOS(), "given": xrecal.EMOS(bounds=(0, None))}
    table = xrecal.compare(hindcast, observed, methods)
    assert table["crps"].sel(method="auto").equals(table["crps"].sel(method="given"))


def test_stored_models_keep_it(tmp_path):
    hindcast, observed = pair({"standard_name": "wind_speed"})
    model = hindcast.recal.fit(observed, xrecal.LinearPool((xrecal.EMOS(),)))
    model.save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    assert repr(opened) == repr(model)
    method = xrecal.LinearPool((xrecal.EMOS(bounds=(0, "auto")),))
    assert opened.variables["v"].method == model.variables["v"].method == method


@pytest.mark.parametrize("method", [xrecal.CKME(), xrecal.LinearPool()], ids=["CKME", "pool"])
def test_a_bound_that_no_observation_reaches_keeps_no_forecast_above_the_record(method):
    """A river falls below all of the record, and its forecasts are right to two hundredths."""
    rng = np.random.default_rng(7)
    flow = 60 + 10 * np.sin(np.arange(400) / 9) + rng.normal(size=400)
    coords = {"time": pd.date_range("2001-01-01", periods=400)}
    members = flow[:, np.newaxis] + 0.02 * rng.normal(size=(400, 10))
    forecast = xr.DataArray(members, coords, ("time", "member"), "q", {"units": "m3 s-1"})
    observed = xr.DataArray(flow, coords, "time", "q", {"units": "m3 s-1"})
    model = forecast.recal.fit(observed, method, progress=False)
    low = forecast[:1].assign_coords(time=[np.datetime64("2003-01-01")])
    low = low - low.mean("member") + 35.0
    median = model.quantile(low.assign_attrs(units="m3 s-1"), 0.5)
    assert median.item() == pytest.approx(35.0, abs=0.1)
    assert (model.quantile(forecast, [0.001, 0.5]) >= 0).all()


def test_a_line_is_as_without_a_bound_that_no_observation_reaches():
    rng = np.random.default_rng(3)
    flow = rng.gamma(0.5, size=300)
    coords = {"time": pd.date_range("2001-01-01", periods=300)}
    members = flow[:, np.newaxis] * np.exp(0.3 * rng.normal(size=(300, 8)))
    forecast = xr.DataArray(members, coords, ("time", "member"), "q")
    observed = xr.DataArray(flow, coords, "time", "q")
    given, free = (
        forecast.recal.fit(
            observed, xrecal.CKME(support="regression", bounds=bounds), progress=False
        ).state["centre"]
        for bounds in ((0, None), None)
    )
    np.testing.assert_allclose(given, free)
