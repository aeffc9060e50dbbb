import numpy as np
import pytest

from xrecal.arrays import Forecasts, fit_ckme, ridge_losses
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.ckme.ridges import RIDGES
from xrecal.arrays.status import TOO_FEW

from .reference import GRID, SUPPORTS, Choice, blocks_in_time
from .test_ckme import as_embedding, make_cases, with_covariates


def test_ridges_are_those_of_a_fit():
    np.testing.assert_allclose(RIDGES, GRID)


@pytest.mark.parametrize("loss", ["crps", "laplace"])
def test_losses_of_the_reference(rng, loss):
    x, y = make_cases(rng, 2, 40)
    found = ridge_losses(Forecasts(x), y, Settings(loss=loss))
    for location in range(2):
        embedding, slot = as_embedding(x, y, location, loss=loss)
        fold = blocks_in_time(slot.size)
        expected = [embedding.mean_loss(fold, slot, 0, Choice(r)) for r in GRID]
        np.testing.assert_allclose(found.loss[location], expected, rtol=1e-7)


def test_each_ridge_has_the_support_and_kernel_that_suit_it(rng):
    kernels, supports = ((1.0, 0.0), (1.0, 1.0)), SUPPORTS[:3]
    x, y = make_cases(rng, 1, 40)
    of, _ = with_covariates(rng, 1, 40)
    settings = Settings(supports=supports, kernels=kernels)
    found = ridge_losses(Forecasts(x), y, settings, features=of)
    embedding, slot = as_embedding(x, y, of=of)
    fold = blocks_in_time(slot.size)
    for ridge, loss in zip(GRID, found.loss[0], strict=True):
        choices = [Choice(ridge, s, *k) for s in supports for k in kernels]
        expected = min(embedding.mean_loss(fold, slot, 0, choice) for choice in choices)
        assert loss == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("n", [60, 400])
def test_the_fit_has_the_smallest_loss(rng, n):
    """Exactly, and by landmarks where there are many cases."""
    x, y = make_cases(rng, 1, n)
    fitted, found = fit_ckme(Forecasts(x), y), ridge_losses(Forecasts(x), y)
    assert found.loss[0].min() == pytest.approx(fitted.loss[0], rel=1e-6)
    assert found.ridge == fitted.ridge
    best = int(found.loss[0].argmin())
    assert RIDGES[best] / 10**0.5 < found.ridge[0] < RIDGES[best] * 10**0.5


def test_too_few_cases_have_no_loss(rng):
    x, y = make_cases(rng, 2, 40)
    y[1, 10:] = np.nan
    found = ridge_losses(Forecasts(x), y)
    assert np.isfinite(found.loss[0]).all()
    assert np.isnan(found.loss[1]).all()
    assert np.isnan(found.ridge[1])
    assert found.status[1] == TOO_FEW
    assert found.n_cases[1] <= 10
    alone = ridge_losses(Forecasts(x[:1]), y[:1])
    np.testing.assert_array_equal(alone.loss[0], found.loss[0])


def test_what_is_known_of_the_cases_counts(rng):
    """Folds, and half-lives that a fit would choose."""
    x, y = make_cases(rng, 1, 60)
    y[0] += 0.1 * np.arange(60)
    years = np.repeat(np.arange(6), 10)
    plain = ridge_losses(Forecasts(x), y)
    assert (ridge_losses(Forecasts(x), y, groups=years, blocks=0).loss != plain.loss).all()
    days = 30.0 * np.arange(60)
    fading = ridge_losses(Forecasts(x), y, days=days, half_life="cv")
    life = fit_ckme(Forecasts(x), y, days=days, half_life="cv").half_life[0]
    assert np.isfinite(life)
    same = ridge_losses(Forecasts(x), y, days=days, half_life=life)
    np.testing.assert_array_equal(fading.loss, same.loss)
    assert (fading.loss != plain.loss).all()
