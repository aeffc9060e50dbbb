"""Fits of many places are the same in whatever order these stand."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.labelled import freeze

N, FIRST = 30, 24
NAMES = [f"s{i:02d}" for i in range(12)]
ORDERS = {
    "reversed": np.arange(12)[::-1],
    "shuffled": np.random.default_rng(3).permutation(12),
}
METHODS = {
    "shared": xrecal.CKME(),
    "pools that share": xrecal.LinearPool((xrecal.CKME(), xrecal.EMOS()), condition_on=()),
    "shared with a gap": xrecal.CKME(gap=1, half_life=200),
    "emos": xrecal.EMOS(),
    "idr": xrecal.IDR(),
}


def network(labels="station"):
    """Forecasts (time, station, member) and observations, of stations unlike each other."""
    rng = np.random.default_rng(0)
    signal = 2 * rng.normal(size=(N, 12)) + np.linspace(0, 4, 12)
    along = {
        "station": {"station": NAMES},
        "coordinates": {"name": ("station", NAMES), "height": ("station", np.arange(12.0) % 5)},
    }[labels]
    if labels == "station":
        along |= {"latitude": ("station", 40 + rng.uniform(0, 9, 12))}
    coords = {"time": xr.date_range("2015-01-01", periods=N, freq="20D"), **along}
    members = signal[..., np.newaxis] + rng.normal(size=(N, 12, 3))
    forecasts = xr.DataArray(members, coords, ("time", "station", "member"), name="v")
    observed = xr.DataArray(signal + rng.normal(size=signal.shape), coords, ("time", "station"))
    return freeze(forecasts), freeze(observed.where(signal < 6.5))


def issued(model, forecasts, observed):
    made = {"quantile": model.quantile(forecasts, [0.1, 0.5, 0.9])}
    made |= {"crps": model.crps(forecasts, observed)}
    made |= {n: v for n, v in model.apply(forecasts).items() if n == "v_novelty"}
    return xr.Dataset(made).compute()


@pytest.fixture(autouse=True)
def few_cases_are_many(monkeypatch):
    monkeypatch.setattr("xrecal.inputs.pool.MAX_POOLED", 150)


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("method", METHODS)
def test_before_and_after_an_update(method, order):
    given, at = network(), {"station": ORDERS[order]}
    made = []
    for forecasts, observed in (given, [array.isel(at) for array in given]):
        first, more, new = (slice(0, FIRST), slice(FIRST, FIRST + 4), slice(FIRST + 4, None))
        model = forecasts[first].recal.fit(observed[first], METHODS[method], pool="station")
        updated = model.update(forecasts[more], observed[more])
        made.append([issued(m, forecasts[new], observed[new]) for m in (model, updated)])
    for found, expected in zip(made[1], made[0], strict=True):
        xr.testing.assert_allclose(found.sel(station=NAMES), expected, rtol=1e-12, atol=1e-12)


def test_chunks_and_a_part_of_the_places():
    forecasts, observed = network()
    expected = forecasts.recal.fit(observed, pool="station").quantile(forecasts, [0.1, 0.9])
    turned = [array.isel(station=ORDERS["shuffled"]) for array in (forecasts, observed)]
    lazy = [array.chunk(time=9, station=5) for array in turned]
    model = lazy[0].recal.fit(lazy[1], pool="station").compute()
    some = ["s07", "s02", "s11"]
    found = model.quantile(forecasts.sel(station=some), [0.1, 0.9])
    xr.testing.assert_allclose(found, expected.sel(station=some), rtol=1e-10)
    assert list(model.state["shared_place_station"].to_numpy()) == NAMES


def test_coordinates_along_places_name_them():
    forecasts, observed = network("coordinates")
    order = ORDERS["shuffled"]
    expected = forecasts.recal.fit(observed, pool="station").quantile(forecasts, [0.1, 0.9])
    turned = [array.isel(station=order) for array in (forecasts, observed)]
    found = turned[0].recal.fit(turned[1], pool="station").quantile(turned[0], [0.1, 0.9])
    xr.testing.assert_allclose(found, expected.isel(station=order), rtol=1e-10)


def test_windows_of_a_grid_whose_latitudes_descend(monkeypatch):
    """Of all positions, in the order of their labels."""
    monkeypatch.setattr("xrecal.inputs.pool.MAX_POOLED", 1500)
    rng = np.random.default_rng(1)
    along = {"lat": np.arange(4.0), "lon": np.arange(3.0)}
    coords = {"time": xr.date_range("2015-01-01", periods=30, freq="20D"), **along}
    signal = rng.normal(size=(30, 4, 3)) + 3 * np.arange(4)[:, np.newaxis]
    members = signal[..., np.newaxis] + rng.normal(size=(30, 4, 3, 5))
    forecasts = xr.DataArray(members, coords, ("time", "lat", "lon", "member"), name="v")
    observed = xr.DataArray(signal + rng.normal(size=signal.shape), coords, ("time", "lat", "lon"))
    pool = {"lat": 3, "lon": 3}
    expected, found = (
        f.recal.fit(o, xrecal.CKME(support="errors", ridge=0.1), pool=pool).quantile(f, [0.1, 0.9])
        for f, o in ((forecasts, observed), (forecasts[:, ::-1], observed[:, ::-1]))
    )
    xr.testing.assert_allclose(found.sel(lat=along["lat"]), expected, rtol=1e-10)
