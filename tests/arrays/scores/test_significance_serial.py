"""Paired tests by cosines and by clusters: their formula, laws and size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tests.arrays.test_serial import autoregressive
from xrecal.arrays import adjusted_p_values, diebold_mariano, skill_score, standard_error
from xrecal.arrays.serial import block_lengths, neighbour_correlation

series = st.integers(6, 40).flatmap(
    lambda n: arrays(np.float64, n, elements=st.integers(-50, 50).map(float))
)


def reference(d, b):
    """t and p-value of the mean by cosines, from the formula."""
    n, t = d.size, np.arange(1, d.size + 1)
    v = n // b - 1
    sums = [np.sum(d * np.cos(np.pi * j * (t - 0.5) / n)) for j in range(1, v + 1)]
    variance = np.mean([2 / n * s**2 for s in sums])
    statistic = d.mean() / np.sqrt(variance / n)
    return statistic, 2 * stats.t.sf(abs(statistic), v)


@given(series, st.integers(1, 3))
def test_it_follows_the_formula(d, b):
    found = diebold_mariano(d, block_length=b)
    if np.ptp(d):
        np.testing.assert_allclose(found, reference(d, b), rtol=1e-6, atol=1e-12)
        error = standard_error(d, block_length=b) * found[0]
        np.testing.assert_allclose(error, d.mean(), rtol=1e-6, atol=1e-12)


def test_the_block_is_that_of_the_autocorrelation(rng):
    d = autoregressive(rng, 0.6, (4, 150))
    d[2, 10:40] = np.nan
    for row, p in zip(d, diebold_mariano(d)[1], strict=True):
        known = row[~np.isnan(row)]
        b = block_lengths(neighbour_correlation(known), np.array(known.size))
        assert p == pytest.approx(reference(known, int(b))[1], rel=1e-9)


def test_too_few_cases_for_their_dependence_tell_nothing(rng):
    d = np.cumsum(rng.normal(size=20))
    statistic, p_value = diebold_mariano(d)
    assert np.isnan([statistic, p_value]).all()
    assert standard_error(d) > 0  # of the slowest waves, too small
    found = skill_score(d**2 + 1, d**2 + 2)
    assert np.isnan([found.low, found.high]).all()
    assert np.isfinite([found.skill, found.standard_error]).all()


def test_clusters_of_equal_size_are_the_t_test_of_their_means(rng):
    d = autoregressive(rng, 0.9, (3, 60)) + 0.2
    cluster = np.repeat([2000, 2001, 2005, 2006, 2007, 2009], 10)
    means = d.reshape(3, 6, 10).mean(-1)
    expected = stats.ttest_1samp(means, 0, axis=-1)
    statistic, p_value = diebold_mariano(d, cluster=cluster)
    np.testing.assert_allclose(statistic, expected.statistic, rtol=1e-12)
    np.testing.assert_allclose(p_value, expected.pvalue, rtol=1e-10)
    error = means.std(-1, ddof=1) / np.sqrt(6)
    np.testing.assert_allclose(standard_error(d, cluster=cluster), error, rtol=1e-12)


def test_clusters_of_unequal_size_have_the_formula(rng):
    d = rng.normal(size=25)
    d[7] = np.nan
    cluster = np.repeat([0, 1, 2, 3], [3, 9, 6, 7])
    e = np.where(np.isnan(d), 0, d - np.nanmean(d))
    sums = np.array([e[cluster == g].sum() for g in range(4)])
    error = np.sqrt(4 / 3 * (sums**2).sum()) / 24
    assert standard_error(d, cluster=cluster) == pytest.approx(error)
    p = 2 * stats.t.sf(abs(np.nanmean(d)) / error, 3)
    assert diebold_mariano(d, cluster=cluster)[1] == pytest.approx(p)
    two = diebold_mariano(d[:12], cluster=cluster[:12])
    assert np.isnan(two).all()  # of two clusters nothing is known


def test_intervals_of_the_skill(rng):
    r = np.abs(autoregressive(rng, 0.5, (120,))) + 3
    s = 0.8 * r + 0.3 * rng.normal(size=120)
    found = skill_score(s, r, block_length=4, level=0.9)
    ratio = s.mean() / r.mean()
    error = standard_error(s - ratio * r, block_length=4) / r.mean()
    reach = stats.t.ppf(0.95, 29) * error
    np.testing.assert_allclose([found.low, found.high], [1 - ratio - reach, 1 - ratio + reach])
    assert found.standard_error == pytest.approx(error)
    wider = skill_score(s, r, block_length=4, level=0.99)
    assert wider.low < found.low < found.skill < found.high < wider.high


@pytest.mark.parametrize(
    ("rho", "n", "limit"), [(0.0, 30, 0.06), (0.6, 100, 0.08), (0.9, 200, 0.1)]
)
def test_level_with_dependence(rng, rho, n, limit):
    """Of true hypotheses at 5 % few are rejected; the t-test rejects many."""
    d = autoregressive(rng, rho, (4000, n))
    p_value = diebold_mariano(d)[1]
    assert (p_value < 0.05).mean() < limit
    naive = (diebold_mariano(d, block_length=1)[1] < 0.05).mean()
    assert naive > 0.3 if rho else naive < 0.06


def test_holm():
    p = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    np.testing.assert_allclose(
        adjusted_p_values(p, "holm"), [0.03, 0.06, np.nan, 0.06, 0.02]
    )  # R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")


WRONG = {
    "give one of lag, block_length and cluster, not lag and block_length": {
        "lag": 1,
        "block_length": 2,
    },
    "block_length is 0; give a whole number from 1": {"block_length": 0},
    r"cluster must be whole numbers of shape \(10,\), got int64 of shape \(4,\)": {
        "cluster": np.arange(4)
    },
    "cluster must be whole numbers of": {"cluster": np.ones(10)},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message):
    for function in (diebold_mariano, standard_error):
        with pytest.raises(ValueError, match=f"^{message}"):
            function(np.arange(10.0), **WRONG[message])
    with pytest.raises(ValueError, match="level is 95; give a share between 0 and 1"):
        skill_score(np.ones(9), np.ones(9), level=95)
