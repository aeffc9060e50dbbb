"""Places are paired by what names them, in any order; a position counts only without names.

The law of ``tests/labels`` has the usual ways to name places; here are others, and what is refused.
"""

import warnings

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
TIME = xr.date_range("2021-01-01", periods=N, freq="8D", use_cftime=False)
RNG = np.random.default_rng(0)
TRUTH = xr.DataArray(LEVEL + RNG.normal(size=(N, 4)), {"time": TIME}, ("time", "station"), "t2m")
HINDCAST = TRUTH + xr.DataArray(RNG.normal(size=(N, 4, 6)), dims=("time", "station", "member"))
HINDCAST.name = "t2m"
CRPS = HINDCAST.recal.crps(TRUTH)
COUNTED = {"station": np.arange(4)}
BY_POSITION = "paired by position along 'station'"


def names(obj):
    return obj.assign_coords(station_name=("station", NAMES, {"cf_role": "timeseries_id"}))


def labelled(obj):
    return obj.assign_coords(station=NAMES)


def located(obj, at=slice(None)):
    return obj.assign_coords(lat=("station", LAT[at]), lon=("station", LON[at]))


BESIDE = {
    "station_id": [7, 9, 3, 12],
    "site": NAMES.astype("S8"),
    "wmo": [10384, 10381, 10400, 10379],
    "elevation": [55.0, 12.5, 130.0, 4.0],
    "Latitude": [52.5, 52.4, 52.6, 52.7],
    "easting": [4.1e5, 3.9e5, 4.0e5, 4.3e5],
    "row": [0, 1, 2, 3],
    "y": ("station", LAT, {"units": "degrees_north"}),
}


@pytest.mark.parametrize("name", BESIDE)
def test_names_and_numbers_beside_places_bring_them_into_one_order(name):
    label = BESIDE[name] if isinstance(BESIDE[name], tuple) else ("station", BESIDE[name])
    forecasts, observed = (a.assign_coords({name: label}) for a in (HINDCAST, TRUTH))
    turned = observed.isel(station=OTHER)
    np.testing.assert_array_equal(forecasts.recal.crps(turned), CRPS)
    model = forecasts.recal.fit(turned, xrecal.EMOS())
    assert "by position" not in repr(model)
    expected = HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).quantile(HINDCAST, 0.5)
    found = model.quantile(forecasts.isel(station=OTHER), 0.5)
    np.testing.assert_array_equal(found, expected.isel(station=OTHER))
    found = forecasts.recal.exceedance(turned.mean("time"))
    np.testing.assert_array_equal(found, HINDCAST.recal.exceedance(TRUTH.mean("time")))


def test_numbers_that_differ_or_contradict_each_other_identify_nothing():
    """Heights of a model and of its stations are no names."""
    high, higher = (("station", [55.0 + add, 12.5, 130.0, 4.0]) for add in (0, 3))
    down, up = (("station", heights) for heights in ([4.0, 3, 2, 1], [1.0, 2, 3, 4]))
    wmo = ("station", BESIDE["wmo"])
    for mine, theirs in (
        ({"elevation": high}, {"elevation": higher}),
        ({"wmo": wmo, "height": down}, {"wmo": wmo, "height": up}),
    ):
        forecasts, observed = HINDCAST.assign_coords(mine), TRUTH.assign_coords(theirs)
        assert BY_POSITION in repr(forecasts.recal.fit(observed, xrecal.Climatology()))


@pytest.mark.parametrize("flip", [{"y": slice(None, None, -1)}, {"x": [1, 0, 2]}])
def test_latitudes_and_longitudes_of_a_grid_that_belong_to_others_are_refused(flip):
    lat = 50 + np.add.outer([0.0, 2.0], [0.0, 0.1, 0.3])
    lon = 10 + np.add.outer([0.0, 0.2], [0.0, 2.0, 5.0])
    where = {"lat": (("y", "x"), lat), "lon": (("y", "x"), lon)}
    truth = xr.DataArray(RNG.normal(size=(9, 2, 3)), where, ("time", "y", "x"), "t")
    forecasts = truth.expand_dims(member=4)
    np.testing.assert_array_equal(forecasts.recal.crps(truth.isel(flip)), 0 * truth)
    turned = truth.isel(flip).assign_coords(lon=truth.lon.variable)
    with pytest.raises(
        ValueError, match="are not the same: they are identified in forecast by lat"
    ):
        forecasts.recal.crps(turned)


def test_other_places_are_refused():
    others = TRUTH.assign_coords(station_name=("station", ["Oslo", "Bergen", "Tromso", "Rome"]))
    numbered, swapped = (
        names(a).assign_coords(station=[11, 12, 13, 14]) for a in (HINDCAST, TRUTH)
    )
    swapped = swapped.assign_coords(station_name=("station", NAMES[OTHER]))
    for forecasts, observed, message in (
        (names(HINDCAST), others, r"not the same.*Bodo.*drop_vars\(\['station_name'\]\)"),
        (names(HINDCAST), located(TRUTH), "give both the same coordinate along 'station'"),
        (names(HINDCAST)[:, 3], others, "forecast is at station_name Bodo, which observations"),
        (numbered, swapped, "in one order by station, in another by station_name"),
    ):
        with pytest.raises(ValueError, match=message):
            forecasts.recal.crps(observed)


def test_numbers_that_agree_do_not_hide_other_places():
    forecasts, observed = (located(a).assign_coords(COUNTED) for a in (HINDCAST, TRUTH))
    for other, message in (
        (
            observed.assign_coords(lat=("station", LAT[OTHER] + 0.3)),
            "are equal numbers, but the places differ: they are",
        ),
        (
            names(TRUTH).assign_coords(COUNTED),
            r"give both the same names.*drop_vars\(\['station_name'\]\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            forecasts.recal.crps(other)
    permuted = observed.isel(station=OTHER)
    numbered = permuted.assign_coords(station=[3, 1, 0, 2])
    near = observed.assign_coords(lat=("station", LAT + 0.02))
    for other in (near, permuted, numbered):
        np.testing.assert_array_equal(forecasts.recal.crps(other), CRPS)
    forecasts, numbered = (a.assign_coords(station=a.station + 10) for a in (forecasts, numbered))
    with pytest.raises(ValueError, match="in one order by station, in another by lat and lon"):
        forecasts.recal.crps(numbered)


def test_results_say_that_places_were_paired_by_position():
    model = HINDCAST.recal.fit(names(TRUTH), xrecal.EMOS())
    named = names(HINDCAST).recal.fit(names(TRUTH), xrecal.EMOS())
    assert BY_POSITION in repr(model)
    assert "position" not in repr(named)
    bare = CRPS.drop_attrs()
    unseen = {"method": xrecal.Climatology(), "by": "block"}
    for result in (
        CRPS,
        HINDCAST.recal.pit(TRUTH),
        HINDCAST.recal.rank_histogram(TRUTH),
        model.quantile(HINDCAST, 0.5),
        named.apply(HINDCAST),
        xrecal.skill(bare, 2 * names(bare)),
        names(HINDCAST).recal.cross_validate(TRUTH, **unseen, output="crps"),
        names(HINDCAST).to_dataset().recal.cross_validate(TRUTH, **unseen),
    ):
        assert BY_POSITION in result.attrs["history"]
    for result in (
        named.quantile(names(HINDCAST), 0.5),
        xrecal.skill(names(bare), 2 * names(bare)),
        names(HINDCAST).recal.cross_validate(names(TRUTH), **unseen, output="crps"),
    ):
        assert "position" not in result.attrs["history"]


def test_identities_of_a_dimension():
    obj = names(HINDCAST).assign_coords(COUNTED)
    assert [one.name for one in identities(obj, "station")] == ["station_name", "station"]
    assert identities(HINDCAST, "station") == []
    twice = obj.isel(station=[0, 0, 1, 2]).drop_vars("station")
    assert find_places(obj, twice, "station", names=("a", "b")) is None


def test_a_dimension_of_another_name_with_the_same_places_is_refused():
    threshold = xr.DataArray(LEVEL, {"site": NAMES}, ("site",))
    with pytest.raises(ValueError, match=r"threshold.rename\({'site': 'station'}\)"):
        labelled(HINDCAST).recal.exceedance(threshold)
    height = (TRUTH * 0).rename(station="site").assign_coords(site=NAMES)
    method = xrecal.EMOS(condition_on=("height",))
    with pytest.raises(ValueError, match=r"rename\({'site': 'station'}\)"):
        labelled(HINDCAST).recal.fit(labelled(TRUTH), method, covariates={"height": height})


def test_thresholds_of_more_places_and_of_no_known_place():
    two = labelled(HINDCAST).isel(station=[3, 1])
    expected = HINDCAST.recal.exceedance(xr.DataArray(LEVEL, dims="station")).isel(station=[3, 1])
    threshold = xr.DataArray(LEVEL, {"station": NAMES}, ("station",))
    np.testing.assert_array_equal(two.recal.exceedance(threshold), expected)
    for unknown in (xr.DataArray(LEVEL, dims="station"), located(TRUTH[0], OTHER)):
        with pytest.raises(ValueError, match=r"threshold.isel\(station=...\), or add the labels"):
            labelled(HINDCAST).isel(station=2).recal.exceedance(unknown)


def test_weights_and_scales_come_to_the_places_of_the_values():
    values, weights, scale = names(HINDCAST), names(abs(HINDCAST) + 1), names(abs(TRUTH) + 1)
    for make, part in (
        (lambda part: xrecal.weighted(values, part).recal.mean(), weights),
        (lambda part: xrecal.gaussian(names(TRUTH), part).recal.quantile(0.9), scale),
    ):
        found = make(part.isel(station=OTHER))
        np.testing.assert_array_equal(found["t2m"], make(part)["t2m"])


def test_results_have_the_labels_of_the_forecast_where_the_model_has_others():
    model = labelled(located(HINDCAST)).recal.fit(labelled(located(TRUTH)), xrecal.EMOS())
    issued = model.apply(located(HINDCAST).assign_coords(COUNTED))
    assert issued.notnull().all().to_array().all()
    np.testing.assert_array_equal(issued["station"], np.arange(4))


# one place or lead beside another -----------------------------------------------------------------


BESIDE_ANOTHER = {
    "threshold": lambda one, other: one.recal.exceedance(other.mean("time")),
    "covariate": lambda one, other: one.recal.fit(
        labelled(TRUTH), xrecal.CKME(condition_on="z"), covariates={"z": other}
    ),
    "reference": lambda one, other: xrecal.skill(one.mean("member"), abs(other)),
}


@pytest.mark.parametrize("name", BESIDE_ANOTHER)
def test_one_station_beside_another_is_warned_of(name):
    call, one = BESIDE_ANOTHER[name], labelled(HINDCAST)[:, 0]
    with pytest.warns(UserWarning, match=f"at station Oslo, but .*{name}.* at Bergen: do they"):
        call(one, labelled(TRUTH)[:, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(one, labelled(TRUTH)[:, 0])
        call(one, TRUTH[:, 0])


def test_leads_in_another_unit_and_labels_of_other_things_are_no_warning():
    scores = CRPS.assign_coords(lead=((), 2, {"units": "days"}), model="new")
    same = scores.assign_coords(lead=((), 48, {"units": "hours"}), model="old")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xrecal.skill(scores, same)
    with pytest.warns(UserWarning, match="scores is at lead 2, but reference at 24"):
        xrecal.skill(scores, same.assign_coords(lead=((), 24, {"units": "hours"})))
