import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression

from xrecal.arrays import corp, idr_weights, quantile_reliability, weighted_quantile
from xrecal.arrays.rows import FEWEST

LEVELS = (0.1, 0.25, 0.5, 0.7, 0.9)

probabilities = st.integers(0, 5).map(lambda k: k / 5)
values = st.integers(-6, 6).map(lambda v: v / 2)


@st.composite
def events(draw):
    n = draw(st.integers(2, 9))
    event = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0])))
    return draw(arrays(np.float64, n, elements=probabilities)), event


@st.composite
def quantiles(draw):
    n = draw(st.integers(2, 9))
    forecast, observed = (draw(arrays(np.float64, n, elements=values)) for _ in range(2))
    return forecast, observed, draw(st.sampled_from(LEVELS))


def lower_quantile(y, level):
    y = np.sort(y)
    return y[max(int(np.ceil(level * y.size - 1e-9)) - 1, 0)]


def max_min(forecast, y, functional):
    """Isotonic regression of a functional: largest smallest one over stretches of forecasts."""

    def over(low, high):
        return functional(y[(forecast >= low) & (forecast <= high)])

    distinct = np.unique(forecast)
    return [
        max(
            min(over(low, high) for high in distinct[distinct >= f])
            for low in distinct[distinct <= f]
        )
        for f in forecast
    ]


def pinball(q, y, level):
    return np.mean(np.where(y >= q, level * (y - q), (1 - level) * (q - y)))


def check_parts(parts, score, recalibrated, constant):
    """A decomposition from its three scores."""
    expected = score - recalibrated, constant - recalibrated, constant, score
    np.testing.assert_allclose(parts, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(parts[0] - parts[1] + parts[2], parts[3], atol=1e-13)
    assert min(parts) >= -1e-14


# probabilities -----------------------------------------------------------------------------------


@given(events())
def test_probabilities_follow_the_formula(case):
    p, event = case
    recalibrated, parts = corp(p, event)
    np.testing.assert_allclose(recalibrated, max_min(p, event, np.mean), atol=1e-14)
    scores = (np.mean((q - event) ** 2) for q in (p, recalibrated, event.mean()))
    check_parts(parts, *scores)


def test_probabilities_equal_other_libraries(rng):
    sklearn = pytest.importorskip("sklearn.isotonic")
    p = rng.random(300).round(2)
    event = (rng.random(300) < p**2).astype(float)
    recalibrated, _ = corp(p, event)
    expected = sklearn.IsotonicRegression().fit_transform(p, event)
    np.testing.assert_allclose(recalibrated, expected, atol=1e-12)
    _, place, count = np.unique(p, return_inverse=True, return_counts=True)
    means = np.bincount(place, event) / count
    fitted = isotonic_regression(means, weights=count).x[place]
    np.testing.assert_allclose(recalibrated, fitted, atol=1e-12)
    from scores import processing

    found = processing.isotonic_fit(p, event)
    by_scores = found["regression_values"][np.searchsorted(found["fcst_sorted"], p)]
    np.testing.assert_allclose(recalibrated, by_scores, atol=1e-12)


@given(events())
def test_laws_of_probabilities(case):
    p, event = case
    recalibrated, parts = corp(p, event)
    assert (np.diff(recalibrated[np.argsort(p, kind="stable")]) >= 0).all()
    assert recalibrated.mean() == pytest.approx(event.mean())
    again, others = corp(recalibrated, event)
    np.testing.assert_array_equal(again, recalibrated)
    assert others.miscalibration == 0
    assert others.discrimination == parts.discrimination
    squared, _ = corp(p**2, event)  # only the order counts
    np.testing.assert_array_equal(squared, recalibrated)
    opposite, mirrored = corp(1 - p, 1 - event)
    np.testing.assert_allclose(opposite, 1 - recalibrated, atol=1e-14)
    np.testing.assert_allclose(mirrored, parts, atol=1e-14)


def test_known_probabilities():
    recalibrated, parts = corp(np.array([0.2, 0.4, 0.4, 0.8]), np.array([0, 1, 0, 1], bool))
    np.testing.assert_array_equal(recalibrated, [0, 0.5, 0.5, 1])
    np.testing.assert_allclose(parts, [0.15 - 0.125, 0.125, 0.25, 0.15])
    constant, parts = corp(np.full(4, 0.25), np.array([0, 0, 0, 1]))
    np.testing.assert_array_equal(constant, np.full(4, 0.25))
    np.testing.assert_array_equal(parts, [0, 0, 0.1875, 0.1875])
    _, never = corp(np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(never, np.zeros(4))
    _, rounded = corp(np.array([-1e-7, 1 + 1e-7]), np.array([0.0, 1.0]))
    assert rounded.score == 0


# quantiles ---------------------------------------------------------------------------------------


@given(quantiles())
def test_quantiles_follow_the_formula(case):
    forecast, y, level = case
    recalibrated, parts = quantile_reliability(forecast, y, level)
    expected = max_min(forecast, y, lambda part: lower_quantile(part, level))
    np.testing.assert_array_equal(recalibrated, expected)
    constant = np.full(y.size, lower_quantile(y, level))
    check_parts(parts, *(pinball(q, y, level) for q in (forecast, recalibrated, constant)))


@given(quantiles())
def test_quantiles_are_those_of_isotonic_distributional_regression(case):
    forecast, y, level = case
    weights = idr_weights(forecast[np.newaxis], forecast[np.newaxis], y[np.newaxis])[0]
    expected = weighted_quantile(y, [level], weights)[:, 0]
    np.testing.assert_array_equal(quantile_reliability(forecast, y, level)[0], expected)


@given(quantiles(), st.floats(0.5, 3), st.integers(-5, 5))
def test_laws_of_quantiles(case, factor, shift):
    forecast, y, level = case
    recalibrated, parts = quantile_reliability(forecast, y, level)
    assert (np.diff(recalibrated[np.argsort(forecast, kind="stable")]) >= 0).all()
    assert np.isin(recalibrated, y).all()
    again, others = quantile_reliability(recalibrated, y, level)
    np.testing.assert_array_equal(again, recalibrated)
    assert others.miscalibration == 0
    _, scaled = quantile_reliability(factor * forecast + shift, factor * y + shift, level)
    np.testing.assert_allclose(scaled, factor * np.array(parts), atol=1e-12)
    cubed, _ = quantile_reliability(forecast**3, y, level)  # only the order counts
    np.testing.assert_array_equal(cubed, recalibrated)


# both --------------------------------------------------------------------------------------------


def test_few_and_infinite_cases(rng):
    p, y = rng.random(30), rng.normal(size=30)
    uses = (corp, y > 0), (lambda a, b: quantile_reliability(a, b, 0.4), y)
    for use, target in uses:
        for n in (0, FEWEST - 1):
            recalibrated, parts = use(p[:n], target[:n])
            assert recalibrated.shape == (n,)
            assert np.isnan([*recalibrated, *parts]).all()
    y[5], p[6] = np.inf, -np.inf
    recalibrated, parts = quantile_reliability(p, y, 0.4)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(recalibrated)), [5, 6])
    assert np.isfinite(parts).all()


def test_errors():
    p = np.array([0.1, 0.5])
    with pytest.raises(ValueError, match="probability must lie between 0 and 1, found 30; divide"):
        corp(np.array([30.0, 0.0]), p > 1)
    with pytest.raises(ValueError, match="event must be 0 or 1, found 280; compare with a thres"):
        corp(p, np.array([280.0, 281.0]))
    with pytest.raises(ValueError, match="level is 1; give a number between 0 and 1"):
        quantile_reliability(p, p, 1)
