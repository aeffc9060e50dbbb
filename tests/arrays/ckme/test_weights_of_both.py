"""Errors, and past observations that were chosen before them."""

import numpy as np
import pytest

from xrecal import arrays
from xrecal.arrays import Forecasts, Settings

SUPPORTS = ("observations", "mean", "regression")


def two_regimes(n=120, seed=0):
    """Observations at two values, and at the other location around the forecast."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(2, n))
    noise = rng.normal(size=signal.shape)
    truth = np.stack([np.sign(signal[0]) * 3 + 0.1 * noise[0], signal[1] + 0.3 * noise[1]])
    members = signal[..., np.newaxis] + 0.2 * rng.normal(size=(2, n, 6))
    return Forecasts(members[:, 20:]), truth[:, 20:], Forecasts(members[:, :20] + 0.1)


@pytest.mark.parametrize("solver", ["exact", "lowrank"])
@pytest.mark.parametrize("projection", ["euclidean", "energy"])
def test_each_is_what_it_is_alone(solver, projection):
    past, truth, new = two_regimes()
    settings = Settings(supports=SUPPORTS, solver=solver, projection=projection)
    fitted = arrays.fit_ckme(past, truth, settings)
    assert fitted.support[0] == 0 != fitted.beside[0]
    assert fitted.support[1] != 0 == fitted.beside[1]
    members, weights, observed, novelty = arrays.ckme_weights_of_both(
        new, past, truth, fitted, projection=projection
    )
    alone = arrays.ckme_novelty(new, past, truth, fitted)
    np.testing.assert_allclose(novelty, alone, atol=1e-12)
    as_chosen = arrays.ckme_weights(
        new, past, truth, fitted, projection=projection, own_members=True
    )
    of_errors = arrays.ckme_weights(
        new, past, truth, fitted.of_errors(), projection=projection, own_members=True
    )
    np.testing.assert_array_equal(members, of_errors[0])
    np.testing.assert_allclose(weights, of_errors[1], atol=1e-12)
    np.testing.assert_allclose(observed[0], as_chosen[1][0], atol=1e-12)
    np.testing.assert_array_equal(observed[1], 0)
    np.testing.assert_array_equal(members[1], as_chosen[0][1])


def test_the_errors_beside_are_those_that_would_be_chosen_without_observations():
    past, truth, _ = two_regimes()
    kept = Settings(supports=SUPPORTS, ridge=1e-2)
    both = arrays.fit_ckme(past, truth, kept)
    errors = arrays.fit_ckme(past, truth, kept._replace(supports=SUPPORTS[1:]))
    assert both.beside[0] == errors.support[0]
    np.testing.assert_array_equal(both.beside_centre[0], errors.centre[0])
    assert np.isnan(both.beside_centre[1]).all()


def test_nothing_is_issued_of_what_is_missing():
    past, truth, new = two_regimes()
    fitted = arrays.fit_ckme(past, truth, Settings(supports=SUPPORTS))
    fitted.ridge[1] = np.nan
    new.loc[0, 3] = np.nan
    for part in arrays.ckme_weights_of_both(new, past, truth, fitted):
        assert np.isnan(part[1]).all()
        assert np.isnan(part[0, 3]).all()
        assert np.isfinite(part[0, 4:]).all()
