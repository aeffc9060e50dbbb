import numpy as np
import pytest

from xrecal.arrays.ckme import centre
from xrecal.arrays.ckme import centre as errors
from xrecal.arrays.device import centre as batched
from xrecal.arrays.device.centre import find_bounds
from xrecal.arrays.distributions.forms import find_bounds as expected_bounds

CODES = range(len(centre.SUPPORTS))


@pytest.fixture
def cases(rng):
    """Mean, variance, covariates and observations at three locations."""
    mean = np.abs(rng.normal(size=(3, 30))) + 0.1
    of = rng.normal(size=(3, 30, 2))
    target = mean + 0.3 * of[..., 0] + 0.2 * rng.normal(size=mean.shape)
    return mean, rng.gamma(2.0, 0.2, mean.shape), of, np.maximum(target, 0.3)


BOUNDS = np.array([0.3, -np.inf, 0.3]), np.array([np.inf, np.inf, 2.0])


@pytest.mark.parametrize("code", CODES)
def test_coefficients_and_centres_are_those_of_the_host(library, cases, code):
    ours = [library(part) for part in (*cases, *BOUNDS)]
    found = batched.fit_centres(code, centre.Sample(*ours), 8)
    host = library.host(found)
    codes = np.full(3, code)
    parts = batched.centres_of(codes, found, *ours[:3])
    for place in range(3):
        one = [part[place] for part in cases]
        expected, filled = np.empty(8), np.empty((2, 30))
        low, high = (float(bound[place]) for bound in BOUNDS)
        centre.fit_centre(code, centre.Sample(*one, low, high), expected)
        np.testing.assert_allclose(host[place], expected, rtol=1e-12, atol=1e-14)
        centre.fill_centres(code, expected, *one[:3], filled)
        for part, other in zip(parts, filled, strict=True):
            np.testing.assert_allclose(library.host(part)[place], other, rtol=1e-12)


def test_members_are_those_of_the_host(library, cases):
    mean, variance, _, target = cases
    low, high = BOUNDS
    ours = library(target), library(mean), library(np.sqrt(variance)), library(low), library(high)
    error = batched.errors_of(*ours)
    limits = batched.inside(ours[0], *ours[3:])
    order = np.argsort(library.host(error), axis=-1)
    ascending = np.take_along_axis(library.host(error), order, -1)
    points = batched.members_of(*ours[1:3], library(ascending), ours[3:], limits)
    for place in range(3):
        bounds = float(low[place]), float(high[place])
        first, last = errors.inside(target[place], *bounds)
        assert library.host(limits[0])[place] == first
        assert library.host(limits[1])[place] == last
        for i in range(30):
            one = errors.error_of(
                target[place, i], mean[place, i], np.sqrt(variance[place, i]), *bounds
            )
            assert library.host(error)[place, i] == pytest.approx(one)
            expected = np.empty(30)
            limited = errors.Limits(*bounds, first, last)
            errors.fill_members(
                mean[place, i], np.sqrt(variance[place, i]), ascending[place], limited, expected
            )
            np.testing.assert_allclose(library.host(points)[place, i], expected, rtol=1e-14)


def test_nothing_between_the_bounds(library):
    target, low, high = np.array([[0.0, 0.0], [5.0, 0.0]]), np.zeros(2), np.array([np.inf, 5.0])
    first, last = batched.inside(library(target), library(low), library(high))
    for place in range(2):
        expected = errors.inside(target[place], low[place], high[place])
        assert (library.host(first)[place], library.host(last)[place]) == expected


@pytest.mark.parametrize("bounds", ["auto", None, (0.0, None), (None, 3.0), (-9.0, 9.0)])
def test_bounds_are_those_of_the_host(library, rng, bounds):
    rain = np.maximum(rng.normal(size=(5, 60)), 0.0)
    rain[1, 5:9], rain[2] = np.nan, rng.normal(size=60)
    rain[3], rain[4] = -rain[3], rain[4].round(0)
    for found, expected in zip(
        find_bounds(library(rain), bounds), expected_bounds(rain, bounds), strict=True
    ):
        np.testing.assert_array_equal(library.host(found), expected)


def test_nothing_known_has_no_bounds(library):
    low, high, violated = find_bounds(library(np.full((1, 5), np.nan)), "auto")
    assert library.host(low)[0] == -np.inf
    assert library.host(high)[0] == np.inf
    assert not library.host(violated)[0]
