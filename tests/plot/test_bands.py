import numpy as np
import pytest
from scipy.stats import binom

from xrecal.arrays import corp
from xrecal.plot.bands import error_limits, reliability_limits, share_limits


@pytest.mark.parametrize("n", [1, 7, 200])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 1.0])
def test_shares_of_independent_cases(n, p):
    low, high = share_limits(n, p)
    k = np.arange(n + 1)
    below = np.array([binom.cdf(i, n, p) for i in k])
    assert low == k[below >= 0.05][0] / n
    assert high == k[below >= 0.95][0] / n


def test_no_case_has_no_band():
    assert np.isnan(share_limits([0, 5], 0.5)[:, 0]).all()
    assert np.isfinite(share_limits([0, 5], 0.5)[:, 1]).all()
    assert np.isnan(error_limits([0.0])).all()


def issued(kind, n, rng):
    return {
        "uniform": lambda: rng.uniform(size=n),
        "rare": lambda: rng.beta(0.4, 1.2, size=n),
        "ensemble": lambda: rng.integers(0, 12, n) / 11,
    }[kind]()


@pytest.mark.each_value
@pytest.mark.parametrize("n", [100, 1000, 5000])
@pytest.mark.parametrize("kind", ["uniform", "rare", "ensemble"])
def test_nine_of_ten_calibrated_curves_lie_within(kind, n):
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(60):
        p = issued(kind, n, rng)
        happened = (rng.uniform(size=n) < p) * 1.0
        conditional = corp(p[np.newaxis], happened[np.newaxis])[0][0]
        at, (low, high) = reliability_limits(p)
        margin = 1e-9
        inside.append(
            (conditional >= np.interp(p, at, low) - margin)
            & (conditional <= np.interp(p, at, high) + margin)
        )
    assert 0.85 < np.mean(inside) < 0.96


def test_bands_of_reliability_reach_over_what_was_issued():
    p = np.array([0.2, 0.0, 1.0, 0.5, 0.5, 0.5])
    at, (low, high) = reliability_limits(p)
    assert at[0] == 0
    assert at[-1] == 1
    assert (np.diff(at) > 0).all()
    assert (low <= at).all()
    assert (high >= at).all()
    np.testing.assert_array_equal([low[0], high[0], low[-1], high[-1]], [0, 0, 1, 1])
    alone, limits = reliability_limits(np.full(10, 0.3))
    np.testing.assert_array_equal(alone, [0.3])
    np.testing.assert_array_equal(limits, share_limits([10], [0.3]))
