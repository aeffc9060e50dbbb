import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import FORMS, LEVELS, ensemble_and_truth, points
from xrecal import arrays

ENSEMBLE, TRUTH = ensemble_and_truth(n=9)
STATISTICS = {
    "mean": lambda x: x.recal.mean(),
    "std": lambda x: x.recal.std(),
    "quantile": lambda x: x.recal.quantile(LEVELS + 0.01),
    "median": lambda x: x.recal.quantile(0.5),
}


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


# law: statistics are those of the array functions at each point -----------------------------------


@pytest.mark.parametrize("dims", [ENSEMBLE.dims, ("member", "lon", "time", "lat")])
def test_plain_and_weighted_ensembles_at_each_point(dims):
    weights = xr.DataArray(np.arange(1.0, 6.0), dims="member")
    plain, heavy = ENSEMBLE.transpose(*dims), xrecal.weighted(ENSEMBLE.transpose(*dims), weights)
    for forecast, w in ((plain, None), (heavy, weights.to_numpy())):
        mean, std = array(forecast.recal.mean()), array(forecast.recal.std())
        quantile = array(forecast.recal.quantile(LEVELS))
        assert quantile.dims == tuple("quantile" if d == "member" else d for d in dims)
        for point in points(TRUTH):
            members = ENSEMBLE.isel(point).to_numpy()
            np.testing.assert_array_equal(mean.isel(point), arrays.weighted_mean(members, w))
            np.testing.assert_array_equal(std.isel(point), arrays.weighted_std(members, w))
            found = quantile.isel(point).transpose("time", "quantile")
            np.testing.assert_array_equal(found, arrays.weighted_quantile(members, LEVELS, w))


def test_shared_members_are_as_own_ones():
    shared = FORMS["shared"](ENSEMBLE)
    own = shared.assign(
        t2m=shared.t2m.broadcast_like(shared.t2m_weight).assign_attrs(shared.t2m.attrs)
    )
    for statistic in STATISTICS.values():
        found, expected = array(statistic(shared)), array(statistic(own))
        xr.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12)


def test_normal_and_mixture_at_each_point():
    for form in ("normal", "mixture"):
        forecast = FORMS[form](ENSEMBLE)
        mean, quantile = forecast.recal.mean().t2m, forecast.recal.quantile(LEVELS).t2m
        for point in points(TRUTH):
            loc = forecast.t2m_loc.isel(point).to_numpy()
            scale = forecast.t2m_scale.isel(point).to_numpy()
            weights = np.ones(1)
            if form == "normal":
                loc, scale = loc[:, np.newaxis], scale[:, np.newaxis]
            else:
                scale = np.repeat(scale[:, np.newaxis], 3, axis=1)
                weights = forecast.t2m_weight.to_numpy()
            expected = arrays.normal_mean_std(loc, scale, weights)[0]
            np.testing.assert_allclose(mean.isel(point), expected, rtol=1e-14)
            found = quantile.isel(point).transpose("time", "quantile")
            np.testing.assert_allclose(found, arrays.normal_quantile(LEVELS, loc, scale, weights))


def test_quantiles_of_quantiles():
    forecast = FORMS["quantile"](ENSEMBLE)
    found = forecast.recal.quantile([0.0, 0.5, 1.0])
    np.testing.assert_array_equal(found, forecast.isel({"quantile": [0, 2, 3]}))
    percent = forecast.rename(quantile="percentile").assign_coords(percentile=LEVELS * 100)
    np.testing.assert_array_equal(percent.recal.quantile([0.0, 0.5, 1.0]), found)


def test_large_forecasts_are_not_repeated_in_memory():
    import dask.array

    values = dask.array.zeros((4000, 1000, 1000, 20), chunks=(1, 1000, 1000, 20), dtype="f4")
    dims = ["time", "lat", "lon", "quantile"]
    forecast = xr.DataArray(values, dims=dims, coords={"quantile": (np.arange(20) + 0.5) / 20})
    with forbid_compute():  # their masses would take 320 GB
        assert forecast.recal.mean().shape == values.shape[:3]


# explicit forecasts -------------------------------------------------------------------------------


def test_weighted_marks_weights():
    forecast = xrecal.weighted(ENSEMBLE, ENSEMBLE * 0 + 2)
    assert forecast.t2m.attrs["ancillary_variables"] == "t2m_weight"
    assert forecast.t2m_weight.attrs["role"] == "member_weight"
    assert list(xrecal.weighted(ENSEMBLE.rename(None), ENSEMBLE)) == ["forecast", "forecast_weight"]
    assert ENSEMBLE.attrs == {"units": "K", "long_name": "2 m temperature"}


def test_gaussian_names_its_parts():
    loc, one = ENSEMBLE.mean("member").rename("t2m_loc"), xr.DataArray([1.0], dims="component")
    assert set(xrecal.gaussian(loc, loc * 0 + 1)) == {"t2m_loc", "t2m_scale"}
    assert set(xrecal.gaussian(loc, loc * 0 + 1, one)) == {"t2m_loc", "t2m_scale", "t2m_weight"}


def test_weights_need_their_dimension():
    with pytest.raises(ValueError, match="weights lack the member dimension 'member'"):
        xrecal.weighted(ENSEMBLE, TRUTH)
    with pytest.raises(ValueError, match="weights need the dimension 'component'"):
        xrecal.gaussian(TRUTH, TRUTH, TRUTH)


def test_labels_are_not_joined_silently():
    later = TRUTH.assign_coords(time=TRUTH.time + np.timedelta64(1, "D"))
    with pytest.raises(ValueError, match="labels along 'time' differ"):
        xrecal.gaussian(TRUTH, later)
    with pytest.raises(ValueError, match="values and weights differ along 'time': 9 against 5"):
        xrecal.weighted(ENSEMBLE, ENSEMBLE[:5])


# types, attributes, errors ------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_attributes_stay_and_history_grows(form):
    result = FORMS[form](ENSEMBLE).recal.mean()
    if isinstance(result, xr.Dataset):
        result = result["t2m"].assign_attrs(history=result.attrs["history"])
    method = {"cell_methods": "realization: mean"}
    told = {"history": "xrecal: mean of the forecast distribution"}
    assert result.attrs == ENSEMBLE.attrs | method | told


def test_history_is_kept():
    result = ENSEMBLE.assign_attrs(history="made").recal.std()
    lines = ["made", "xrecal: standard deviation of the forecast distribution"]
    assert result.attrs["history"].splitlines() == lines
    assert result.name == "t2m"


def test_wider_weights_do_not_widen_the_result():
    forecast = xrecal.weighted(ENSEMBLE.astype("float32"), xr.full_like(ENSEMBLE, 1.0))
    for given in (forecast, forecast.chunk(lat=1)):
        assert given.recal.mean().t2m.dtype == given.recal.mean().compute().t2m.dtype == "float32"


def test_levels_come_in_the_order_asked_for():
    found = ENSEMBLE.recal.quantile([0.9, 0.1, 0.5])
    np.testing.assert_array_equal(found["quantile"], [0.9, 0.1, 0.5])
    for level in (0.1, 0.5, 0.9):
        np.testing.assert_array_equal(found.sel(quantile=level), ENSEMBLE.recal.quantile(level))


def test_levels_and_chunks_that_cannot_be():
    with pytest.raises(ValueError, match="q must hold levels between 0 and 1, got"):
        ENSEMBLE.recal.quantile(-0.1)
    with pytest.raises(ValueError, match=r"forecast.chunk\(\{'member': -1\}\)"):
        ENSEMBLE.chunk(member=2).recal.mean()
    assert ENSEMBLE.recal.quantile([]).sizes["quantile"] == 0
