"""Winters that forecasts tell apart and say nothing about: none may give itself away."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.arrays import crps

PLACES, MEMBERS, EACH = 6, 10, 18


def winters(first, n, seed):
    """Every fifth day of n winters; members have a pattern for all of a winter.

    What is observed has an anomaly of the winter that the pattern does not know, so half of a
    winter tells of the other half and of nothing else.
    """
    rng = np.random.default_rng(seed)
    start = np.array([f"{first + i}-12-01" for i in range(n)], "datetime64[ns]")
    time = (start[:, np.newaxis] + 5 * np.arange(EACH) * np.timedelta64(1, "D")).ravel()
    pattern = np.repeat(rng.normal(size=(n, PLACES, MEMBERS)), EACH, axis=0)
    members = pattern + 0.02 * rng.normal(size=pattern.shape)
    anomaly = np.repeat(rng.normal(size=(n, PLACES)), EACH, axis=0)
    observed = anomaly + 0.6 * rng.normal(size=anomaly.shape)
    forecast = xr.DataArray(members, {"time": time}, ["time", "place", "member"], name="t2m")
    return forecast, xr.DataArray(observed, {"time": time}, ["time", "place"])


HINDCAST, OBSERVED = winters(1981, 14, seed=0)
LATER, VERIFIED = winters(2001, 40, seed=1)


def climatology_of_other_winters():
    """CRPS at each place of the observations of all other winters."""
    winter, scores = np.arange(14 * EACH) // EACH, []
    for k in range(14):
        held, others = OBSERVED.values[winter == k].T, OBSERVED.values[winter != k].T
        members = np.broadcast_to(others[:, np.newaxis], (*held.shape, others.shape[1]))
        scores.append(crps(held, members).mean(-1))
    return np.mean(scores, axis=0)


def skill(scores, reference):
    return float((1 - np.asarray(scores) / reference).mean())


@pytest.fixture(scope="module")
def reference():
    model = HINDCAST.recal.fit(OBSERVED, xrecal.Climatology())
    return model.crps(LATER, VERIFIED).mean("time").values


def test_a_fit_promises_no_skill_that_it_has_not(reference):
    promised = HINDCAST.recal.ridge_curve(OBSERVED)["loss"].min("ridge")
    assert skill(promised, climatology_of_other_winters()) <= 0.05
    model = HINDCAST.recal.fit(OBSERVED)
    assert skill(model.crps(LATER, VERIFIED).mean("time"), reference) >= -0.05


def test_winters_cut_at_new_year_promise_it():
    """What the gap of the calendar spares: here is what folds see that cut winters in two."""
    cut = xrecal.CKME(support="observations", year_start="01-01")
    with pytest.warns(UserWarning, match="have a neighbour within a week in another fold"):
        promised = HINDCAST.recal.ridge_curve(OBSERVED, cut)["loss"].min("ridge")
    assert skill(promised, climatology_of_other_winters()) > 0.25


@pytest.mark.slow
def test_nor_does_a_pool_or_a_cross_validation(reference):
    method = xrecal.LinearPool(
        (xrecal.CKME(support="observations"), xrecal.EMOS(), xrecal.Climatology())
    )
    unseen = HINDCAST.recal.cross_validate(OBSERVED, method, output="crps").mean("time")
    assert skill(unseen, climatology_of_other_winters()) <= 0.05
    later = HINDCAST.recal.fit(OBSERVED, method).crps(LATER, VERIFIED).mean("time")
    assert skill(later, reference) >= -0.05
