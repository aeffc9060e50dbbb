"""What gives way to novelty in a pool."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

import xrecal
from xrecal.arrays.distributions.forms import Empirical
from xrecal.methods.beyond import shares_left
from xrecal.methods.components import components_of, giving_way

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*are unlike all that the model:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*of their mass outside the observed:UserWarning"),
]


def mixture(novelty, beyond=0.0):
    """Two forecasts: three observations with 0.6 of the mass, four other members with 0.4."""
    members = np.array([[0.0, 1, 2, 0.5, 1.0, 1.5, 1.8], [0.0, 1, 2, 0.5, 1.0, 1.5, 1.8]])[
        np.newaxis
    ]
    members[:, 1, 5:] += beyond
    weights = np.array([[[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1]] * 2])
    beside = Empirical(members[..., 3:], weights[..., 3:])
    shares = np.array([0.6]), np.array([0.4])
    keeps, gets = shares_left(members[:, 0, :3], beside, *shares, np.full((1, 2), novelty))
    weights[..., :3] *= keeps
    weights[..., 3:] *= gets
    np.testing.assert_allclose(weights.sum(-1), 1)
    return weights[0]


def test_ordinary_forecasts_stay_as_they_are():
    np.testing.assert_allclose(mixture(0.0), [[0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1]] * 2)


@pytest.mark.parametrize("novelty", [0.3, 1.0])
def test_observations_give_way_to_novelty(novelty):
    weights = mixture(novelty)
    np.testing.assert_allclose(weights[:, :3], 0.2 * (1 - novelty))
    np.testing.assert_allclose(weights[:, 3:], (0.4 + 0.6 * novelty) / 4)


def test_observations_give_way_to_what_lies_beyond_them():
    weights = mixture(0.1, beyond=5)
    np.testing.assert_allclose(weights[:, :3], [[0.18] * 3, [0.1] * 3])
    np.testing.assert_allclose(weights[1, 3:], 0.7 / 4)


def test_where_novelty_is_not_known_the_range_alone_counts():
    np.testing.assert_allclose(
        mixture(np.nan, beyond=5), [[0.2] * 3 + [0.1] * 4, [0.1] * 3 + [0.175] * 4]
    )


def test_observations_that_are_alone_get_something_to_give_way_to():
    components = components_of((xrecal.CKME(support="auto"), xrecal.EMOS(), xrecal.Climatology()))
    labels = [c.label for c in components]
    weight = np.zeros((3, len(labels)))
    weight[:, labels.index("ckme_observations")] = [0.7, 0.7, 0]
    weight[:, labels.index("climatology")] = [0.3, 0.1, 0]
    weight[:, labels.index("emos")] = [0, 0.2, 1]
    mixed, of_observations, takers, own = giving_way(components, weight)
    np.testing.assert_allclose(of_observations, [1, 0.8, 0])
    np.testing.assert_allclose(own, [0, 0.2, 1])
    assert labels.index("emos") in np.flatnonzero(takers)
    np.testing.assert_array_equal(mixed[1:], weight[1:])
    added = mixed[0] - weight[0]
    assert added[labels.index("ckme_mean")] == added.sum() == 1
    without = components_of((xrecal.CKME(support="observations"), xrecal.IDR()))
    only = np.array([[0.5, 0.5]])
    np.testing.assert_array_equal(giving_way(without, only).mixed, only)


@pytest.mark.filterwarnings("ignore:.* far from the hindcast:UserWarning")
def test_the_raw_forecast_gets_nothing_that_observations_lose():
    """It has a little weight, and two hundred units of bias."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=30)
    cases = {"time": np.arange(30)}
    hindcast = xr.DataArray(
        200 + truth[:, np.newaxis] + rng.normal(size=(30, 10)), cases, ("time", "member")
    )
    pool = xrecal.LinearPool(condition_on=())
    model = hindcast.recal.fit(xr.DataArray(truth, cases, "time"), pool)
    weight = xr.zeros_like(model.state.pool_weight)
    weight.loc[{"component": "climatology"}] = 0.9
    weight.loc[{"component": "raw"}] = 0.1
    ((name, fitted),) = model.variables.items()
    given = dataclasses.replace(fitted, state=fitted.state.assign(pool_weight=weight))
    changed = dataclasses.replace(model, variables={name: given})
    issued = changed.apply(hindcast.isel(time=[0]) + 50)
    weights = issued.forecast_weight.groupby("component").sum()
    np.testing.assert_allclose(weights.sum(), 1)
    assert weights.sel(component="raw") <= 0.05  # of which tails may have taken some
    assert weights.sel(component="observations") < 0.01 < 0.3 < weights.sel(component="ckme")


def record_cases():
    """Observations at two values, and forecasts ever further beyond them."""
    rng = np.random.default_rng(16)
    signal = 3 * rng.normal(size=(44, 3))
    observed = 280 + signal + rng.normal(size=signal.shape)
    members = 281 + signal[..., np.newaxis] + 0.8 * rng.normal(size=(44, 3, 5))
    dates = np.datetime64("2001-01-15", "ns") + np.arange(44) * np.timedelta64(20, "D")
    observed = 285.0 - 10 * (observed[:40] < 280) + np.linspace(0, 1, 40)[:, np.newaxis]
    truth = xr.DataArray(observed, {"time": dates[:40]}, ["time", "station"])
    members[40:] += np.array([0.0, 2.0, 8.0, 40.0])[:, np.newaxis, np.newaxis]
    forecasts = xr.DataArray(members, {"time": dates}, ["time", "station", "member"], "t2m")
    return forecasts[:40], truth, forecasts[40:]


@pytest.fixture(scope="module")
def way():
    """A model that chooses observations, and forecasts ever further beyond them."""
    hindcast, observed, forecast = record_cases()
    return hindcast.recal.fit(observed), forecast


def test_a_ckme_that_chose_observations_lets_them_give_way(way):
    model, forecast = way
    assert (model.state.support == 0).all()
    weight = model.apply(forecast).t2m_weight
    observed = weight.isel(member=weight.component == "observations").sum("member")
    np.testing.assert_allclose(weight.sum("member"), 1)
    assert (observed[0] > 0.4).all()
    np.testing.assert_allclose(observed[-1], 0, atol=1e-12)
    np.testing.assert_array_less(observed[-1], observed[0])


def test_what_they_keep_follows_from_novelty_and_from_what_lies_beyond(way):
    model, forecast = way
    issued = model.apply(forecast)
    kind, past = issued.t2m_weight.component, model.state.observations
    beside, mass = (
        issued[name].isel(member=kind != "observations") for name in ("t2m", "t2m_weight")
    )
    ascending = past.copy(data=np.sort(past, axis=past.get_axis_num("calibration")))
    # One of forty observations on each side may be a spike.
    low, high = ascending.isel(calibration=1), ascending.isel(calibration=-2)
    inside = mass.where((beside >= low) & (beside <= high), 0).sum("member") / mass.sum("member")
    kept = issued.t2m_weight.isel(member=kind == "observations").sum("member")
    expected = np.minimum(1 - model.novelty(forecast), inside)
    np.testing.assert_allclose(kept, expected.transpose(*kept.dims), atol=1e-12)


def test_they_need_not_give_way(way):
    model, forecast = way
    keeps = dataclasses.replace(model.method, novelty=None)
    hindcast, observed, _ = record_cases()
    kept = hindcast.recal.fit(observed, keeps)
    assert "beside" not in kept.state
    plain = hindcast.recal.fit(observed, xrecal.CKME(support="observations"))
    edges = [275.0, 280.0, 285.5]
    found, expected = (m.exceedance(forecast, edges) for m in (kept, plain))
    np.testing.assert_allclose(found, expected, atol=1e-9)
