import numpy as np
import pytest

from xrecal.arrays import Features, Forecasts
from xrecal.arrays.device import case_groups as batched
from xrecal.arrays.distributions.forms import VALID, moments, usable_observations, verdicts

from .cases import forecasts_and_observations


@pytest.fixture
def given(rng):
    """Cases with all that can be missing or invalid."""
    cases, observed = forecasts_and_observations(rng, 4, 12)
    weights = rng.random(cases.loc.shape)
    cases.loc[0, 0], cases.loc[1, 2, 1], cases.loc[2, 3, 0] = np.nan, np.nan, np.inf
    weights[0, 4], weights[1, 5, 0], weights[2, 3, 0] = 0.0, -1.0, 0.0
    weights[3, 1, 2] = np.nan
    observed[0, 7], observed[3, 8] = np.nan, np.inf
    of = np.zeros((4, 12, 1))
    of[2, 9] = np.nan
    return Forecasts(cases.loc, None, weights), observed, Features(of, np.zeros(1, bool))


def test_usable_cases_are_those_of_the_host(library, given):
    cases, observed, of = given
    ours = library.tuple(cases), library(observed), Features(library(of.values), of.circular)
    used, invalid = (library.host(part) for part in batched.usable(*ours))
    expected, spoilt = usable_observations(cases, observed)
    expected[np.isnan(of.values).any(-1)] = np.nan
    np.testing.assert_array_equal(used, ~np.isnan(expected))
    np.testing.assert_array_equal(invalid, spoilt)
    sound, bad = (library.host(part) for part in batched.valid(ours[0]))
    np.testing.assert_array_equal(sound, verdicts(cases) == VALID)
    assert not (sound & bad).any()


def test_groups_have_the_same_cases_and_weights():
    used = np.ones((6, 8), bool)
    used[1, 3], used[4, 3], used[5, 1:] = False, False, False
    days, lives = np.arange(8.0), np.array([4.0, 4.0, 4.0, 2.0, 4.0, 4.0])
    age = 7.0 - days
    groups = batched.groups_of(used, lives, days, 2)
    assert [group.places.tolist() for group in groups] == [[0, 2], [1, 4], [3]]
    assert groups[1].slots.tolist() == [0, 1, 2, 4, 5, 6, 7]
    np.testing.assert_allclose(groups[2].root, 2.0 ** (-age / 4.0))
    np.testing.assert_allclose(groups[1].root, 2.0 ** (-age[groups[1].slots] / 8.0))


def test_parts_cover_a_group(monkeypatch):
    monkeypatch.setattr(batched, "WORKSPACE", 100)
    group = batched.Group(np.arange(7), np.arange(3), np.ones(3))
    assert [part.places.tolist() for part in group.parts(45)] == [[0, 1], [2, 3], [4, 5], [6]]
    assert len(list(group.parts(10**9))) == 7


def test_what_is_selected_is_that_of_the_group(library, given):
    cases, observed, of = given
    ours = library.tuple(cases), library(observed), Features(library(of.values), of.circular)
    group = batched.Group(np.array([1, 3]), np.array([0, 3, 6]), np.ones(3))
    found = batched.select(*ours, group, centred=True)
    at = np.ix_(group.places, group.slots)
    np.testing.assert_array_equal(library.host(found.loc), cases.loc[at])
    np.testing.assert_array_equal(library.host(found.target), observed[at])
    for one, other in zip((found.mean, found.variance), moments(cases), strict=True):
        np.testing.assert_allclose(library.host(one), other[at], atol=1e-14)
    bare = batched.select(*ours, group, centred=False)
    assert not library.host(bare.mean).any()
