"""Forecasts with another number of members than the hindcasts that a model has learned from."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from xrecal.arrays.distributions.ensemble_size import on_footing, past_of

METHODS = {
    "EMOS": xrecal.EMOS(),
    "CKME": xrecal.CKME(support="standardised"),
    "pool": xrecal.LinearPool(),
}


def exchangeable(n, n_members, seed, varies=0.0):
    """Ensembles and observations that are draws from one distribution on each date."""
    rng = np.random.default_rng(seed)
    signal, spread = 2 * rng.normal(size=n), np.exp(varies * rng.normal(size=n))
    dates = pd.date_range("2001-01-01", periods=n, freq="3D")
    members = signal[:, np.newaxis] + spread[:, np.newaxis] * rng.normal(size=(n, n_members))
    observed = signal + spread * rng.normal(size=n)
    coords = {"time": dates}
    return (
        xr.DataArray(members, dims=("time", "member"), coords=coords, name="t2m"),
        xr.DataArray(observed, dims="time", coords=coords, name="t2m"),
    )


def fitted(hindcast, observed, method):
    """A model of this method."""
    return hindcast.recal.fit(observed, method)


def coverage(method, n_past, n_new, varies=0.0):
    """Share of observations in the 90 % interval, of forecasts and hindcasts of these sizes."""
    found = []
    for seed in range(4):
        model = fitted(*exchangeable(800, n_past, seed, varies), method)
        forecast, observed = exchangeable(1000, n_new, 100 + seed, varies)
        low, high = model.quantile(forecast, [0.05, 0.95]).transpose("quantile", ...)
        found.append(((observed >= low) & (observed <= high)).mean().item())
    return np.mean(found)


@pytest.mark.parametrize("sizes", [(5, 51), (11, 51)])
@pytest.mark.parametrize("name", ["EMOS", "CKME", pytest.param("pool", marks=pytest.mark.slow)])
def test_intervals_of_larger_ensembles_hold_as_many_observations_as_they_say(name, sizes):
    assert coverage(METHODS[name], *sizes) == pytest.approx(0.9, abs=0.015)


@pytest.mark.parametrize("varies", [0.0, 0.5])
@pytest.mark.parametrize("sizes", [(51, 5), (51, 11)])
@pytest.mark.parametrize("name", ["EMOS", "CKME"])
def test_intervals_of_smaller_ensembles_hold_as_many_observations_as_they_say(name, sizes, varies):
    """The spread of five members is uncertain itself: it is shrunk to the mean of the record."""
    assert coverage(METHODS[name], *sizes, varies) == pytest.approx(0.9, abs=0.015)


@pytest.mark.slow
def test_the_forecast_as_issued_is_what_stays_too_narrow_in_a_pool():
    without = xrecal.LinearPool((xrecal.CKME(support="regression"), xrecal.EMOS(), xrecal.IDR()))
    assert coverage(without, 51, 5) == pytest.approx(0.9, abs=0.015)
    assert coverage(METHODS["pool"], 51, 11) == pytest.approx(0.9, abs=0.015)
    assert 0.85 < coverage(METHODS["pool"], 51, 5) < 0.9


def test_variances_that_hardly_differ_are_taken_for_their_mean():
    """Variances of five members then differ by chance alone."""
    variance = np.full((1, 200), 2.0)
    past = past_of(np.full((1, 200), 1 / 50), variance)
    found, noise = on_footing(np.array([[0.1, 5.0]]), np.array([[0.2, 0.2]]), past)
    np.testing.assert_allclose(found, 2.0)
    # The variance of the members is 2 / (1 - 1/50), and their mean has a fifth of it as its error.
    np.testing.assert_allclose(noise, -(1 / 5 - 1 / 50) * 2.0 / (1 - 1 / 50))


def test_equal_sizes_change_no_variance():
    rng = np.random.default_rng(0)
    past = past_of(np.full((1, 200), 1 / 50), rng.gamma(2.0, size=(1, 200)))
    variance = rng.gamma(2.0, size=(1, 30))
    found, noise = on_footing(variance, np.full((1, 30), 1 / 50), past)
    np.testing.assert_array_equal(found, variance)
    np.testing.assert_array_equal(noise, 0.0)


@pytest.mark.parametrize("name", METHODS)
def test_repeated_members_say_that_there_are_more(name):
    """Twice each member: the same distribution, which is taken for a better known one."""
    hindcast, observed = exchangeable(300, 8, 0)
    model = fitted(hindcast, observed, METHODS[name])
    twice = xr.concat([hindcast, hindcast], "member")
    width = np.diff(model.quantile(hindcast, [0.1, 0.9]).transpose(..., "quantile"))
    narrower = np.diff(model.quantile(twice, [0.1, 0.9]).transpose(..., "quantile"))
    assert narrower.mean() < 0.99 * width.mean()


@pytest.mark.parametrize("name", METHODS)
def test_a_missing_member_counts_as_none(name):
    hindcast, observed = exchangeable(300, 8, 0)
    model = fitted(hindcast, observed, METHODS[name])
    padded = hindcast.pad(member=(0, 3), constant_values=np.nan)
    expected = model.quantile(hindcast, [0.1, 0.5, 0.9])
    xr.testing.assert_allclose(model.quantile(padded, [0.1, 0.5, 0.9]), expected, rtol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_quantiles_and_weighted_members_are_taken_as_they_are(name):
    """Fewer levels of a distribution do not say that less is known."""
    hindcast, observed = exchangeable(300, 20, 0)
    levels = (np.arange(20) + 0.5) / 20
    of_20 = hindcast.quantile(levels, "member")
    of_10 = hindcast.quantile((np.arange(10) + 0.5) / 10, "member")
    model = fitted(of_20, observed, METHODS[name])
    widths = [
        np.diff(model.quantile(of, [0.1, 0.9]).transpose(..., "quantile")).mean()
        for of in (of_20, of_10)
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.02)


def test_an_update_with_larger_ensembles_counts_each_as_large_as_it_is():
    hindcast, observed = exchangeable(400, 5, 0)
    later, verified = exchangeable(400, 50, 1)
    later, verified = (
        a.assign_coords(time=a.time + np.timedelta64(4000, "D")) for a in (later, verified)
    )
    padded = hindcast.pad(member=(0, 45), constant_values=np.nan)
    whole = fitted(
        xr.concat([padded, later], "time"), xr.concat([observed, verified], "time"), xrecal.EMOS()
    )
    updated = fitted(padded, observed, xrecal.EMOS()).update(later, verified)
    assert whole.state["inverse_size"].item() == pytest.approx((1 / 5 + 1 / 50) / 2)
    np.testing.assert_allclose(updated.state["inverse_size"], whole.state["inverse_size"])


def test_a_fit_that_places_share_knows_the_sizes_too():
    def network(n_members, first):
        each = [exchangeable(200, n_members, first + place) for place in range(12)]
        places = pd.Index([f"S{place}" for place in range(12)], name="station")
        together = (xr.concat(values, places) for values in zip(*each, strict=True))
        height = ("station", 10.0 * np.arange(12))
        return [a.assign_coords(height=height) for a in together]

    hindcast, observations = network(5, 0)
    model = hindcast.recal.fit(observations, xrecal.CKME(), pool="station")
    forecast, observed = network(51, 100)
    low, high = model.quantile(forecast, [0.05, 0.95]).transpose("quantile", ...)
    assert ((observed >= low) & (observed <= high)).mean().item() == pytest.approx(0.9, abs=0.02)
