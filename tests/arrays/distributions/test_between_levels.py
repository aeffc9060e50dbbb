import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from xrecal.arrays.distributions.between_levels import quantile_pit

LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def reference(quantiles, levels, y, u):
    """One transform, from the definition."""
    pairs = [pair for pair in zip(quantiles, levels, strict=True) if not np.isnan(pair[0])]
    if not pairs or not np.isfinite([y, *(value for value, _ in pairs)]).all():
        return np.nan
    values = sorted(value for value, _ in pairs)
    order = sorted(level for _, level in pairs)
    below = [level for level, value in zip(order, values, strict=True) if value < y]
    equal = [level for level, value in zip(order, values, strict=True) if value == y]
    above = [level for level, value in zip(order, values, strict=True) if value > y]
    low, high = max(below, default=0.0), min(above, default=1.0)
    if equal:
        low = (low + equal[0]) / 2 if below else 0.0
        high = (high + equal[-1]) / 2 if above else 1.0
    return low + u * (high - low)


half_integers = st.integers(-4, 4).map(lambda v: v / 2)
cases = st.integers(1, 5).flatmap(
    lambda m: st.tuples(
        st.lists(half_integers | st.sampled_from([np.nan, np.inf]), min_size=m, max_size=m),
        st.lists(st.integers(0, 20), min_size=m, max_size=m, unique=True),
        half_integers | st.sampled_from([np.nan, np.inf]),
        st.floats(0.01, 0.99),
    )
)


@given(cases)
def test_values_are_the_definition(case):
    quantiles, levels, y, u = case
    levels = np.array(levels) / 20
    found = quantile_pit(np.array(quantiles), levels, np.array(y), np.array(u))
    assert found.shape == ()
    np.testing.assert_allclose(found, reference(quantiles, levels, y, u), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("levels", [LEVELS, [0.5], [0.05, 0.3], [0.0, 0.4, 1.0]])
@pytest.mark.parametrize("law", [stats.norm(), stats.expon(), stats.t(3)], ids=["n", "exp", "t3"])
def test_exact_quantiles_of_any_number_have_a_uniform_transform(levels, law, rng):
    n, levels = 5000, np.array(levels)
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = loc + scale * law.rvs(n, random_state=rng)
    with np.errstate(invalid="ignore"):
        quantiles = loc[:, np.newaxis] + scale[:, np.newaxis] * law.ppf(levels)
    quantiles = np.clip(quantiles, -1e6, 1e6)  # ends of a law without them
    found = quantile_pit(quantiles, levels, y, rng.random(n))
    assert stats.kstest(found, "uniform").pvalue > 0.01
    wide = quantile_pit(2 * quantiles, levels, 2 * y + 1, rng.random(n))
    assert stats.kstest(wide, "uniform").pvalue < 1e-6
