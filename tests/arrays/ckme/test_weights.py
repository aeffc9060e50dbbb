import numpy as np
import pytest

from tests.arrays.distributions.test_distance import double_sum_distance
from xrecal.arrays import (
    Forecasts,
    ckme_weights,
    fit_ckme,
    median_bandwidth,
    normal_squared_energy_distance,
    squared_energy_distance,
)
from xrecal.arrays.ckme.embedding import Settings

from .reference import SUPPORTS, Choice, Embedding
from .test_ckme import as_embedding, fixed, make_cases, weigh, with_covariates


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_weights_equal_the_dense_reference(rng, kernel, projection):
    x, y = make_cases(rng)
    y = np.round(y, 1)  # with ties
    new = rng.normal(size=(2, 5, 8))
    new[:, 2, 3:] = np.nan
    fitted = fixed(2, np.array([0.8, 0.3]), np.array([0.02, 0.1]))
    settings = {"kernel": kernel, "projection": projection}
    members, weights = ckme_weights(Forecasts(new), Forecasts(x), y, fitted, **settings)
    assert members is y
    assert weights.shape == (2, 5, 40)
    for cell in range(2):
        bandwidth = fitted.bandwidth[cell]
        embedding, slot = as_embedding(x, y, cell, bandwidth=bandwidth, **settings)
        assert slot.size == 38
        np.testing.assert_array_equal(np.delete(weights[cell], slot, axis=1), 0)
        across = double_sum_distance(new[cell], x[cell, slot])
        everything, choice = np.arange(38), Choice(fitted.ridge[cell])
        for t in range(5):
            given = everything, across[t], None, None, np.zeros(0), choice
            _, expected = embedding.forecast(*given, members=new[cell, t])
            np.testing.assert_allclose(weights[cell, t, slot], expected, atol=1e-10)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)


@pytest.mark.each_value
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
@pytest.mark.parametrize("strength", [0.0, 0.5])
@pytest.mark.parametrize("half_life", [np.inf, 60.0])
def test_supports_covariates_and_case_weights_equal_the_reference(
    rng, support, projection, strength, half_life
):
    x, y = make_cases(rng, 1)
    y = np.maximum(y, 0)  # a quarter at a bound
    (of, new_of), days = with_covariates(rng, 1, 40), np.cumsum(rng.integers(1, 9, 40)) * 1.0
    of.values[0, 13, 0] = np.nan
    settings = Settings(
        supports=(support,), kernels=((2.0, strength),), ridge=0.03, projection=projection
    )
    fitted = fit_ckme(Forecasts(x), y, settings, features=of, days=days, half_life=half_life)
    assert fitted.support == SUPPORTS.index(support)
    assert fitted.n_cases == 37
    assert fitted.lower == (0 if support != "observations" else -np.inf)
    assert fitted.half_life == half_life
    new = 1 + 2 * rng.normal(size=(1, 5, 6))
    members, weights = ckme_weights(
        Forecasts(new),
        Forecasts(x),
        y,
        fitted,
        projection=projection,
        features=of,
        new_features=new_of,
        days=days,
        own_members=True,
    )
    embedding, slot = as_embedding(
        x, y, of=of, days=days, half_life=half_life, projection=projection
    )
    choice = Choice(0.03, support, 2.0, strength)
    assert fitted.bandwidth[0] == pytest.approx(2 * embedding.bandwidth)
    np.testing.assert_allclose(fitted.precision[0], embedding.precision)
    across = double_sum_distance(new[0], x[0, slot])
    for t in range(5):
        ensemble = new[0, t].mean(), new[0, t].var(), new_of.values[0, t]
        points, expected = embedding.forecast(
            np.arange(37), across[t], *ensemble, choice, members=new[0, t]
        )
        atol = 1e-6 if support == "standardised" else 1e-9  # EMOS is found by a search
        np.testing.assert_allclose(members[0, t, slot], points, rtol=1e-6, atol=atol)
        np.testing.assert_allclose(weights[0, t, slot], expected, atol=100 * atol)
    unused = np.delete(np.arange(40), slot)
    assert np.isnan(members[0][:, unused]).all()
    np.testing.assert_array_equal(weights[0][:, unused], 0)


@pytest.mark.parametrize("strength", [0.0, 1.0])
@pytest.mark.parametrize("own_members", [False, True])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_forecasts_without_a_covariate_get_nan_even_where_it_does_not_count(
    rng, strength, own_members, projection
):
    x, y = make_cases(rng, 1, missing=False)
    of, new_of = with_covariates(rng, 1, 40)
    new_of.values[0, 1, 0] = np.nan
    k = of.circular.size
    fitted = fixed(1, 0.5, 0.01)._replace(
        strength=np.array([strength]),
        precision=np.ones((1, k)),
        centre=np.array([[0, 0, 1.0, 0] + [0] * 2 * k]),
    )
    given = {"features": of, "new_features": new_of, "projection": projection}
    members, weights = ckme_weights(
        Forecasts(x[:, :5]), Forecasts(x), y, fitted, own_members=own_members, **given
    )
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), np.arange(5) == 1)
    np.testing.assert_array_equal(np.isnan(weights[0]).any(-1), np.arange(5) == 1)
    if own_members:
        np.testing.assert_array_equal(np.isnan(members[0]).all(-1), np.arange(5) == 1)


def test_missing_and_small_new_forecasts(rng):
    x, y = make_cases(rng, 1)
    new = rng.normal(size=(1, 4, 5))
    new[0, 1] = np.nan
    new[0, 2, 1:] = np.nan
    fitted = fixed(1, 0.5, 0.01)
    weights = weigh(new, x, y, fitted)
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), [False, True, False, False])
    assert np.isnan(weights[0]).any(-1).sum() == 1
    single = weigh(new[:, 2:3, :1], x, y, fitted)
    np.testing.assert_allclose(weights[:, 2:3], single, atol=1e-12)
    assert np.isnan(weigh(new[:, 1:2], x, y, fitted)).all()
    assert weigh(new[:, :0], x, y, fixed(1, 1.0, 1.0)).shape[1] == 0
    members, weights = ckme_weights(Forecasts(new), Forecasts(x), y, fitted, own_members=True)
    np.testing.assert_array_equal(np.isnan(members[0]).all(-1), [False, True, False, False])
    np.testing.assert_array_equal(np.isnan(weights[0]).all(-1), [False, True, False, False])


def test_distances_known_already_give_the_same_weights(rng):
    x, y = make_cases(rng)
    new = rng.normal(size=(2, 3, 6))
    fitted = fit_ckme(Forecasts(x), y)
    squared = np.stack([squared_energy_distance(x[cell]) for cell in range(2)])
    across = np.stack([squared_energy_distance(new[cell], x[cell]) for cell in range(2)])
    found = weigh(new, x, y, fitted, across=across, squared=squared)
    np.testing.assert_allclose(found, weigh(new, x, y, fitted), atol=1e-9)


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
    weights = weigh(Forecasts(*new, new_mass), cases, y, fitted)
    across = normal_squared_energy_distance(
        new[0][0], new[1][0], loc[0], scale[0], x_weights=new_mass[0], y_weights=mass[0]
    )
    embedding = Embedding(among, y[0], r=np.zeros((30, 0)), bandwidth=fitted.bandwidth[0])
    for t in range(4):
        _, expected = embedding.forecast(
            np.arange(30), across[t], None, None, np.zeros(0), Choice(fitted.ridge[0])
        )
        np.testing.assert_allclose(weights[0, t], expected, atol=1e-8)


def test_mixtures_of_scale_zero_are_ensembles(rng):
    x, y = make_cases(rng, 1)
    new = rng.normal(size=(1, 3, 6))
    ensembles, mixtures = fit_ckme(Forecasts(x), y), fit_ckme(Forecasts(x, np.zeros_like(x)), y)
    np.testing.assert_allclose(mixtures.bandwidth, ensembles.bandwidth, rtol=1e-10)
    np.testing.assert_allclose(mixtures.ridge, ensembles.ridge, rtol=1e-6)
    # Equal weights, as the number of components says nothing.
    weights = weigh(Forecasts(new, None, np.ones_like(new)), x, y, ensembles)
    points = Forecasts(new, np.zeros_like(new)), Forecasts(x, np.zeros_like(x))
    np.testing.assert_allclose(weigh(*points, y, ensembles), weights, atol=1e-10)


def test_integer_weights_are_repeated_members(rng):
    x, y = make_cases(rng, 1)
    repeats = np.array([1, 2, 1, 3, 1, 1])
    weighted = Forecasts(x, None, np.broadcast_to(0.5 * repeats, x.shape))
    repeated = Forecasts(np.repeat(x, repeats, axis=-1))
    np.testing.assert_allclose(fit_ckme(weighted, y).bandwidth, fit_ckme(repeated, y).bandwidth)
    new = Forecasts(rng.normal(size=(1, 3, 6)), None, np.ones((1, 3, 6)))
    expected = weigh(new, repeated, y, fixed(1, 0.5, 0.01))
    found = weigh(new, weighted, y, fixed(1, 0.5, 0.01))
    np.testing.assert_allclose(found, expected, atol=1e-10)
