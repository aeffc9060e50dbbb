import numpy as np
import properscoring
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm

from tests.marks import DATA, requires_data
from xrecal.arrays.baselines.crps_regression import mean_crps
from xrecal.arrays.baselines.emos import fit_emos, predict_emos
from xrecal.arrays.distributions.censored import censored_normal_crps

TRUTH = np.array([0.5, 0.8, 1.2, 0.6])


def simulate(rng, n, coefficients=TRUTH):
    a, b, c, d = coefficients
    x, v = rng.normal(2.0, 3.0, n), rng.gamma(2.0, 0.7, n)
    return x, v, a + b * x + np.sqrt(c**2 + d**2 * v) * rng.standard_normal(n)


def fit(x, v, y, r=None, **options):
    coefficients, n_cases, converged = fit_emos([x], [v], [y], r, **options)
    return coefficients[0], n_cases[0], converged[0]


def crps(coefficients, x, v, y):
    a, b, c, d = coefficients
    return np.mean(properscoring.crps_gaussian(y, a + b * x, np.sqrt(c**2 + d**2 * v)))


def location_and_scale(coefficients, x, v, r):
    a, b, c, d = coefficients[:4]
    g, h = coefficients[4:].reshape(2, -1)
    return a + b * x + r @ g, np.sqrt((c**2 + d**2 * v) * np.exp(2 * r @ h))


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


BOUNDS = [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 3.0), (0.0, 3.0)]


@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("size", [4, 6, 8])
def test_derivatives_and_value(rng, size, lower, upper):
    x, v, y = simulate(rng, 40)
    v[:5] = 0.0
    y = np.clip(y, lower, upper)
    r = rng.normal(size=(40, 2))
    cases = np.column_stack([y, v, y - lower, upper - y, x, r])
    gradient, hessian = np.empty(size), np.empty((size, size))
    scratch, ridge = (np.empty(size), np.empty((size, size))), np.array([0.0, 7.0])
    for drawn in 0.5 * rng.normal(size=(5, size)):
        parameters = np.concatenate([drawn, np.zeros(8 - size)])

        def value(p):
            return mean_crps(np.concatenate([p, np.zeros(8 - size)]), cases, ridge, *scratch)

        def first_derivative(p):
            value(p)
            return scratch[0].copy()

        loc, scale = location_and_scale(parameters, x, v, r)
        expected = np.mean(censored_normal_crps(y, loc, scale, lower, upper))
        expected += np.sum((1 + np.tile(ridge, 2)[: size - 4]) * drawn[4:] ** 2) / 40
        actual = mean_crps(parameters, cases, ridge, gradient, hessian)
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, approx_fprime(drawn, value, 1e-7), atol=1e-5)
        curvature = approx_fprime(drawn, first_derivative, 1e-7)
        np.testing.assert_allclose(hessian, curvature, rtol=1e-4, atol=1e-4)


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


CONSTANT = {
    "mean": (281.3, None, 1, lambda p: [p[0], 0.0, p[1], p[2]]),
    "spread": (None, 0.3, 3, lambda p: [*p, 0.0]),
    "no spread": (None, 0.0, 3, lambda p: [*p, 0.0]),
}
"""Constant mean or variance, the coefficient that is then 0, and coefficients from the others."""


@pytest.mark.parametrize(("mean", "variance", "zero", "complete"), CONSTANT.values(), ids=CONSTANT)
def test_what_is_constant_has_no_coefficient(rng, mean, variance, zero, complete):
    x, v, y = simulate(rng, 100)
    x = x if mean is None else np.full(100, mean)
    v = v if variance is None else np.full(100, variance)
    coefficients, _, converged = fit(x, v, y)
    assert converged
    assert coefficients[zero] == 0.0
    expected = minimize(lambda p: crps(complete(p), x, v, y), [2.0, 1.0, 1.0]).fun
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


@pytest.mark.parametrize("outlier", [1e3, 1e6, -1e9, 1e12, -1e36])
def test_outliers_barely_count(rng, outlier):
    x, v, y = simulate(rng, 200)
    expected = fit(x, v, y)[0]
    y[7] = outlier
    coefficients, _, converged = fit(x, v, y)
    assert converged
    np.testing.assert_allclose(coefficients, expected, atol=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_how_high_spikes_are_makes_no_difference(seed):
    """The search starts from least squares, which follows spikes of forecasts that are high too."""
    rng = np.random.default_rng(seed)
    day = np.arange(364)
    level = 30 + 5 * np.sin(day / 58) + 2 * rng.normal(size=364)
    y, spikes = level + rng.standard_t(5, 364), np.zeros(364)
    level[20:24] += [8, 12, 10, 6]
    spikes[20:24] = [25, 40, 30, 20]
    season = np.column_stack([np.sin(day / 58), np.cos(day / 58)])
    v = rng.gamma(3.0, 0.2, 364)
    usual, *wild = (fit(level, v, y + f * spikes, season)[0] for f in (1, 100, 1e4, 1e10))
    at = np.delete(np.arange(364), range(20, 24))
    location, *others = (location_and_scale(c, level, v, season)[0][at] for c in (usual, *wild))
    np.testing.assert_allclose(others, [location] * 3, atol=0.3)
    np.testing.assert_allclose(others[1:], [others[0]] * 2, atol=0.02)
    # Without regressors no search ends lower, wherever it starts.
    y = y + 100 * spikes
    assert crps(fit(level, v, y)[0], level, v, y) <= best_of_scipy(level, v, y) * (1 + 1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_cases_stay_finite(rng, n):
    x, v, y = simulate(rng, n)
    assert np.isfinite(fit(x, v, y, min_samples=1)[0]).all()
    regressors = rng.normal(size=(n, 3))
    coefficients = fit(x, v, y, regressors, lower=0.0, min_samples=1)[0]
    np.testing.assert_array_equal(coefficients[:4], fit(x, v, y, lower=0.0, min_samples=1)[0])
    np.testing.assert_array_equal(coefficients[4:], 0.0)
    assert np.isnan(fit(x, v, y)[0]).all()
    assert np.isnan(fit(x[:0], v[:0], y[:0])[0]).all()


# regressors and bounds ---------------------------------------------------------------------------

SEASONAL = np.array([*TRUTH, 1.5, -0.7, 0.4, -0.2])


def simulate_seasons(rng, n, coefficients=SEASONAL):
    x, v, _ = simulate(rng, n)
    year = rng.uniform(0.0, 2 * np.pi, n)
    r = np.column_stack([np.sin(year), np.cos(year)])
    loc, scale = location_and_scale(coefficients, x, v, r)
    return x, v, loc + scale * rng.standard_normal(n), r


def penalised_crps(x, v, y, r, lower, upper):
    """What the fit minimises over coefficients, in the units of y: mean CRPS and ridge."""
    design = np.column_stack([np.ones_like(x), x, r])
    line = np.linalg.lstsq(design, y)[0]
    unit, std = np.std(y - design @ line), np.std(r, axis=0)

    def loss(coefficients):
        loc, scale = location_and_scale(coefficients, x, v, r)
        g, h = coefficients[4:].reshape(2, -1)
        ridge = unit * np.sum((h * std) ** 2) + np.sum(((g - line[2:]) * std) ** 2) / unit
        return np.mean(censored_normal_crps(y, loc, scale, lower, upper)) + ridge / len(y)

    return loss


def best_penalised_of_scipy(loss, v, y, r):
    results = []
    for c, d in [(1.0, 0.1), (0.1, 1.0), (0.6, 0.6)]:
        start = np.zeros(4 + 2 * r.shape[1])
        start[0], start[2], start[3] = y.mean(), c * y.std(), d * y.std() / np.sqrt(v.mean())
        result = minimize(loss, start, method="BFGS")
        result = minimize(loss, result.x, method="Nelder-Mead", options={"maxiter": 500})
        results.append(result.fun)
    return min(results)


@pytest.mark.each_value
@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
@pytest.mark.parametrize("n", [30, 200])
def test_no_worse_than_scipy_with_regressors_and_bounds(rng, n, lower, upper):
    x, v, y, r = simulate_seasons(rng, n)
    seen = np.clip(y, lower, upper)
    loss = penalised_crps(x, v, seen, r, lower, upper)
    coefficients, _, converged = fit(x, v, y, r, lower=lower, upper=upper)
    assert converged
    assert loss(coefficients) <= best_penalised_of_scipy(loss, v, seen, r) * (1 + 1e-6)


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([20, 40, 120]),
    st.floats(0.0, 0.8),
    st.sampled_from([1e-3, 1.0, 300.0]),
)
def test_no_start_leads_below(seed, n, dry, factor):
    rng = np.random.default_rng(seed)
    x, v, y, r = simulate_seasons(rng, n, rng.normal(size=8))
    lower = np.quantile(y, dry)
    y = np.maximum(y, lower)
    cases = factor * x, factor**2 * v, factor * y, r, factor * lower, np.inf
    coefficients, n_cases, _ = fit(*cases[:4], lower=factor * lower)
    assert n_cases == n
    assert np.isfinite(coefficients).all()
    loss = penalised_crps(*cases)
    again = minimize(loss, coefficients, method="Nelder-Mead").fun
    assert loss(coefficients) <= again * (1 + 1e-5)


def test_recovers_seasons_and_latent_coefficients(rng):
    x, v, y, r = simulate_seasons(rng, 20_000)
    np.testing.assert_allclose(fit(x, v, y, r)[0], SEASONAL, atol=0.06)
    dry = (y < 1.0).mean()
    assert 0.2 < dry < 0.8
    for options in ({"lower": 1.0}, {"upper": 2.0}, {"lower": 0.0, "upper": 4.0}):
        coefficients, _, converged = fit(x, v, y, r, **options)
        assert converged
        np.testing.assert_allclose(coefficients, SEASONAL, atol=0.12)


def test_the_ridge_is_slight_with_many_cases():
    for n, shrunk in ((30, 0.19), (1000, 0.007)):
        # Quantiles and a balanced regressor leave no sampling error.
        y = np.repeat(norm.ppf((np.arange(n // 2) + 0.5) / (n // 2)), 2)
        r = np.tile([-1.0, 1.0], n // 2)
        wide = fit(np.zeros(n), np.zeros(n), y * np.exp(0.1 * r), r[:, np.newaxis])[0][5]
        assert wide == pytest.approx(0.1 * (1 - shrunk), rel=0.05)


def test_bounds_that_nothing_reaches_change_nothing(rng):
    x, v, y, r = simulate_seasons(rng, 200)
    expected = fit(x, v, y, r)[0]
    actual = fit(x, v, y, r, lower=-1e6, upper=1e6)[0]
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_allclose(fit(x, v, y, r[:, :0])[0], fit(x, v, y)[0], rtol=0)
    beyond = np.where(y < 0, y - 100.0, y)
    np.testing.assert_array_equal(
        fit(x, v, beyond, r, lower=0.0)[0], fit(x, v, np.maximum(y, 0.0), r, lower=0.0)[0]
    )


@pytest.mark.parametrize(("factor", "offset"), [(1.0, 273.15), (1e-3, -5.0), (1e5, 1e5)])
@pytest.mark.parametrize(("stretch", "shift"), [(1.0, 0.0), (1e6, 3e6), (1e-4, 1e-3)])
def test_units_of_regressors_and_variable(rng, factor, offset, stretch, shift):
    x, v, y, r = simulate_seasons(rng, 300)
    probe = slice(0, 20)
    expected = location_and_scale(fit(x, v, y, r, lower=0.0)[0], x[probe], v[probe], r[probe])
    moved = factor * x + offset, factor**2 * v, factor * y + offset
    scaled = np.array([1.0, stretch]) * r + np.array([0.0, shift])
    coefficients, _, converged = fit(*moved, scaled, lower=offset)
    assert converged
    loc, scale = predict_emos(
        [coefficients], moved[0][None, probe], moved[1][None, probe], scaled[probe]
    )
    tolerance = 1e-5 * factor
    np.testing.assert_allclose(loc[0], factor * expected[0] + offset, atol=tolerance)
    np.testing.assert_allclose(scale[0], factor * expected[1], rtol=1e-5)


def test_shared_and_own_regressors(rng):
    cases = [simulate_seasons(rng, 60) for _ in range(3)]
    x, v, y, r = (np.stack(a) for a in zip(*cases, strict=True))
    lower = np.array([-np.inf, 0.0, 0.5])
    own, n_cases, _ = fit_emos(x, v, y, r, lower=lower)
    assert own.shape == (3, 8)
    for i in range(3):
        np.testing.assert_array_equal(own[i], fit(*cases[i], lower=lower[i])[0])
    shared = fit_emos(x, v, y, r[1], lower=lower)[0]
    np.testing.assert_array_equal(shared, fit_emos(x, v, y, np.stack([r[1]] * 3), lower=lower)[0])
    np.testing.assert_array_equal(
        predict_emos(shared, x, v, r[1]), predict_emos(shared, x, v, np.stack([r[1]] * 3))
    )
    r[0, :7] = np.nan
    r[2, 5, 1] = np.inf
    holes, n_cases, _ = fit_emos(x, v, y, r, lower=lower)
    np.testing.assert_array_equal(n_cases, [53, 60, 59])
    np.testing.assert_array_equal(holes[0], fit(*(a[7:] for a in cases[0]))[0])
    loc, scale = predict_emos(holes, x, v, r)
    np.testing.assert_array_equal(np.isnan(loc), ~np.isfinite(r).all(-1))
    np.testing.assert_array_equal(np.isnan(scale), ~np.isfinite(r).all(-1))


def test_useless_regressors(rng):
    x, v, y, r = simulate_seasons(rng, 200)
    constant = np.column_stack([np.full(200, 2010.1), r[:, 0]])
    coefficients, _, converged = fit(x, v, y, constant)
    assert converged
    assert coefficients[4] == coefficients[6] == 0.0
    np.testing.assert_allclose(
        coefficients[[0, 1, 2, 3, 5, 7]], fit(x, v, y, r[:, :1])[0], rtol=1e-6
    )
    once = predict_emos([fit(x, v, y, r[:, :1], lower=0.0)[0]], [x], [v], r[:, :1])
    for noise in (0.0, 1e-9, 1e-4):
        twice = np.column_stack([r[:, 0], r[:, 0] + noise * rng.normal(size=200)])
        coefficients, _, converged = fit(x, v, y, twice, lower=0.0)
        assert converged
        assert np.abs(coefficients).max() < 20
        np.testing.assert_allclose(predict_emos([coefficients], [x], [v], twice), once, atol=0.1)
    coefficients, _, converged = fit(x, v, y, np.column_stack([x, v]), lower=0.0)
    assert converged
    assert np.abs(coefficients).max() < 20


def test_more_regressors_than_cases_allow(rng):
    x, v, y = simulate(rng, 40)
    many = rng.normal(size=(40, 60))
    coefficients, _, converged = fit(x, v, y, many)
    assert converged
    np.testing.assert_array_equal(coefficients[:4], fit(x, v, y)[0])
    np.testing.assert_array_equal(coefficients[4:], 0.0)
    coefficients, _, _ = fit(x, v, y, many[:, :8])  # 20 coefficients
    assert (coefficients[4:] != 0).all()
    assert np.isfinite(coefficients).all()


def test_a_regressor_far_from_0(rng):
    x, v, _ = simulate(rng, 200)
    trend = 2000.0 + rng.uniform(0.0, 20.0, 200)
    for shift, spread in ((0.0, True), (1e7, False)):  # exp(-h 1e7) is not a number one can write
        regressors = (trend + shift)[:, np.newaxis]
        noise = np.exp(0.05 * (trend - 2010)) * rng.standard_normal(200)
        observed = 0.5 * x + 0.3 * (trend - 2010) + noise
        coefficients, _, converged = fit(x, v, observed, regressors)
        assert converged
        assert np.isfinite(coefficients).all()
        assert coefficients[4] == pytest.approx(0.3, abs=0.05)
        assert (coefficients[5] != 0) == spread
        loc, scale = predict_emos([coefficients], [x], [v], regressors)
        assert np.isfinite([loc, scale]).all()
        assert 0.3 < scale.min() <= scale.max() < 5


def test_all_at_the_bound(rng):
    x, v, y, r = simulate_seasons(rng, 100)
    for value, options in ((0.0, {"lower": 0.0}), (1.0, {"upper": 1.0}), (-7.0, {"lower": 0.0})):
        coefficients, _, converged = fit(x, v, np.full(100, value), r, **options)
        assert converged
        np.testing.assert_allclose(coefficients, [max(value, 0.0), *np.zeros(7)], rtol=1e-14)
    y[:99] = -1.0
    y[99] = 3.0
    coefficients, _, _ = fit(x, v, y, r, lower=0.0)
    assert np.isfinite(coefficients).all()
    loc, scale = predict_emos([coefficients], [x], [v], r)
    assert censored_normal_crps(np.maximum(y, 0), loc[0], scale[0], 0.0, np.inf).mean() <= 0.03


@requires_data("innsbruck_gefs.nc")
@pytest.mark.parametrize(
    ("variable", "lower", "expected"),
    [
        ("tmin", None, [1.7918, 1.3397]),
        ("rain", None, [1.9681, 1.9415]),
        ("rain", 0.0, [1.8573, 1.8235]),
    ],
)
def test_innsbruck(variable, lower, expected):
    """Test CRPS that a separate program with SciPy's optimisers gave."""
    with xr.open_dataset(DATA / "innsbruck_gefs.nc") as data:
        ensemble = data[f"{variable}_forecast"].values.astype(float)
        y = data[f"{variable}_observation"].values.astype(float)
        time = data["time"].values
    year = 2 * np.pi * (time - time.astype("M8[Y]")) / np.timedelta64(1, "D") / 365.25
    season = np.column_stack([np.sin(year), np.cos(year)])
    x, v = ensemble.mean(axis=1), ensemble.var(axis=1)
    past = time < np.datetime64("2010-01-01")
    for r, value in zip((season[:, :0], season), expected, strict=True):
        coefficients, _, converged = fit(x[past], v[past], y[past], r[past], lower=lower)
        assert converged
        loc, scale = location_and_scale(coefficients, x[~past], v[~past], r[~past])
        below = -np.inf if lower is None else lower
        score = censored_normal_crps(y[~past], loc, scale, below, np.inf).mean()
        assert score == pytest.approx(value, abs=3e-4)


# prediction and rules of all ---------------------------------------------------------------------


def test_prediction():
    loc, scale = predict_emos(
        [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 0.0]], [[0.5, 1.0], [np.inf, 7.0]], [[0.0, 1.0]] * 2
    )
    np.testing.assert_array_equal(loc, [[2.0, 3.0], [np.nan, 7.0]])
    np.testing.assert_array_equal(scale, [[3.0, 5.0], [np.nan, 0.0]])
    loc, scale = predict_emos(np.full((1, 4), np.nan), [[1.0]], [[1.0]])
    assert np.isnan([loc, scale]).all()


GOOD = np.ones((2, 30))
REFUSED = {
    r"give one location as means\[np.newaxis\]": (fit_emos, *[GOOD[0]] * 3),
    "variances must not be negative, found -1": (fit_emos, GOOD, -GOOD, GOOD),
    r"regressors must have shape \(2, 30, 'K'\) or \(30, 'K'\)": (fit_emos, *[GOOD] * 4),
    r"regressors must have .*, found \(\)": (fit_emos, GOOD, GOOD, GOOD, 20),
    r"coefficients must have shape \(locations, 4 \+ 2K\)": (
        predict_emos, np.ones((3, 4)), GOOD, GOOD,
    ),
    "variances must not be negative": (predict_emos, np.ones((2, 4)), GOOD, -GOOD),
    r"K = 1 regressors, found \(2, 4\); give the regressors": (
        predict_emos, np.ones((2, 4)), GOOD, GOOD, GOOD[..., np.newaxis],
    ),
}  # fmt: skip
OUT_OF_RANGE = [
    ("min_samples must be 1 or more, found 0", {"min_samples": 0}),
    (r"lower must be a number or have shape \(2,\), not \(3,\)", {"lower": [0.0, 0.0, 0.0]}),
    *(
        ("lower must not exceed upper, nor be NaN", {"lower": lower, "upper": upper})
        for lower, upper in ((1.0, 0.0), (np.nan, 0.0), (np.inf, np.inf))
    ),
]


@pytest.mark.parametrize("message", REFUSED)
def test_arrays_that_are_refused(message):
    function, *given_ = REFUSED[message]
    with pytest.raises(ValueError, match=message):
        function(*given_)


@pytest.mark.parametrize(("message", "settings_"), OUT_OF_RANGE)
def test_settings_that_are_refused(message, settings_):
    with pytest.raises(ValueError, match=message):
        fit_emos(GOOD, GOOD, GOOD, **settings_)
