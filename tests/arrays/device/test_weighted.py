import numpy as np
import pytest

from xrecal.arrays.device import weighted as batched
from xrecal.arrays.device.weighted import shuffled_members
from xrecal.arrays.distributions import members, weighted


def own(rng):
    members, weights = rng.normal(size=(3, 4, 9)).round(1), rng.random((3, 4, 9))
    members[0, 0, 3:], members[1, 1] = np.nan, np.nan
    weights[0, :, 0], weights[2, 2, 4], weights[2, 3] = 0.0, np.nan, 0.0
    return members, weights


def plain(rng):
    return own(rng)[0], None


def shared(rng):
    members, weights = own(rng)[0][:, 0], rng.random((3, 5, 9))
    weights[:, :, :2], weights[1, 1] = 0.0, np.nan
    return members, weights


@pytest.fixture(params=[plain, own, shared])
def ensembles(request, rng):
    return request.param(rng)


@pytest.mark.parametrize("name", ["mean", "std"])
def test_moments_are_those_of_the_host(library, ensembles, name):
    found = getattr(batched, f"weighted_{name}")(*given(library, ensembles))
    expected = getattr(weighted, f"weighted_{name}")(*ensembles)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def given(library, parts):
    return tuple(None if part is None else library(part) for part in parts)


@pytest.mark.parametrize("name", ["cdf", "exceedance"])
def test_probabilities_are_those_of_the_host(library, ensembles, name):
    thresholds = np.array([0.3, -0.2, 5.0])
    members, weights = given(library, ensembles)
    found = getattr(batched, f"weighted_{name}")(members, library(thresholds), weights)
    expected = getattr(weighted, f"weighted_{name}")(ensembles[0], thresholds, ensembles[1])
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def test_thresholds_may_differ_from_forecast_to_forecast(library, rng):
    members, weights = shared(rng)
    thresholds = rng.normal(size=(3, 5, 2))
    thresholds[0, 0, 0] = np.nan
    found = batched.weighted_exceedance(library(members), library(thresholds), library(weights))
    expected = weighted.weighted_exceedance(members, thresholds, weights)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def test_quantiles_are_those_of_the_host(library, ensembles):
    levels = np.array([0.5, 0.0, 1.0, 0.25, 0.1])
    members, weights = given(library, ensembles)
    found = batched.weighted_quantile(members, levels, weights)
    expected = weighted.weighted_quantile(ensembles[0], levels, ensembles[1])
    np.testing.assert_array_equal(library.host(found), expected)


def test_levels_on_steps_of_the_distribution_are_on_them(library):
    members, levels = np.arange(10.0), np.arange(11) / 10
    found = batched.weighted_quantile(library(members), levels)
    np.testing.assert_array_equal(library.host(found), weighted.weighted_quantile(members, levels))


def test_what_does_not_fit_is_refused(library):
    members = library(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="q must hold levels between 0 and 1"):
        batched.weighted_quantile(members, [1.2])
    with pytest.raises(ValueError, match=r"weights of shape \(2, 4\) do not fit members of shape"):
        batched.weighted_mean(members, library(np.zeros((2, 4))))


def test_orders_are_those_of_the_host(library, rng):
    given = rng.normal(size=(3, 4, 7))
    places, cases = np.arange(12).reshape(3, 4) % 3, np.arange(12).reshape(3, 4)
    found = shuffled_members(library(given), 5, library(places), library(cases))
    expected = members.shuffled_members(given, 5, places, cases)
    np.testing.assert_array_equal(library.host(found), expected)
