"""Usual values of a predictor: median, range and fill values, place by place."""

import numpy as np
import pytest

from xrecal.arrays.predictors import FEWEST, MARGIN, usual_of


def test_the_median_and_the_range_are_those_of_known_values(rng):
    record = rng.normal(size=(3, 41))
    record[0, :10], record[1, 7], record[2, 3] = np.nan, np.inf, -np.inf
    usual = usual_of(record)
    known = np.where(np.isinf(record), np.nan, record)
    np.testing.assert_allclose(usual.middle[:, 0], np.nanmedian(known, axis=1), rtol=1e-12)
    low, high = np.nanmin(known, axis=1), np.nanmax(known, axis=1)
    np.testing.assert_allclose(usual.low[:, 0], low - MARGIN * (high - low), rtol=1e-4)
    np.testing.assert_allclose(usual.high[:, 0], high + MARGIN * (high - low), rtol=1e-4)
    assert not usual.broken(known).any()
    np.testing.assert_array_equal(usual.unusable(record), ~np.isfinite(record))


def test_places_are_judged_apart_and_the_order_of_cases_does_not_matter(rng):
    record = rng.normal(size=(2, 50)) * [[1.0], [100.0]]
    values = np.full((2, 1), 50.0)
    np.testing.assert_array_equal(usual_of(record).broken(values), [[True], [False]])
    turned = usual_of(record[:, rng.permutation(50)])
    for one, other in zip(usual_of(record), turned, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_constant_may_be_rounded_but_not_differ():
    usual = usual_of(np.full((1, 30), 512.3))
    values = np.array([[512.3, np.float64(np.float32(512.3)), 512.4]])
    np.testing.assert_array_equal(usual.broken(values), [[False, False, True]])


@pytest.mark.parametrize("n", [0, 30])
def test_where_nothing_is_known_nothing_can_be_used(n):
    usual = usual_of(np.full((2, n), np.nan))
    np.testing.assert_array_equal(usual.middle, 0.0)
    values = np.array([[0.0, 3.0]] * 2)
    assert not usual.broken(values).any()
    assert usual.unusable(values).all()


def test_a_circular_predictor_has_a_direction_and_no_range():
    record = np.array([[350.0, 10.0, 20.0, np.nan, 340.0]])
    usual = usual_of(record, 360.0)
    np.testing.assert_allclose(np.cos(np.deg2rad(usual.middle)), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(
        usual.unusable(np.array([[720.0, np.nan, np.inf]])), [[False, True, True]]
    )


@pytest.mark.parametrize("missing", [FEWEST - 1, FEWEST])
def test_an_indicator_needs_cases_of_both_kinds(missing, rng):
    record = rng.normal(size=(1, 60))
    record[0, :missing] = np.nan
    assert usual_of(record).mixed == (missing == FEWEST)
    assert not usual_of(record[:, : missing + FEWEST - 1]).mixed


def test_zero_is_a_fill_value_where_a_continuous_record_spans_it_without_having_it(rng):
    zero, record = np.zeros((1, 1)), rng.normal(size=(1, 200))
    assert usual_of(record).broken(zero)
    for other in (
        abs(record),  # such as a wind speed, whose least value zero is
        np.round(record, 1) + 0.05,  # of a resolution at which zero may come next
        np.where(record > 0, record, 0.0),  # rain
        np.append(record[:, 1:], [[0.0]], axis=1),
    ):
        assert not usual_of(other).broken(zero)
