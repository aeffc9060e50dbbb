import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as values_of
from scipy import stats

from xrecal.arrays import reordered_members, shuffled_members
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


def test_missing_values_take_every_rank_and_leave_the_order_of_others(rng):
    members, template = rng.normal(size=(2, 3000, 5))
    template[:, 2] = np.nan
    ranks = stats.rankdata(reordered_members(members, template, 0, np.arange(3000)), axis=1)
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(
        stats.rankdata(ranks[:, others], axis=1), stats.rankdata(template[:, others], axis=1)
    )
    shares = np.bincount(ranks[:, 2].astype(int), minlength=6)[1:] / 3000
    # between values at 1/8, 3/8, 5/8 and 7/8
    np.testing.assert_allclose(shares, [1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8], atol=0.03)


def test_arguments_that_do_not_fit(rng):
    members = rng.normal(size=(3, 4))
    with pytest.raises(ValueError, match=r"template has shape \(3, 3\), but members have \(3, 4\)"):
        reordered_members(members, members[:, :3], 0, CASES)
    for cases in (CASES[:2], CASES * 1.0):
        with pytest.raises(ValueError, match=r"cases must be integers of shape \(3,\)"):
            reordered_members(members, members, 0, cases)


def test_numbers_are_the_streams_that_shuffle_members():
    """Uniform, reproducible, and apart for each seed, location and case."""
    found = uniforms_at(4, np.arange(5)[:, np.newaxis], np.arange(6), 400)
    assert found.shape == (5, 6, 400)
    assert stats.kstest(found.ravel(), "uniform").pvalue > 1e-3
    np.testing.assert_array_equal(
        uniforms_at(4, np.array([2]), np.array([3]), 9)[0], found[2, 3, :9]
    )
    assert np.unique(found).size == found.size
    row = np.arange(40.0)[np.newaxis]
    assert (shuffled_members(row, 4, np.array([0]), np.array([0])) != row).any()
