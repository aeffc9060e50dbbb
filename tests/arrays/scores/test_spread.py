import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import spread_skill, standard_error

value = st.integers(-20, 20).map(lambda v: v / 4)
cases = st.integers(2, 12).flatmap(lambda n: arrays(np.float64, (3, n), elements=value))


def by_formula(mean, variance, y, bins):
    error = mean - y
    rmse, spread = np.sqrt(np.mean(error**2)), np.sqrt(np.mean(variance))
    groups = [[] for _ in range(bins)]
    for place, case in enumerate(sorted(range(y.size), key=lambda i: variance[i])):
        groups[place * bins // y.size].append(case)
    by_bin = [
        (np.sqrt(np.mean(variance[g])), np.sqrt(np.mean(error[g] ** 2))) if g else [np.nan] * 2
        for g in groups
    ]
    ratio = spread / rmse if rmse else np.nan
    counts = [len(g) for g in groups]
    return [error.mean(), standard_error(error), rmse, spread, ratio], *np.transpose(by_bin), counts


@given(cases, st.integers(1, 5), st.sampled_from([None, 2, 7]))
def test_follows_the_formula(case, bins, n_members):
    mean, variance, y = case[0], case[1] ** 2, case[2]
    factor = 1 if n_members is None else (n_members + 1) / (n_members - 1)
    found = spread_skill(mean, variance, y, bins, n_members)
    expected = by_formula(mean, factor * variance, y, bins)
    np.testing.assert_allclose(np.array(found[:5]), expected[0], rtol=1e-10, atol=1e-12)
    for part, formula in zip(found[5:], expected[1:], strict=True):
        np.testing.assert_allclose(part, formula, rtol=1e-10, atol=1e-12)
    assert np.ptp(found.bin_counts) <= 1
    assert (np.diff(found.bin_spread[found.bin_counts > 0]) >= -1e-12).all()


@pytest.mark.parametrize("m", [2, 5, 20])
def test_exchangeable_ensembles_have_ratio_one(m, rng):
    sigma = rng.gamma(3, size=(60_000, 1))
    drawn = sigma * rng.normal(size=(60_000, m + 1))
    members, y = drawn[:, :m], drawn[:, m]
    moments = members.mean(-1), members.var(-1)
    found = spread_skill(*moments, y, n_members=m)
    assert found.ratio == pytest.approx(1, abs=0.02)
    assert spread_skill(*moments, y).ratio < 1 - 0.7 / m
    assert abs(found.bias) < 4 * found.bias_error


def test_members_of_each_case():
    mean, variance, y = np.zeros(4), np.ones(4), np.array([1.0, -1, 1, 2])
    found = spread_skill(mean, variance, y, 1, np.array([3, 5, 1, 0]))
    assert found.spread == pytest.approx(np.sqrt((2 + 1.5) / 2))
    assert found.bias == 0
    np.testing.assert_array_equal(found.bin_counts, [2])


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_cases(n):
    for part in spread_skill(*np.ones((3, n))):
        assert np.isnan(part).all()


def test_infinite_cases_do_not_count(rng):
    mean, variance, y = rng.random((3, 20))
    y[8], variance[9] = np.inf, np.inf
    known = np.isfinite(variance + y)
    expected = spread_skill(mean[known], variance[known], y[known], 3)
    for part, same in zip(spread_skill(mean, variance, y, 3), expected, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-13)


def test_no_error_no_ratio():
    found = spread_skill(np.ones(3), np.ones(3), np.ones(3), 2)
    assert (found.rmse, found.spread) == (0, 1)
    assert np.isnan(found.ratio)


def test_the_sea_has_neither_spread_nor_errors():
    sea, n_members = np.full((2, 3), np.nan), np.zeros((2, 3))
    found = spread_skill(sea, sea, np.ones((2, 3)), 2, n_members)
    assert np.isnan(found.ratio).all()
    assert not np.nansum(found.bin_counts)
    n_members[1] = 5
    beside = np.where(n_members > 0, 1.0, np.nan)
    found = spread_skill(beside, beside, np.zeros((2, 3)), 2, n_members)
    np.testing.assert_allclose(found.ratio, [np.nan, np.sqrt(6 / 4)])


def test_errors():
    one = np.ones((2, 3))
    with pytest.raises(ValueError, match="variance must not be negative, found -1"):
        spread_skill(one, -one, one)
    with pytest.raises(ValueError, match=r"bins is 2\.5; give a whole number from 1"):
        spread_skill(one, one, one, 2.5)
    with pytest.raises(ValueError, match="n_members must be 2 or more, got 1: there is no spread"):
        spread_skill(one, one, one, 2, 1)
    with pytest.raises(ValueError, match=r"n_members of shape \(4,\) do not fit cases of shape"):
        spread_skill(one, one, one, 2, [5, 5, 5, 5])
