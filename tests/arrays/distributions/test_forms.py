import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from xrecal.arrays.distributions.forms import (
    INVALID_FORECAST,
    VALID,
    Forecasts,
    sort_members,
    usable_observations,
    verdicts,
)

anything = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf])


@st.composite
def forecasts(draw):
    shape = draw(st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(0, 3)))
    parts = [draw(arrays(np.float64, shape, elements=anything)) for _ in range(3)]
    return Forecasts(
        *(part if draw(st.booleans()) or i == 0 else None for i, part in enumerate(parts))
    )


def flat(array):
    return array.reshape(array.shape[0] * array.shape[1], array.shape[2]).tolist()


def verdict(loc, scale, weights):
    """Of one forecast, member by member: 0 without members, VALID or INVALID_FORECAST."""
    found = 0
    for j, value in enumerate(loc):
        parts = value, 0.0 if scale is None else scale[j], 1.0 if weights is None else weights[j]
        if np.isnan(parts).any() or parts[2] == 0:
            continue
        if np.isinf(parts).any() or min(parts[1:]) < 0:
            return INVALID_FORECAST
        found = VALID
    return found


@given(forecasts())
def test_verdicts_and_usable_observations(cases):
    n_locations, n = cases.loc.shape[:2]
    observations = np.arange(n_locations * n, dtype=float).reshape(n_locations, n)
    observations[0, 0] = np.inf
    usable, invalid = usable_observations(cases, observations)
    for cell in range(n_locations):
        expected = [
            verdict(*(None if part is None else part[cell, i] for part in cases)) for i in range(n)
        ]
        np.testing.assert_array_equal(verdicts(cases)[cell], expected)
        kept = (np.array(expected) == VALID) & np.isfinite(observations[cell])
        wanted = np.where(kept, observations[cell], np.nan)
        np.testing.assert_array_equal(usable[cell], wanted)
        assert invalid[cell] == (cell == 0 or INVALID_FORECAST in expected)


@given(forecasts())
def test_sorted_members_are_the_same_forecast(cases):
    ordered = sort_members(cases)
    if cases.scale is not None:
        assert ordered is cases
        return
    np.testing.assert_array_equal(ordered.loc, np.sort(cases.loc))  # NaN last
    if cases.weights is not None:
        before, after = (
            [
                sorted(map(str, zip(*row, strict=True)))
                for row in zip(*map(flat, parts), strict=True)
            ]
            for parts in ((cases.loc, cases.weights), (ordered.loc, ordered.weights))
        )
        assert before == after


def test_errors(rng):
    loc = rng.normal(size=(2, 3, 4))
    assert Forecasts(loc).check("cases", 3) == (2, 3, 4)
    with pytest.raises(ValueError, match=r"cases need 3 axes \(location, case, member\), got \(3,"):
        Forecasts(loc[0]).check("cases", 3)
    with pytest.raises(ValueError, match=r"scale of cases has shape \(3, 4\), but loc has \(2, 3"):
        Forecasts(loc, loc[0]).check("cases", 3)
    with pytest.raises(ValueError, match=r"weights of forecasts has shape \(2, 3, 1\), but loc"):
        Forecasts(loc, None, loc[..., :1]).check("forecasts", 3)


def test_weights_whose_sum_overflows_are_invalid():
    loc = np.array([[[1.0, 2.0, np.nan]] * 3])
    weights = np.array([[[1e308, 1e308, 0.0], [1e308, 0.0, 1e308], [1.0, 2.0, 3.0]]])
    np.testing.assert_array_equal(
        verdicts(Forecasts(loc, None, weights)), [[INVALID_FORECAST, VALID, VALID]]
    )


def test_missing_observations_are_not_invalid(rng):
    cases = Forecasts(rng.normal(size=(2, 3, 4)))
    observations = rng.normal(size=(2, 3))
    observations[1, 2] = np.nan
    usable, invalid = usable_observations(cases, observations)
    np.testing.assert_array_equal(usable, observations)
    assert not invalid.any()
