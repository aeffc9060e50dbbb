"""What the components of a pool say about cases that they have not seen."""

import numpy as np
import pytest

import xrecal
from xrecal.arrays.ckme.fitting import LATER_PARTS
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases, Covariates
from xrecal.methods.components import fit_method, raw_quantiles

N = 80
METHODS = [xrecal.EMOS(), xrecal.IDR(), xrecal.Climatology(), xrecal.CKME(ridge=0.01), xrecal.Raw()]


def cases(rng, shift=None):
    loc = rng.normal(size=(1, N, 5))
    observed = loc.mean(-1) + 0.5 * rng.normal(size=(1, N))
    if shift is not None:
        observed[:, shift] += 1000
    return Cases(Forecasts(loc), observed, Covariates(np.zeros((1, N, 0))), CaseAxis())


def held_out(method, shift=None):
    ((_, quantiles),) = fit_method(method, cases(np.random.default_rng(0), shift), 20)
    return quantiles[0]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_fold_is_forecast_without_its_own_observations(method):
    fold = np.arange(N) * 5 // N
    for f in (0, 3):
        expected, found = held_out(method)[0], held_out(method, fold == f)[0]
        np.testing.assert_allclose(found[fold == f], expected[fold == f], atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_later_parts_are_forecast_from_the_past_alone(method):
    part = np.arange(N) * LATER_PARTS // N
    expected, found = held_out(method)[1], held_out(method, part >= 4)[1]
    assert np.isnan(expected[part == 0]).all()
    past = (part > 0) & (part <= 4)
    np.testing.assert_allclose(found[past], expected[past], atol=1e-9)
    assert LATER_PARTS == 8


def test_the_learning_methods_do_learn_from_the_others():
    fold = np.arange(N) * 5 // N
    for method in METHODS[:4]:
        moved = np.abs(held_out(method, fold == 0)[0] - held_out(method)[0])
        assert (moved[fold != 0].max(-1) > 1).any()


def test_raw_quantiles_are_those_of_the_forecasts(rng):
    one = cases(rng)
    levels = (np.arange(100) + 0.5) / 100
    expected = np.quantile(one.forecasts.loc[0], levels, axis=-1, method="inverted_cdf").T
    np.testing.assert_allclose(raw_quantiles(one)[0], expected)
