import numpy as np
import pytest
import scipy.stats
import xarray as xr

import xrecal
from tests.strategies import points
from xrecal import arrays
from xrecal.arrays.calibration.dependence import distance_correlation
from xrecal.arrays.distributions.forms import Forecasts

from .calls import FORMS, hindcast

ENSEMBLE, TRUTH = hindcast(n=30, step=0.5)


def number(point):
    """Number of a location, counted through its dimensions sorted by name."""
    return np.array([2 * point["lat"] + point["lon"]])


def expected_at(point, seed=0):
    u = arrays.hash_uniform(seed, number(point), TRUTH.sizes["time"])
    members, y = ENSEMBLE.isel(point).to_numpy(), TRUTH.isel(point).to_numpy()
    return arrays.pit_values(Forecasts(members[np.newaxis]), y[np.newaxis], u)[0]


def rain(n=400, m=10, seed=0):
    """Ensembles and observations from one distribution, dry on most days."""
    rng = np.random.default_rng(seed)
    wet = rng.normal(-0.5, 1, size=(n, 1, 3))
    amounts = np.maximum(wet + rng.normal(size=(n, m + 1, 3)), 0)
    members = xr.DataArray(amounts[:, 1:], dims=["time", "member", "x"])
    return members, xr.DataArray(amounts[:, 0], dims=["time", "x"])


# values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 7])
def test_values_at_each_point(seed):
    found = ENSEMBLE.recal.pit(TRUTH, seed=seed)
    assert found.dims == TRUTH.dims
    for point in points(TRUTH):
        np.testing.assert_array_equal(found.isel(point), expected_at(point, seed))


def test_closed_forms_are_their_cdf():
    loc, scale = TRUTH + 0.4, 0 * TRUTH + 2
    found = xrecal.gaussian(loc, scale).recal.pit(TRUTH)
    np.testing.assert_allclose(found, scipy.stats.norm.cdf(-0.2), rtol=1e-13)
    bounded = xrecal.gaussian(loc, scale, lower=280.0).recal.pit(TRUTH)
    inside, on = (TRUTH > 280).to_numpy(), (TRUTH == 280).to_numpy()
    np.testing.assert_allclose(bounded.to_numpy()[inside], scipy.stats.norm.cdf(-0.2), rtol=1e-13)
    dry = scipy.stats.norm.cdf((280 - loc.to_numpy()[on]) / 2)
    assert on.sum() > 3
    assert (bounded.to_numpy()[on] > 0).all()
    assert (bounded.to_numpy()[on] < dry).all()
    assert (bounded.to_numpy()[(TRUTH < 280).to_numpy()] == 0).all()


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"quantile", "percentile"}))
def test_forms_with_a_whole_distribution_are_near_many_of_its_quantiles(form):
    forecast = FORMS[form](ENSEMBLE)
    sampled = forecast.recal.quantile((np.arange(400) + 0.5) / 400)
    sampled = sampled["t2m"] if isinstance(sampled, xr.Dataset) else sampled
    found = forecast.recal.pit(TRUTH)
    expected = sampled.drop_vars("quantile").rename(quantile="member").recal.pit(TRUTH)
    np.testing.assert_allclose(found, expected.transpose(*found.dims), atol=0.006)


@pytest.mark.each_value
@pytest.mark.parametrize("form", ["quantile", "percentile"])
@pytest.mark.parametrize("seed", [0, 7])
def test_quantiles_are_placed_between_their_levels_at_each_point(form, seed):
    given = FORMS[form](ENSEMBLE)
    dim = given.dims[[d in ("quantile", "percentile") for d in given.dims].index(True)]
    levels = given[dim].to_numpy() / (100 if dim == "percentile" else 1)
    turned = given.isel({dim: slice(None, None, -1)}).transpose("lon", dim, "lat", "time")
    lazy = given.chunk(lat=1, time=11).recal.pit(TRUTH.chunk(lon=1), seed=seed)
    found = given.recal.pit(TRUTH, seed=seed)
    for point in points(TRUTH):
        u = arrays.hash_uniform(seed, number(point), TRUTH.sizes["time"])[0]
        values = given.isel(point).transpose("time", dim).to_numpy()
        expected = arrays.quantile_pit(values, levels, TRUTH.isel(point).to_numpy(), u)
        np.testing.assert_array_equal(found.isel(point), expected)
        np.testing.assert_array_equal(turned.recal.pit(TRUTH, seed=seed).isel(point), expected)
        np.testing.assert_array_equal(lazy.isel(point), expected)


def test_few_exact_quantiles_have_a_uniform_transform():
    rng = np.random.default_rng(1)
    loc = xr.DataArray(rng.normal(0, 2, (2000, 2)), dims=["time", "x"])
    truth = loc + rng.normal(size=loc.shape)
    exact = xrecal.gaussian(loc, 0 * loc + 1)
    few = exact.recal.quantile([0.1, 0.25, 0.5, 0.75, 0.9])
    assert (few.recal.pit_test(truth).p_value > 0.05).all()
    np.testing.assert_allclose(few.recal.pit_histogram(truth).frequency, 1, atol=0.25)
    assert (few - 0.2).recal.pit_test(truth).p_value.max() < 1e-6


def test_seeds_change_atoms_alone():
    one, other = (ENSEMBLE.recal.pit(TRUTH, seed=seed) for seed in (0, 1))
    tied = (ENSEMBLE == TRUTH).any("member")
    assert 10 < tied.sum() < 110
    assert (one.where(tied, 2) != other.where(tied, 3)).where(tied, True).all()
    xr.testing.assert_identical(one.where(~tied).drop_attrs(), other.where(~tied).drop_attrs())
    assert one.attrs["history"] == "xrecal: probability integral transform, seed 0"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atoms_in_one_type_are_atoms_in_the_other(dtype):
    members = xr.DataArray(np.full((50, 4), 0.7, np.float32), dims=["time", "member"])
    found = members.recal.pit(xr.DataArray(np.full(50, 0.7, dtype), dims="time"))
    assert np.unique(found).size == 50


def test_functions_of_the_transform_draw_the_same_numbers():
    forecast, truth = rain()
    pit = forecast.recal.pit(truth, seed=3).transpose("x", "time")
    counts = forecast.recal.pit_histogram(truth, seed=3, bins=8)["n_in_bin"]
    np.testing.assert_array_equal(counts, arrays.pit_counts(pit.to_numpy(), 8))
    both = forecast.recal.pit_test(truth, ["time", "x"], seed=3)
    statistic, p_value = arrays.uniform_test(pit.to_numpy().ravel())
    assert both.statistic.item() == statistic
    assert both.p_value.item() == p_value
    coverage = forecast.recal.coverage(truth, seed=3, level=0.5)
    ends = forecast.recal.quantile([0.25, 0.75]).transpose("x", "time", "quantile").to_numpy()
    dependence = distance_correlation(ends, pit.to_numpy()[..., np.newaxis])
    np.testing.assert_array_equal(coverage.dependence, dependence)


# calibrated forecasts -----------------------------------------------------------------------------


def test_uniform_for_normal_forecasts_that_tell_the_truth():
    rng = np.random.default_rng(4)
    loc = xr.DataArray(rng.normal(size=(2000, 2)), dims=["time", "x"])
    scale = 1 + abs(loc)
    truth = loc + scale * rng.normal(size=loc.shape)
    calibrated = xrecal.gaussian(loc, scale).recal
    assert (calibrated.pit_test(truth).p_value > 0.01).all()
    frequency = calibrated.pit_histogram(truth).frequency
    np.testing.assert_allclose(frequency, 1, atol=0.25)
    narrow = xrecal.gaussian(loc, scale / 1.5).recal
    assert (narrow.pit_test(truth).p_value < 1e-6).all()
    assert (narrow.pit_histogram(truth).frequency.isel(pit_bin=[0, -1]) > 1.3).all()


def test_uniform_for_censored_rain():
    rng = np.random.default_rng(5)
    loc = xr.DataArray(rng.normal(-0.5, 1, size=3000), dims=["time"])
    forecast = xrecal.gaussian(loc, 0 * loc + 1, lower=0.0)
    truth = np.maximum(loc + rng.normal(size=3000), 0)
    assert (truth == 0).mean() > 0.5
    assert forecast.recal.pit_test(truth).p_value > 0.01
    pit = forecast.recal.pit(truth)
    assert np.unique(pit).size == 3000


def test_dry_days_are_spread_over_their_probability():
    forecast, truth = rain(m=60)
    dry = (truth == 0) & ((forecast == 0).mean("member") > 0.3)
    pit = forecast.recal.pit(truth).to_numpy()[dry.to_numpy()]
    below = (forecast == 0).mean("member").to_numpy()[dry.to_numpy()]
    assert dry.sum() > 300
    assert (pit < below).all()
    assert scipy.stats.kstest(pit / below, "uniform").pvalue > 0.01
    tested = forecast.recal.pit_test(truth, ...)
    assert tested.statistic < 0.05


# histogram and test -------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [2, 7, np.int64(10)])
def test_histogram_at_each_point(bins):
    found = ENSEMBLE.recal.pit_histogram(TRUTH, bins=bins)
    assert found["n_in_bin"].dims == ("lat", "lon", "pit_bin")
    assert found.attrs["bins"] == bins
    np.testing.assert_allclose(found.pit_bin, (np.arange(bins) + 0.5) / bins)
    for point in points(TRUTH):
        counts = arrays.pit_counts(expected_at(point), bins)
        np.testing.assert_array_equal(found["n_in_bin"].isel(point), counts)
        np.testing.assert_allclose(found.frequency.isel(point), counts * bins / 30, rtol=1e-14)
        statistic, p_value = arrays.uniform_test(expected_at(point))
        tested = ENSEMBLE.recal.pit_test(TRUTH).isel(point)
        assert tested.statistic == statistic
        assert tested.p_value == p_value


@pytest.mark.parametrize("bins", [1, 0, 2.5, "3", True, None])
def test_bins_that_cannot_be(bins):
    with pytest.raises(ValueError, match="bins must be a whole number of at least 2, got"):
        ENSEMBLE.recal.pit_histogram(TRUTH, bins=bins)


def test_seeds_that_cannot_be():
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        ENSEMBLE.recal.pit(TRUTH, seed=0.5)


def test_observations_pooled_into_their_ensembles():
    """The transform is then the rank, placed at random within its share of m + 1."""
    rng = np.random.default_rng(3)
    members = xr.DataArray(rng.normal(size=(40, 5)), dims=["time", "member"])
    truth = xr.DataArray(rng.normal(size=40), dims="time")
    found = members.recal.pit(truth, augmented=True, seed=4)
    rank = (members < truth).sum("member")
    k = members.sizes["member"] + 1
    np.testing.assert_array_equal(np.floor(found * k), rank)
    counts = members.recal.pit_histogram(truth, bins=k, augmented=True, seed=4)
    np.testing.assert_array_equal(counts["n_in_bin"], [(rank == i).sum() for i in range(k)])
    with pytest.raises(ValueError, match="augmented=True is for plain ensembles, but 't2m' is"):
        FORMS["normal"](ENSEMBLE).recal.pit(TRUTH, augmented=True)
