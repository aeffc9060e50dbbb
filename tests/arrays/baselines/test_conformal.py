import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import conformal_levels, conformal_margins


@given(
    arrays(np.float64, (1, 9), elements=st.floats(0, 1) | st.just(np.nan)), st.floats(0.01, 0.99)
)
def test_conformal_levels_are_the_formula(pit, alpha):
    score = np.sort(np.abs(pit[~np.isnan(pit)] - 0.5))
    k = np.ceil((1 - alpha) * (score.size + 1) - 1e-12)
    found = conformal_levels(pit, alpha)
    if score.size == 0:
        assert np.isnan(found).all()
    else:
        half = 0.5 if k > score.size else score[int(k) - 1]
        np.testing.assert_array_equal(found, [[0.5 - half, 0.5 + half]])


def test_conformal_levels_known_values():
    pit = np.array([[0.5, 0.4, 0.65, 0.3, 0.75, 0.8, 0.15, 0.9, 0.95]])
    np.testing.assert_allclose(conformal_levels(pit, 0.1), [[0.05, 0.95]])
    np.testing.assert_allclose(conformal_levels(pit, 0.7), [[0.35, 0.65]])  # k = 3, not 4
    np.testing.assert_array_equal(conformal_levels(pit, 0.09), [[0, 1]])


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.65])
def test_conformal_coverage(rng, alpha):
    pit = rng.beta(0.6, 0.9, size=(20_000, 20))  # far from calibrated
    low, high = conformal_levels(pit[:, 1:], alpha).T
    covered = (low <= pit[:, 0]) & (pit[:, 0] <= high)
    exact = np.ceil((1 - alpha) * 20 - 1e-9) / 20
    assert covered.mean() == pytest.approx(exact, abs=0.01)


misses = arrays(np.float64, (1, 9), elements=st.floats(-5, 5) | st.just(np.nan))


@given(misses, st.floats(0.01, 0.99))
def test_conformal_margins_are_the_formula(missed, alpha):
    known = np.sort(missed[~np.isnan(missed)])
    k = int(np.ceil((1 - alpha) * (known.size + 1) - 1e-9))
    found = conformal_margins(missed, alpha)
    expected = known[min(k, known.size) - 1] if known.size else np.nan
    np.testing.assert_array_equal(found, [expected])
    alike = np.where(np.isnan(missed), 0.0, 1.0 / max(known.size, 1))[:, np.newaxis]
    alike[:, :, known.size == 0] = np.nan
    np.testing.assert_array_equal(conformal_margins(missed, alpha, alike), [[expected]])


def test_similar_cases_tell_the_margins():
    missed = np.array([[3.0, 1.0, 2.0, 4.0]])
    weights = np.array([[[0.0, 0.5, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5], [np.nan] * 4]])
    np.testing.assert_array_equal(conformal_margins(missed, 0.3, weights), [[2.0, 4.0, np.nan]])


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.4])
def test_the_next_case_lies_beyond_a_margin_as_often_as_it_may(rng, alpha):
    missed = rng.gamma(0.7, size=(20_000, 30)) - 1.0
    beyond = missed[:, 0] > conformal_margins(missed[:, 1:], alpha)
    exact = 1 - np.ceil((1 - alpha) * 30 - 1e-9) / 30
    assert beyond.mean() == pytest.approx(exact, abs=0.01)
    assert exact <= alpha


@pytest.mark.parametrize(
    ("function", "name"), [(conformal_levels, "pit"), (conformal_margins, "misses")]
)
def test_errors(function, name):
    right = np.zeros((2, 5))
    for alpha in (0, 1, np.nan):
        with pytest.raises(ValueError, match="alpha must be between 0 and 1, got"):
            function(right, alpha)
    with pytest.raises(
        ValueError, match=rf"{name} must have shape \(locations, cases\), got \(5,\)"
    ):
        function(right[0], 0.1)
