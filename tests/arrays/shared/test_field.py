"""Smooth fields of the features of places."""

import numpy as np

from xrecal.arrays.shared.field import FieldSettings, fit_field

P = 150
rng = np.random.default_rng(1)
features = np.column_stack([rng.uniform(0, 10, P), rng.uniform(40, 50, P)])


def rmse(found, truth):
    return np.sqrt(np.mean((found - truth) ** 2))


def test_a_field_is_the_posterior_mean_of_a_gaussian_process():
    x, settings = features[:40, :1], FieldSettings(1.0, 0.8, 0.05)
    values = np.sin(x[:, 0]) + 2
    errors = rng.uniform(0.01, 0.2, 40)
    field = fit_field(x, values, errors, settings)
    new = np.linspace(0, 10, 7)[:, np.newaxis]
    weight = field.precision[0]
    among = 0.8 * np.exp(-weight * (x - x.T) ** 2)
    across = 0.8 * np.exp(-weight * (new - x.T) ** 2)
    inverse = np.linalg.inv(among + np.diag(errors + 0.05))
    constant = inverse.sum(0) @ values / inverse.sum()
    expected = constant + across @ inverse @ (values - constant)
    np.testing.assert_allclose(field.at(new), expected, atol=2e-3)


def test_a_field_finds_smooth_and_unexplained_parts():
    x = rng.uniform(0, 10, (600, 2))
    values = np.sin(x[:, 0]) + 0.3 * rng.normal(size=600)
    field = fit_field(x, values, np.full(600, 1e-4))
    assert 0.2 < np.sqrt(field.settings.nugget) < 0.45
    inside = np.column_stack([np.linspace(1, 9, 50), np.full(50, 5.0)])
    assert rmse(field.at(inside), np.sin(inside[:, 0])) < 0.12


def test_a_field_of_nothing_is_flat():
    nothing = fit_field(features, np.zeros(P), np.full(P, np.inf))
    np.testing.assert_array_equal(nothing.at(features), np.zeros(P))
    constant = np.column_stack([features[:, 0], np.full(P, 3.0)])
    field = fit_field(constant, np.sin(features[:, 0]), np.full(P, 0.01))
    assert field.precision[1] == 0
    far = np.column_stack([features[:, 0], np.full(P, np.nan)])
    np.testing.assert_allclose(field.at(far), field.at(constant), rtol=1e-12)
