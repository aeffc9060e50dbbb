"""A hindcast whose forecasts are all the same: climatology, and all else is novel."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.arrays.distributions.tails import WIDTH
from xrecal.arrays.status import IDENTICAL

pytestmark = pytest.mark.filterwarnings("ignore:.* are unlike all that the model has learned from")

N = 60
DATES = np.datetime64("2020-01-01", "ns") + np.arange(N) * np.timedelta64(10, "D")
RAIN = xr.DataArray(
    np.random.default_rng(0).gamma(1.0, 3.0, N), {"time": DATES}, ("time",), name="rain"
)
LEVELS = [0.1, 0.5, 0.9]


def forecasts(*members):
    dates = {"time": DATES[-1] + (1 + np.arange(len(members))) * np.timedelta64(10, "D")}
    return xr.DataArray(np.array(members, float), dates, ("time", "member"), name="rain")


def always(value):
    return xr.DataArray(np.full((N, 4), value), {"time": DATES}, ("time", "member"), name="rain")


METHODS = [
    xrecal.CKME(),
    xrecal.CKME(support="observations"),
    xrecal.CKME(support="ratio"),
    xrecal.CKME(support="standardised", compare="shapes"),
    xrecal.CKME(kernel="laplace", solver="exact"),
    xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS(), xrecal.Raw())),
    xrecal.LinearPool((xrecal.CKME(support="observations"), xrecal.Raw())),
]


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("value", [0.0, 2.0])
def test_climatology_is_issued_and_other_forecasts_are_novel(method, value):
    model = always(value).recal.fit(RAIN, method)
    assert int(model.state["status"]) & IDENTICAL
    new = forecasts([value] * 4, [value, value, value, value + 0.1], [40.0, 41.0, 42.0, 43.0])
    found = model.quantile(new, LEVELS)
    climatology = always(value).recal.fit(RAIN, xrecal.Climatology())
    expected = climatology.quantile(new, LEVELS).values
    if method.between == "mean":  # over half a percent of levels, each on a step of the cases
        half = WIDTH / 2
        below, above = (
            climatology.quantile(new, [q + d for q in LEVELS]).values for d in (-half, half)
        )
        expected = (below + above) / 2
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    novelty = model.novelty(new)
    np.testing.assert_allclose(novelty, [0.0, 1.0, 1.0], atol=1e-9)


def test_a_dry_hindcast_promises_no_rain():
    model = always(0.0).recal.fit(RAIN * 0, xrecal.LinearPool())
    wet = forecasts([0.0, 1.0, 5.0, 3.0])
    np.testing.assert_array_equal(model.exceedance(wet, 0.0), [0.0])
    np.testing.assert_array_equal(model.novelty(wet), [1.0])


def test_equal_shapes_with_other_means_are_not_identical():
    deterministic = (RAIN + 1).expand_dims(member=1, axis=-1)
    model = deterministic.recal.fit(RAIN, xrecal.CKME(support="errors", compare="shapes"))
    assert not int(model.state["status"]) & IDENTICAL
    near = model.quantile(deterministic[:1] * 0 + 5.0, [0.5])
    np.testing.assert_allclose(near, [[4.0]])
