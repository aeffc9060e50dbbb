import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from xrecal.arrays import calibration_changes, calibration_e_values
from xrecal.arrays.calibration.monitoring import BETS, TAIL

share = st.integers(0, 20).map(lambda k: k / 20) | st.floats(0, 1) | st.just(np.nan)
gappy = st.tuples(st.integers(1, 3), st.integers(1, 25)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=share)
)
lags = st.integers(1, 6)


def normal_density(u, mean, std):
    """Of a normal distribution over the standard one; one number in each tail."""
    z = ndtri(min(max(u, TAIL), 1 - TAIL))
    if u <= TAIL or u >= 1 - TAIL:
        return ndtr((z - mean) / std if u < 0.5 else (mean - z) / std) / TAIL
    return math.exp((z**2 - ((z - mean) / std) ** 2) / 2) / std


def learned_density(u, past):
    """The two densities that are learned from transforms that have verified."""
    z = np.concatenate([ndtri(np.clip(past, TAIL, 1 - TAIL)), np.zeros(10)])
    std = math.sqrt((np.sum(z**2) + 10) / z.size - z.mean() ** 2)
    count = 5 + sum(place_of(other) == place_of(u) for other in past)
    return normal_density(u, z.mean(), std), 10 * count / (50 + len(past))


def place_of(u):
    """The bin of ten."""
    return min(int(10 * u), 9)


def slow_e_values(pit, lag=1):
    """One stretch (p, n): the largest of the martingales of each lag-th case."""
    pit = pit[~np.isnan(pit).all(1)]
    products, found = np.ones((lag, len(pit), 2)), []
    for t in range(pit.shape[1]):
        for i, row in enumerate(pit):
            if not np.isnan(row[t]):
                past = row[: max(t - lag + 1, 0)]
                products[t % lag, i] *= learned_density(row[t], past[~np.isnan(past)])
        found.append(products.mean((1, 2)).max() / lag if len(pit) else np.nan)
    return np.array(found)


def slow_changes(pit, limit, lag=1):
    """Statistic and beginnings, by products of densities since the last reset."""
    pit = pit[~np.isnan(pit).all(1)]
    n = pit.shape[1]
    statistic, since, start, first = np.full(n, np.nan), np.full(n, -1), 0, 0
    for t in range(n if len(pit) else 0):
        classes = []
        for k in range(lag):
            cases = [s for s in range(first, t + 1) if s % lag == k]
            levels = []
            for row in pit:
                for bet in BETS:
                    level, begun = 0.0, 0
                    for s in (s for s in cases if not np.isnan(row[s])):
                        begun = begun if level > 1 else s
                        level = max(level, 1) * normal_density(row[s], *bet)
                    levels.append((level, begun))
            mean = np.mean([level for level, _ in levels])
            classes.append((mean, max(levels, key=lambda pair: pair[0])[1]))
        largest, begun = max(classes, key=lambda pair: pair[0])
        statistic[t] = largest / min(lag, 2)
        if statistic[t] >= limit:
            start, first = begun, t + lag
            since[t:] = start
    return statistic, since


@given(gappy, lags)
def test_e_values_are_products_of_densities(pit, lag):
    found = calibration_e_values(pit, lag)
    lag = min(lag, pit.shape[1])
    expected = slow_e_values(pit, lag)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@given(gappy, st.integers(1, 3), st.sampled_from([2, 30]))
def test_changes_are_those_of_cusums(pit, lag, limit):
    statistic, since = calibration_changes(pit, limit, lag)
    expected, begun = slow_changes(pit, limit, min(lag, pit.shape[1]))
    np.testing.assert_allclose(statistic, expected, rtol=1e-9)
    np.testing.assert_array_equal(since, begun)


@pytest.mark.parametrize("past", [[], [0.1], [0.0, 1.0, 0.5], [0.5] * 50, [0.999] * 30])
def test_bets_are_densities(past):
    """So that the mean of each factor is 1 for a uniform transform, whatever was learned."""

    def factor(u):
        return calibration_e_values(np.array([[*past, u]]))[-1]

    before = calibration_e_values(np.array([past]))[-1] if past else 1.0
    ends = [TAIL, *np.arange(1, 10) / 10, 1 - TAIL]
    total = sum(quad(factor, low + 1e-12, high - 1e-12)[0] for low, high in pairwise(ends))
    total += TAIL * (factor(0.0) + factor(1.0))
    assert total == pytest.approx(before, rel=1e-6)


@given(gappy, lags, st.integers(0, 24))
def test_later_cases_change_nothing(pit, lag, k):
    k = min(k, pit.shape[1])
    pit = pit[~np.isnan(pit[:, :k]).all(1)]  # places that are there from the beginning
    lag = min(lag, k)
    if lag and len(pit):
        for function in (
            calibration_e_values,
            lambda pit, lag: calibration_changes(pit, 5, lag)[1],
        ):
            np.testing.assert_array_equal(function(pit[:, :k], lag), function(pit, lag)[:k])


@given(gappy, lags)
def test_missing_cases_and_places_do_not_count(pit, lag):
    more = np.vstack([pit, np.full_like(pit[:1], np.nan)])
    np.testing.assert_array_equal(calibration_e_values(more, lag), calibration_e_values(pit, lag))
    np.testing.assert_array_equal(calibration_changes(more)[0], calibration_changes(pit)[0])
    row = pit[:1][:, ~np.isnan(pit[0])]
    if row.size:
        found = calibration_e_values(pit[:1])[~np.isnan(pit[0])]
        np.testing.assert_array_equal(found, calibration_e_values(row))


def test_stretches_are_tests_of_their_own(rng):
    pit = rng.random((2, 3, 60))
    stretch = np.repeat([2019, 2021, 2022], [10, 29, 21])
    found = calibration_e_values(pit, 3, stretch)
    for part in np.split(np.arange(60), [10, 39]):
        np.testing.assert_array_equal(found[:, part], calibration_e_values(pit[..., part], 3))


def test_lags_of_locations(rng):
    pit, lag = rng.random((2, 2, 1, 40)), np.array([1, 4])
    found, changes = calibration_e_values(pit, lag), calibration_changes(pit, 5, lag)
    for i, h in enumerate(lag):
        np.testing.assert_array_equal(found[:, i], calibration_e_values(pit[:, i], h))
        np.testing.assert_array_equal(changes[0][:, i], calibration_changes(pit[:, i], 5, h)[0])


def errors(rng, runs, n, lag):
    """Standard normal errors (r, n), independent from a distance of ``lag`` on."""
    parts = rng.normal(size=(runs, n + lag - 1))
    return sum(parts[:, i : i + n] for i in range(lag)) / np.sqrt(lag)


@pytest.mark.parametrize("lag", [1, 5])
def test_calibrated_forecasts_seldom_raise_an_alarm(rng, lag):
    pit = ndtr(errors(rng, 300, 2000, lag))[:, np.newaxis]
    assert (calibration_e_values(pit, lag) >= 20).any(-1).mean() < 0.05 + 3 * 0.0126
    changes = (calibration_changes(pit, 200, lag)[0] >= 200).sum()
    assert changes < pit.size / 200


@pytest.mark.parametrize(("scale", "shift", "most"), [(1.5, 0.0, 50), (1.0, 0.5, 70)])
def test_errors_are_found(rng, scale, shift, most):
    pit = ndtr(scale * rng.normal(size=(200, 1, 300)) + shift)
    assert np.median((calibration_e_values(pit) >= 100).argmax(-1)) < most
    calm = rng.random((200, 1, 300))
    statistic, since = calibration_changes(np.concatenate([calm, pit], -1))
    detected = (statistic[:, 300:] >= 3650).argmax(-1)
    assert np.median(detected) < 1.5 * most
    assert abs(np.median(since[np.arange(200), 300 + detected]) - 300) < 15


def test_evidence_is_finite():
    for pit in (np.zeros((1, 5000)), np.ones((1, 5000)), np.full((1, 5000), 0.5)):
        e_values = calibration_e_values(pit)
        assert np.isfinite(e_values).all()
        assert e_values[-1] > 1e100
        assert np.isfinite(calibration_changes(pit)[0]).all()
    assert calibration_e_values(np.zeros((1, 1)))[0] == pytest.approx(1)  # nothing is learned


def test_no_cases():
    assert calibration_e_values(np.empty((2, 1, 0))).shape == (2, 0)
    assert calibration_changes(np.empty((2, 1, 0)))[1].shape == (2, 0)


def test_errors_of_arguments():
    for use in (calibration_e_values, calibration_changes):
        with pytest.raises(ValueError, match=r"pit must lie between 0 and 1, found 1\.5"):
            use(np.array([[0.5, 1.5]]))
        with pytest.raises(
            ValueError, match=r"pit needs a shape \(..., places, cases\), got \(2,\)"
        ):
            use(np.array([0.5, 0.5]))
    for lag in (0, 1.5, np.array([1, 0])):
        with pytest.raises(ValueError, match=r"lag is .*; give whole numbers of cases from 1"):
            calibration_e_values(np.full((2, 1, 3), 0.5), lag)
    with pytest.raises(ValueError, match=r"stretch of shape \(2,\) does not fit 3 cases"):
        calibration_e_values(np.full((1, 3), 0.5), 1, np.zeros(2, int))
    with pytest.raises(ValueError, match="run_length is 0; give a whole number from 1"):
        calibration_changes(np.full((1, 3), 0.5), 0)
