import numpy as np
import properscoring
import pytest
from scipy.optimize import approx_fprime, minimize

from xrecal.arrays.emos import fit_emos, mean_crps, predict_emos

TRUTH = np.array([0.5, 0.8, 1.2, 0.6])


def simulate(rng, n, coefficients=TRUTH):
    a, b, c, d = coefficients
    x, v = rng.normal(2.0, 3.0, n), rng.gamma(2.0, 0.7, n)
    return x, v, a + b * x + np.sqrt(c**2 + d**2 * v) * rng.standard_normal(n)


def fit(x, v, y, min_samples=20):
    coefficients, n_cases, converged = fit_emos([x], [v], [y], min_samples)
    return coefficients[0], n_cases[0], converged[0]


def crps(coefficients, x, v, y):
    a, b, c, d = coefficients
    return np.mean(properscoring.crps_gaussian(y, a + b * x, np.sqrt(c**2 + d**2 * v)))


def best_of_scipy(x, v, y):
    slope = np.cov(x, y)[0, 1] / np.var(x, ddof=1)
    results = []
    for c, d in [(1.0, 0.1), (0.1, 1.0), (0.6, 0.6)]:
        start = [y.mean() - slope * x.mean(), slope, c * y.std(), d * y.std() / np.sqrt(v.mean())]
        result = minimize(crps, start, args=(x, v, y), method="BFGS")
        result = minimize(crps, result.x, args=(x, v, y), method="Nelder-Mead")
        results.append(result.fun)
    return min(results)


def noise(kind, rng, v):
    n = v.size
    return {
        "constant": lambda: rng.standard_normal(n),
        "spread-skill": lambda: rng.standard_normal(n) * np.sqrt(v),
        "heavy tails": lambda: rng.standard_t(2, n),
        "inverse spread": lambda: rng.standard_normal(n) / np.sqrt(v + 0.1),
        "rain": lambda: rng.exponential(size=n) * v * (rng.random(n) < 0.6),
    }[kind]()


@pytest.mark.parametrize("n", [25, 200])
@pytest.mark.parametrize(
    "kind", ["constant", "spread-skill", "heavy tails", "inverse spread", "rain"]
)
def test_no_worse_than_scipy_from_many_starts(rng, kind, n):
    x, v = rng.normal(size=n), rng.gamma(0.7, size=n)
    y = 0.3 + 0.5 * x + noise(kind, rng, v)
    coefficients, _, converged = fit(x, v, y)
    assert converged
    assert crps(coefficients, x, v, y) <= best_of_scipy(x, v, y) * (1 + 1e-6)


def test_two_minima():
    # Found by search: from c = d, or from c alone, the descent ends in the worse minimum.
    rng = np.random.default_rng(24)
    n = int(rng.choice([20, 30, 60, 200]))
    x, v = rng.normal(size=n), rng.gamma(rng.choice([0.3, 1, 5]), size=n)
    y = rng.normal(size=n) - 0.5 * x
    assert crps(fit(x, v, y)[0], x, v, y) <= best_of_scipy(x, v, y) * (1 + 1e-6)


def test_derivatives_and_value(rng):
    x, v, y = simulate(rng, 40)
    v[:5] = 0.0
    gradient, hessian = np.empty(4), np.empty((4, 4))
    scratch = np.empty(4), np.empty((4, 4))
    for parameters in rng.normal(size=(5, 4)):
        value = mean_crps(parameters, x, v, y, gradient, hessian)
        np.testing.assert_allclose(value, crps(parameters, x, v, y), rtol=1e-12)
        slopes = approx_fprime(parameters, lambda p: mean_crps(p, x, v, y, *scratch), 1e-7)
        np.testing.assert_allclose(gradient, slopes, atol=1e-5)

        def first_derivative(p):
            mean_crps(p, x, v, y, *scratch)
            return scratch[0].copy()

        curvature = approx_fprime(parameters, first_derivative, 1e-7)
        np.testing.assert_allclose(hessian, curvature, rtol=1e-4, atol=1e-4)


def test_recovers_known_coefficients(rng):
    coefficients, n_cases, converged = fit(*simulate(rng, 20_000))
    np.testing.assert_allclose(coefficients, TRUTH, atol=0.05)
    assert n_cases == 20_000
    assert converged


@pytest.mark.parametrize(
    ("factor", "offset"), [(1.0, 273.15), (1e-3, 0.0), (1e-3, -5.0), (1.8, 32.0), (1e5, 1e5)]
)
def test_a_change_of_units_changes_nothing_else(rng, factor, offset):
    x, v, y = simulate(rng, 2000)
    a, b, c, d = fit(x, v, y)[0]
    actual = fit(factor * x + offset, factor**2 * v, factor * y + offset)[0]
    expected = [factor * a + offset * (1 - b), b, factor * c, d]
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6 * factor)


def test_locations_are_independent(rng):
    cases = [np.stack(a) for a in zip(*(simulate(rng, 50) for _ in range(4)), strict=True)]
    cases[0][2, :40] = np.nan
    coefficients, n_cases, converged = fit_emos(*cases)
    assert coefficients.shape == (4, 4)
    assert (n_cases.dtype, converged.dtype) == (np.int32, np.bool_)
    np.testing.assert_array_equal(n_cases, [50, 50, 10, 50])
    np.testing.assert_array_equal(converged, [True, True, False, True])
    assert np.isnan(coefficients[2]).all()
    for i in (0, 1, 3):
        np.testing.assert_array_equal(coefficients[i], fit(*(a[i] for a in cases))[0])


@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_cases_are_dropped(rng, missing):
    cases = simulate(rng, 60)
    expected = fit(*(a[3:] for a in cases))[0]
    for hole, values in enumerate(cases):
        values[hole] = abs(missing) if hole == 1 else missing
    coefficients, n_cases, _ = fit(*cases)
    np.testing.assert_array_equal(coefficients, expected)
    assert n_cases == 57


# degenerate cases --------------------------------------------------------------------------------


def test_constant_ensemble_mean(rng):
    x, v, y = simulate(rng, 100)
    x[:] = 281.3
    coefficients, _, converged = fit(x, v, y)
    assert converged
    assert coefficients[1] == 0.0
    expected = minimize(lambda p: crps([p[0], 0.0, p[1], p[2]], x, v, y), [2.0, 2.0, 1.0]).fun
    assert crps(coefficients, x, v, y) <= expected * (1 + 1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_constant_spread_leaves_all_to_c(rng, spread):
    x, _, y = simulate(rng, 100)
    v = np.full(100, spread)
    coefficients, _, converged = fit(x, v, y)
    assert converged
    assert coefficients[3] == 0.0
    expected = minimize(lambda p: crps([*p, 0.0], x, v, y), [1.0, 1.0, 1.0]).fun
    assert crps(coefficients, x, v, y) <= expected * (1 + 1e-6)


@pytest.mark.parametrize("value", [0.0, 273.15, -1e-3])
def test_constant_observations(rng, value):
    x, v, _ = simulate(rng, 100)
    coefficients, _, converged = fit(x, v, np.full(100, value))
    assert converged
    np.testing.assert_allclose(coefficients, [value, 0.0, 0.0, 0.0], rtol=1e-14)


def test_exact_line(rng):
    x, v, y = simulate(rng, 100)
    np.testing.assert_allclose(fit(x, v, 2 + 3 * x)[0], [2.0, 3.0, 0.0, 0.0], atol=1e-12)
    coefficients = fit(x, v, 2 + 3 * x + 1e-9 * y)[0]
    np.testing.assert_allclose(coefficients[2:], 1e-9 * fit(x, v, y)[0][2:], rtol=1e-4)


def test_mostly_dry_location(rng):
    v, wet = rng.gamma(1.0, size=200), rng.random(200) < 0.2
    y = np.where(wet, rng.gamma(1.0, size=200), 0.0)
    for x in (rng.normal(size=200), np.where(wet, y, 0.0) + 0.1 * wet, np.zeros(200)):
        coefficients, _, _ = fit(x, np.where(wet, v, 0.0), y)
        assert np.isfinite(coefficients).all()
        coefficients[2] += 1e-9  # properscoring divides by the scale
        assert crps(coefficients, x, v * wet, y) < y.mean()
    coefficients = fit(np.zeros(200), np.zeros(200), np.eye(1, 200)[0])[0]
    assert np.isfinite(coefficients).all()


@pytest.mark.parametrize("outlier", [1e3, 1e6, -1e9])
def test_outliers_barely_count(rng, outlier):
    x, v, y = simulate(rng, 200)
    expected = fit(x, v, y)[0]
    y[7] = outlier
    coefficients, _, converged = fit(x, v, y)
    assert converged
    np.testing.assert_allclose(coefficients, expected, atol=0.2)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_cases_stay_finite(rng, n):
    x, v, y = simulate(rng, n)
    assert np.isfinite(fit(x, v, y, min_samples=1)[0]).all()
    assert np.isnan(fit(x, v, y)[0]).all()
    assert np.isnan(fit(x[:0], v[:0], y[:0])[0]).all()


# prediction and rules of all ---------------------------------------------------------------------


def test_prediction():
    loc, scale = predict_emos(
        [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 0.0]], [[0.5, 1.0], [np.inf, 7.0]], [[0.0, 1.0]] * 2
    )
    np.testing.assert_array_equal(loc, [[2.0, 3.0], [np.nan, 7.0]])
    np.testing.assert_array_equal(scale, [[3.0, 5.0], [np.nan, 0.0]])
    loc, scale = predict_emos(np.full((1, 4), np.nan), [[1.0]], [[1.0]])
    assert np.isnan([loc, scale]).all()


def test_inputs_are_not_changed_and_float32_is_computed_in_float64(rng):
    single = [a[np.newaxis].astype(np.float32) for a in simulate(rng, 50)]
    double = [a.astype(np.float64) for a in single]
    for a in (*single, *double):
        a.flags.writeable = False
    results = [fit_emos(*arrays)[0] for arrays in (single, double)]
    assert results[0].dtype == np.float64
    np.testing.assert_array_equal(*results)
    results[0].flags.writeable = False
    for actual, expected in zip(
        predict_emos(results[0], *single[:2]), predict_emos(results[0], *double[:2]), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def test_errors():
    good = np.ones((2, 30))
    with pytest.raises(ValueError, match=r"must all have shape \(locations, cases\), found"):
        fit_emos(good, good, good[:, 1:])
    with pytest.raises(ValueError, match=r"one location is means\[np.newaxis\]"):
        fit_emos(good[0], good[0], good[0])
    with pytest.raises(ValueError, match="variances must not be negative, found -1"):
        fit_emos(good, -good, good)
    with pytest.raises(ValueError, match="min_samples must be 1 or more, found 0"):
        fit_emos(good, good, good, min_samples=0)
    with pytest.raises(ValueError, match=r"coefficients must have shape \(locations, 4\)"):
        predict_emos(np.ones((3, 4)), good, good)
    with pytest.raises(ValueError, match="variances must not be negative"):
        predict_emos(np.ones((2, 4)), good, -good)
