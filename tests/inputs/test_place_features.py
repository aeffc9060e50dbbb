"""Coordinates that tell where a place lies."""

import numpy as np
import pytest
import xarray as xr

from xrecal.inputs.forms import read_forms
from xrecal.inputs.place_features import around, feature_coordinates, middle_longitude

STATION = ("station", [1.0, 2.0])


def features(coords, dims=("station",)):
    values = np.zeros((3, 2, 4))
    array = xr.DataArray(values, coords, ("time", "station", "member"), "t2m")
    (form,) = read_forms(array).values()
    return feature_coordinates(form, dims)


@pytest.mark.parametrize(
    ("name", "attrs", "expected"),
    [
        ("lat", {}, "latitude"),
        ("y", {"units": "degrees_north"}, "latitude"),
        ("x", {"standard_name": "longitude"}, "longitude"),
        ("Elevation", {}, "height"),
        ("z", {"standard_name": "surface_altitude"}, "height"),
        ("wmo_number", {}, None),
    ],
)
def test_known_by_standard_name_units_or_name(name, attrs, expected):
    found = features({name: (*STATION, attrs)})
    assert list(found) == ([] if expected is None else [expected])
    if expected:
        np.testing.assert_array_equal(found[expected], [1.0, 2.0])


def test_only_numbers_over_the_places_count():
    coords = {"lat": ("time", [1.0, 2.0, 3.0]), "height": 2.0, "lon": ("station", ["a", "b"])}
    assert list(features(coords)) == ["height"]  # a scalar one, of a single place


def test_leads_are_days():
    leads = ("station", np.array([24, 36], "timedelta64[h]").astype("timedelta64[ns]"))
    found = features({"step": leads})
    np.testing.assert_array_equal(found["lead"], [1.0, 1.5])


def test_longitudes_around_their_middle():
    degrees = np.array([350.0, 10.0, 359.0, 1.0])
    middle = middle_longitude(degrees)
    assert middle == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(around(degrees, middle), [-10, 10, -1, 1])
    np.testing.assert_allclose(around(degrees - 360.0, middle), [-10, 10, -1, 1])
    assert middle_longitude(np.array([179.0, -179.0])) == pytest.approx(180.0)
