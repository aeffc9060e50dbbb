import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from xrecal.arrays.baselines.lines import fit_line
from xrecal.arrays.baselines.robust import believed, deviations, typical_size

NONE = np.zeros((120, 0))


def cases(seed, n=120, k=0):
    rng = np.random.default_rng(seed)
    x, r = rng.normal(3, 2, n), rng.normal(size=(n, k))
    return x, r, 1 + 0.8 * x + r.sum(1) + rng.standard_t(4, n)


def mean_crps(line, x, y):
    """Of normal distributions of one spread, as the formula says."""
    spread = np.exp(line[2])
    w = (y - line[0] - line[1] * x) / spread
    return np.mean(spread * (w * (2 * norm.cdf(w) - 1) + 2 * norm.pdf(w) - 1 / np.sqrt(np.pi)))


def test_the_line_has_minimum_crps():
    x, _, y = cases(0)
    expected = minimize(mean_crps, [0, 1, 0], (x, y), method="Nelder-Mead", tol=1e-10).x
    np.testing.assert_allclose(fit_line(x, NONE, y), expected[:2], atol=1e-5)


def test_bounds_are_those_of_the_targets():
    x, _, y = cases(0, n=400)
    none = np.zeros((400, 0))
    wet = np.maximum(y, 3.0)
    np.testing.assert_allclose(fit_line(x, none, wet, 3.0), fit_line(x, none, y), atol=0.15)
    assert fit_line(x, none, wet)[1] < 0.7


@given(st.integers(0, 99), st.sampled_from([1e-6, 0.5, 1e6]), st.floats(-1e3, 1e3))
def test_unit_and_origin_of_the_target_do_not_matter(seed, factor, offset):
    x, r, y = cases(seed, k=2)
    expected = factor * fit_line(x, r, y)
    expected[0] += factor * offset
    found = fit_line(x, r, factor * (y + offset))
    np.testing.assert_allclose(found, expected, atol=1e-5 * factor)


@given(st.integers(0, 99), st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(seed, random):
    x, r, y = cases(seed, k=1)
    order = random.sample(range(120), 120)
    np.testing.assert_allclose(fit_line(x[order], r[order], y[order]), fit_line(x, r, y), atol=1e-6)


@given(
    st.integers(0, 99),
    st.integers(0, 119),
    st.floats(20, 1e25),
    st.sampled_from([-1, 1]),
    st.sampled_from(["target", "mean", "regressor", "all"]),
)
def test_one_wild_value_moves_the_line_by_little(seed, case, size, sign, what):
    x, r, y = cases(seed, k=1)
    expected = fit_line(x, r, y)
    if what in ("target", "all"):
        y[case] = sign * size
    if what in ("mean", "all"):
        x[case] = size
    if what in ("regressor", "all"):
        r[case] = sign * size
    assert np.abs(fit_line(x, r, y) - expected).max() < 0.7


def test_dry_places():
    x, y = np.zeros(200), np.zeros(200)
    none = np.zeros((200, 0))
    np.testing.assert_array_equal(fit_line(x, none, y), 0)
    x[:60] = np.linspace(0.1, 6, 60)
    np.testing.assert_array_equal(fit_line(x, none, y), 0)
    y[:60] = x[:60] * 0.5
    np.testing.assert_allclose(fit_line(x, none, y), [0, 0.5], atol=1e-6)
    assert believed(x[:, np.newaxis]).all()
    x[0] = 1e6
    np.testing.assert_array_equal(np.flatnonzero(~believed(x[:, np.newaxis])), [0])


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_cases(n):
    x, r, y = cases(1, n=n, k=2)
    assert np.isfinite(fit_line(x, r, y)).all()


def test_typical_sizes():
    values = np.concatenate([np.zeros(900), np.full(98, 2.0), [1e9, -1e9]])
    assert typical_size(values, 0.95) == 2
    assert typical_size(values[:900]) == 0
    assert typical_size(values[:0]) == 0
    assert deviations(values) == (0, 2)
    assert deviations(0.1 + np.arange(7) * 1e-15)[1] == 0
    assert deviations(values[:0]) == (0, 0)
