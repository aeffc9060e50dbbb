import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import (
    circular_mean,
    circular_members,
    circular_std,
    equal_members,
    weighted_cdf,
    weighted_exceedance,
    weighted_mean,
    weighted_quantile,
    weighted_skewness,
    weighted_std,
)

LEVELS = np.array([0.0, 0.05, 0.31, 0.5, 0.77, 0.99, 1.0])


@st.composite
def forecasts(draw):
    """Members (n,) with ties and NaN, weights in quarters, at least one member of weight."""
    n = draw(st.integers(1, 9))
    members = draw(arrays(np.float64, n, elements=st.integers(-5, 5)))
    weights = draw(arrays(np.float64, n, elements=st.sampled_from([0, 0.25, 0.5, 2])))
    weights[0] = 1.0
    members[1:][draw(arrays(np.bool_, n - 1))] = np.nan
    return members, weights


def in_use(members, weights):
    keep = ~np.isnan(members) & (weights > 0)
    return members[keep], weights[keep] / weights[keep].sum()


# against the formula and NumPy -------------------------------------------------------------------


@given(forecasts(), arrays(np.float64, 5, elements=st.floats(0, 1)))
def test_quantile_equals_numpy(forecast, q):
    members, weights = in_use(*forecast)
    assert weighted_quantile(forecast[0], [0.0], forecast[1]) == members.min()
    steps = np.cumsum(weights[np.argsort(members)])
    q = q[(np.abs(np.subtract.outer(q, steps)) > 1e-9).all(1) & (q > 0)]  # NumPy rounds on steps
    expected = np.quantile(members, q, method="inverted_cdf", weights=weights)
    np.testing.assert_array_equal(weighted_quantile(forecast[0], q, forecast[1]), expected)


def test_quantile_of_plain_ensembles_equals_numpy(rng):
    members = rng.normal(size=(4, 3, 21))
    found = weighted_quantile(members, LEVELS)
    expected = np.quantile(members, LEVELS, axis=-1, method="inverted_cdf")
    np.testing.assert_array_equal(found, np.moveaxis(expected, 0, -1))


@given(forecasts())
def test_moments_and_cdf_are_the_formulas(forecast):
    members, weights = in_use(*forecast)
    mean = np.average(members, weights=weights)
    assert weighted_mean(*forecast) == pytest.approx(mean)
    variance = np.average((members - mean) ** 2, weights=weights)
    assert weighted_std(*forecast) == pytest.approx(np.sqrt(variance), abs=1e-12)
    thresholds = np.arange(-6, 7) / 2
    expected = [weights[members <= t].sum() for t in thresholds]
    found = weighted_cdf(forecast[0], thresholds, forecast[1])
    np.testing.assert_allclose(found, expected, atol=1e-15)


# laws --------------------------------------------------------------------------------------------


@given(forecasts(), st.floats(0.1, 100), st.randoms(use_true_random=False))
def test_order_and_scale_of_weights_and_members_without_weight_change_nothing(
    forecast, factor, random
):
    members, weights = forecast
    kept, kept_weights = in_use(members, weights)
    order = np.array(random.sample(range(members.size), members.size))
    for change in (
        lambda f: f(kept, kept_weights),
        lambda f: f(members[order], weights[order]),
        lambda f: f(members, factor * weights),
        lambda f: f(np.append(members, [99.0, np.nan]), np.append(weights, [0.0, 7.0])),
    ):
        for statistic in (
            weighted_mean,
            weighted_std,
            lambda m, w: weighted_cdf(m, np.array([-1.0, 0.5]), w),
            lambda m, w: weighted_quantile(m, np.array([0.0, 0.13, 0.71, 1.0]), w),
        ):
            expected = statistic(members, weights)
            np.testing.assert_allclose(change(statistic), expected, atol=1e-7)


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-9, 9)))
def test_equal_members_of_a_plain_ensemble_are_its_members(members):
    np.testing.assert_array_equal(equal_members(members, members.size), np.sort(members))
    for n in (1, 4):
        levels = (np.arange(n) + 0.5) / n
        np.testing.assert_array_equal(equal_members(members, n), weighted_quantile(members, levels))


# shapes, missing values --------------------------------------------------------------------------

STATISTICS = {
    "mean": (weighted_mean, ()),
    "std": (weighted_std, ()),
    "skewness": (weighted_skewness, ()),
    "cdf": (lambda m, w: weighted_cdf(m, np.array([-0.3, 0.4]), w), (2,)),
    "exceedance": (lambda m, w: weighted_exceedance(m, np.array([-0.3, 0.4]), w), (2,)),
    "quantile": (lambda m, w: weighted_quantile(m, LEVELS, w), (LEVELS.size,)),
    "equal": (lambda m, w: equal_members(m, 5, w), (5,)),
    "circular mean": (lambda m, w: circular_mean(m, w, period=9.0), ()),
    "circular std": (lambda m, w: circular_std(m, w, period=9.0), ()),
    "circular members": (lambda m, w: circular_members(m, w, 5, period=9.0), (5,)),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_shared_members_are_as_repeated_ones(rng, name):
    statistic, k = STATISTICS[name]
    members, weights = rng.normal(size=(2, 3, 11)), rng.gamma(1, size=(2, 3, 7, 11))
    members[0, 1, 4] = np.nan
    weights[1, 2, 3, 5:] = 0
    shared = statistic(members, weights)
    assert shared.shape == (2, 3, 7, *k)
    repeated = np.repeat(members[..., np.newaxis, :], 7, axis=-2)
    np.testing.assert_allclose(shared, statistic(repeated, weights), atol=1e-14)
    np.testing.assert_allclose(shared[1, 2, 3], statistic(members[1, 2], weights[1, 2, 3]))
    np.testing.assert_allclose(statistic(members[0, 0], weights[0, 0]), shared[0, 0])
    np.testing.assert_allclose(statistic(repeated, weights[:1, :1, :1])[0, 0, 0], shared[0, 0, 0])
    equal = statistic(members, np.full(members.shape, 0.2))
    np.testing.assert_allclose(statistic(members, None), equal, atol=1e-13)


@pytest.mark.parametrize("name", STATISTICS)
def test_nan_without_members_or_with_a_missing_weight(rng, name):
    statistic, _ = STATISTICS[name]
    members, weights = rng.normal(size=(5, 4)), np.ones((5, 4))
    members[1] = np.nan
    weights[2] = 0
    weights[3, 0] = np.nan
    members[4, 0] = weights[4, 0] = np.nan  # a missing member needs no weight
    missing = [False, True, True, True, False]
    found = statistic(members, weights).reshape(5, -1)
    np.testing.assert_array_equal(np.isnan(found).any(1), missing)
    np.testing.assert_array_equal(np.isnan(found).all(1), missing)
    np.testing.assert_allclose(found[4], statistic(members[4, 1:], None).ravel())
    shared = statistic(members[0], np.stack([weights[0], weights[2], weights[3]]))
    np.testing.assert_array_equal(np.isnan(shared.reshape(3, -1)).all(1), [False, True, True])
    assert np.isnan(statistic(members[1], weights)).all()
    members[4, 0], weights[4, 0] = np.inf, 0.0  # whatever it holds
    np.testing.assert_array_equal(statistic(members[4], weights[4]).ravel(), found[4])


def test_last_level_is_reached_in_spite_of_rounding():
    # Ascending, the large weight comes first and swallows the small ones; the total does not.
    n = 20_001
    weights = np.full(n, 1e-16)
    weights[-1] = 1.0
    members = np.arange(n) * 1.0
    members[-1] = -1.0
    np.testing.assert_array_equal(weighted_quantile(members, [0.5, 1.0], weights), [-1, n - 2])
    tenths = weighted_quantile(np.arange(10.0), np.arange(11) / 10)
    np.testing.assert_array_equal(tenths, [0, *range(10)])


def test_errors():
    members = np.zeros((3, 4))
    for level in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="q must hold levels between 0 and 1, got"):
            weighted_quantile(members, np.array([0.5, level]))
    with pytest.raises(ValueError, match="q must hold levels between 0 and 1"):
        weighted_quantile(members, np.array([[0.5]]))
    for n_members in (0, -3, 2.5):
        with pytest.raises(ValueError, match=f"must be a positive integer, got {n_members}"):
            equal_members(members, n_members)
    with pytest.raises(ValueError, match=r"weights of shape \(2, 5, 4\) do not fit members of sh"):
        weighted_quantile(members, np.array([0.5]), np.ones((2, 5, 4)))


def test_levels_on_a_step_of_the_cdf_are_not_pushed_over_it_by_rounding():
    members, weights = np.arange(10.0), np.full(10, 0.1)
    levels = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    np.testing.assert_array_equal(weighted_quantile(members, levels, weights), [0, 1, 2, 5, 6, 7])


# exceedance --------------------------------------------------------------------------------------


@given(forecasts())
def test_exceedance_is_the_formula_and_one_minus_the_cdf(forecast):
    members, weights = in_use(*forecast)
    thresholds = np.arange(-12, 13) / 2
    found = weighted_exceedance(forecast[0], thresholds, forecast[1])
    expected = [sum(w for z, w in zip(members, weights, strict=True) if z > t) for t in thresholds]
    np.testing.assert_allclose(found, expected, atol=1e-15)
    cdf = weighted_cdf(forecast[0], thresholds, forecast[1])
    np.testing.assert_allclose(found, 1 - cdf, atol=1e-15)
    assert (np.diff(found) <= 0).all()
    assert found[0] == 1
    assert found[-1] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exceedance_of_thresholds_of_their_own(rng, dtype):
    members, weights = rng.normal(size=(3, 8)).astype(dtype), rng.random((3, 4, 8)).astype(dtype)
    thresholds = rng.normal(size=(3, 4, 2))
    found = weighted_exceedance(members, thresholds, weights)
    assert found.shape == (3, 4, 2)
    for i, t, k in np.ndindex(3, 4, 2):
        mass = weights[i, t].astype(float)
        expected = mass[members[i] > thresholds[i, t, k]].sum() / mass.sum()
        assert found[i, t, k] == pytest.approx(expected, abs=1e-14)
    own = weighted_exceedance(members, thresholds[:, 0])
    np.testing.assert_allclose(
        own, (members[..., np.newaxis] > thresholds[:, :1]).mean(1), atol=1e-15
    )


def test_exceedance_where_something_is_missing():
    members, weights = np.array([1.0, np.nan, 2.0]), np.array([1.0, 2.0, 3.0])
    thresholds = [0.0, 1.0, np.nan, np.inf, -np.inf]
    expected = [1, 0.75, np.nan, 0, 1]
    np.testing.assert_array_equal(weighted_exceedance(members, thresholds, weights), expected)
    for bad in (np.zeros(3), np.array([1.0, 1.0, np.nan])):
        assert np.isnan(weighted_exceedance(members, [0.0], bad)).all()
    assert weighted_exceedance(members, []).shape == (0,)
