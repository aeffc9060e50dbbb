import math

import numpy as np
import pytest
from scipy.special import ndtr

from xrecal import arrays
from xrecal.arrays import (
    Forecasts,
    block_p_value,
    case_matrix,
    laplace_expectations,
    median_bandwidth,
    montecarlo_test,
    similarity,
    skce_biased,
    skce_blocks,
    skce_matrix,
    skce_test,
    skce_unbiased,
    squared_energy_distance,
    target_bandwidth,
)
from xrecal.arrays.calibration import montecarlo
from xrecal.arrays.calibration import skce as resampling
from xrecal.arrays.calibration.montecarlo import fill_pair_sums, fill_points
from xrecal.arrays.calibration.skce import generator, random_signs
from xrecal.arrays.status import (
    EVIDENCE_MEANINGS,
    FEW,
    IDENTICAL,
    INVALID,
    MEANINGS,
    NO_SPREAD,
    REFUSED,
    TOO_FEW,
)


def skce_locations(forecasts, observations, *, location_numbers=None, season=None, **settings):
    """The array function, with its settings by name."""
    settings = arrays.SkceSettings(**settings)
    return arrays.skce_locations(
        forecasts, observations, settings, location_numbers=location_numbers, season=season
    )


@pytest.fixture
def matrix(rng):
    return case_matrix(Forecasts(rng.normal(size=(12, 5))), rng.normal(size=12))


def normal_case(rng, n, spread=1.0):
    """Calibrated normal forecasts for spread 1, and what verified."""
    mean = rng.normal(size=n)
    return Forecasts(mean[:, np.newaxis], np.full((n, 1), spread)), mean + rng.normal(size=n)


# the statistics ----------------------------------------------------------------------------------


def test_bootstrap_is_the_loop_over_resamples(matrix):
    """T' of a resample, written over its pairs of draws instead of counts."""
    n, rng = len(matrix), generator(3, 7)
    drawn = rng.integers(0, n, (200, n), dtype=np.int32)
    statistic = n / (n - 1) * skce_unbiased(matrix) - skce_biased(matrix)
    exceeding = 0
    for draws in drawn:
        pairs = sum(
            matrix[a, b] for i, a in enumerate(draws) for j, b in enumerate(draws) if i != j
        )
        linear = sum(matrix[a, b] for a in draws for b in range(n))
        exceeding += (n / (n - 1) * pairs - 2 * linear) / n**2 >= statistic
    assert 10 < exceeding < 190
    found = skce_test(matrix, n_resamples=200, seed=3, location_number=7)
    assert found == (1 + exceeding) / 201


@pytest.mark.parametrize("block_length", [1, 2, 5, 12, 40])
def test_wild_is_the_quadratic_form(matrix, block_length):
    n = len(matrix)
    signs = random_signs(generator(3, 7), 200, n, block_length)
    off = matrix - np.diag(np.diag(matrix))
    exceeding = sum(e @ off @ e / (n - 1) >= n * skce_unbiased(matrix) - 1e-12 for e in signs)
    found = skce_test(
        matrix, "wild", n_resamples=200, seed=3, location_number=7, block_length=block_length
    )
    assert found == (1 + exceeding) / 201


@pytest.mark.parametrize("block_length", [1, 2, 5, 12, 40])
def test_signs_agree_as_blocks_with_a_random_begin_do(rng, block_length):
    signs = random_signs(rng, 20000, 12, block_length)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    apart = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    expected = np.maximum(1 - apart / block_length, 0)
    np.testing.assert_allclose(signs.T @ signs / 20000, expected, atol=0.04)
    np.testing.assert_allclose(signs.mean(0), 0, atol=0.04)


@pytest.mark.parametrize("test", ["bootstrap", "wild"])
def test_scale_of_the_matrix_and_parts_of_the_resamples_do_not_matter(matrix, test, monkeypatch):
    found = skce_test(matrix, test)
    assert skce_test(1e-6 * matrix, test) == found
    assert skce_test(matrix, test, seed=1) != found
    assert skce_test(matrix, test, location_number=1) != found
    assert skce_test(matrix, test, seed=2**64) == found
    assert skce_test(matrix, test, seed=-1) == skce_test(matrix, test, seed=2**64 - 1)
    monkeypatch.setattr(resampling, "RESAMPLED", 50)
    assert skce_test(matrix, test) == pytest.approx(found, abs=0.06)  # other draws


@pytest.mark.parametrize("test", ["bootstrap", "wild"])
def test_matrices_without_information(test):
    assert skce_test(np.zeros((5, 5)), test) == 1.0
    assert math.isnan(skce_test(np.ones((1, 1)), test))
    assert math.isnan(skce_test(np.full((4, 4), np.nan), test))


def test_block_p_value():
    rng = np.random.default_rng(1)
    z = rng.normal(size=9)
    expected = 1 - ndtr(z.mean() / (z.std(ddof=1) / 3))
    assert block_p_value(z) == pytest.approx(expected)
    assert block_p_value(np.full(3, 0.1)) == 0.0
    assert block_p_value(np.full(3, -0.1)) == 1.0
    assert block_p_value(np.zeros(3)) == 1.0
    assert math.isnan(block_p_value(np.ones(1)))
    assert math.isnan(block_p_value(np.array([0.1, np.nan])))
    with pytest.raises(ValueError, match=r"estimates must have shape \(blocks,\), got \(2, 2\)"):
        block_p_value(np.ones((2, 2)))


# Monte Carlo -------------------------------------------------------------------------------------


def drawn_law(kind, rng, n=7):
    loc = rng.normal(size=(n, 3))
    loc[1, 1] = loc[0, 0]
    weights = rng.dirichlet(np.ones(3), n)
    weights[2] = [0.0, 0.2, 0.8]
    return {
        "plain": Forecasts(loc),
        "weighted": Forecasts(loc, None, weights),
        "shared": Forecasts(loc[0], None, weights),
        "normal": Forecasts(loc, rng.gamma(1, size=loc.shape) * (loc > -1), weights),
    }[kind]


def spread_out(forecasts):
    """Values, weights and scales with a row for each case."""
    loc, scale, weights = forecasts
    weights = np.full(loc.shape, 1 / loc.shape[-1]) if weights is None else weights
    loc = np.broadcast_to(loc, weights.shape)
    return loc, np.zeros(loc.shape) if scale is None else scale, weights


@pytest.mark.parametrize("kind", ["plain", "weighted", "shared", "normal"])
def test_montecarlo_computes_the_estimate_of_each_draw(kind, rng):
    """Draws from the same random numbers, each with its own matrix."""
    forecasts = drawn_law(kind, rng)
    loc, scale, weights = spread_out(forecasts)
    y, n = rng.normal(size=len(loc)), len(loc)
    squared = montecarlo.forecast_similarity(montecarlo.usable_cases(forecasts, y)[0])[0]
    numbers = generator(5, 2)

    def draw(size):
        level = numbers.random((size, n))
        below = np.cumsum(weights, axis=-1)
        member = (level[..., np.newaxis] >= below).sum(-1).clip(max=2)
        values = loc[np.arange(n), member]
        if kind != "normal":
            return values
        return values + scale[np.arange(n), member] * numbers.standard_normal((size, n))

    theta = target_bandwidth(draw(1)[0])

    def estimate(y):
        cross, within = laplace_expectations(forecasts, y, theta)
        target = np.exp(-np.abs(np.subtract.outer(y, y)) / theta)
        return skce_unbiased(skce_matrix(squared, target, cross, within))

    observed = estimate(y)
    exceeding = sum(estimate(drawn) >= observed - 1e-12 for drawn in draw(300))
    found = montecarlo_test(forecasts, y, n_resamples=300, seed=5, location_number=2)
    assert found == (1 + exceeding) / 301


def test_points_are_drawn_with_their_weights(rng):
    weights = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 1.0, 0.0, 0.0], [0.0, 0.4, 0.6, 0.0]])
    last = np.array([3, 1, 2])
    total = np.cumsum(weights, axis=-1) * (1 - 1e-16)
    level = rng.random((50000, 3))
    level[0], level[1] = 0.0, np.nextafter(1.0, 0)
    point = np.empty(level.shape, dtype=np.int64)
    fill_points(level, total, last, point)
    np.testing.assert_array_equal(point[:2], [[0, 5, 9], [3, 5, 10]])
    shares = np.bincount(point.ravel(), minlength=12).reshape(3, 4) / 50000
    np.testing.assert_allclose(shares, weights, atol=0.01)
    assert ((shares > 0) == (weights > 0)).all()


@pytest.mark.parametrize("theta", [1e-3, 0.5, 100.0])
def test_pair_sums(rng, theta):
    values = rng.normal(size=(6, 9)) * np.array([[1e-9], [1], [30], [1e3], [1e6], [1e300]])
    values[1, 3] = values[1, 5]
    k = rng.random((9, 9))
    k += k.T
    np.fill_diagonal(k, 0)
    out = np.empty(6)
    fill_pair_sums(values, k, theta, out)
    gaps = np.abs(values[:, :, np.newaxis] - values[:, np.newaxis])
    np.testing.assert_allclose(out, (k * np.exp(-gaps / theta)).sum((1, 2)), atol=1e-11)


def test_parts_of_the_points_change_nothing(rng, monkeypatch):
    forecasts, y = Forecasts(rng.normal(size=(30, 5))), rng.normal(size=30)
    whole = montecarlo_test(forecasts, y, n_resamples=200)
    monkeypatch.setattr(montecarlo, "WORKSPACE", 16 * 30 * 7)
    assert montecarlo_test(forecasts, y, n_resamples=200) == whole


def test_draws_that_never_differ():
    """Forecasts of one dry day; an observation that is wet cannot be drawn from them."""
    forecasts = Forecasts(np.zeros((6, 4)))
    y = np.array([0.0, 0, 0, 0, 2, 1])
    assert montecarlo_test(forecasts, y, n_resamples=99) == 0.01
    assert montecarlo_test(forecasts, 0 * y, n_resamples=99) == 1.0
    assert math.isnan(montecarlo_test(forecasts, np.full(6, np.nan)))


def test_montecarlo_of_joined_ensembles_is_a_permutation_test(rng):
    """Two cases of one member: four equally likely choices of what was observed."""
    loc, y = np.array([[0.0], [1.0]]), np.array([5.0, 7.0])
    joined = np.column_stack([loc, y])
    squared = squared_energy_distance(joined)
    k = similarity(squared, median_bandwidth(squared))

    def estimate(y, theta):
        cross, within = laplace_expectations(Forecasts(joined), y, theta)
        target = np.exp(-np.abs(np.subtract.outer(y, y)) / theta)
        return skce_unbiased(skce_matrix(k, target, cross, within))

    choices = [joined[[0, 1], [a, b]] for a in (0, 1) for b in (0, 1)]
    expected = []
    for theta in (abs(a - b) for a, b in choices):  # what one draw can give
        found = np.array([estimate(choice, theta) for choice in choices])
        expected.append((found >= estimate(y, theta) - 1e-12).mean())
    for seed in range(4):
        options = {"augmented": True, "seed": seed, "n_resamples": 3999}
        p = montecarlo_test(Forecasts(loc), y, **options)
        assert np.abs(np.array(expected) - p).min() < 0.03


# size and power ----------------------------------------------------------------------------------

SIZE = {"bootstrap": (0.0, 0.08), "wild": (0.01, 0.09), "montecarlo": (0.02, 0.09)}


def rejected(rng, test, n, repetitions, spread=1.0):
    ensembles, y = [], []
    for _ in range(repetitions):
        forecasts, verified = normal_case(rng, n, spread)
        ensembles.append(forecasts.loc)
        y.append(verified)
    loc = np.array(ensembles)
    _, p, status, _ = skce_locations(
        Forecasts(loc, np.full(loc.shape, spread)), np.array(y), test=test, n_resamples=200
    )
    assert (status == 0).all()
    assert ((p > 0) & (p <= 1)).all()
    return np.mean(p <= 0.05)


@pytest.mark.parametrize("test", ["bootstrap", "wild", "montecarlo"])
def test_calibrated_forecasts_are_rarely_rejected(rng, test):
    low, high = SIZE[test]
    assert low <= rejected(rng, test, 25, 200) <= high


@pytest.mark.parametrize("test", ["bootstrap", "wild"])
def test_forecasts_that_are_too_sure_are_rejected(rng, test):
    assert rejected(rng, test, 150, 40, spread=0.7) > 0.7


def test_montecarlo_rejects_ensembles_that_are_too_sure(rng):
    mean = rng.normal(size=(30, 100))
    y, noise = mean + rng.normal(size=mean.shape), rng.normal(size=(30, 100, 40))
    sure = Forecasts(mean[..., np.newaxis] + 0.6 * noise)
    assert (skce_locations(sure, y, test="montecarlo", n_resamples=200)[1] <= 0.05).mean() > 0.7
    found = skce_locations(sure, y, test="montecarlo", n_resamples=200, augmented=True)[1]
    assert (found <= 0.05).mean() > 0.6


def test_joining_the_observation_keeps_the_level_of_small_ensembles(rng):
    draws = rng.normal(size=(20, 400, 5)) + rng.normal(size=(20, 400, 1))
    forecasts, y = Forecasts(draws[..., 1:]), draws[..., 0]
    alone = skce_locations(forecasts, y, test="wild", n_resamples=200)[1]
    joined = skce_locations(forecasts, y, test="wild", n_resamples=200, augmented=True)[1]
    assert (alone <= 0.05).mean() > 0.8
    assert (joined <= 0.05).mean() < 0.2


# locations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", [None, "bootstrap", "wild", "montecarlo", "block"])
@pytest.mark.parametrize("kind", ["plain", "weighted", "shared", "normal", "augmented"])
def test_each_location_is_that_of_its_cases(rng, test, kind):
    plain = kind in ("plain", "augmented")
    loc, y = rng.normal(size=(3, 11, 3)), rng.normal(size=(3, 11))
    if kind == "shared":
        loc = loc[:, 0]
    else:
        loc[1, 4] = np.nan
    y[2, 3] = np.nan
    weights = None if plain else rng.dirichlet(np.ones(3), (3, 11))
    scale = np.abs(loc) if kind == "normal" else None
    options = {"augmented": kind == "augmented"}
    numbers = np.array([4, 0, 9])
    skce, p, status, _ = skce_locations(
        Forecasts(loc, scale, weights),
        y,
        test=test,
        n_resamples=50,
        seed=3,
        location_numbers=numbers,
        **options,
    )
    assert (status == 0).all()
    for i in range(3):
        one = Forecasts(*(None if a is None else a[i] for a in (loc, scale, weights)))
        draws = {"n_resamples": 50, "seed": 3, "location_number": int(numbers[i])}
        h = case_matrix(one, y[i], **options)
        expected, expected_p = skce_unbiased(h), np.nan
        if test in ("bootstrap", "wild"):
            expected_p = skce_test(h, test, **draws)
        elif test == "montecarlo":
            expected_p = montecarlo_test(one, y[i], **draws, **options)
        elif test == "block":
            blocks = skce_blocks(one, y[i], 3, **options)
            expected, expected_p = blocks.mean(), block_p_value(blocks)
        assert skce[i] == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(p[i], expected_p, rtol=1e-9)


def test_block_length_is_that_of_the_test(rng):
    loc, y = rng.normal(size=(1, 30, 3)), rng.normal(size=(1, 30))
    wild = skce_locations(Forecasts(loc), y, test="wild", block_length=4)[1]
    h = case_matrix(Forecasts(loc[0]), y[0])
    assert wild[0] == skce_test(h, "wild", block_length=4)
    block = skce_locations(Forecasts(loc), y, test="block", block_length=7)[1]
    assert block[0] == block_p_value(skce_blocks(Forecasts(loc[0]), y[0], 7))
    one = skce_locations(Forecasts(loc), y, test="block", block_length=30)
    assert np.isfinite(one[0])
    assert np.isnan(one[1])


@pytest.mark.parametrize("test", [None, "bootstrap", "wild", "montecarlo", "block"])
def test_status(rng, test):
    loc, y = rng.normal(size=(8, 12, 3)), rng.normal(size=(8, 12))
    scale, weights = np.ones(loc.shape), np.full(loc.shape, 1 / 3)
    expected = np.zeros(8, dtype=int)
    y[1, 1:], expected[1] = np.nan, TOO_FEW
    loc[2, 5:], expected[2] = np.nan, FEW
    loc[3], expected[3] = 0.5, IDENTICAL
    y[4], expected[4] = 0.25, NO_SPREAD
    weights[5, 7, 0], expected[5] = -0.1, REFUSED
    y[6, 2], loc[6, 5, 1], expected[6] = np.inf, -np.inf, INVALID
    skce, p, status, _ = skce_locations(
        Forecasts(loc, scale, weights), y, test=test, n_resamples=20
    )
    np.testing.assert_array_equal(status, expected)
    gone = np.isin(expected, [TOO_FEW, NO_SPREAD, REFUSED])
    np.testing.assert_array_equal(np.isnan(skce), gone)
    np.testing.assert_array_equal(np.isnan(p), gone if test else np.full(8, True))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("weights", -0.1),
        ("weights", np.inf),
        ("weights", 0.5),
        ("scale", -1.0),
        ("scale", np.inf),
    ],
)
def test_what_no_distribution_has_is_refused(rng, part, value):
    given = {"scale": np.ones((2, 12, 3)), "weights": np.full((2, 12, 3), 1 / 3)}
    given[part][1, 4, 2] = value
    forecasts = Forecasts(rng.normal(size=(2, 12, 3)), **given)
    skce, p, status, _ = skce_locations(forecasts, rng.normal(size=(2, 12)), test="wild")
    np.testing.assert_array_equal(status, [0, REFUSED])
    np.testing.assert_array_equal(np.isnan([skce, p]), [[False, True]] * 2)


def test_weights_of_float32_and_of_missing_forecasts_are_not_refused(rng):
    weights = rng.dirichlet(np.ones(500), (1, 12)).astype(np.float32)
    loc = rng.normal(size=(1, 12, 500)).astype(np.float32)
    loc[0, 3], weights[0, 3] = np.nan, 0.0
    loc[0, 4, 1] = np.nan  # keeps its weight
    weights[0, 5] = np.nan
    y = rng.normal(size=(1, 12)).astype(np.float32)
    found = skce_locations(Forecasts(loc, None, weights), y)
    assert found[2] == 0
    keep = [i for i in range(12) if i not in (3, 5)]
    some = skce_locations(Forecasts(loc[:, keep], None, weights[:, keep]), y[:, keep])
    assert found[0] == some[0]


def test_meanings():
    assert len(set(EVIDENCE_MEANINGS.values())) == len(EVIDENCE_MEANINGS) == 10
    for bit in EVIDENCE_MEANINGS:
        assert bit.bit_count() == 1
    assert not {FEW, NO_SPREAD, REFUSED} & set(MEANINGS)


WRONG = {
    r"test is 'sign'; give one of 'serial', 'bootstrap', 'wild', 'montecarlo', 'block', or None": {
        "test": "sign"
    },
    r"n_resamples is 0; give a whole number from 1": {"n_resamples": 0},
    r"block_length is 0; give a whole number from 1": {"test": "wild", "block_length": 0},
    r"block_length is 1; give a whole number from 2": {"test": "block", "block_length": 1},
    r"block_length is 3, but test='bootstrap' treats cases as independent; use test='serial'": {
        "test": "bootstrap",
        "block_length": 3,
    },
    r"location_numbers must be integers of shape \(2,\), got float64 of shape \(2,\)": {
        "location_numbers": np.ones(2)
    },
    r"location_numbers must be integers of shape \(2,\), got int64 of shape \(1,\)": {
        "location_numbers": np.ones(1, int)
    },
    r"location_number is -1; give a whole number from 0": {"location_numbers": np.array([-1, 0])},
    r"observations have shape \(2, 3\), but forecasts need \(2, 12\)": {
        "observations": np.ones((2, 3))
    },
    r"forecasts need 3 axes \(location, case, member\), got \(12, 3\)": {
        "forecasts": Forecasts(np.ones((12, 3)))
    },
    r"augmented=True is for plain ensembles; these forecasts have weights or scales": {
        "forecasts": Forecasts(np.ones((2, 12, 3)), np.ones((2, 12, 3))),
        "augmented": True,
    },
    r"shared members must not have a scale; give loc the shape of scale": {
        "forecasts": Forecasts(np.ones((2, 3)), np.ones((2, 12, 3)), np.ones((2, 12, 3)) / 3)
    },
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said(rng, message):
    given = {"forecasts": Forecasts(rng.normal(size=(2, 12, 3)))}
    given |= {"observations": rng.normal(size=(2, 12))} | WRONG[message]
    forecasts, observations = given.pop("forecasts"), given.pop("observations")
    with pytest.raises(ValueError, match=f"^{message}"):
        skce_locations(forecasts, observations, **given)


def test_errors_of_the_test_of_a_matrix(matrix):
    with pytest.raises(
        ValueError, match="test is 'block'; give 'bootstrap', 'wild' or 'serial' for a"
    ):
        skce_test(matrix, "block")
    with pytest.raises(ValueError, match="block_length is 2, but the bootstrap assumes indep"):
        skce_test(matrix, block_length=2)
    with pytest.raises(ValueError, match=r"the matrix must be square, \(n, n\), got \(12, 3\)"):
        skce_test(matrix[:, :3])
    with pytest.raises(ValueError, match=r"n_resamples is 1.5; give a whole number from 1"):
        skce_test(matrix, n_resamples=1.5)
