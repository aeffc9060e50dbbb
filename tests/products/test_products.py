"""Laws of all products of issued forecasts: chunks, types, names, missing data."""

import numpy as np
import pytest
import xarray as xr

from tests.labelled import freeze
from tests.marks import forbid_compute
from tests.strategies import FORMS, LEVELS, close, ensemble_and_truth

ENSEMBLE, TRUTH = ensemble_and_truth(n=9)
ENSEMBLE, TRUTH = ENSEMBLE.round(), TRUTH.round()  # so that members lie on edges
CHUNKS = [{"lat": 1}, {"lon": 1, "time": 4}, {"time": (1, 6, 2)}]
EDGES = [279.0, 281.0, 284.0]
BY_PLACE = xr.DataArray(
    [[279.0, 281.0], [283.0, np.nan]], dims=["lon", "lat"], coords={"lat": ENSEMBLE.lat}
)
TERCILES = TRUTH.quantile([1 / 3, 2 / 3], "time").rename(quantile="tercile")
BY_DATE = xr.concat([TRUTH - 1, TRUTH + 1], "edge")
PRODUCTS = {
    "mean": lambda x, **given: x.mean(**given),
    "std": lambda x, **given: x.std(**given),
    "quantile": lambda x, **given: x.quantile(LEVELS + 0.01, **given),
    "median": lambda x, **given: x.quantile(0.5, **given),
    "one exceedance": lambda x, **given: x.exceedance(281.0, **given),
    "exceedance": lambda x, **given: x.exceedance(EDGES, **given),
    "exceedance by place": lambda x, **given: x.exceedance(BY_PLACE, **given),
    "cdf": lambda x, **given: x.cdf(EDGES, **given),
    "members": lambda x, **given: x.members(4, seed=3, **given),
    "categories": lambda x, **given: x.categories(EDGES, **given),
    "categories by place": lambda x, **given: x.categories(TERCILES, **given),
    "categories by date": lambda x, **given: x.categories(BY_DATE, **given),
}


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


@pytest.mark.each_value
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("form", FORMS)
def test_dask_is_equal_and_lazy(form, product):
    forecast, function = FORMS[form](ENSEMBLE), PRODUCTS[product]
    expected = array(function(forecast.recal))
    for chunks in CHUNKS:
        with forbid_compute():
            lazy = array(function(forecast.chunk(chunks).recal))
        assert lazy.chunks is not None
        assert lazy.dtype == expected.dtype
        if product in ("mean", "std", "quantile", "median"):
            close(lazy.compute(), expected)
        else:
            xr.testing.assert_identical(lazy.compute(), expected)


@pytest.mark.each_value
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("form", FORMS)
def test_float32_and_read_only(form, product):
    forecast = freeze(FORMS[form](ENSEMBLE.astype("float32")).astype("float32").copy(deep=True))
    before = forecast.copy(deep=True)
    found = array(PRODUCTS[product](forecast.recal))
    assert found.dtype == np.float32
    assert forecast.identical(before)
    for name in {"upper_edge", "t2m_upper_edge"} & set(found.coords):
        assert found[name].dtype == np.float32


@pytest.mark.parametrize("product", PRODUCTS)
def test_member_dimensions_are_named_and_missing_forecasts_missing(product):
    function = PRODUCTS[product]
    gap = ENSEMBLE.where(ENSEMBLE.time != ENSEMBLE.time[2])
    found = function(gap.rename(member="m").recal, member_dim="m")
    found = found.rename(m="member") if "m" in found.dims else found
    expected = function(ENSEMBLE.recal)
    assert found.isel(time=2).isnull().all()
    xr.testing.assert_identical(found, expected.where(found.time != found.time[2]))


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_order_of_dimensions_says_nothing(product):
    found = PRODUCTS[product](ENSEMBLE.transpose("lon", "member", "lat", "time").recal)
    expected = PRODUCTS[product](ENSEMBLE.recal)
    assert [d for d in found.dims if d in TRUTH.dims] == ["lon", "lat", "time"]
    xr.testing.assert_allclose(found.transpose(*expected.dims), expected, rtol=1e-12)
