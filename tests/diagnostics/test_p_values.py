import numpy as np
import pytest
import scipy.stats
import xarray as xr

from tests.labelled import freeze
from tests.marks import forbid_compute
from xrecal.diagnostics import adjusted_p_values
from xrecal.diagnostics.p_values import rejections, shown_p

VALUES = np.random.default_rng(0).uniform(size=(6, 5)) ** 3
VALUES[2, 1:4] = np.nan
MAP = xr.DataArray(
    VALUES,
    dims=["lat", "lon"],
    coords={"lat": range(6), "height": (("lat", "lon"), np.ones((6, 5)))},
    name="p_value",
    attrs={"long_name": "p-value of calibration", "units": "1"},
)


@pytest.mark.parametrize("method", ["bh", "by"])
def test_as_scipy_on_those_that_are_known(method):
    found = adjusted_p_values(freeze(MAP.copy(deep=True)), method=method)
    known = ~np.isnan(VALUES)
    expected = scipy.stats.false_discovery_control(VALUES[known], method=method)
    np.testing.assert_array_equal(found.to_numpy()[known], expected)
    np.testing.assert_array_equal(found.isnull(), ~known)
    assert (found >= MAP).where(known, True).all()


def test_names_and_coordinates_stay():
    found = adjusted_p_values(MAP)
    assert found.name == "p_value"
    assert found.attrs["units"] == "1"
    assert found.attrs["long_name"] == "p-value of calibration, adjusted by Benjamini-Hochberg"
    assert adjusted_p_values(MAP, method="by").attrs["long_name"].endswith("Benjamini-Yekutieli")
    xr.testing.assert_identical(found.coords.to_dataset(), MAP.coords.to_dataset())
    turned = adjusted_p_values(MAP.T)
    assert turned.dims == ("lon", "lat")
    xr.testing.assert_equal(turned.T, found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lazy_of_all_chunks_together(dtype):
    expected = adjusted_p_values(MAP.astype(dtype))
    with forbid_compute():
        lazy = adjusted_p_values(MAP.astype(dtype).chunk(lat=2, lon=3))
    assert lazy.chunks is not None
    assert lazy.dtype == lazy.compute().dtype == expected.dtype == dtype
    xr.testing.assert_identical(lazy.compute(), expected)


def test_one_test_and_none():
    single = xr.DataArray(0.03)
    assert adjusted_p_values(single).item() == 0.03
    assert adjusted_p_values(MAP.where(MAP > 2)).isnull().all()
    assert adjusted_p_values(MAP[:0]).shape == (0, 5)


def test_rejections_of_a_calibrated_map_are_rare():
    p = np.random.default_rng(1).uniform(size=(50, 400))
    rejected = [(adjusted_p_values(xr.DataArray(row)) < 0.05).any().item() for row in p]
    assert np.mean(rejected) < 0.15
    assert (p < 0.05).any(axis=1).all()


def test_what_is_no_p_value():
    with pytest.raises(ValueError, match="p_values must lie between 0 and 1, found 5"):
        adjusted_p_values(0 * MAP + 5)
    with pytest.raises(ValueError, match="method is 'fdr'; give 'bh', 'by' or 'holm'"):
        adjusted_p_values(MAP, method="fdr")
    with pytest.raises(TypeError, match="p_values must be a DataArray, got Dataset"):
        adjusted_p_values(MAP.to_dataset())


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "<0.001"), (0.000999, "<0.001"), (0.001, "0.001"), (0.04567, "0.046"), (1.0, "1")],
)
def test_p_values_with_two_digits(p, text):
    assert shown_p(p) == text


def test_rejections_are_counted_among_the_tests_that_there_are():
    assert rejections(np.array([0.001, np.nan, 0.04, 0.5])) == (1, 3)
    assert rejections(np.array([np.nan])) == (0, 0)
