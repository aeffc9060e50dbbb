"""Dependence of successive cases, and the sums of waves that allow for it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from xrecal.arrays import serial


def autoregressive(rng, rho, shape):
    noise = rng.normal(size=(*shape[:-1], shape[-1] + 200))
    return np.sqrt(1 - rho**2) * lfilter([1.0], [1.0, -rho], noise, axis=-1)[..., 200:]


def test_waves_are_cosines_of_unit_length(rng):
    x, n = rng.normal(size=(13, 2)), 13
    t = np.arange(1, n + 1)
    expected = [np.sqrt(1 / n) * x.sum(0)]
    for j in range(1, 6):
        wave = np.cos(np.pi * j * (t - 0.5) / n)
        expected.append(np.sqrt(2 / n) * (x * wave[:, np.newaxis]).sum(0))
    np.testing.assert_allclose(serial.waves(x, 5), expected, atol=1e-12)


@given(st.floats(-1, 1), st.integers(3, 10_000))
def test_blocks_grow_with_dependence(rho, n):
    length = serial.block_lengths(np.array(rho), np.array(n))
    assert length >= 1
    assert serial.block_lengths(np.array(min(rho + 0.1, 1)), np.array(n)) >= length
    assert serial.block_lengths(np.array(rho), np.array(10 * n)) <= length  # known better


@pytest.mark.parametrize(("rho", "expected"), [(0.0, 1), (0.6, 9), (0.9, 43)])
def test_blocks_of_a_process_that_is_known_well(rho, expected):
    assert serial.block_lengths(np.array(rho), np.array(10**9)) == expected
    if rho:  # the spectrum at the fastest wave that is kept, relative to that of the mean
        frequency = np.pi / expected
        ratio = (1 - rho) ** 2 / (1 - 2 * rho * np.cos(frequency) + rho**2)
        assert 0.5 < ratio < 0.75


def test_correlation_of_neighbours(rng):
    x = autoregressive(rng, 0.7, (3, 500))
    e = x[1] - x[1].mean()
    found = serial.neighbour_correlation(x)
    assert found[1] == pytest.approx(sum(e[1:] * e[:-1]) / sum(e**2))
    for constant in (1.0, 0.25 - 1 / 12):  # of the second the mean is rounded
        assert (serial.neighbour_correlation(np.full((2, 48), constant)) == 0).all()
    assert serial.is_dependent(found, np.array(500)).all()
    assert not serial.is_dependent(np.array(0.1), np.array(100))


def test_rotations_have_unit_length_and_no_direction(rng):
    turned = serial.rotations(rng, 4000, 4)
    np.testing.assert_allclose((turned**2).sum(-1), 1)
    np.testing.assert_allclose(turned.T @ turned / 4000, np.eye(5) / 5, atol=0.02)


def test_dates_of_known_cases():
    known = np.array([True, False, False, False, True, True])
    np.testing.assert_array_equal(serial.dates_of(known, 1), [0, 1, 2])
    np.testing.assert_array_equal(serial.dates_of(known, 2), [0, 1, 1])
