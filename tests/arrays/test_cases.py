import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays.cases import (
    WORKSPACE,
    assign_folds,
    location_blocks,
    order_cases,
    valid_parts,
)
from xrecal.arrays.forms import Forecasts

masks = st.integers(1, 40).flatmap(lambda n: arrays(bool, (3, n)))


@given(masks, st.integers(2, 12))
def test_blocks_are_contiguous_and_of_equal_size(usable, blocks):
    fold = assign_folds(np.arange(usable.shape[1]), usable, blocks)
    np.testing.assert_array_equal(fold >= 0, usable)
    for of_location, counted in zip(fold, usable, strict=True):
        used = of_location[counted]
        assert (np.diff(used) >= 0).all()
        sizes = np.bincount(used, minlength=blocks)
        assert sizes.size == blocks
        assert np.ptp(sizes) <= 1


@given(masks, st.randoms(use_true_random=False), st.integers(2, 6))
def test_blocks_follow_the_order_given(usable, random, blocks):
    n = usable.shape[1]
    position = np.array(random.sample(range(n), n))
    fold = assign_folds(position, usable, blocks)
    in_order = assign_folds(np.arange(n), usable[:, np.argsort(position)], blocks)
    np.testing.assert_array_equal(fold[:, np.argsort(position)], in_order)


@given(st.data())
def test_years_are_folds(data):
    usable = data.draw(masks)
    n = usable.shape[1]
    years = data.draw(arrays(np.int64, n, elements=st.integers(1990, 1996)))
    fold = assign_folds(years, usable, 0)
    for of_location, counted in zip(fold, usable, strict=True):
        sizes = np.unique(years[counted], return_counts=True)[1]
        if sizes.size and 2 * sizes.max() <= sizes.sum():
            same_fold = np.equal.outer(of_location[counted], of_location[counted])
            same_year = np.equal.outer(years[counted], years[counted])
            np.testing.assert_array_equal(same_fold, same_year)


@given(masks)
def test_one_year_falls_back_to_blocks_in_time(usable):
    n = usable.shape[1]
    expected = assign_folds(np.arange(n), usable, 5)
    np.testing.assert_array_equal(assign_folds(np.full(n, 2001), usable, 0), expected)
    in_steps = assign_folds(np.arange(n) // 7, usable, 5)  # equal groups: in order of time
    np.testing.assert_array_equal(in_steps, expected)


def test_a_location_with_one_year_left_gets_blocks_the_others_years():
    years = np.repeat([2001, 2002], 5)
    usable = np.ones((2, 10), bool)
    usable[1, 5:] = False
    fold = assign_folds(years, usable, 0)
    np.testing.assert_array_equal(fold[0], np.repeat([0, 1], 5))
    np.testing.assert_array_equal(fold[1], [0, 1, 2, 3, 4, -1, -1, -1, -1, -1])


def test_cases_are_ordered_by_observation_and_unusable_ones_come_last(rng):
    loc = rng.normal(size=(2, 6, 3)).astype(np.float32)
    scale, weights = np.abs(loc) + 1, rng.uniform(size=loc.shape).astype(np.float32)
    y = np.array([[3, 1, np.nan, 2, np.inf, 1], [6, 5, 4, 3, 2, 1]], np.float32)
    loc[1, 2] = np.nan  # no members
    loc[1, 4, 0] = -np.inf
    loc.flags.writeable = y.flags.writeable = False
    ordered, invalid = order_cases(Forecasts(loc, scale, weights), y)
    np.testing.assert_array_equal(invalid, [True, True])
    np.testing.assert_array_equal(ordered.n_used, [4, 4])
    np.testing.assert_array_equal(ordered.slot[0, :4], [1, 5, 3, 0])  # ties in order of time
    np.testing.assert_array_equal(ordered.slot[1, :4], [5, 3, 1, 0])
    for cell in range(2):
        assert sorted(ordered.slot[cell]) == list(range(6))
        slots = ordered.slot[cell, :4]
        np.testing.assert_array_equal(ordered.target[cell, :4], y[cell, slots])
        assert np.isnan(ordered.target[cell, 4:]).all()
        for part, given_part in zip(ordered[:3], (loc, scale, weights), strict=True):
            assert part.dtype == np.float64
            assert part.flags.c_contiguous
            np.testing.assert_array_equal(part[cell, :4], given_part[cell, slots])
    plain, _ = order_cases(Forecasts(loc), y)
    assert plain.scale is None
    assert (plain.weights == 1).all()


def test_missing_and_invalid_forecasts_become_nan(rng):
    loc = rng.normal(size=(1, 4, 3)).astype(np.float32)
    loc[0, 1, 1] = np.inf
    loc[0, 2] = np.nan
    loc[0, 3, 0] = np.nan
    found, scale, weights = valid_parts(Forecasts(loc))
    assert scale is None
    assert (weights == 1).all()
    assert np.isnan(found[0, 1:3]).all()
    np.testing.assert_array_equal(found[0, [0, 3]], loc[0, [0, 3]])
    bad_weights = np.ones_like(loc)
    bad_weights[0, 0, 0] = -1
    assert np.isnan(valid_parts(Forecasts(loc, None, bad_weights))[0][0, 0]).all()


@given(st.integers(0, 50), st.integers(0, 2 * WORKSPACE))
def test_blocks_cover_all_locations_once(n_locations, bytes_each):
    numbers = np.arange(n_locations)
    blocks = [numbers[block] for block in location_blocks(n_locations, bytes_each)]
    np.testing.assert_array_equal(np.concatenate([*blocks, []]), numbers)
    assert all(block.size == 1 or block.size * bytes_each <= WORKSPACE for block in blocks)
