import numpy as np
import pytest
import xarray as xr

from xrecal.plot.reading import corners, over_locations, require_one


def test_middle_and_range_of_places():
    values = np.random.default_rng(0).normal(size=(4, 5, 3))
    values[1, 2], values[:, :, 1] = np.nan, np.where(np.arange(5) < 4, np.nan, 1.0)
    array = xr.DataArray(values, dims=["lat", "lon", "level"])
    middle, low, high = over_locations(array, ("level",))
    flat = values.reshape(20, 3)
    for i in range(3):
        known = flat[~np.isnan(flat[:, i]), i]
        assert middle[i] == pytest.approx(np.median(known))
        assert low[i] == pytest.approx(np.quantile(known, 0.05))
        assert high[i] == pytest.approx(np.quantile(known, 0.95))
    turned = over_locations(array.transpose("level", "lon", "lat"), ("level",))
    np.testing.assert_array_equal(turned.middle, middle)


def test_one_place_has_no_range():
    found = over_locations(xr.DataArray([[1.0, np.nan]], dims=["lat", "level"]), ("level",))
    np.testing.assert_array_equal(found.middle, [1, np.nan])
    assert found.low is None
    assert found.high is None


def test_a_value_missing_everywhere_stays_missing():
    array = xr.DataArray([[np.nan, 1.0], [np.nan, 3.0]], dims=["place", "level"])
    middle, low, high = over_locations(array, ("level",))
    np.testing.assert_array_equal(middle, [np.nan, 2])
    assert np.isnan(low[0])
    assert np.isnan(high[0])


def test_several_places_are_told_how_to_select_one():
    array = xr.DataArray(np.zeros((2, 3, 1, 4)), dims=["lat", "lon", "lead", "level"])
    message = (
        r"fan shows one location and case, but there are 6 along 'lat' and 'lon'; select one: "
        r"\.isel\(lat=0, lon=0\) or \.sel\(\.\.\.\)"
    )
    with pytest.raises(ValueError, match=message):
        require_one(array, ("level",), figure="fan")
    with pytest.raises(ValueError, match=r"select one: \.isel\(lat=0, lon=0, lead=0\) or"):
        require_one(array.isel(lead=[0, 0]), ("level",), figure="fan")
    assert require_one(array[0, 0], ("level",), figure="fan").dims == ("level",)


def test_corners_make_the_same_line():
    x = np.arange(9.0)
    y = np.array([0, 0, 0, 1, 2, 2, 2, 2, 3.0])
    kept_x, kept_y = corners(x, y)
    np.testing.assert_array_equal(kept_x, [0, 2, 3, 4, 7, 8])
    fine = np.linspace(0, 8, 161)
    np.testing.assert_allclose(np.interp(fine, kept_x, kept_y), np.interp(fine, x, y))
    for n in (1, 2):
        np.testing.assert_array_equal(corners(x[:n], y[:n]), [x[:n], y[:n]])
