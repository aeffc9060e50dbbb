"""The factor of low rank against the kernel matrix."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays import Forecasts
from xrecal.arrays.ckme.location import locations
from xrecal.arrays.ckme.lowrank import LowRank
from xrecal.arrays.kernels.kernel import no_features

from .test_ckme import make_cases, with_covariates


def location(rng, n=60, *, low_rank=True, weights=False):
    x, y = make_cases(rng, 1, n, missing=False)
    of, _ = with_covariates(rng, 1, n)
    logarithm = -np.arange(n)[np.newaxis] / 20.0 if weights else np.zeros((1, n))
    (one,) = locations(Forecasts(x), y, of, logarithm, centred=True, shapes=False)
    return replace(one, low_rank=low_rank)


def location_of(forecasts, y, **how):
    """The only location, without covariates: forecasts (n, m) and observations (n,)."""
    n, given = y.size, forecasts.map(lambda part: part[np.newaxis])
    plain = no_features(1, n), np.zeros((1, n))
    (one,) = locations(given, y[np.newaxis], *plain, centred=False, shapes=False)
    return replace(one, **how)


def gram(seed, weights, strength, width):
    """The factor's location, and the kernel matrix by itself."""
    ours = location(np.random.default_rng(seed), weights=weights)
    exact = location(np.random.default_rng(seed), low_rank=False, weights=weights)
    assert ours.median == exact.median
    return ours, exact.gram(width * exact.median, strength), (width * ours.median, strength)


@given(
    st.integers(0, 5), st.booleans(), st.sampled_from([0.0, 0.25, 4.0]), st.sampled_from([1.0, 4.0])
)
def test_what_is_left_is_what_it_says_and_never_negative(seed, weights, strength, width):
    ours, matrix, kernel = gram(seed, weights, strength, width)
    factor = LowRank(ours, *kernel)
    rank = 0
    for tolerance in (0.3, 0.03, 1e-3, 1e-6):
        assert factor.extend(tolerance) == len(factor.landmarks)
        left = matrix - factor.rows.T @ factor.rows
        assert np.diag(left).mean() == pytest.approx(factor.residual, abs=1e-10)
        assert factor.residual <= tolerance
        assert np.linalg.eigvalsh(left).min() > -1e-8
        assert len(factor.landmarks) == len(set(factor.landmarks)) >= rank
        rank = len(factor.landmarks)


def test_the_first_landmarks_serve_a_larger_tolerance():
    ours, _, kernel = gram(0, True, 1.0, 1.0)
    whole = LowRank(ours, *kernel)
    whole.extend(1e-4)
    again = LowRank(ours, *kernel, whole.landmarks)
    for tolerance in (0.3, 0.03, 1e-3):
        few = LowRank(ours, *kernel)
        rank = few.extend(tolerance)
        assert whole.extend(tolerance) == again.extend(tolerance) == rank < len(whole.landmarks)
        assert whole.landmarks[:rank] == few.landmarks
        np.testing.assert_allclose(whole.rows[:rank], few.rows, atol=1e-9)


def test_the_rank_has_a_limit():
    ours, _, kernel = gram(0, False, 4.0, 1.0)
    factor = LowRank(replace(ours, most_landmarks=7), *kernel)
    factor.extend(1e-6)
    assert len(factor.landmarks) == 7
    assert factor.residual > 1e-6


def test_it_can_start_from_landmarks_and_go_on():
    ours, _, kernel = gram(1, True, 1.0, 1.0)
    whole = LowRank(ours, *kernel)
    whole.extend(1e-2)
    again = LowRank(ours, *kernel, whole.landmarks)
    np.testing.assert_allclose(again.rows.T @ again.rows, whole.rows.T @ whole.rows, atol=1e-9)
    assert again.residual == pytest.approx(whole.residual, abs=1e-10)
    for factor in (whole, again):
        factor.extend(1e-4)
    assert whole.landmarks == again.landmarks
    np.testing.assert_allclose(again.rows.T @ again.rows, whole.rows.T @ whole.rows, atol=1e-7)


def test_the_solver_takes_similarities_to_signed_weights():
    ours, matrix, kernel = gram(3, True, 1.0, 1.0)
    factor = LowRank(ours, *kernel)
    factor.extend(1e-3)
    some = factor.landmarks
    # Nyström: K is replaced by K_np K_pp⁻¹ K_pn, and k(x) by K_np K_pp⁻¹ k_p(x).
    across = matrix[:, some] @ np.linalg.inv(matrix[np.ix_(some, some)])
    ridge = 0.01 * 60 * np.eye(60)
    expected = across.T @ np.linalg.inv(across @ matrix[some] + ridge)
    solve = factor.solver(0.01, len(some))
    np.testing.assert_allclose(solve(np.eye(len(some))), expected, atol=1e-7)
