import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from xrecal.arrays.distributions.draws import hash_uniform, splitmix64, uniform_at


def test_splitmix64_has_the_published_outputs():
    # https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    found = splitmix64(np.array([1234567], np.uint64), np.arange(5, dtype=np.uint64))
    np.testing.assert_array_equal(found, np.array(published, np.uint64))


def test_hash_does_not_depend_on_chunks():
    numbers = np.arange(50)
    everything = hash_uniform(7, numbers, 30)
    assert everything.shape == (50, 30)
    np.testing.assert_array_equal(hash_uniform(7, numbers[20:40], 30), everything[20:40])
    np.testing.assert_array_equal(hash_uniform(7, numbers[::-1], 12), everything[::-1, :12])
    np.testing.assert_array_equal(hash_uniform(7 + 2**64, numbers.astype(np.int32), 30), everything)


def test_hash_is_uniform_and_independent():
    u = hash_uniform(3, np.arange(400), 500)
    assert ((u > 0) & (u < 1)).all()
    assert np.unique(u).size == u.size
    assert stats.kstest(u.ravel(), "uniform").pvalue > 0.05
    for other in (hash_uniform(4, np.arange(400), 500), u[::-1], u[:, ::-1], np.roll(u, 1, 0)):
        assert abs(np.corrcoef(u.ravel(), other.ravel())[0, 1]) < 0.01
    assert stats.kstest(u.mean(0), stats.norm(0.5, np.sqrt(1 / 12 / 400)).cdf).pvalue > 0.05
    assert stats.kstest(hash_uniform(3, np.arange(20_000), 1)[:, 0], "uniform").pvalue > 0.05


@given(st.integers(-(2**80), 2**80), st.integers(0, 2**63 - 1))
def test_hash_takes_any_seed_and_location(seed, number):
    u = hash_uniform(seed, [number], 3)
    assert ((u > 0) & (u < 1)).all()
    assert not (u == hash_uniform(seed + 1, [number], 3)).any()


def test_errors():
    for numbers in (np.zeros(3), np.zeros((2, 2), np.int64)):
        with pytest.raises(ValueError, match=r"location_numbers must be integers of shape \(L,\)"):
            hash_uniform(0, numbers, 3)


def test_uniform_at_any_place_is_the_hash():
    everything = hash_uniform(5, np.arange(9), 12)
    locations, cases = np.array([[8], [3]]), np.array([11, 0, 4])
    np.testing.assert_array_equal(uniform_at(5, locations, cases), everything[locations, cases])
