import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from tests.labelled import random
from xrecal.inputs.forms import read_forms
from xrecal.inputs.place_order import order_of_places

LAT, LON = np.linspace(40.0, 44.5, 10), np.linspace(-3.0, 4.7, 12)
TIMES = np.arange("2000-01-01", "2000-02-01", dtype="datetime64[D]")


def grid(**coords):
    sizes = {"time": 3, "member": 2, "lat": 10, "lon": 12}
    coords = {"lat": LAT, "lon": LON} | coords
    return random("time", "member", "lat", "lon", sizes=sizes, **coords)


def order(array, *dims):
    (form,) = read_forms(array, None, name="forecast").values()
    return order_of_places(form, dims)


def first(array, *dims):
    """Labels of places in the order in which a sample has them, whatever the dimensions' names."""
    sizes = [array.sizes[d] for d in dims]
    at = np.unravel_index(order(array, *dims), sizes)
    labels = [array[d].to_numpy()[i] for d, i in zip(dims, at, strict=True)]
    return {frozenset(map(str, place)): n for n, place in enumerate(zip(*labels, strict=True))}


def test_every_place_comes_once():
    assert sorted(order(grid(), "lat", "lon")) == list(range(120))


def test_a_sample_is_spread_over_the_places():
    rows = order(grid(), "lat", "lon")[:40] // 12
    assert np.bincount(rows, minlength=10).max() <= 10


@given(st.permutations(range(10)), st.permutations(range(12)))
def test_the_order_of_places_changes_nothing(rows, columns):
    moved = grid().isel(lat=rows, lon=columns)
    assert first(moved, "lat", "lon") == first(grid(), "lat", "lon")


def test_neither_dimensions_nor_their_names_change_anything():
    expected = first(grid(), "lat", "lon")
    assert first(grid(), "lon", "lat") == expected
    renamed = grid().rename(lat="latitude", lon="longitude")
    assert first(renamed, "latitude", "longitude") == expected


def test_single_precision_changes_nothing():
    single = grid(lat=LAT.astype(np.float32), lon=LON.astype(np.float32))
    np.testing.assert_array_equal(order(single, "lat", "lon"), order(grid(), "lat", "lon"))


def test_longitudes_are_those_of_a_circle():
    turned = grid(lon=LON % 360.0)
    np.testing.assert_array_equal(order(turned, "lat", "lon"), order(grid(), "lat", "lon"))


def test_whole_numbers_are_the_numbers_that_they_are():
    whole = grid(lat=np.arange(10), lon=np.arange(12))
    real = grid(lat=np.arange(10.0), lon=np.arange(12.0))
    np.testing.assert_array_equal(order(whole, "lat", "lon"), order(real, "lat", "lon"))


@pytest.mark.parametrize(
    "labels",
    [["Ähtäri", "Oslo", "Łódź", "Bern"], TIMES[:4], TIMES[:4] - TIMES[0], np.arange(4.0)],
    ids=["text", "dates", "lengths", "numbers"],
)
def test_labels_of_all_kinds_decide(labels):
    sizes = {"time": 3, "member": 2, "place": 4}
    array = random("time", "member", "place", sizes=sizes, place=labels)
    moved = array.isel(place=[2, 0, 3, 1])
    assert first(moved, "place") == first(array, "place")


def test_stations_without_labels_go_by_where_they_lie():
    sizes = {"time": 3, "member": 2, "station": 10}
    lies = {"latitude": ("station", LAT), "longitude": ("station", LON[:10])}
    array = random("time", "member", "station", sizes=sizes).assign_coords(lies)
    moved = array.isel(station=slice(None, None, -1))
    np.testing.assert_array_equal(order(moved, "station"), 9 - order(array, "station"))


def test_a_part_of_the_places_comes_in_the_same_order():
    whole = order(grid(), "lat", "lon")
    part = order(grid().isel(lat=slice(3, 7)), "lat", "lon")
    np.testing.assert_array_equal(part, whole[(whole >= 36) & (whole < 84)] - 36)


def test_places_without_anything_go_by_position():
    array = xr.DataArray(np.zeros((3, 5, 2)), dims=("time", "place", "member"))
    assert sorted(order(array, "place")) == list(range(5))
