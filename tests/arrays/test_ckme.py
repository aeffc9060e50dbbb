import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xrecal.arrays import (
    Forecasts,
    ckme_weights,
    fit_ckme,
    median_bandwidth,
    normal_squared_energy_distance,
    squared_energy_distance,
)
from xrecal.arrays.status import IDENTICAL, INVALID, RIDGE_EDGE, TOO_FEW

from .test_distance import double_sum_distance
from .test_simplex import isotonic_projection, sorted_projection
from .test_tuning import GRID, held_out_loss


def make_cases(rng, n_locations=2, n=40, m=6, missing=True):
    """Cases (L, n, m), observations (L, n); some members and observations are missing."""
    centre = 2 * np.sin(2 * np.pi * np.arange(n) / 23) + rng.normal(size=(n_locations, 1))
    spread = rng.gamma(2, size=(n_locations, n))
    x = (centre + 1)[..., np.newaxis] + spread[..., np.newaxis] * rng.normal(
        size=(n_locations, n, m)
    )
    y = centre + 0.5 * spread * rng.normal(size=(n_locations, n))
    if missing:
        x[:, ::5, 1:3] = np.nan
        x[:, 7] = np.nan
        y[:, 11] = np.nan
    return x, y


def fixed(n_locations, bandwidth, ridge):
    return np.full(n_locations, bandwidth), np.full(n_locations, ridge)


def similarities(d, bandwidth, kernel):
    return np.exp(-(np.sqrt(d) if kernel == "laplace" else d) / bandwidth)


def dense_weights(new_to_case, among_cases, y, bandwidth, ridge, kernel, projection):
    """Weights (T, n) at one location from squared distances, as the method is written."""
    K, k = (similarities(d, bandwidth, kernel) for d in (among_cases, new_to_case))
    n, weights = y.size, []
    for row in k:
        beta = np.linalg.solve(K + ridge * n * np.eye(n), row)
        beta += (1 - beta.sum()) / n
        exact = projection == "energy"
        weights.append(isotonic_projection(beta, y) if exact else sorted_projection(beta))
    return np.array(weights)


# against the dense reference ---------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_weights_equal_the_dense_reference(rng, kernel, projection):
    x, y = make_cases(rng)
    y = np.round(y, 1)  # with ties
    new = rng.normal(size=(2, 5, 8))
    new[:, 2, 3:] = np.nan
    bandwidth, ridge = np.array([0.8, 0.3]), np.array([0.02, 0.1])
    weights = ckme_weights(
        Forecasts(new), Forecasts(x), y, bandwidth, ridge, kernel=kernel, projection=projection
    )
    assert weights.shape == (2, 5, 40)
    for cell in range(2):
        used = np.isfinite(y[cell]) & np.isfinite(x[cell]).any(1)
        assert used.sum() == 38
        np.testing.assert_array_equal(weights[cell][:, ~used], 0)
        expected = dense_weights(
            double_sum_distance(new[cell], x[cell][used]),
            double_sum_distance(x[cell][used]),
            y[cell][used],
            bandwidth[cell],
            ridge[cell],
            kernel,
            projection,
        )
        np.testing.assert_allclose(weights[cell][:, used], expected, atol=1e-10)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("loss", "projection"), [("crps", "euclidean"), ("laplace", "euclidean"), ("crps", "energy")]
)
@pytest.mark.parametrize("folds", ["block", "year", "random"])
@pytest.mark.parametrize("gap", [0, 2])
def test_fit_equals_the_dense_reference(rng, kernel, loss, projection, folds, gap):
    n = 46
    x, y = make_cases(rng, 1, n)
    groups = {"block": None, "year": 1990 + np.arange(n) // 8, "random": rng.permutation(n)}[folds]
    fitted = fit_ckme(
        Forecasts(x),
        y,
        groups=groups,
        blocks=0 if folds == "year" else 5,
        gap=gap,
        kernel=kernel,
        loss=loss,
        projection=projection,
    )
    slot = np.flatnonzero(np.isfinite(y[0]) & np.isfinite(x[0]).any(1))
    n_used = slot.size
    assert fitted.n_cases == n_used
    d = double_sum_distance(x[0, slot])
    pairs = d[np.triu_indices(n_used, 1)]
    bandwidth = np.median(np.sqrt(pairs) if kernel == "laplace" else pairs)
    assert fitted.bandwidth == pytest.approx(bandwidth)

    fold = np.arange(n_used) * 5 // n_used
    if folds == "year":
        fold = np.unique(groups[slot], return_inverse=True)[1]
    elif folds == "random":
        fold = fold[np.argsort(np.argsort(groups[slot]))]
    gram = similarities(d, bandwidth, kernel)

    def expected(ridge):
        return held_out_loss(gram, y[0, slot], fold, slot, gap, ridge, loss, projection)

    on_grid = np.array([expected(ridge) for ridge in GRID])
    assert expected(fitted.ridge[0]) <= on_grid.min() * (1 + 1e-8)
    assert bool(fitted.status[0] & RIDGE_EDGE) == (on_grid.argmin() in (0, GRID.size - 1))


def test_each_location_is_as_if_alone(rng):
    x, y = make_cases(rng, 4)
    x[2] = np.nan  # sea
    x[1, 20], y[0, 5] = np.nan, np.nan
    new = rng.normal(size=(4, 3, 6))
    fitted = fit_ckme(Forecasts(x), y)
    weights = ckme_weights(Forecasts(new), Forecasts(x), y, fitted.bandwidth, fitted.ridge)
    np.testing.assert_array_equal(fitted.n_cases, [37, 37, 0, 38])
    for cell in range(4):
        one = slice(cell, cell + 1)
        alone = fit_ckme(Forecasts(x[one]), y[one])
        for together, single in zip(fitted, alone, strict=True):
            np.testing.assert_array_equal(together[one], single)
        single = ckme_weights(
            Forecasts(new[one]), Forecasts(x[one]), y[one], alone.bandwidth, alone.ridge
        )
        np.testing.assert_array_equal(weights[one], single)


# what a location can lack ------------------------------------------------------------------------


def test_too_few_cases_give_nan_and_a_status(rng):
    x, y = make_cases(rng, 3, 30, missing=False)
    y[0, 19:] = np.nan
    y[1, 20:] = np.nan
    fitted = fit_ckme(Forecasts(x), y, ridge=0.1, bandwidth=2)
    np.testing.assert_array_equal(fitted.status, [TOO_FEW, 0, 0])
    np.testing.assert_array_equal(fitted.n_cases, [19, 20, 30])
    np.testing.assert_array_equal(fitted.ridge, [np.nan, 0.1, 0.1])
    np.testing.assert_array_equal(fitted.bandwidth, [np.nan, 2, 2])
    weights = ckme_weights(Forecasts(x), Forecasts(x), y, fitted.bandwidth, fitted.ridge)
    assert np.isnan(weights[0]).all()
    assert np.isfinite(weights[1:]).all()
    few = fit_ckme(Forecasts(x), y, min_samples=10)
    assert few.status[0] & TOO_FEW == 0
    assert fit_ckme(Forecasts(x[:, :1]), y[:, :1], min_samples=0).status[0] == TOO_FEW


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_identical_forecasts_give_climatology(rng, projection):
    y = rng.normal(size=(1, 30))
    y[0, 4] = np.nan
    x = Forecasts(np.tile([0.0, 0.0, 1.0], (1, 30, 1)))
    fitted = fit_ckme(x, y, projection=projection)
    assert fitted.status == IDENTICAL
    assert fitted.bandwidth == np.inf
    weights = ckme_weights(
        Forecasts(rng.normal(size=(1, 3, 5))), x, y, *fitted[:2], projection=projection
    )
    np.testing.assert_allclose(weights, np.tile(np.isfinite(y) / 29, (1, 3, 1)), atol=1e-15)


@pytest.mark.parametrize("where", ["member", "observation", "weight", "scale"])
def test_invalid_values_leave_their_case_out(rng, where):
    x, y = make_cases(rng, 1, missing=False)
    scale, case_weights = np.ones_like(x), np.ones_like(x)
    clean_y = y.copy()
    clean_y[0, 3] = np.nan
    if where == "member":
        x[0, 3, 0] = -np.inf
    elif where == "observation":
        y[0, 3] = np.inf
    elif where == "weight":
        case_weights[0, 3, 0] = -1.0
    else:
        scale[0, 3, 0] = -1.0
    cases = Forecasts(x, scale if where == "scale" else None, case_weights)
    fitted, clean = fit_ckme(cases, y), fit_ckme(cases, clean_y)
    assert fitted.status & INVALID
    np.testing.assert_array_equal(fitted.ridge, clean.ridge)
    assert fitted.n_cases == clean.n_cases == 39
    new = Forecasts(*(None if part is None else part[:, 4:9] for part in cases))
    weights = ckme_weights(new, cases, y, fitted.bandwidth, fitted.ridge)
    np.testing.assert_array_equal(weights, ckme_weights(new, cases, clean_y, *clean[:2]))
    np.testing.assert_array_equal(weights[..., 3], 0)
    invalid = Forecasts(*(None if part is None else part[:, 2:5] for part in cases))
    found = ckme_weights(invalid, cases, y, *fitted[:2])
    assert np.isnan(found[0, 1]).all() == (where != "observation")


def test_members_of_weight_zero_do_not_count_whatever_they_hold(rng):
    x, y = make_cases(rng, 1, missing=False)
    padded = np.concatenate([x, np.full((1, 40, 1), 9e36), np.full((1, 40, 1), np.inf)], axis=-1)
    weights = np.ones_like(padded)
    weights[..., -2:] = 0
    expected, found = fit_ckme(Forecasts(x), y), fit_ckme(Forecasts(padded, None, weights), y)
    assert found.status == expected.status
    np.testing.assert_allclose(found.bandwidth, expected.bandwidth, rtol=1e-12)
    np.testing.assert_allclose(found.ridge, expected.ridge, rtol=1e-6)


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
@pytest.mark.parametrize("loss", ["crps", "laplace"])
def test_constant_observations(rng, projection, loss):
    x, _ = make_cases(rng, 1, missing=False)
    y = np.full((1, 40), 3.0)
    fitted = fit_ckme(Forecasts(x), y, loss=loss, projection=projection)
    assert np.isfinite(fitted.ridge).all()
    weights = ckme_weights(Forecasts(x), Forecasts(x), y, *fitted[:2], projection=projection)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)
    if projection == "energy":
        np.testing.assert_allclose(weights, 1 / 40)


def test_forecasts_with_missing_members(rng):
    x, y = make_cases(rng, 1)
    new = rng.normal(size=(1, 4, 6))
    new[0, 1] = np.nan
    new[0, 2, 1:] = np.nan
    weights = ckme_weights(Forecasts(new), Forecasts(x), y, *fixed(1, 0.5, 0.01))
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), [False, True, False, False])
    assert np.isnan(weights[0]).any(-1).sum() == 1
    single = ckme_weights(Forecasts(new[:, 2:3, :1]), Forecasts(x), y, *fixed(1, 0.5, 0.01))
    np.testing.assert_allclose(weights[:, 2:3], single, atol=1e-12)
    nothing = ckme_weights(Forecasts(new[:, 1:2]), Forecasts(x), y, *fixed(1, 0.5, 0.01))
    assert np.isnan(nothing).all()
    assert ckme_weights(Forecasts(new[:, :0]), Forecasts(x), y, *fixed(1, 1.0, 1.0)).shape[1] == 0


# limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_wide_kernel_and_large_ridge_tend_to_climatology(rng, projection):
    x, y = make_cases(rng, 1, missing=False)
    for setting in (fixed(1, 1e9, 1.0), fixed(1, 1.0, 1e9), fixed(1, np.inf, 0.1)):
        weights = ckme_weights(Forecasts(x), Forecasts(x), y, *setting, projection=projection)
        np.testing.assert_allclose(weights, 1 / 40, atol=1e-8)


@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_narrow_kernel_and_tiny_ridge_reproduce_the_own_observation(rng, projection):
    x, y = make_cases(rng, 1, missing=False)
    weights = ckme_weights(
        Forecasts(x), Forecasts(x), y, *fixed(1, 1e-3, 1e-12), projection=projection
    )
    np.testing.assert_allclose(weights[0], np.eye(40), atol=1e-8)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.sampled_from(["euclidean", "energy"]))
def test_order_of_cases_and_members_permutes_the_weights(random, projection):
    rng = np.random.default_rng(random.getrandbits(32))
    x, y = make_cases(rng, 1, 25)
    order, members = rng.permutation(25), rng.permutation(6)
    new = Forecasts(rng.normal(size=(1, 2, 6)))
    weights, permuted = (
        ckme_weights(new, Forecasts(a), b, *fixed(1, 0.5, 0.02), projection=projection)
        for a, b in ((x, y), (x[:, order][..., members], y[:, order]))
    )
    np.testing.assert_allclose(permuted, weights[..., order], atol=1e-10)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)
    assert (weights >= 0).all()


def test_units_do_not_matter(rng):
    x, y = make_cases(rng, 1)
    celsius = fit_ckme(Forecasts(x), y)
    fahrenheit = fit_ckme(Forecasts(1.8 * x + 32), 1.8 * y + 32)
    np.testing.assert_allclose(fahrenheit.ridge, celsius.ridge, rtol=1e-6)
    np.testing.assert_allclose(fahrenheit.bandwidth, 1.8 * celsius.bandwidth, rtol=1e-10)


# other forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("components", [1, 3])
def test_normal_forecasts(rng, components):
    shape = (1, 30, components)
    loc, scale, mass = rng.normal(size=shape), rng.gamma(2, size=shape), rng.gamma(1, size=shape)
    y = loc[..., 0] + rng.normal(size=(1, 30))
    new = rng.normal(size=(1, 4, components)), rng.gamma(2, size=(1, 4, components))
    cases = Forecasts(loc, scale, mass)
    fitted = fit_ckme(cases, y)
    among = normal_squared_energy_distance(loc[0], scale[0], x_weights=mass[0])
    assert fitted.bandwidth == pytest.approx(median_bandwidth(among))
    new_mass = np.ones_like(new[0])
    weights = ckme_weights(Forecasts(*new, new_mass), cases, y, *fitted[:2])
    across = normal_squared_energy_distance(
        new[0][0], new[1][0], loc[0], scale[0], x_weights=new_mass[0], y_weights=mass[0]
    )
    expected = dense_weights(
        across, among, y[0], fitted.bandwidth[0], fitted.ridge[0], "gaussian", "euclidean"
    )
    np.testing.assert_allclose(weights[0], expected, atol=1e-8)


def test_mixtures_of_scale_zero_are_ensembles(rng):
    x, y = make_cases(rng, 1)
    new = rng.normal(size=(1, 3, 6))
    ensembles, mixtures = fit_ckme(Forecasts(x), y), fit_ckme(Forecasts(x, np.zeros_like(x)), y)
    np.testing.assert_allclose(mixtures.bandwidth, ensembles.bandwidth, rtol=1e-10)
    np.testing.assert_allclose(mixtures.ridge, ensembles.ridge, rtol=1e-6)
    weights = ckme_weights(Forecasts(new), Forecasts(x), y, *ensembles[:2])
    points = Forecasts(new, np.zeros_like(new)), Forecasts(x, np.zeros_like(x))
    np.testing.assert_allclose(ckme_weights(*points, y, *ensembles[:2]), weights, atol=1e-10)


def test_integer_weights_are_repeated_members(rng):
    x, y = make_cases(rng, 1)
    repeats = np.array([1, 2, 1, 3, 1, 1])
    weighted = Forecasts(x, None, np.broadcast_to(0.5 * repeats, x.shape))
    repeated = Forecasts(np.repeat(x, repeats, axis=-1))
    np.testing.assert_allclose(fit_ckme(weighted, y).bandwidth, fit_ckme(repeated, y).bandwidth)
    new = Forecasts(rng.normal(size=(1, 3, 6)), None, np.ones((1, 3, 6)))
    expected = ckme_weights(Forecasts(new.loc), repeated, y, *fixed(1, 0.5, 0.01))
    found = ckme_weights(new, weighted, y, *fixed(1, 0.5, 0.01))
    np.testing.assert_allclose(found, expected, atol=1e-10)


# settings, types, errors -------------------------------------------------------------------------


def test_given_settings_are_kept_and_the_other_chosen(rng):
    x, y = make_cases(rng)
    chosen = fit_ckme(Forecasts(x), y)
    np.testing.assert_allclose(
        chosen.bandwidth,
        [median_bandwidth(squared_energy_distance(x[i][np.isfinite(y[i])])) for i in range(2)],
    )
    ridge = fit_ckme(Forecasts(x), y, ridge=1)
    np.testing.assert_array_equal(ridge.ridge, 1.0)
    np.testing.assert_array_equal(ridge.bandwidth, chosen.bandwidth)
    np.testing.assert_array_equal(ridge.status, 0)
    bandwidth = fit_ckme(Forecasts(x), y, bandwidth=float(chosen.bandwidth[0]))
    np.testing.assert_array_equal(bandwidth.bandwidth, chosen.bandwidth[0])
    np.testing.assert_array_equal(bandwidth.ridge[0], chosen.ridge[0])


def test_whole_numbers_are_settings_too(rng):
    x, y = make_cases(rng, missing=False)
    y[0] = np.nan
    fitted = fit_ckme(Forecasts(x), y, ridge=1, bandwidth=3)
    np.testing.assert_array_equal(fitted.ridge, [np.nan, 1])
    np.testing.assert_array_equal(fitted.bandwidth, [np.nan, 3])


def test_one_year_is_cut_into_blocks_in_time(rng):
    x, y = make_cases(rng, 3)
    year = fit_ckme(Forecasts(x), y, groups=np.full(40, 2001), blocks=0)
    blocks = fit_ckme(Forecasts(x), y, blocks=5)
    np.testing.assert_array_equal(year.ridge, blocks.ridge)


def test_inputs_stay_unchanged_and_float32_works(rng):
    x, y = make_cases(rng)
    new = rng.normal(size=(2, 3, 6))
    before = x.copy(), y.copy(), new.copy()
    for array in (x, y, new):
        array.flags.writeable = False
    fitted = fit_ckme(Forecasts(x), y)
    for array in fitted:
        array.flags.writeable = False
    weights = ckme_weights(Forecasts(new), Forecasts(x), y, *fitted[:2])
    for array, copy in zip((x, y, new), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    single = ckme_weights(
        Forecasts(new.astype(np.float32)),
        Forecasts(x.astype(np.float32)),
        y.astype(np.float32),
        *fitted[:2],
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, weights, atol=1e-4)
    np.testing.assert_allclose(single.sum(-1), 1, atol=1e-5)
    rough = fit_ckme(Forecasts(x.astype(np.float32)), y.astype(np.float32))
    assert rough.bandwidth.dtype == np.float64
    np.testing.assert_allclose(rough.bandwidth, fitted.bandwidth, rtol=1e-5)
    strided = fit_ckme(Forecasts(np.repeat(x, 2, axis=-1)[..., ::2]), y)
    np.testing.assert_array_equal(strided.ridge, fitted.ridge)


def test_errors(rng):
    x, y = make_cases(rng)
    cases = Forecasts(x)
    for name, choices in {
        "kernel": "'gaussian', 'laplace'",
        "loss": "'crps', 'laplace'",
        "projection": "'euclidean', 'energy'",
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be one of {choices}, got 'x'"):
            fit_ckme(cases, y, **{name: "x"})
        if name != "loss":
            with pytest.raises(ValueError, match=f"{name} must be one of {choices}, got 'x'"):
                ckme_weights(cases, cases, y, *fixed(2, 1.0, 1.0), **{name: "x"})
    with pytest.raises(ValueError, match=r"observations have shape \(40,\).*need \(2, 40\)"):
        fit_ckme(cases, y[0])
    with pytest.raises(ValueError, match=r"groups has shape \(3,\), but there are 40 cases"):
        fit_ckme(cases, y, groups=np.arange(3))
    with pytest.raises(ValueError, match=r"cases need 3 axes .*, got \(40, 6\)"):
        fit_ckme(Forecasts(x[0]), y)
    with pytest.raises(ValueError, match="forecasts have 1 locations, but cases have 2"):
        ckme_weights(Forecasts(x[:1]), cases, y, *fixed(2, 1.0, 1.0))
    with pytest.raises(ValueError, match="must both be ensembles or both be Gaussian"):
        ckme_weights(Forecasts(x, np.ones_like(x)), cases, y, *fixed(2, 1.0, 1.0))
    for name, sizes in {"bandwidth": (1, 2), "ridge": (2, 1)}.items():
        with pytest.raises(ValueError, match=rf"{name} has shape \(1,\), but there are 2 loc"):
            ckme_weights(cases, cases, y, *(np.ones(size) for size in sizes))
