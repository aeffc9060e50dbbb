import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.strategies import FORMS, ensemble_and_truth, points
from xrecal import arrays

ENSEMBLE, TRUTH = ensemble_and_truth(n=9)
THRESHOLDS = [278.0, 281.5, 284.0]
BY_PLACE = xr.DataArray(
    [[279.0, 281.0], [283.0, np.nan]], dims=["lon", "lat"], coords={"lat": ENSEMBLE.lat}
)


def array(result):
    return result["t2m"] if isinstance(result, xr.Dataset) else result


def censored():
    loc, scale = ENSEMBLE.mean("member", keep_attrs=True), ENSEMBLE.std("member", keep_attrs=True)
    return xrecal.gaussian(loc, scale, lower=280.0, upper=283.0)


# law: results are those of the array functions at each point --------------------------------------


@pytest.mark.parametrize("dims", [ENSEMBLE.dims, ("member", "lon", "time", "lat")])
def test_exceedance_at_each_point(dims):
    forecast = ENSEMBLE.transpose(*dims)
    several, by_place = forecast.recal.exceedance(THRESHOLDS), forecast.recal.exceedance(BY_PLACE)
    assert several.dims == tuple("threshold" if d == "member" else d for d in dims)
    assert by_place.dims == tuple(d for d in dims if d != "member")
    for point in points(TRUTH):
        members = ENSEMBLE.isel(point).to_numpy()
        found = several.isel(point).transpose("time", "threshold")
        np.testing.assert_array_equal(found, arrays.weighted_exceedance(members, THRESHOLDS))
        own = [BY_PLACE.isel(point).item()]
        expected = arrays.weighted_exceedance(members, own)[:, 0]
        np.testing.assert_array_equal(by_place.isel(point), expected)


@pytest.mark.parametrize("form", FORMS)
def test_exceedance_is_that_of_many_members(form):
    forecast = FORMS[form](ENSEMBLE)
    several = array(forecast.recal.exceedance(THRESHOLDS))
    many = array(forecast.recal.members(400))
    above = xr.concat([(many > t).mean("member") for t in THRESHOLDS], "threshold")
    np.testing.assert_allclose(several.transpose(*above.dims), above, atol=0.003)
    one = array(forecast.recal.exceedance(281.5))
    expected = several.sel(threshold=281.5).assign_attrs(one.attrs)
    xr.testing.assert_identical(one.rename(None), expected.rename(None))


def test_exceedance_of_censored_forecasts_knows_their_bounds():
    found = censored().recal.exceedance([279.0, 282.0, 283.0]).t2m
    np.testing.assert_array_equal(found.sel(threshold=[279.0, 283.0]).mean("threshold"), 0.5)
    inside = censored().drop_vars(["t2m_lower", "t2m_upper"]).recal.exceedance(282.0).t2m
    np.testing.assert_allclose(found.sel(threshold=282.0), inside)
    members = censored().recal.members(5).t2m
    assert members.min() == 280
    assert members.max() == 283


@pytest.mark.each_value
@pytest.mark.parametrize("threshold", [281.0, THRESHOLDS, BY_PLACE])
@pytest.mark.parametrize("form", FORMS)
def test_the_cdf_is_the_complement_of_the_exceedance(form, threshold):
    forecast = FORMS[form](ENSEMBLE)
    found = array(forecast.recal.cdf(threshold))
    above = array(forecast.recal.exceedance(threshold))
    xr.testing.assert_equal(found.rename(None), (1 - above).rename(None))
    assert found.dims == above.dims


@pytest.mark.parametrize("form", FORMS)
def test_the_cdf_and_quantiles_are_inverse(form):
    forecast = FORMS[form](ENSEMBLE)
    levels = np.array([0.0, 0.1, 0.5, 0.77, 0.99])
    quantiles = array(forecast.recal.quantile(levels))
    if form == "quantile":  # which is the dimension of its members
        quantiles = quantiles.rename(quantile="level")
    along = "level" if form == "quantile" else "quantile"
    cdf = array(forecast.recal.cdf(quantiles)).transpose(..., along)
    assert (cdf >= levels - 1e-12).all()
    below = array(forecast.recal.cdf(quantiles - 1e-6)).transpose(..., along)
    assert (below[..., 1:] <= levels[1:]).all()
    grid = array(forecast.recal.cdf(np.arange(270.0, 295.0, 0.1))).transpose(..., "threshold")
    assert (grid.diff("threshold") >= 0).all()
    assert grid.min() >= 0
    assert grid.max() <= 1


def test_more_members_than_there_are_repeat_as_often_as_they_weigh():
    found = ENSEMBLE.recal.members(15).transpose(*TRUTH.dims, "member").to_numpy()
    expected = np.repeat(np.sort(ENSEMBLE.transpose(*TRUTH.dims, "member"), axis=-1), 3, axis=-1)
    np.testing.assert_array_equal(np.sort(found, axis=-1), expected)
    weights = xr.DataArray([0.5, 0.25, 0.25, 0.0, 0.0], dims="member")
    heavy = xrecal.weighted(ENSEMBLE, weights).recal.members(8).t2m
    counts = [(heavy == ENSEMBLE.isel(member=i, drop=True)).sum("member") for i in range(4)]
    assert [int(n.min()) for n in counts] == [int(n.max()) for n in counts] == [4, 2, 2, 0]


@pytest.mark.parametrize("form", FORMS)
def test_members_are_quantiles_in_an_order_of_their_own(form):
    forecast = FORMS[form](ENSEMBLE)
    found = array(forecast.recal.members(4, seed=3))
    levels = (np.arange(4) + 0.5) / 4
    expected = array(forecast.recal.quantile(levels)).transpose("time", "lat", "lon", "quantile")
    found = found.transpose("time", "lat", "lon", "member")
    numbers = np.arange(4).reshape(1, 2, 2)
    locations, cases = np.broadcast_arrays(numbers, np.arange(9).reshape(9, 1, 1))
    shuffled = arrays.shuffled_members(expected.to_numpy(), 3, locations, cases)
    np.testing.assert_array_equal(found, shuffled)
    ranks = np.argsort(found.to_numpy(), axis=-1)
    assert (ranks.std((0, 1, 2)) > 0).all()


def test_members_of_another_seed_have_another_order():
    found = ENSEMBLE.transpose("lon", "member", "lat", "time").recal.members(6)
    assert not found.equals(ENSEMBLE.recal.members(6, seed=1).transpose(*found.dims))


def test_thresholds_are_rounded_as_the_members_are():
    """0.1 mm of rain in float32 is not more than 0.1 mm."""
    rain = xr.DataArray(np.float32([[0.1, 0.2, 0.0]]), dims=["time", "member"])
    assert float(rain.recal.exceedance(0.1).item()) == pytest.approx(1 / 3)
    assert float(rain.astype(float).recal.exceedance(0.1).item()) == pytest.approx(2 / 3)


# thresholds that differ ---------------------------------------------------------------------------


def test_thresholds_with_a_dimension_of_their_own():
    climate = TRUTH.quantile([0.1, 0.9], "time").rename(quantile="level")
    found = ENSEMBLE.recal.exceedance(climate)
    assert found.dims == ("time", "level", "lat", "lon")
    np.testing.assert_array_equal(found.level, [0.1, 0.9])
    for level in climate.level:
        one = ENSEMBLE.recal.exceedance(climate.sel(level=level))
        np.testing.assert_array_equal(found.sel(level=level), one)
    lazy = ENSEMBLE.chunk(lat=1).recal.exceedance(climate.chunk(lon=1))
    xr.testing.assert_identical(lazy.compute(), found)
    with pytest.raises(ValueError, match=r"threshold has 'level' .*threshold.chunk\(\{'level': -1"):
        ENSEMBLE.recal.exceedance(climate.chunk(level=1))


def test_thresholds_by_date():
    by_date = TRUTH.isel(lat=0, lon=0, drop=True)
    found = ENSEMBLE.recal.exceedance(by_date)
    np.testing.assert_array_equal(found, (by_date < ENSEMBLE).mean("member"))


def test_thresholds_that_do_not_fit():
    match = r"forecast is in K but threshold is in degC; .* convert first: .*threshold \+ 273"
    with pytest.raises(ValueError, match=match):
        ENSEMBLE.recal.exceedance(BY_PLACE.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match=match):
        ENSEMBLE.recal.cdf(BY_PLACE.assign_attrs(units="degC"))
    with pytest.raises(ValueError, match="labels along 'lat' differ"):
        ENSEMBLE.recal.exceedance(BY_PLACE.assign_coords(lat=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"threshold\.rename\(member='threshold'\)"):
        ENSEMBLE.recal.exceedance(ENSEMBLE.isel(time=0))
    with pytest.raises(ValueError, match=r"the dimensions \['a', 'b'\] that the forecast lacks"):
        ENSEMBLE.recal.exceedance(xr.DataArray(np.zeros((2, 2)), dims=["a", "b"]))
    with pytest.raises(ValueError, match="name its dimensions with a DataArray"):
        ENSEMBLE.recal.exceedance(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"forecast\.rename\(threshold=\.\.\.\)"):
        ENSEMBLE.rename(lat="threshold").recal.exceedance(280.0)
    for bad in ("warm", ["warm"], xr.DataArray(["warm"])):
        with pytest.raises(TypeError, match="threshold must "):
            ENSEMBLE.recal.exceedance(bad)


@pytest.mark.parametrize("n", [0, 2.5, True, "3"])
def test_numbers_of_members_that_cannot_be(n):
    with pytest.raises(ValueError, match="n must be a whole number of members, 1 or more, got"):
        ENSEMBLE.recal.members(n)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 1\.5"):
        ENSEMBLE.recal.members(3, seed=1.5)


# names and attributes -----------------------------------------------------------------------------


def test_names_and_attributes():
    found = ENSEMBLE.recal.exceedance(THRESHOLDS)
    assert found.name == "exceedance"
    assert found.attrs["units"] == "1"
    assert found.attrs["long_name"] == "probability that 2 m temperature exceeds the threshold"
    assert found.attrs["history"] == "xrecal: probability of exceeding a threshold"
    assert found.threshold.attrs == {"units": "K"}
    assert ENSEMBLE.recal.exceedance(281.0).threshold.item() == 281
    assert list(ENSEMBLE.to_dataset().recal.exceedance(281.0)) == ["t2m"]
    members = ENSEMBLE.recal.members(3)
    assert members.name == "t2m"
    assert members.attrs["units"] == "K"
    assert members.sizes["member"] == 3
    assert "member" not in members.coords
    assert members.recal.crps(TRUTH).notnull().all()
