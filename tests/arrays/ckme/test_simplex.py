import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from scipy.optimize import isotonic_regression

from xrecal.arrays import project_energy, project_simplex


def sorted_projection(beta):
    """Euclidean projection of one row by sorting (Duchi et al. 2008, figure 1)."""
    descending = np.sort(beta)[::-1]
    excess = np.cumsum(descending) - 1
    kept = np.flatnonzero(descending - excess / np.arange(1, beta.size + 1) > 0)[-1]
    return np.maximum(beta - excess[kept] / (kept + 1), 0)


def isotonic_projection(beta, support):
    """Energy projection of one row that sums to one, by SciPy's isotonic regression."""
    values, place, ties = np.unique(support, return_inverse=True, return_counts=True)
    if values.size == 1:
        return np.full(beta.size, 1 / beta.size)
    signed = np.cumsum(np.bincount(place, beta))[:-1]
    cdf = np.clip(isotonic_regression(signed, weights=np.diff(values)).x, 0, 1)
    return (np.diff([0, *cdf, 1]) / ties)[place]


def energy_kernel(support):
    size = np.abs(support)
    return size[:, np.newaxis] + size - np.abs(np.subtract.outer(support, support))


def objective(theta, beta, support):
    return (theta - beta) @ energy_kernel(support) @ (theta - beta)


def quadratic_program(beta, support):
    """``argmin (theta-beta)'L(theta-beta)`` over the simplex by an interior-point solver."""
    n, L = beta.size, energy_kernel(support)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    settings.max_iter = 100
    constraints = sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)]))
    solution = clarabel.DefaultSolver(
        sparse.triu(sparse.csc_matrix(2 * L), format="csc"),
        -2 * L @ beta,
        constraints,
        np.array([1.0, *np.zeros(n)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    return np.array(solution.x)


def cdf(weights, support):
    return np.array([weights[support <= z].sum() for z in np.unique(support)])


rows = arrays(
    np.float64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.floats(-5, 5)
)


@st.composite
def signed_weights(draw, total=None):
    """Weights of one row, and a support with ties."""
    n = draw(st.integers(1, 9))
    beta = draw(arrays(np.float64, n, elements=st.floats(-2, 2).map(lambda v: round(v, 3))))
    support = draw(arrays(np.float64, n, elements=st.integers(-8, 8).map(lambda v: v / 2)))
    return beta + (0 if total is None else (total - beta.sum()) / n), support


# Euclidean ---------------------------------------------------------------------------------------


@given(rows)
def test_simplex_equals_the_sort_based_projection(beta):
    expected = np.array([sorted_projection(row) for row in beta])
    np.testing.assert_allclose(project_simplex(beta), expected, atol=1e-14)


def test_simplex_of_large_matrices(rng):
    for spread in (1e-4, 1.0, 1e4):
        beta = spread * rng.standard_t(2, size=(5, 2000))
        expected = np.array([sorted_projection(row) for row in beta])
        np.testing.assert_allclose(project_simplex(beta), expected, atol=1e-10 * spread)


@given(rows)
def test_simplex_is_optimal(beta):
    theta = project_simplex(beta)
    assert (theta >= 0).all()
    np.testing.assert_allclose(theta.sum(1), 1.0, atol=1e-14)
    # Kuhn-Tucker: one multiplier for all weights in use, and none of the others would gain.
    for row, weights in zip(beta, theta, strict=True):
        multiplier = (row - weights)[weights > 0]
        assert np.ptp(multiplier) < 1e-13
        assert (row[weights == 0] <= multiplier.mean() + 1e-13).all()


@given(rows, st.floats(-1e6, 1e6))
def test_simplex_ignores_a_constant(beta, shift):
    moved = project_simplex(beta + shift)
    np.testing.assert_allclose(moved, project_simplex(beta), atol=1e-8)
    np.testing.assert_allclose(moved.sum(1), 1.0, atol=1e-12)


@given(rows)
def test_simplex_is_idempotent_and_commutes_with_order(beta):
    theta = project_simplex(beta)
    np.testing.assert_allclose(project_simplex(theta), theta, atol=1e-15)
    np.testing.assert_allclose(project_simplex(beta[:, ::-1]), theta[:, ::-1], atol=1e-15)


def test_simplex_of_huge_weights_still_sums_to_one(rng):
    np.testing.assert_array_equal(project_simplex(np.array([1e17, 0.0])), [1, 0])
    beta = 1e9 + 1e-3 * rng.normal(size=1000)
    assert project_simplex(beta).sum() == pytest.approx(1.0, abs=1e-12)


# energy ------------------------------------------------------------------------------------------


SUPPORTS = {
    "both signs": lambda rng, n: rng.normal(size=n),
    "positive": lambda rng, n: 1 + rng.gamma(1, size=n),
    "negative": lambda rng, n: -1 - rng.gamma(1, size=n),
    "ties": lambda rng, n: np.round(2 * rng.normal(size=n)) / 2,
    "zeros": lambda rng, n: np.maximum(rng.normal(size=n), 0),
}


@pytest.mark.parametrize("total", [1.0, 0.4, 1.7, -0.3])
@pytest.mark.parametrize("name", SUPPORTS)
def test_energy_solves_the_quadratic_program(rng, name, total):
    for n in (2, 5, 12, 30):
        support = SUPPORTS[name](rng, n)
        beta = rng.normal(size=n) / np.sqrt(n)
        beta += (total - beta.sum()) / n
        theta, reference = project_energy(beta, support), quadratic_program(beta, support)
        np.testing.assert_allclose(cdf(theta, support), cdf(reference, support), atol=1e-8)
        best = objective(reference, beta, support)
        assert objective(theta, beta, support) == pytest.approx(best, abs=1e-10)


@given(signed_weights())
def test_energy_is_optimal(case):
    beta, support = case
    theta = project_energy(beta, support)
    assert (theta >= 0).all()
    assert theta.sum() == pytest.approx(1.0, abs=1e-14)
    # Kuhn-Tucker: the gradient is smallest, and the same, wherever there is weight.
    gradient = energy_kernel(support) @ (theta - beta)
    used = theta > 1e-12
    assert np.ptp(gradient[used]) < 1e-10
    assert (gradient > gradient[used].max() - 1e-10).all()


@given(signed_weights(total=1.0))
def test_energy_of_unit_mass_is_isotonic_regression_of_the_cdf(case):
    beta, support = case
    expected = isotonic_projection(beta, support)
    np.testing.assert_allclose(project_energy(beta, support), expected, atol=1e-13)


@given(signed_weights(total=1.0), st.floats(-100, 100))
def test_energy_of_unit_mass_ignores_the_origin(case, shift):
    beta, support = case
    moved = project_energy(beta, support + round(shift, 1))
    np.testing.assert_allclose(moved, project_energy(beta, support), atol=1e-11)


@given(signed_weights())
def test_energy_laws(case):
    beta, support = case
    theta = project_energy(beta, support)
    for value in np.unique(support):  # equal observations share equally
        assert np.ptp(theta[support == value]) == 0
    np.testing.assert_allclose(project_energy(theta, support), theta, atol=1e-13)
    mirrored = project_energy(beta, -support)
    np.testing.assert_allclose(mirrored, theta, atol=1e-13)
    scaled = project_energy(beta, 1000 * support)
    np.testing.assert_allclose(scaled, theta, atol=1e-13)
    reordered = project_energy(beta[::-1], support[::-1])
    np.testing.assert_allclose(reordered, theta[::-1], atol=1e-13)


# both --------------------------------------------------------------------------------------------


def test_rows_with_nan_give_nan(rng):
    beta, support = rng.normal(size=(4, 5)), rng.normal(size=5)
    beta[1, 0] = beta[2, np.argmax(support)] = np.nan
    beta[3] = np.nan
    for theta in (project_simplex(beta), project_energy(beta, support)):
        assert np.isfinite(theta[0]).all()
        assert np.isnan(theta[1:]).all()


def test_rows_are_projected_alone_and_there_may_be_none(rng):
    beta, support = rng.normal(size=(3, 6)), rng.normal(size=6)
    for project in (project_simplex, lambda b: project_energy(b, support)):
        np.testing.assert_array_equal(project(beta[1]), project(beta)[1])
        assert project(np.empty((0, 6))).shape == (0, 6)


def test_errors():
    with pytest.raises(ValueError, match=r"beta needs shape \(N, n\) with n > 0, got \(3, 0\)"):
        project_simplex(np.empty((3, 0)))
    with pytest.raises(ValueError, match=r"beta needs shape \(N, n\) with n > 0, got \(1, 2, 3\)"):
        project_energy(np.zeros((1, 2, 3)), np.zeros(3))
    with pytest.raises(ValueError, match=r"support has shape \(2,\), but beta has 3 weights a row"):
        project_energy(np.zeros((1, 3)), np.zeros(2))
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="support must be finite; leave missing observations"):
            project_energy(np.zeros(2), np.array([0.0, value]))
