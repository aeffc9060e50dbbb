import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays import (
    Forecasts,
    case_matrix,
    laplace_expectations,
    normal_squared_energy_distance,
    skce_biased,
    skce_blocks,
    skce_matrix,
    skce_unbiased,
    squared_energy_distance,
    target_bandwidth,
)
from xrecal.arrays.calibration.skce import normalised, subset_bandwidth
from xrecal.arrays.distributions.distance import shared_distances

value = st.integers(-20, 20).map(lambda v: v / 4)


def positive_median(d):
    pairs = d[np.triu_indices(len(d), 1)]
    positive = pairs[pairs > 1e-12 * pairs.max(initial=0.0)]
    return np.median(positive) if positive.size else np.inf


def reference_matrix(squared, forecasts, y):
    """h as a loop over pairs, from squared distances of the forecasts."""
    n, s, theta = y.size, positive_median(squared), target_bandwidth(y)
    cross, within = laplace_expectations(forecasts, y, theta)
    h = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            near = np.exp(-abs(y[i] - y[j]) / theta)
            h[i, j] = np.exp(-squared[i, j] / s) * (near - cross[i, j] - cross[j, i] + within[i, j])
    return h


def unbiased(h):
    n = len(h)
    return sum(h[i, j] for i in range(n) for j in range(i)) * 2 / (n * (n - 1))


@st.composite
def ensembles(draw):
    """Forecasts (n, m) with two different observations or more, and their weights."""
    n, m = draw(st.integers(2, 7)), draw(st.integers(1, 5))
    loc = draw(arrays(np.float64, (n, m), elements=value))
    weights = draw(arrays(np.float64, (n, m), elements=st.sampled_from([0.0, 0.3, 1.0])))
    weights[:, 0] += 1.0
    y = draw(arrays(np.float64, n, elements=value).filter(lambda y: np.ptp(y) > 0))
    return loc, weights / weights.sum(-1, keepdims=True), y


# published values --------------------------------------------------------------------------------


def gaussian_kernel_normals(loc, scale, y):
    """``exp(-W2)`` on normal forecasts and ``exp(-(y - y')² / 2)``; E under N(d, v) is closed."""

    def mean(gap, variance):
        return np.exp(-(gap**2) / (2 * (1 + variance))) / np.sqrt(1 + variance)

    loc, scale, y = (np.array(a, float) for a in (loc, scale, y))
    away, wider = np.subtract.outer(loc, loc), np.subtract.outer(scale, scale)
    return skce_matrix(
        np.exp(-np.hypot(away, wider)),
        np.exp(-(np.subtract.outer(y, y) ** 2) / 2),
        mean(np.subtract.outer(loc, y), (scale**2)[:, np.newaxis]),
        mean(away, np.add.outer(scale**2, scale**2)),
    )


def laplace_kernel_laplaces(loc, b, y):
    """``exp(-W2)`` on Laplace forecasts and ``exp(-|y - y'|)``, with E in closed form."""

    def mean(gap, b):  # E exp(-|X|) for X Laplace around the gap
        gap = abs(gap)
        if b == 1:
            return (1 + gap) * np.exp(-gap) / 2
        return (b * np.exp(-gap / b) - np.exp(-gap)) / (b * b - 1)

    def mean_of_two(gap, b, c):  # of the difference of two
        gap = abs(gap)
        if b == c == 1:
            return (3 + 3 * gap + gap**2) * np.exp(-gap) / 8
        # 1 / (1 + b²t²)(1 + c²t²) in partial fractions: a signed mixture of the two.
        return (b * b * mean(gap, b) - c * c * mean(gap, c)) / (b * b - c * c)

    n = len(y)
    cross = [[mean(loc[i] - y[j], b[i]) for j in range(n)] for i in range(n)]
    within = np.zeros((n, n))  # U does without the diagonal
    for i, j in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
        within[i, j] = mean_of_two(loc[i] - loc[j], b[i], b[j])
    away, wider = np.subtract.outer(loc, loc), np.subtract.outer(b, b)
    return skce_matrix(
        np.exp(-np.sqrt(away**2 + 2 * wider**2)),
        np.exp(-np.abs(np.subtract.outer(y, y))),
        np.array(cross),
        within,
    )


@pytest.mark.parametrize(
    ("build", "loc", "scale", "y", "expected"),
    [
        (gaussian_kernel_normals, [0, 0], [1, 1], [0, 0], 1 - np.sqrt(2) + 1 / np.sqrt(3)),
        (gaussian_kernel_normals, [0, 0], [1, 1], [0, 0], 0.163136706816531),
        (gaussian_kernel_normals, [0, 1], [1, 2], [1, 0], -0.0418606069882798),
        (gaussian_kernel_normals, [0, 1], [1, 2], [0, 1], 0.00651220001294023),
        (laplace_kernel_laplaces, [0, 0], [1, 1], [0, 0], 0.375),
        (laplace_kernel_laplaces, [0, 1], [1, 2], [1, 0], -0.037585845608841185),
        (laplace_kernel_laplaces, [0, 1], [1, 2], [0, 1], -0.005080714008454353),
    ],
)
def test_published_values(build, loc, scale, y, expected):
    assert skce_unbiased(build(loc, scale, y)) == pytest.approx(expected, abs=1e-12)


# the matrix of a location ------------------------------------------------------------------------


@given(ensembles())
def test_matrix_is_the_formula(case):
    loc, weights, y = case
    shared = Forecasts(loc[0], None, weights)
    own = np.tile(loc[0], (y.size, 1))
    normals = Forecasts(loc, np.abs(np.sin(loc)), weights)
    for forecasts, squared in (
        (Forecasts(loc), squared_energy_distance(loc)),
        (Forecasts(loc, None, weights), squared_energy_distance(loc, x_weights=weights)),
        (shared, squared_energy_distance(own, x_weights=weights)),
        (
            normals,
            normal_squared_energy_distance(loc, normals.scale, x_weights=weights),
        ),
    ):
        h = case_matrix(forecasts, y)
        np.testing.assert_allclose(h, reference_matrix(squared, forecasts, y), atol=1e-10)
        np.testing.assert_array_equal(h, h.T)
        assert np.linalg.eigvalsh(h).min() > -1e-10
        assert skce_unbiased(h) == pytest.approx(unbiased(h), abs=1e-13)
        assert skce_biased(h) == pytest.approx(h.mean(), abs=1e-13)
        assert skce_biased(h) >= 0


@given(ensembles(), st.floats(-50, 50), st.sampled_from([-3.0, 0.01, 20.0]))
def test_unit_and_origin_do_not_matter(case, shift, factor):
    loc, weights, y = case
    for scale in (None, np.full(loc.shape, 0.7)):
        wide = None if scale is None else scale * abs(factor)
        h = case_matrix(Forecasts(loc, scale, weights), y)
        moved = case_matrix(Forecasts(loc * factor + shift, wide, weights), y * factor + shift)
        np.testing.assert_allclose(moved, h, atol=1e-8)


@given(ensembles())
def test_an_observation_joins_its_ensemble(case):
    loc, _, y = case
    loc = loc.copy()
    loc[0, 1:] = np.nan  # one member, then two points
    joined = np.column_stack([loc, y])
    np.testing.assert_allclose(
        case_matrix(Forecasts(loc), y, augmented=True),
        case_matrix(Forecasts(joined), y),
        atol=1e-12,
    )


def test_incomplete_cases_are_left_out(rng):
    loc, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    loc[1], y[3], loc[4, 0], y[5], loc[6, 1] = np.nan, np.nan, np.nan, np.inf, -np.inf
    keep = [0, 2, 4, 7, 8]
    for scale in (None, np.ones((9, 3))):
        some = None if scale is None else scale[keep]
        np.testing.assert_array_equal(
            case_matrix(Forecasts(loc, scale), y), case_matrix(Forecasts(loc[keep], some), y[keep])
        )
    joined = case_matrix(Forecasts(loc), y, augmented=True)
    assert joined.shape == (5, 5)


def test_identical_forecasts_and_constant_observations(rng):
    y = rng.normal(size=4)
    h = case_matrix(Forecasts(np.ones((4, 3))), y)
    theta = target_bandwidth(y)
    near = np.exp(-np.abs(np.subtract.outer(y, y)) / theta)
    to = np.exp(-np.abs(y - 1) / theta)
    np.testing.assert_allclose(h, near - np.add.outer(to, to) + 1, atol=1e-12)
    assert np.isnan(case_matrix(Forecasts(rng.normal(size=(4, 3))), np.ones(4))).all()


def test_a_calibrated_forecast_has_none_on_average(rng):
    """Mean of U over samples within 4 standard errors of 0; theta fixed by the design."""
    found = []
    for _ in range(400):
        mean = rng.normal(size=12)
        forecasts = Forecasts(mean[:, np.newaxis], np.ones((12, 1)))
        y = mean + rng.normal(size=12)
        squared = normal_squared_energy_distance(mean, np.ones(12))
        expected = laplace_expectations(forecasts, y, 1.0)
        target = np.exp(-np.abs(np.subtract.outer(y, y)))
        found.append(skce_unbiased(skce_matrix(np.exp(-squared), target, *expected)))
    assert abs(np.mean(found)) < 4 * np.std(found) / 20


# blocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["plain", "weighted", "shared", "normal", "augmented"])
def test_blocks_are_matrices_of_their_cases(rng, form):
    loc, y = rng.normal(size=(23, 4)), rng.normal(size=23)
    weights = rng.dirichlet(np.ones(4), 23)
    forecasts = {
        "weighted": Forecasts(loc, None, weights),
        "shared": Forecasts(loc[0], None, weights),
        "normal": Forecasts(loc, rng.gamma(1, size=loc.shape), weights),
    }.get(form, Forecasts(loc))
    whole = case_matrix(forecasts, y, augmented=form == "augmented")
    found = skce_blocks(forecasts, y, 5, augmented=form == "augmented")
    expected = [unbiased(whole[i : i + 5, i : i + 5]) for i in (0, 5, 10, 15)]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    one = skce_blocks(forecasts, y, 23, augmented=form == "augmented")
    np.testing.assert_allclose(one, skce_unbiased(whole), atol=1e-10)
    assert skce_blocks(forecasts, y, 24).size == 0


def test_blocks_take_bandwidths_that_are_given(rng):
    loc, y = rng.normal(size=(6, 4)), rng.normal(size=6)
    found = skce_blocks(Forecasts(loc), y, 3, forecast_bandwidth=0.4, bandwidth=2.0)
    cross, within = laplace_expectations(Forecasts(loc), y, 2.0)
    target = np.exp(-np.abs(np.subtract.outer(y, y)) / 2)
    h = skce_matrix(np.exp(-squared_energy_distance(loc) / 0.4), target, cross, within)
    np.testing.assert_allclose(found, [unbiased(h[:3, :3]), unbiased(h[3:, 3:])], atol=1e-12)
    assert np.isnan(skce_blocks(Forecasts(loc), np.ones(6), 3)).all()


def test_bandwidth_of_many_forecasts(rng):
    loc = rng.normal(size=(900, 3))
    whole = positive_median(squared_energy_distance(loc))
    assert subset_bandwidth(normalised(Forecasts(loc))) == pytest.approx(whole, rel=0.1)
    dry = np.zeros((2000, 3))
    dry[[17, 400, 1999]] = [[1.0], [2.0], [4.0]]  # differences that the subset misses
    expected = positive_median(squared_energy_distance(dry[[0, 17, 400, 1999]]))
    assert subset_bandwidth(normalised(Forecasts(dry))) == pytest.approx(expected)
    assert subset_bandwidth(normalised(Forecasts(dry * 0))) == np.inf


# distances on a shared support -------------------------------------------------------------------


@given(ensembles())
def test_shared_distances_are_squared_energy_distances(case):
    loc, weights, y = case
    own = np.tile(loc[0], (y.size, 1))
    found = shared_distances(loc[0], weights)
    np.testing.assert_allclose(found, squared_energy_distance(own, x_weights=weights), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    same = shared_distances(loc[0], np.repeat(weights, 2, axis=0))
    assert (np.diag(same, 1)[::2] == 0).all()  # equal forecasts, not rounding
    np.testing.assert_allclose(
        positive_median(shared_distances(loc[0] + 1e3, weights)), positive_median(found), rtol=1e-9
    )


# types and errors --------------------------------------------------------------------------------


def test_too_few_cases():
    assert np.isnan(skce_unbiased(np.ones((1, 1))))
    assert np.isnan(skce_biased(np.ones((0, 0))))
    assert case_matrix(Forecasts(np.ones((3, 2))), np.full(3, np.nan)).shape == (0, 0)


def test_errors(rng):
    square, y = np.ones((3, 3)), np.arange(3.0)
    with pytest.raises(ValueError, match=r"must all be \(n, n\), got \(3, 3\), \(3, 3\), \(3, 2\)"):
        skce_matrix(square, square, square[:, :2], square)
    for use in (skce_unbiased, skce_biased):
        with pytest.raises(ValueError, match=r"the matrix must be square, \(n, n\), got \(3, 2\)"):
            use(square[:, :2])
    with pytest.raises(ValueError, match=r"observations have shape \(2,\), but the forecasts need"):
        case_matrix(Forecasts(square), y[:2])
    for forecasts in (Forecasts(square, square), Forecasts(square, None, square / 3)):
        with pytest.raises(ValueError, match="augmented=True is for plain ensembles"):
            case_matrix(forecasts, y, augmented=True)
    with pytest.raises(ValueError, match="weights of forecast 0 sum to 3, not to one; divide"):
        case_matrix(Forecasts(square, None, square), y)
    for length in (1, 2.5):
        with pytest.raises(ValueError, match=f"block_length is {length}; give a whole number from"):
            skce_blocks(Forecasts(square), y, length)
    for wrong in ({"bandwidth": 0.0}, {"forecast_bandwidth": -1.0}, {"forecast_bandwidth": np.nan}):
        with pytest.raises(ValueError, match=r"bandwidths are .*; give positive numbers"):
            skce_blocks(Forecasts(square), y, 2, **wrong)
