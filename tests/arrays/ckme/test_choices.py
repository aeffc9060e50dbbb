"""Choices apart from the fit."""

import numpy as np
import pytest

from xrecal.arrays import Forecasts, Settings, choose_ckme, fit_ckme
from xrecal.arrays.ckme.search import Search
from xrecal.arrays.status import TOO_FEW

from .reference import SUPPORTS
from .test_ckme import make_cases, with_covariates

KERNELS = ((1.0, 0.0), (1.0, 1.0), (4.0, 0.25))


@pytest.fixture
def cases(rng):
    x, y = make_cases(rng, 3, 60)
    return Forecasts(x), y


@pytest.mark.each_value
@pytest.mark.parametrize("supports", [SUPPORTS[:1], SUPPORTS], ids=len)
@pytest.mark.parametrize("half_life", [np.inf, "cv"])
def test_choice_and_fit_are_what_one_call_does(rng, cases, supports, half_life):
    of, _ = with_covariates(rng, 3, 60)
    given = {"features": of, "days": 7.0 * np.arange(60)}
    settings = Settings(supports=supports, kernels=KERNELS)
    choices = choose_ckme(*cases, settings, half_life=half_life, **given)
    found = fit_ckme(*cases, settings, choices=choices, **given)
    expected = fit_ckme(*cases, settings, half_life=half_life, **given)
    for name, one, other in zip(found._fields, found, expected, strict=True):
        np.testing.assert_array_equal(one, other, name)


def test_a_fit_with_given_choices_searches_nothing(rng, cases, monkeypatch):
    """Choices of other cases, and of one place for all."""
    x, y = make_cases(rng, 1, 80)
    settings = Settings(supports=SUPPORTS[:3])
    one = choose_ckme(Forecasts(x), y, settings)
    np.testing.assert_array_equal(one.cases, fit_ckme(Forecasts(x), y, settings).n_cases)
    monkeypatch.setattr(Search, "__init__", lambda *_, **__: pytest.fail("a search began"))
    shared = one._make(np.repeat(part, 3, axis=0) for part in one)
    found = fit_ckme(*cases, settings, choices=shared)
    for name in ("support", "strength"):
        np.testing.assert_array_equal(getattr(found, name), getattr(shared, name))
    np.testing.assert_array_equal(found.ridge, shared.ridge * shared.cases / found.n_cases)
    assert np.unique(found.bandwidth).size == 3  # the median distance is that of each place
    assert np.isfinite(found.centre).all()


def test_a_place_without_choices_has_no_fit(cases):
    choices = choose_ckme(*cases)
    choices.ridge[1] = np.nan
    found = fit_ckme(*cases, choices=choices)
    assert np.isnan(found.bandwidth[1])
    assert found.status[1] == TOO_FEW
    assert np.isfinite(found.bandwidth[[0, 2]]).all()
