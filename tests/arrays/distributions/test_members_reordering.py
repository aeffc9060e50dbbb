import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as values_of
from scipy import stats

from xrecal.arrays import reordered_members
from xrecal.arrays.distributions.draws import uniforms_at

levels = st.one_of(st.integers(-2, 2).map(float), st.just(np.nan))
CASES = np.array([3, 0, 8])


def slow(members, template, uniform):
    """One row: known values by rank, missing ones between them where their number says."""
    n_known = np.isfinite(template).sum()
    known = sorted((k for k in range(len(template)) if template[k] == template[k]),
                   key=lambda k: (template[k], uniform[k]))  # fmt: skip
    at = {k: (rank + 0.5) / n_known for rank, k in enumerate(known)}
    order = sorted(range(len(template)), key=lambda k: (at.get(k, uniform[k]), uniform[k]))
    found = np.empty(len(template))
    for value, k in zip(sorted(members), order, strict=True):
        found[k] = value
    return found


@given(values_of(np.float64, (3, 7), elements=levels), st.integers(-3, 3))
def test_as_the_loop(template, seed):
    members = np.random.default_rng(1).normal(size=(3, 7))
    found = reordered_members(members, template, seed, CASES)
    uniform = uniforms_at(seed, np.zeros(3, int), CASES, 7)
    for row in range(3):
        np.testing.assert_array_equal(found[row], slow(members[row], template[row], uniform[row]))
    np.testing.assert_array_equal(np.sort(found), np.sort(members))


def test_ties_have_one_order_at_all_places_of_a_case(rng):
    members, cases = rng.normal(size=(4, 200, 6)), np.broadcast_to(np.arange(200), (4, 200))
    found = reordered_members(members, np.zeros((4, 200, 6)), 7, cases)
    ranks = stats.rankdata(found, axis=-1)
    np.testing.assert_array_equal(ranks, np.broadcast_to(ranks[0], ranks.shape))
    assert abs(ranks[0].mean(0) - 3.5).max() < 0.5  # every order is equally likely
    other = reordered_members(members, np.zeros((4, 200, 6)), 8, cases)
    assert (other != found).any()


def test_arguments_that_do_not_fit(rng):
    members = rng.normal(size=(3, 4))
    with pytest.raises(ValueError, match=r"template has shape \(3, 3\), but members have \(3, 4\)"):
        reordered_members(members, members[:, :3], 0, CASES)
    for cases in (CASES[:2], CASES * 1.0):
        with pytest.raises(ValueError, match=r"cases must be integers of shape \(3,\)"):
            reordered_members(members, members, 0, cases)
