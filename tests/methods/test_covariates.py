"""Features of covariates: missing and broken values replaced, with indicators, alike for all."""

import numpy as np
import pytest

from xrecal.arrays.predictors import FEWEST, INDICATOR
from xrecal.methods.covariates import Covariates, count_features, may_break

PERIODS = {"season": 1.0, "wind": None, "direction": 360.0, "days_ahead": None}


def covariates_of(rng, n=60, n_locations=2):
    values = np.stack(
        [
            rng.uniform(size=(n_locations, n)),
            rng.normal(size=(n_locations, n)),
            rng.uniform(0, 360, (n_locations, n)),
            np.full((n_locations, n), 2.0),
        ],
        -1,
    )
    return Covariates(values, tuple(PERIODS), tuple(PERIODS.values()))


def test_features_of_a_whole_record_are_its_values(rng):
    covariates = covariates_of(rng)
    found = covariates.features(("season", "wind", "direction"))
    expected = covariates.as_given(("season", "wind", "direction"))
    np.testing.assert_array_equal(found.values[..., :5], expected.values)
    np.testing.assert_array_equal(found.values[..., 5:], 0.0)
    np.testing.assert_array_equal(found.circular, [True, True, False, True, True, True, True])
    assert covariates.n_features == count_features(PERIODS) == 8


def test_dates_and_places_cannot_break():
    names = [*PERIODS, "xrecal_place", "calendar_day"]
    assert [name for name in names if may_break(name)] == ["wind", "direction"]


@pytest.mark.parametrize("value", [np.nan, 1e6, -1e6, np.inf, 0.0])
def test_a_forecast_gets_the_median_of_the_record(value, rng):
    record, new = covariates_of(rng), covariates_of(rng, 3)
    new.values[1, 2, 1] = value
    given = new.values.copy()
    found = new.features(("wind",), record).values[..., 0]
    np.testing.assert_array_equal(new.values, given)
    assert found[1, 2] == np.median(record.values[1, :, 1])
    new.values[1, 2, 1] = found[1, 2]
    np.testing.assert_array_equal(found, new.values[..., 1])


def test_an_indicator_says_what_the_record_has_taught(rng):
    record, new = covariates_of(rng), covariates_of(rng, 3)
    record.values[1, :FEWEST, 1] = np.nan
    new.values[:, 0, 1] = np.nan
    indicator = record.features(("wind",)).values[..., 1]
    np.testing.assert_array_equal(indicator[1], INDICATOR * (np.arange(60) < FEWEST))
    np.testing.assert_array_equal(indicator[0], 0.0)
    np.testing.assert_array_equal(
        new.features(("wind",), record).values[..., 1], [[0, 0, 0], [INDICATOR, 0, 0]]
    )


def test_a_part_of_the_places_is_judged_alike(rng):
    record, new = covariates_of(rng), covariates_of(rng, 5)
    record.values[1] *= 100.0
    whole = new.features(("wind", "direction"), record).values
    one = slice(1, 2)
    part = new.take((one,)).features(("wind", "direction"), record.take((one,))).values
    np.testing.assert_array_equal(part, whole[one])


def test_values_that_a_record_cannot_have_had_do_not_join_it(rng):
    record, new = covariates_of(rng), covariates_of(rng, 4)
    new.values[:, 1, 1] = 1e3
    joining = new.joining(record)
    np.testing.assert_array_equal(
        np.isnan(joining.values[..., 1]), [[False, True, False, False]] * 2
    )
    own = joining.features(("wind",)).values
    np.testing.assert_array_equal(own, new.features(("wind",), record).values)
    np.testing.assert_array_equal(joining.take((slice(1, 2),)).features(("wind",)).values, own[1:])
