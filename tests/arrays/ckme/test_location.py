"""Single columns of the kernel matrix against the whole, and the median distance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xrecal.arrays import (
    Forecasts,
    median_bandwidth,
    normal_squared_energy_distance,
    similarity,
    squared_energy_distance,
)
from xrecal.arrays.ckme import location
from xrecal.arrays.ckme.ckme import choose_and_fit_each
from xrecal.arrays.ckme.embedding import Settings
from xrecal.arrays.kernels.kernel import MEDIAN_CASES, Features, subset
from xrecal.arrays.rows import WORKSPACE, location_blocks

from .test_lowrank import location_of


def forms(rng):
    """Forecasts (30, m) of each form, and their squared distances."""
    x = 273.15 + rng.normal(size=(30, 1)) + rng.gamma(2, size=(30, 1)) * rng.normal(size=(30, 7))
    x[::4, 2:4] = np.nan
    x[9] = x[3]
    scale, weights = rng.gamma(2, size=x.shape), rng.gamma(1, size=x.shape)
    weights[:, 1] = 0
    normal = normal_squared_energy_distance(x, scale, x_weights=weights)
    return {
        "members": (Forecasts(x), squared_energy_distance(x), None),
        "weighted": (
            Forecasts(x, None, weights),
            squared_energy_distance(x, x_weights=weights),
            None,
        ),
        "normal": (Forecasts(x, scale, weights), normal, None),
        "known": (Forecasts(x), 2 * normal, 2 * normal),
    }


@pytest.mark.parametrize("form", ["members", "weighted", "normal", "known"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_columns_are_those_of_the_matrix_of_usable_cases(rng, form, kernel):
    forecasts, squared, known = forms(rng)[form]
    y = np.where(np.isin(np.arange(30), [2, 20]), np.nan, 0.0)
    used, cases = np.flatnonzero(~np.isnan(y)), np.array([8, 2, 27])  # not those in this order
    expected = squared[np.ix_(used, used)]
    for low_rank in (True, False):
        how = {"low_rank": low_rank, "laplace": kernel == "laplace", "squared": known}
        one = location_of(forecasts, y, **how)
        assert one.median == pytest.approx(median_bandwidth(expected, kernel))
        of_kernel = similarity(expected, one.median, kernel)
        np.testing.assert_allclose(one.gram(one.median, 0.0), of_kernel, atol=1e-7)
        for some in (cases, cases[::-1], cases[:1]):
            np.testing.assert_allclose(
                one.columns(some, one.median, 0.0), of_kernel[some], atol=1e-7
            )


def test_the_median_is_that_of_some_cases_or_of_all_where_these_are_alike(rng):
    def median(x):
        return location_of(Forecasts(x), np.zeros(450), low_rank=True).median

    x, some = rng.normal(size=(450, 3)), subset(450, MEDIAN_CASES)
    assert median(x) == median_bandwidth(squared_energy_distance(x[some]))
    x[:] = 1.0
    assert median(x) == np.inf
    x[np.setdiff1d(np.arange(450), some)[0]] = 2.0
    assert median(x) == pytest.approx(2.0)


@given(st.integers(0, 50), st.integers(0, 2 * WORKSPACE))
def test_blocks_cover_all_locations_once(n_locations, bytes_each):
    numbers = np.arange(n_locations)
    blocks = [numbers[block] for block in location_blocks(n_locations, bytes_each)]
    np.testing.assert_array_equal(np.concatenate([*blocks, []]), numbers)
    assert all(block.size == 1 or block.size * bytes_each <= WORKSPACE for block in blocks)


@pytest.mark.parametrize("n", [60, 600])
def test_methods_that_compare_the_same_forecasts_share_distances(rng, n, monkeypatch):
    """One after another gives the bits that each gives alone, from fewer comparisons."""
    members = rng.normal(size=(2, n, 5))
    observed = members.mean(-1) + rng.normal(size=(2, n))
    observed[1, :7] = np.nan  # another location has other usable cases
    seasons = Features(rng.normal(size=(2, n, 1)), np.zeros(1, np.bool_))
    asked = []
    compare = location.distances_between
    monkeypatch.setattr(location, "distances_between", lambda *of: asked.append(1) or compare(*of))

    def fits(compared):
        asked.clear()
        plain = Settings(supports=("mean",), kernels=((1.0, 0.0),))
        given = plain._replace(kernels=((1.0, 0.0), (1.0, 1.0)))
        both = (plain, None), (given, seasons)
        found = [
            choose_and_fit_each(
                Forecasts(members), observed, settings, 20, compared=compared, features=features
            )
            for settings, features in both
        ]
        return found, len(asked)

    (alone, for_each), (together, shared) = fits(None), fits({})
    assert shared < for_each
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a[2], b[2])
        for name, value in a[1][0]._asdict().items():
            np.testing.assert_array_equal(value, getattr(b[1][0], name), name)
