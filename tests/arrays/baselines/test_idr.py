import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from tests.marks import DATA, requires_data
from xrecal.arrays import crps
from xrecal.arrays.baselines.idr import idr_weights


def reference_weights(new_index, index, observations):
    """Weights (T, n) of one location by SciPy's isotonic regression, threshold by threshold."""
    usable = np.isfinite(index) & np.isfinite(observations)
    x, y = index[usable], observations[usable]
    knots, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    thresholds, which, ties = np.unique(y, return_inverse=True, return_counts=True)
    cdfs = []
    for z in thresholds:
        fraction = np.bincount(place, y <= z) / counts
        fit = isotonic_regression(fraction, weights=counts, increasing=False)
        cdfs.append(np.interp(new_index, knots, fit.x))
    steps = np.diff(np.array(cdfs), axis=0, prepend=0)
    weights = np.zeros((len(new_index), len(index)))
    weights[:, usable] = (steps / ties[:, np.newaxis])[which].T
    return weights


def one(new_index, index, observations):
    return idr_weights(np.atleast_2d(new_index), index[np.newaxis], observations[np.newaxis])[0]


def simulate(rng, n=60, decimals=1):
    """Index and observations with ties, more scattered where the index is larger."""
    index = np.round(rng.gamma(2, size=n), decimals)
    return index, np.round(np.maximum(index + (0.3 + index) * rng.normal(size=n), 0), decimals)


half_integers = st.integers(-6, 6).map(lambda v: v / 2)


@st.composite
def samples(draw):
    n = draw(st.integers(2, 9))
    pairs = draw(st.lists(st.tuples(half_integers, half_integers), min_size=n, max_size=n))
    index, observations = np.array(pairs).T
    return index.copy(), observations.copy()


@given(samples(), st.lists(st.floats(-4, 4), min_size=1, max_size=5))
def test_weights_equal_the_reference(sample, new):
    new = np.array(new)
    expected = reference_weights(new, *sample)
    np.testing.assert_allclose(one(new, *sample), expected, atol=1e-13)


def test_weights_of_many_cases_equal_the_reference(rng):
    index, observations = simulate(rng, 400)
    index[::7], observations[3::11] = np.nan, np.inf
    new = rng.normal(2, 3, size=50)
    expected = reference_weights(new, index, observations)
    np.testing.assert_allclose(one(new, index, observations), expected, atol=1e-12)


def test_cdfs_equal_scikit_learn(rng):
    sklearn = pytest.importorskip("sklearn.isotonic")
    index, observations = simulate(rng, 200)
    new = rng.uniform(-1, 9, size=40)
    weights = one(new, index, observations)
    for z in (0.0, 0.7, 2.0, 5.0):
        model = sklearn.IsotonicRegression(increasing=False, out_of_bounds="clip")
        expected = model.fit(index, observations <= z).predict(new)
        np.testing.assert_allclose(weights[:, observations <= z].sum(-1), expected, atol=1e-12)


@given(samples(), st.sampled_from([np.exp, np.cbrt, lambda v: 3 * v - 1]))
def test_only_the_order_of_the_index_counts(sample, transform):
    index, observations = sample
    expected = one(index, index, observations)
    found = one(transform(index), transform(index), observations)
    np.testing.assert_array_equal(found, expected)


def test_cases_without_a_share_weigh_exactly_nothing(rng):
    index, observations = simulate(rng, 300)
    weights = one(index, index, observations)
    assert weights[weights > 0].min() > 1e-6


def test_missing_values(rng):
    index, observations = (
        np.stack(a) for a in zip(*(simulate(rng) for _ in range(4)), strict=True)
    )
    new = rng.gamma(2, size=(4, 5))
    index[1, 0], observations[1, 1], index[1, 2], observations[1, 3] = (
        np.nan,
        np.nan,
        np.inf,
        -np.inf,
    )
    index[2, 1:] = np.nan
    observations[3] = np.nan
    new[0, 1], new[0, 2] = np.nan, np.inf
    weights = idr_weights(new, index, observations)
    assert np.isnan(weights[0, 1:3]).all()
    assert np.isfinite(weights[0, [0, 3, 4]]).all()
    assert (weights[1, :, :4] == 0).all()
    np.testing.assert_array_equal(weights[1, :, 4:], one(new[1], index[1, 4:], observations[1, 4:]))
    assert np.isnan(weights[2:]).all()


def test_no_cases_and_no_forecasts():
    assert idr_weights(np.empty((2, 3)), np.empty((2, 0)), np.empty((2, 0))).shape == (2, 3, 0)
    assert idr_weights(np.empty((1, 0)), np.ones((1, 6)), np.ones((1, 6))).shape == (1, 0, 6)


# real forecasts ----------------------------------------------------------------------------------


def held_out_crps(data, forecast, observation, train, test):
    data = data.dropna("time", subset=[forecast, observation])
    x, y = data[forecast].astype(np.float64).mean("member"), data[observation].astype(np.float64)
    past, new = ({"time": slice(*years)} for years in (train, test))
    past, new = ([a.sel(part).values for a in (x, y)] for part in (past, new))
    return crps(new[1], past[1], one(new[0], *past)).mean()


@requires_data("frankfurt_rain.nc")
def test_rain_at_frankfurt():
    with xr.open_dataset(DATA / "frankfurt_rain.nc") as data:
        found = held_out_crps(data, "forecast", "observation", ("2008", "2011"), ("2012", "2013"))
    assert found == pytest.approx(0.801, abs=5e-4)


@requires_data("innsbruck_gefs.nc")
@pytest.mark.parametrize(("variable", "expected"), [("tmin", 1.589), ("rain", 1.864)])
def test_innsbruck(variable, expected):
    names = f"{variable}_forecast", f"{variable}_observation"
    with xr.open_dataset(DATA / "innsbruck_gefs.nc") as data:
        found = held_out_crps(data, *names, ("2000", "2009"), ("2010", None))
    assert found == pytest.approx(expected, abs=5e-4)


# errors ------------------------------------------------------------------------------------------


def test_errors():
    two, three = np.zeros((2, 5)), np.zeros((3, 5))
    with pytest.raises(ValueError, match=r"got \(5,\) and \(5,\)"):
        idr_weights(two, two[0], two[0])
    with pytest.raises(ValueError, match=r"new_index must have shape \(2, T\), one row for each"):
        idr_weights(three, two, two)
