import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from xrecal.arrays import diebold_mariano, standard_error

numbers = st.integers(-50, 50).map(float)
series = st.integers(3, 40).flatmap(lambda n: arrays(np.float64, n, elements=numbers))
gappy = st.integers(0, 30).flatmap(
    lambda n: arrays(np.float64, (3, n), elements=numbers | st.just(np.nan))
)

MADE_UP = np.array(
    [
        [2.5, 1.8, 0.3, -0.6, -1.1, 0.2, 1.4, 0.9, 1.7, 2.2],
        [-0.4, -1.9, -0.8, 0.5, 1.2, 0.1, -0.7, 1.6, 2.8, 1.3],
    ]
).ravel()
"""One series; its standard errors are those of statsmodels 0.15, OLS with cov_type="HAC"."""
STATSMODELS = {0: 0.28253318389173326, 3: 0.31216982557575923, 7: 0.21615966321217273}


def autocovariance(d, k):
    e = d - d.mean()
    return sum(e[t] * e[t - k] for t in range(k, d.size)) / d.size


def reference_error(d, b):
    """Newey-West standard error over its expectation for independent cases."""
    n = d.size
    long_run = autocovariance(d, 0)
    share = 1 - 1 / n
    for k in range(1, b):
        long_run += 2 * (1 - k / b) * autocovariance(d, k)
        share -= 2 * (1 - k / b) * (n - k) / n**2
    return np.sqrt(long_run / n / share)


@given(series, st.integers(0, 2))
def test_statistic_and_error_follow_the_formula(d, lag):
    b = lag + 1
    statistic, p_value = diebold_mariano(d, lag)
    assert statistic.shape == p_value.shape == ()
    error = reference_error(d, b)
    np.testing.assert_allclose(standard_error(d, lag), error, rtol=1e-9, atol=1e-12)
    if np.ptp(d):
        np.testing.assert_allclose(statistic, d.mean() / error, rtol=1e-9, atol=1e-12)
        expected = 2 * stats.t.sf(abs(d.mean() / error), d.size - 1)
        np.testing.assert_allclose(p_value, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("lag", STATSMODELS)
def test_error_is_that_of_statsmodels_but_for_the_small_sample(lag):
    n, b = MADE_UP.size, lag + 1
    k = np.arange(1, b)
    share = 1 - 1 / n - 2 * np.sum((1 - k / b) * (n - k)) / n**2
    found = standard_error(MADE_UP, lag) * np.sqrt(share)
    np.testing.assert_allclose(found, STATSMODELS[lag], rtol=1e-12)


@given(series, st.sampled_from([-1.0, 3.0, 1e-200, -1e200]))
def test_unit_and_order_of_the_pair_do_not_matter(d, factor):
    statistic, p_value = diebold_mariano(d)
    scaled, same = diebold_mariano(factor * d)
    np.testing.assert_allclose(scaled, np.sign(factor) * statistic, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(same, p_value, rtol=1e-8, atol=1e-12)
    error = standard_error(d)
    np.testing.assert_allclose(standard_error(factor * d), abs(factor) * error, rtol=1e-9)


@given(gappy, st.none() | st.just(0))
def test_missing_cases_are_as_if_never_there(d, lag):
    found = np.array([*diebold_mariano(d, lag), standard_error(d, lag)])
    assert found.shape == (3, 3)
    for row, of_row in zip(d, found.T, strict=True):
        known = row[~np.isnan(row)]
        if known.size < 3:
            assert np.isnan(of_row).all()
        else:
            alone = [*diebold_mariano(known, lag), standard_error(known, lag)]
            np.testing.assert_allclose(of_row, alone, rtol=1e-9, atol=1e-9)


@given(st.floats(-1e300, 1e300), st.integers(3, 30))
def test_equal_differences(value, n):
    d = np.full(n, value)
    statistic, p_value = diebold_mariano(d)
    if value:
        assert statistic == np.sign(value) * np.inf
        assert p_value == 0
    else:
        assert statistic == 0
        assert p_value == 1
    assert standard_error(d) == 0


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_an_infinite_difference_leaves_nothing_to_say(bad):
    d = np.array([[1.0, 2, bad, 3, 4], [1, 2, 2, 3, 4]])
    how = {"block_length": 1}
    found = [*diebold_mariano(d, **how), standard_error(d)]
    assert np.isnan([row[0] for row in found]).all()
    assert np.isfinite([row[1] for row in found]).all()


@pytest.mark.parametrize("n", [40, 200])
def test_size_without_dependence_and_power(rng, n):
    d = rng.normal(size=(2000, n))
    assert 0.03 < (diebold_mariano(d)[1] < 0.05).mean() < 0.08
    assert (diebold_mariano(d + 0.7)[1] < 0.05).mean() > 0.9


WRONG = {
    "lag is -1; give a whole number from 0 to 9": (diebold_mariano, {"lag": -1}),
    "lag is 10; give a whole number from 0 to 9": (standard_error, {"lag": 10}),
    "lag is 1.5; give a whole number from 0 to 9": (diebold_mariano, {"lag": 1.5}),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(message):
    function, arguments = WRONG[message]
    with pytest.raises(ValueError, match=f"^{message}$"):
        function(np.arange(10.0), **arguments)


def test_a_number_is_no_series():
    for function in (diebold_mariano, standard_error):
        with pytest.raises(ValueError, match=r"no axis of cases; give an array of shape \(..., n"):
            function(1.0)
