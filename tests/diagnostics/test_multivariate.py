import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import FORMS, ensemble_and_truth
from xrecal import arrays

ENSEMBLE, TRUTH = ensemble_and_truth(n=9, n_lat=3)
SCORES = {
    "energy_score": arrays.energy_score,
    "variogram_score": arrays.variogram_score,
}


def last(members):
    """Members (..., m, d) along the last axis."""
    return np.swapaxes(members, -1, -2)


def score(forecast, observations, which, *args, **kwargs):
    return getattr(forecast.recal, which)(observations, *args, **kwargs)


@pytest.mark.parametrize("which", SCORES)
@pytest.mark.parametrize("dims", [ENSEMBLE.dims, ("lon", "time", "member", "lat")])
def test_as_the_array_function_on_each_field(which, dims):
    forecast, observed = ENSEMBLE.transpose(*dims), TRUTH.transpose("lon", "lat", "time")
    found = score(forecast, observed, which)
    assert found.dims == ("time",)
    for k in range(9):
        y, x = TRUTH[k].to_numpy().ravel(), ENSEMBLE[k].to_numpy().reshape(5, -1)
        np.testing.assert_array_equal(found[k], SCORES[which](y, last(x)))
    rows = score(forecast, observed, which, "lat")
    assert set(rows.dims) == {"time", "lon"}
    y, x = (a.transpose("time", "lon", ..., "lat").to_numpy() for a in (TRUTH, ENSEMBLE))
    np.testing.assert_array_equal(rows.transpose("time", "lon"), SCORES[which](y, last(x)))


@pytest.mark.parametrize("which", SCORES)
def test_dask_is_bit_equal_and_lazy(which):
    expected = score(ENSEMBLE, TRUTH, which, "lat")
    for chunks in ({"lon": 1}, {"time": 4}, {"time": 2, "lon": 1}):
        with forbid_compute():
            lazy = score(ENSEMBLE.chunk(chunks), TRUTH.chunk(lon=1), which, "lat")
        assert lazy.chunks is not None
        xr.testing.assert_identical(lazy.compute(), expected)
    mean = score(ENSEMBLE.chunk(time=2), TRUTH, which, "lat", "time").compute()
    xr.testing.assert_allclose(mean, expected.mean("time"), rtol=1e-12)
    with pytest.raises(ValueError, match=r"forecast has 'lat' in 3 chunks.*\{'lat': -1\}"):
        score(ENSEMBLE.chunk(lat=1), TRUTH, which, "lat")
    with pytest.raises(ValueError, match=r"observations have 'lat' in 3 chunks"):
        score(ENSEMBLE, TRUTH.chunk(lat=1), which, "lat")


@pytest.mark.parametrize("which", SCORES)
def test_weights_of_whole_fields(which):
    shares = np.random.default_rng(1).random((9, 5))
    weights = xr.DataArray(shares, {"time": ENSEMBLE.time}, ["time", "member"])
    for members in (ENSEMBLE, ENSEMBLE.isel(time=0, drop=True)):
        found = score(xrecal.weighted(members, weights), TRUTH, which)
        x = members.broadcast_like(ENSEMBLE).transpose(*ENSEMBLE.dims).to_numpy()
        expected = SCORES[which](TRUTH.to_numpy().reshape(9, -1), last(x.reshape(9, 5, -1)), shares)
        array = found["t2m"] if isinstance(found, xr.Dataset) else found
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("form", ["weighted", "shared", "quantile", "normal"])
def test_forecasts_of_each_place_alone_have_none(form):
    for which in SCORES:
        with pytest.raises(
            ValueError, match=r"needs members that are fields over \['lat', 'lon'\]"
        ):
            score(FORMS[form](ENSEMBLE), TRUTH, which)


@pytest.mark.parametrize("which", SCORES)
def test_missing_places_are_left_out(which):
    land = ENSEMBLE.lat > 45.5
    found = score(ENSEMBLE.where(land), TRUTH, which)
    xr.testing.assert_identical(found, score(ENSEMBLE, TRUTH.where(land), which))
    inside = score(ENSEMBLE.isel(lat=[1, 2]), TRUTH.isel(lat=[1, 2]), which)
    np.testing.assert_array_equal(found, inside)
    assert score(ENSEMBLE, TRUTH.isel(time=slice(5)), which).notnull().sum() == 5


def test_names_units_and_errors():
    found = ENSEMBLE.recal.variogram_score(TRUTH, ["lat", "lon"])
    assert found.name == "variogram_score"
    assert found.attrs["units"] == "K"
    assert found.attrs["estimator"].startswith("order 0.5; left out: places without observation")
    assert found.attrs["history"] == "xrecal: variogram score"
    assert "units" not in ENSEMBLE.recal.variogram_score(TRUTH, order=1).attrs
    energy = ENSEMBLE.astype("float32").recal.energy_score(TRUTH.astype("float32"))
    assert energy.attrs["units"] == "K"
    assert energy.dtype == np.float32
    two = xr.Dataset({"a": ENSEMBLE, "b": ENSEMBLE + 1})
    pair = two.recal.energy_score({"a": TRUTH, "b": TRUTH + 1})
    np.testing.assert_allclose(pair["a"], pair["b"], rtol=1e-9)
    single = ENSEMBLE.isel(time=2).recal.energy_score(TRUTH.isel(time=2))
    assert single == ENSEMBLE.recal.energy_score(TRUTH)[2]
    for over in ("x", [], ["lat", "lat"], "member"):
        with pytest.raises(ValueError, match="must name dimensions of a field, each once"):
            ENSEMBLE.recal.energy_score(TRUTH, over)
    with pytest.raises(ValueError, match="order must be a positive number, got 0"):
        ENSEMBLE.recal.variogram_score(TRUTH, order=0)
