import numpy as np
import pytest

from xrecal.arrays.ckme.centre import (
    SMALLEST_SPREAD,
    SUPPORTS,
    Sample,
    fit_centre,
)

from . import reference as ckme_reference

CODES = {name: code for code, name in enumerate(SUPPORTS)}


def make_cases(rng, n=40, k=2):
    mean, variance = rng.normal(3, 2, n), rng.gamma(2, size=n)
    r = rng.normal(size=(n, k))
    y = 1 + 0.8 * mean + r @ np.arange(1, k + 1) + np.sqrt(0.3 + variance) * rng.normal(size=n)
    return mean, variance, r, y


def fit(support, mean, variance, r, y, low=-np.inf, high=np.inf, predictors=(), room=None):
    found = np.full(4 + 2 * (r.shape[1] if room is None else room), np.nan)
    columns = np.array(predictors, np.int64)
    fit_centre(CODES[support], Sample(mean, variance, r, y, low, high, columns), found)
    return found


def place(support, found, mean, variance, r):
    """Centres and spreads as the formulas at the head of the module say."""
    a, b, c, d = found[:4]
    g, h = found[4:].reshape(2, -1)
    v = mean**2 if support == "ratio" else variance
    return a + b * mean + r @ g, np.sqrt(c**2 + d**2 * v) * np.exp(r @ h)


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize(("k", "predictors"), [(0, []), (2, []), (3, [0, 2]), (2, [0, 1])])
@pytest.mark.parametrize("low", [-np.inf, 2.0])
def test_centre_and_spread_equal_the_reference(rng, support, k, predictors, low):
    mean, variance, r, y = make_cases(rng, k=k)
    y, columns = np.maximum(y, low), np.array(predictors, np.int64)
    known = {"low": low, "predictors": columns}
    reference = ckme_reference.Embedding(np.zeros((40, 40)), y, mean, variance, r, **known)
    choice = ckme_reference.Choice(1.0, support, strength=1.0)
    of = reference.centre(np.arange(40), choice)
    expected = np.array([of(*case) for case in zip(mean, variance, r, strict=True)]).T
    fitted = fit(support, mean, variance, r, y, low, predictors=predictors)
    found = place(support, fitted, mean, variance, r)
    np.testing.assert_allclose(np.broadcast_to(found, (2, 40)), expected, rtol=1e-8)


@pytest.mark.parametrize("support", SUPPORTS)
def test_room_for_covariates_that_do_not_count_stays_zero(rng, support):
    mean, variance, r, y = make_cases(rng, k=0)
    found = fit(support, mean, variance, r, y, room=2)
    np.testing.assert_array_equal(found[:4], fit(support, mean, variance, r, y))
    np.testing.assert_array_equal(found[4:], 0)


@pytest.mark.parametrize("support", ["regression", "standardised"])
def test_plain_centres_know_no_predictors(rng, support):
    mean, variance, r, y = make_cases(rng, n=100, k=3)
    plain = fit(f"{support}_plain", mean, variance, r, y, predictors=[0, 2])
    own = fit(support, mean, variance, r[:, [1]], y)
    np.testing.assert_array_equal(plain[[0, 1, 2, 3, 5, 8]], own)
    np.testing.assert_array_equal(plain[[4, 6, 7, 9]], 0.0)
    whole = fit(support, mean, variance, r, y, predictors=[0, 2])
    assert (whole[[4, 6]] != 0).all()
    np.testing.assert_array_equal(
        fit(f"{support}_plain", mean, variance, r, y), fit(support, mean, variance, r, y)
    )


def test_spreads_next_to_zero_are_kept_away_from_it(rng):
    mean, variance, r, _ = make_cases(rng, k=0)
    for y in (2 * mean, np.full(40, 7.0)):  # a line and a constant leave no spread
        assert fit("standardised", mean, variance, r, y)[2] > 0
    variance[:20] = 0  # forecasts without spread whose errors are large
    y = mean + np.sqrt(variance) * rng.normal(size=40)
    c, d = fit("standardised", mean, variance, r, y)[2:4]
    typical = np.sqrt(np.mean(c**2 + d**2 * variance))
    assert c >= SMALLEST_SPREAD * typical * 0.99  # typical before that
    assert fit("ratio", 0 * mean, variance, r, y)[2] == 1
