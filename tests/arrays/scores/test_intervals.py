import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.rules import scoringrules
from xrecal.arrays import interval_coverage, interval_score, weighted_interval_score

value = st.integers(-20, 20).map(lambda v: v / 4)
triples = st.integers(2, 9).flatmap(lambda n: arrays(np.float64, (3, n), elements=value))


HALF = np.array([0.01, 0.1, 0.25, 0.4])
"""Lower levels of central intervals."""


@st.composite
def quantiles(draw):
    """Observations (n,), quantiles (n, 2 K + 1) that do not cross, their levels and an order."""
    n, k = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    y = draw(arrays(np.float64, n, elements=value))
    q = np.sort(draw(arrays(np.float64, (n, 2 * k + 1), elements=value)))
    levels = np.concatenate([HALF[:k], [0.5], 1 - HALF[:k][::-1]])
    return y, q, levels, np.array(draw(st.permutations(range(2 * k + 1))), int)


def ordered(triple):
    y, *ends = triple
    return y, np.minimum(*ends), np.maximum(*ends)


@given(triples, st.floats(0.05, 0.95))
def test_follows_the_definition(triple, level):
    y, low, high = ordered(triple)
    found = interval_coverage(y, low, high)
    cases = list(zip(low, y, high, strict=True))
    assert found.coverage == np.mean([a <= v <= b for a, v, b in cases])
    assert found.width == pytest.approx(np.mean(high - low))
    assert found.n_cases == y.size
    alpha = 1 - level
    expected = [
        (b - a) + 2 / alpha * (a - v) * (v < a) + 2 / alpha * (v - b) * (v > b) for a, v, b in cases
    ]
    score = interval_score(y, low, high, level)
    np.testing.assert_allclose(score, expected, atol=1e-9)
    np.testing.assert_allclose(
        score, scoringrules.interval_score(y, low, high, alpha), rtol=1e-12, atol=1e-12
    )


def test_missing_values():
    y = np.array([1.0, np.nan, 1.0, 1.0, np.inf, 1.0])
    low = np.array([0.0, 0.0, np.nan, 0.0, 0.0, 2.0])
    high = np.array([2.0, 2.0, 2.0, np.nan, 2.0, 4.0])
    found = interval_coverage(y, low, high)
    assert found == (0.5, 2.0, 2)
    expected = [2.0, *[np.nan] * 4, 2.0 + 4.0]
    np.testing.assert_allclose(interval_score(y, low, high, 0.5), expected)
    few = interval_coverage(y[:5], low[:5], high[:5])
    np.testing.assert_array_equal(few, [np.nan, np.nan, 1])


def test_infinite_ends():
    y, low, high = np.zeros(2), np.array([-np.inf, -1.0]), np.array([np.inf, 1.0])
    assert interval_coverage(y, low, high) == (1.0, np.inf, 2)
    np.testing.assert_array_equal(interval_score(y, low, high, 0.9), [np.inf, 2.0])


def test_errors():
    one = np.ones(3)
    for use in (interval_coverage, lambda *a: interval_score(*a, 0.9)):
        with pytest.raises(ValueError, match="low must not be above high, found 1 and 0; are they"):
            use(one, one, 0 * one)
    with pytest.raises(ValueError, match="level is 90; give a number between 0 and 1"):
        interval_score(one, one, one, 90)


# weighted intervals ------------------------------------------------------------------------------


@given(quantiles())
def test_weighted_score_follows_the_definition(case):
    y, q, levels, order = case
    k = levels.size // 2
    expected = []
    for value, row in zip(y, q, strict=True):
        total = 0.5 * abs(value - row[k])
        for i in range(k):
            alpha, low, high = 2 * levels[i], row[i], row[-1 - i]
            outside = (low - value) * (value < low) + (value - high) * (value > high)
            total += alpha / 2 * (high - low + 2 / alpha * outside)
        expected.append(total / (k + 0.5))
    found = weighted_interval_score(y, q[:, order], levels[order])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if k:  # the library's weight of the median multiplies the median itself, not its error
        alphas = 2 * levels[:k]
        library = scoringrules.weighted_interval_score(
            y, q[:, k], q[:, :k], q[:, :k:-1], alphas, 0.0, alphas / 2
        )
        library = library + 0.5 * abs(y - q[:, k]) / (k + 0.5)
        np.testing.assert_allclose(found, library, rtol=1e-12, atol=1e-12)


def test_weighted_score_of_missing_values():
    y = np.array([0.0, np.nan, 1.0])
    q, levels = np.tile([-1.0, 0.5, 2.0], (3, 1)), np.array([0.1, 0.5, 0.9])
    q[2, 0] = np.nan
    found = weighted_interval_score(y, q, levels)
    np.testing.assert_array_equal(np.isnan(found), [False, True, True])


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (
            [0.1, 0.5, 0.8],
            r"but one minus the level is missing for 0.1, 0.8; .*: levels=\[0.5\]",
        ),
        ([0.9, 0.5, 0.8, 0.1], r"missing for 0.8; keep .*: levels=\[0.9, 0.5, 0.1\]"),
        ([0.1, 0.9], "levels must hold the median, 0.5, got .* use quantile_score for"),
        ([], "levels must hold the median"),
        ([0.1, 0.5, 0.5, 0.9], "levels must hold each level once, got"),
        ([10, 50, 90], "levels between 0 and 1, got .*; divide percentages by 100"),
    ],
)
def test_levels_that_have_no_weighted_score(levels, message):
    with pytest.raises(ValueError, match=message):
        weighted_interval_score(np.zeros(2), np.zeros((2, len(levels))), levels)
