"""The grid of thresholds, and averages of CDFs in its cells."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays import crps
from xrecal.arrays.shared.cells import cell_averages, error_grid


def averages_by_integral(values, weights, grid):
    """The definition: the CDF integrated piece by piece, between all points that matter."""
    out = np.empty((len(values), grid.size - 1))
    for i, (row, w) in enumerate(zip(values, weights, strict=True)):
        known = ~np.isnan(row)
        for j, (low, high) in enumerate(pairwise(grid)):
            ends = np.unique([low, high, *row[known & (row > low) & (row < high)]])
            cdf = [w[known & (row <= left)].sum() for left in ends[:-1]]
            out[i, j] = (cdf @ np.diff(ends)) / (high - low) / w[known].sum()
    return out


numbers = st.floats(-5, 5, width=16)


@given(
    st.lists(st.lists(st.one_of(numbers, st.just(np.nan)), min_size=3, max_size=3), min_size=1),
    st.sets(numbers, min_size=2, max_size=8),
)
def test_cells_are_the_integral_of_the_cdf(rows, points):
    values, grid = np.array(rows), np.array(sorted(points), float)
    weights = np.arange(1.0, 1 + values.size).reshape(values.shape)
    found = cell_averages(values, grid, weights)
    missing = np.isnan(values).all(1)
    assert np.isnan(found[missing]).all()
    expected = averages_by_integral(values[~missing], weights[~missing], grid)
    np.testing.assert_allclose(found[~missing], expected, atol=1e-9)
    assert (np.diff(found[~missing], axis=1) > -1e-12).all()


def test_cells_keep_the_mean_of_what_is_within_the_grid():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=300)
    grid = error_grid(errors, quantiles=20)
    mass = np.diff(cell_averages(errors[np.newaxis], grid)[0], prepend=0, append=1)
    np.testing.assert_allclose(mass @ grid, errors.mean(), rtol=1e-12)


@pytest.mark.parametrize(("law", "most"), [("normal", 1e-4), ("t", 2e-4)])
def test_the_grid_hardly_changes_the_crps(law, most):
    rng = np.random.default_rng(1)
    draw = rng.standard_normal if law == "normal" else lambda n: rng.standard_t(2.5, n)
    errors, others = draw(4000), draw(500)
    grid = error_grid(errors, (min(errors.min(), others.min()), max(errors.max(), others.max())))
    mass = np.diff(cell_averages(errors[np.newaxis], grid)[0], prepend=0, append=1)
    exact = crps(others, np.tile(errors, (others.size, 1))).mean()
    on_grid = crps(others, np.tile(grid, (others.size, 1)), np.tile(mass, (others.size, 1)))
    assert abs(on_grid.mean() / exact - 1) < most


def test_the_grid_ends_at_the_extremes_and_is_finer_where_errors_are():
    errors = np.random.default_rng(2).standard_t(2.0, 5000)
    grid = error_grid(errors, (-1000.0, 2000.0))
    assert (grid[0], grid[-1]) == (-1000.0, 2000.0)
    assert (np.diff(grid) > 0).all()
    assert grid.size == 200 + 2 * 10 + 2
    outer = np.diff(grid[-12:])
    assert (outer[1:] > 1.5 * outer[:-1]).all()


def test_ties_make_no_empty_cells():
    grid = error_grid(np.array([0.0] * 50 + [1.0, 2.0, np.nan, np.inf]))
    assert (np.diff(grid) > 0).all()
    assert (grid[0], grid[-1]) == (0.0, 2.0)


@pytest.mark.parametrize("errors", [[], [1.0], [2.0, 2.0], [np.nan, 3.0]])
def test_no_grid_of_errors_that_do_not_differ(errors):
    with pytest.raises(ValueError, match="a grid needs errors that differ"):
        error_grid(np.array(errors))


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="grid needs two thresholds or more that ascend"):
        cell_averages(np.zeros((2, 3)), np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(2, 1\)"):
        cell_averages(np.zeros((2, 3)), np.array([0.0, 1.0]), np.ones((2, 1)))
