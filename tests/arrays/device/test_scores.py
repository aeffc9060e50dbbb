import numpy as np
import pytest

from xrecal.arrays.device import scores as batched
from xrecal.arrays.scores import crps as scores
from xrecal.arrays.scores.significance import mean_of_cases

from .test_weighted import given, own, plain, shared


@pytest.mark.parametrize("make", [plain, own, shared])
def test_scores_are_those_of_the_host(library, rng, make):
    members, weights = make(rng)
    observed = rng.normal(size=members.shape[:-1] if make is not shared else weights.shape[:-1])
    observed[0, 1] = np.nan
    found = batched.crps(library(observed), *given(library, (members, weights)))
    expected = scores.crps(observed, members, weights)
    np.testing.assert_allclose(library.host(found), expected, atol=1e-14)


def test_infinite_members_that_count_have_no_score(library, rng):
    members, weights = rng.normal(size=(2, 3, 5)), rng.random((2, 3, 5))
    members[0, 0, 1], members[0, 1, 2] = np.inf, -np.inf
    weights[0, 1, 2] = 0.0
    observed = rng.normal(size=(2, 3))
    found = batched.crps(*map(library, (observed, members, weights)))
    np.testing.assert_allclose(
        library.host(found), scores.crps(observed, members, weights), atol=1e-14
    )
    assert np.isnan(library.host(found)[0, 0])


def test_what_does_not_fit_is_refused(library):
    members = library(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="weights must not be negative"):
        batched.crps(library(np.zeros(2)), members, library(np.full((2, 3), -1.0)))
    with pytest.raises(ValueError, match=r"observations have shape \(3,\), but the forecasts need"):
        batched.crps(library(np.zeros(3)), members)


def test_means_are_those_of_the_host(library, rng):
    given = rng.normal(size=(3, 7))
    given[0, 2], given[1] = np.nan, np.nan
    found = library.host(batched.mean_of_cases(library(given)))
    np.testing.assert_allclose(found, mean_of_cases(given), rtol=1e-14)
