"""Features count where they tell something of errors."""

import numpy as np
import pytest

from xrecal.arrays.shared.cells import error_grid
from xrecal.arrays.shared.coordinates import coordinates_from
from xrecal.arrays.shared.folds import whole_folds
from xrecal.arrays.shared.relevance import choose_relevance

N, FOLDS, RANK = 800, 5, 40
rng = np.random.default_rng(0)
shapes = rng.gamma(3.0, size=(N, 1)) * np.linspace(-1, 1, 5)
features = np.column_stack([rng.normal(size=(N, 3)), np.full(N, 2.0)])
fold = np.arange(N) * FOLDS // N
coordinates = coordinates_from(shapes, features)


def chosen(errors):
    cases = errors, shapes, features
    return choose_relevance(coordinates, error_grid(errors), cases, fold, whole_folds(FOLDS), RANK)


def test_features_that_tell_something_count_and_others_hardly_ever():
    found = chosen(np.sin(2 * features[:, 1]) + 0.5 * rng.normal(size=N))
    assert found.precision[1] > 0
    assert found.precision[1] > 4 * max(found.precision[[0, 2]])
    assert found.precision[3] == 0  # it is constant


def test_a_finer_feature_has_a_finer_scale():
    wide, fine = (
        chosen(np.sin(wave * features[:, 1]) + 0.3 * rng.normal(size=N)).precision[1]
        for wave in (1.0, 6.0)
    )
    assert fine > 3 * wide


def test_shapes_stay_where_features_tell_nothing():
    found = chosen(shapes[:, 4] * rng.normal(size=N))
    assert np.isfinite(found.bandwidth)
    assert (found.precision < 0.1 * coordinates.precision.max()).all()


def test_scaled_coordinates_scale_squared_distances():
    factors = np.array([0.0, 0.25, 4.0, 1.0])
    one = coordinates.of(shapes[:2], features[:2])
    other = coordinates.scaled(0.25, factors).of(shapes[:2], features[:2])
    before, after = (np.diff(placed, axis=0)[0] ** 2 for placed in (one, other))
    np.testing.assert_allclose(after[:-4], 0.25 * before[:-4], atol=1e-15)
    np.testing.assert_allclose(after[-4:], factors * before[-4:], atol=1e-12)


def test_one_fold_holds_nothing_out():
    errors = rng.normal(size=N)
    with pytest.raises(ValueError, match="need two folds with cases, found 0"):
        choose_relevance(
            coordinates,
            error_grid(errors),
            (errors, shapes, features),
            np.zeros(N, int),
            whole_folds(1),
        )
