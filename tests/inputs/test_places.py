"""Places are paired by their names, in any order, and a position counts only without names."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.inputs.identities import identities
from xrecal.inputs.places import find_places

N = 40
NAMES = np.array(["Oslo", "Bergen", "Tromso", "Bodo"])
LAT = np.array([59.9, 60.4, 69.6, 67.3])
LON = np.array([10.7, 5.3, 18.9, 14.4])
OTHER = [2, 0, 3, 1]
LEVEL = np.array([0.0, 10.0, -10.0, 4.0])
TIME = xr.date_range("2021-01-01", periods=N, use_cftime=False)
RNG = np.random.default_rng(0)
TRUTH = xr.DataArray(LEVEL + RNG.normal(size=(N, 4)), {"time": TIME}, ("time", "station"), "t2m")
HINDCAST = TRUTH + xr.DataArray(RNG.normal(size=(N, 4, 6)), dims=("time", "station", "member"))
HINDCAST.name = "t2m"


def names(obj):
    return obj.assign_coords(station_name=("station", NAMES, {"cf_role": "timeseries_id"}))


WRITINGS = {
    "index": lambda a: a.assign_coords(station=NAMES),
    "cf_role": names,
    "bytes": lambda a: a.assign_coords(site=("station", NAMES.astype("S8"))),
    "numbers beside": lambda a: a.assign_coords(station_id=("station", [7, 9, 3, 12])),
    "names beside a count": lambda a: names(a),
    "latitude and longitude": lambda a: a.assign_coords(lat=("station", LAT), lon=("station", LON)),
    "single precision": lambda a: a.assign_coords(
        lat=("station", LAT.astype("f4")), lon=("station", LON.astype("f4"))
    ),
    "latitude alone": lambda a: a.assign_coords(y=("station", LAT, {"units": "degrees_north"})),
}


def written(way, obj, order=None):
    """An object as one of the ways writes it, its places in another order."""
    obj = WRITINGS[way](obj)
    obj = obj if order is None else obj.isel(station=order)
    count = way == "names beside a count"
    return obj.assign_coords(station=np.arange(obj.sizes["station"])) if count else obj


@pytest.mark.parametrize("way", WRITINGS)
def test_observations_come_to_the_order_of_the_forecasts(way):
    forecasts, observed = written(way, HINDCAST), written(way, TRUTH, OTHER)
    expected = HINDCAST.recal.crps(TRUTH)
    np.testing.assert_array_equal(forecasts.recal.crps(observed), expected)
    np.testing.assert_array_equal(forecasts.chunk(time=7).recal.crps(observed.chunk()), expected)
    np.testing.assert_array_equal(forecasts.recal.pit(observed), HINDCAST.recal.pit(TRUTH))
    mean = HINDCAST.recal.summary(TRUTH)["crps"]
    np.testing.assert_allclose(forecasts.recal.summary(observed)["crps"], mean, rtol=1e-12)


@pytest.mark.parametrize("way", WRITINGS)
def test_models_keep_the_places_and_find_them(way, tmp_path):
    past, new = slice(None, 30), slice(30, None)
    plain = HINDCAST[past].recal.fit(TRUTH, xrecal.EMOS())
    expected = plain.quantile(HINDCAST[new], 0.9)
    model = written(way, HINDCAST)[past].recal.fit(written(way, TRUTH, OTHER), xrecal.EMOS())
    forecast = written(way, HINDCAST, OTHER)[new]
    if way != "bytes":
        model.save(tmp_path / "model.nc")
    stored = model if way == "bytes" else xrecal.open_recalibrator(tmp_path / "model.nc")
    for one in (model, stored):
        np.testing.assert_array_equal(one.quantile(forecast, 0.9), expected.isel(station=OTHER))
        np.testing.assert_array_equal(
            one.quantile(forecast.isel(station=[3, 1]), 0.9), expected.isel(station=[1, 0])
        )
    scores = model.crps(forecast, written(way, TRUTH))
    np.testing.assert_array_equal(scores, plain.crps(HINDCAST[new], TRUTH).isel(station=OTHER))
    more = [
        m.update(h[new], TRUTH if h is HINDCAST else written(way, TRUTH))
        for m, h in ((plain, HINDCAST), (model, written(way, HINDCAST, OTHER)))
    ]
    np.testing.assert_array_equal(more[1].state["slope"], more[0].state["slope"])


@pytest.mark.parametrize("way", ["index", "cf_role", "bytes", "latitude and longitude"])
def test_a_selected_place_takes_its_fit_observation_and_threshold(way):
    forecasts, observed = written(way, HINDCAST), written(way, TRUTH, OTHER)
    threshold = written(way, xr.DataArray(LEVEL + 1, dims="station"), OTHER)
    model = forecasts.recal.fit(observed, xrecal.EMOS())
    one = forecasts.isel(station=2)
    expected = model.quantile(forecasts, 0.9).isel(station=2)
    np.testing.assert_array_equal(model.quantile(one, 0.9), expected)
    assert model.quantile(one, 0.9).dims == ("time",)
    np.testing.assert_array_equal(
        one.recal.crps(observed), forecasts.recal.crps(observed).isel(station=2)
    )
    np.testing.assert_array_equal(
        model.crps(one, observed), model.crps(forecasts, observed).isel(station=2)
    )
    above = (HINDCAST.isel(station=2) > LEVEL[2] + 1).mean("member")
    np.testing.assert_array_equal(one.recal.exceedance(threshold), above)
    np.testing.assert_array_equal(
        model.exceedance(one, threshold), model.exceedance(forecasts, threshold).isel(station=2)
    )


@pytest.mark.parametrize("way", WRITINGS)
def test_covariates_and_thresholds_come_to_the_places_of_the_forecasts(way):
    height = xr.DataArray(RNG.normal(size=(N, 4)), {"time": TIME}, ("time", "station"))
    method = xrecal.EMOS(condition_on=("height",))
    plain = HINDCAST.recal.fit(TRUTH, method, covariates={"height": height})
    forecasts, observed = written(way, HINDCAST), written(way, TRUTH)
    given = {"height": written(way, height, OTHER)}
    model = forecasts.recal.fit(observed, method, covariates=given)
    np.testing.assert_array_equal(model.state["slope"], plain.state["slope"])
    found = model.quantile(forecasts, 0.5, covariates=given)
    np.testing.assert_array_equal(
        found, plain.quantile(HINDCAST, 0.5, covariates={"height": height})
    )
    threshold = xr.DataArray(LEVEL, dims="station")
    np.testing.assert_array_equal(
        forecasts.recal.exceedance(written(way, threshold, OTHER)),
        HINDCAST.recal.exceedance(threshold),
    )


@pytest.mark.parametrize("flip", [{"y": slice(None, None, -1)}, {"x": [1, 0, 2]}])
def test_rows_and_columns_of_a_curvilinear_grid(flip):
    lat = 50 + np.add.outer([0.0, 2.0], [0.0, 0.1, 0.3])
    lon = 10 + np.add.outer([0.0, 0.2], [0.0, 2.0, 5.0])
    where = {"lat": (("y", "x"), lat), "lon": (("y", "x"), lon)}
    truth = xr.DataArray(RNG.normal(size=(9, 2, 3)), where, ("time", "y", "x"), "t")
    forecasts = truth + xr.DataArray(
        RNG.normal(size=(9, 2, 3, 4)), dims=("time", "y", "x", "member")
    )
    expected = forecasts.recal.crps(truth)
    np.testing.assert_array_equal(forecasts.recal.crps(truth.isel(flip)), expected)
    turned = truth.isel(flip).assign_coords(lon=truth.lon.variable)
    with pytest.raises(ValueError, match="are not the same: they are known in forecast by lat and"):
        forecasts.recal.crps(turned)


def test_names_and_labels_that_contradict_each_other():
    forecasts = names(HINDCAST).assign_coords(station=[11, 12, 13, 14])
    observed = names(TRUTH).assign_coords(station=[11, 12, 13, 14])
    swapped = observed.assign_coords(station_name=("station", NAMES[OTHER]))
    with pytest.raises(ValueError, match="in one order by station, in another by station_name"):
        forecasts.recal.crps(swapped)


def test_other_places_are_refused():
    forecasts = names(HINDCAST)
    others = TRUTH.assign_coords(station_name=("station", ["Oslo", "Bergen", "Tromso", "Rome"]))
    with pytest.raises(ValueError, match=r"not the same.*Bodo.*drop_vars\(\['station_name'\]\)"):
        forecasts.recal.crps(others)
    with pytest.raises(ValueError, match="give both the same coordinate along 'station'"):
        forecasts.recal.crps(TRUTH.assign_coords(lat=("station", LAT), lon=("station", LON)))
    with pytest.raises(ValueError, match="forecast is at station_name Bodo, which observations"):
        forecasts.isel(station=3).recal.crps(others)


def test_results_say_that_places_were_paired_by_position():
    remark = "paired by position along 'station'"
    model = HINDCAST.recal.fit(names(TRUTH), xrecal.EMOS())
    assert remark in repr(model)
    assert remark in HINDCAST.recal.crps(TRUTH).history
    assert remark in HINDCAST.recal.pit(TRUTH).history
    assert remark in HINDCAST.recal.rank_histogram(TRUTH).history
    assert remark in model.quantile(HINDCAST, 0.5).history
    named = names(HINDCAST).recal.fit(names(TRUTH), xrecal.EMOS())
    assert "position" not in repr(named)
    assert remark in named.apply(HINDCAST).history
    assert "position" not in named.quantile(names(HINDCAST), 0.5).history


def test_identities_of_a_dimension():
    obj = written("names beside a count", HINDCAST)
    assert [one.name for one in identities(obj, "station")] == ["station_name", "station"]
    assert identities(HINDCAST, "station") == []
    twice = obj.isel(station=[0, 0, 1, 2])
    at = find_places(obj, twice.drop_vars("station"), "station", names=("a", "b"))
    assert at is None


def test_a_dimension_of_another_name_with_the_same_places_is_refused():
    forecasts = HINDCAST.assign_coords(station=NAMES)
    threshold = xr.DataArray(LEVEL, {"site": NAMES}, ("site",))
    with pytest.raises(ValueError, match=r"threshold.rename\({'site': 'station'}\)"):
        forecasts.recal.exceedance(threshold)
    with pytest.raises(ValueError, match=r"rename\({'site': 'station'}\)"):
        forecasts.recal.fit(
            TRUTH.assign_coords(station=NAMES),
            xrecal.EMOS(condition_on=("height",)),
            covariates={"height": (TRUTH * 0).rename(station="site").assign_coords(site=NAMES)},
        )


def test_names_as_bytes_are_text():
    forecasts = HINDCAST.assign_coords(station=NAMES)
    observed = TRUTH.assign_coords(station=NAMES.astype("S8")).isel(station=OTHER)
    np.testing.assert_array_equal(forecasts.recal.crps(observed), HINDCAST.recal.crps(TRUTH))


def test_more_places_of_thresholds_are_left_out():
    threshold = xr.DataArray(LEVEL, {"station": NAMES}, ("station",))
    two = HINDCAST.assign_coords(station=NAMES).isel(station=[3, 1])
    expected = HINDCAST.recal.exceedance(xr.DataArray(LEVEL, dims="station")).isel(station=[3, 1])
    np.testing.assert_array_equal(two.recal.exceedance(threshold), expected)


def test_weights_and_scales_come_to_the_places_of_the_values():
    values = names(HINDCAST)
    weights = names(abs(HINDCAST) + 1)
    swapped = xrecal.weighted(values, weights.isel(station=OTHER)).recal.mean()["t2m"]
    np.testing.assert_array_equal(swapped, xrecal.weighted(values, weights).recal.mean()["t2m"])
    scale = names(abs(TRUTH) + 1)
    swapped = xrecal.gaussian(names(TRUTH), scale.isel(station=OTHER)).recal.quantile(0.9)
    expected = xrecal.gaussian(names(TRUTH), scale).recal.quantile(0.9)
    np.testing.assert_array_equal(swapped["t2m"], expected["t2m"])


COUNTED = {"station": np.arange(4)}


def located(obj, at=slice(None)):
    return obj.assign_coords(lat=("station", LAT[at]), lon=("station", LON[at]))


def test_numbers_that_agree_do_not_hide_other_places():
    forecasts = located(HINDCAST).assign_coords(COUNTED)
    elsewhere = (
        located(TRUTH).assign_coords(COUNTED).assign_coords(lat=("station", LAT[OTHER] + 0.3))
    )
    with pytest.raises(ValueError, match="numbers that agree, but the places are others"):
        forecasts.recal.crps(elsewhere)
    with pytest.raises(
        ValueError, match=r"give both the same names.*drop_vars\(\['station_name'\]\)"
    ):
        forecasts.recal.crps(names(TRUTH).assign_coords(COUNTED))
    beside = located(TRUTH).assign_coords(COUNTED).assign_coords(lat=("station", LAT + 0.02))
    np.testing.assert_array_equal(forecasts.recal.crps(beside), HINDCAST.recal.crps(TRUTH))
    permuted = located(TRUTH).assign_coords(COUNTED).isel(station=OTHER)
    np.testing.assert_array_equal(forecasts.recal.crps(permuted), HINDCAST.recal.crps(TRUTH))
    numbered = permuted.assign_coords(station=[3, 1, 0, 2])
    np.testing.assert_array_equal(forecasts.recal.crps(numbered), HINDCAST.recal.crps(TRUTH))
    forecasts, numbered = (a.assign_coords(station=a.station + 10) for a in (forecasts, numbered))
    with pytest.raises(ValueError, match="in one order by station, in another by lat and lon"):
        forecasts.recal.crps(numbered)


def test_results_have_the_labels_of_the_forecast_where_the_model_has_others():
    model = (
        located(HINDCAST)
        .assign_coords(station=NAMES)
        .recal.fit(located(TRUTH).assign_coords(station=NAMES), xrecal.EMOS())
    )
    issued = model.apply(located(HINDCAST).assign_coords(COUNTED))
    assert issued.sizes["station"] == 4
    assert issued.notnull().all().to_array().all()
    np.testing.assert_array_equal(issued["station"], np.arange(4))


def test_thresholds_of_no_known_place_are_refused():
    one = HINDCAST.assign_coords(station=NAMES).isel(station=2)
    for threshold in (xr.DataArray(LEVEL, dims="station"), located(TRUTH[0], OTHER)):
        with pytest.raises(ValueError, match=r"threshold.isel\(station=...\), or add the labels"):
            one.recal.exceedance(threshold)
