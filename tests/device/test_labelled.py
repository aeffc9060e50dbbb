"""Labelled calls on CuPy arrays, plain and in Dask chunks, against those on NumPy arrays."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute

from .moved import require_same, to_device

CHUNKS = [None, {"location": 1, "init": -1}]


@pytest.fixture(scope="module")
def data():
    """Hindcast, forecast and observations at two locations, with dates."""
    whole = xrecal.datasets.lorenz96(n_inits=60, n_members=5, n_locations=4, lead_days=[5])
    whole = whole.isel(lead=0, location=slice(2), drop=True)
    whole = whole.drop_vars([c for c in whole.coords if c not in whole.dims])
    whole = whole.assign_coords(init=pd.date_range("2000-01-01", periods=60, freq="19D"))
    hindcast = whole.forecast[:50].copy()
    hindcast[3, :, 0] = np.nan
    observations = whole.observation.copy()
    observations[4:9, 1] = np.nan
    return hindcast, whole.forecast[50:], observations


GIVEN = xrecal.CKME(ridge=0.02)
METHODS = [
    xrecal.CKME(support="observations", ridge=0.01),
    xrecal.CKME(support="mean", ridge=0.05, bounds=(-50, None)),
    xrecal.CKME(support="errors", ridge=0.05, compare="shapes"),
    xrecal.CKME(support="auto", ridge=0.02, condition_on="season", half_life=300.0),
    xrecal.CKME(support="observations", ridge=0.01, kernel="laplace", solver="exact"),
]


@pytest.mark.parametrize(
    ("method", "chunks"),
    [(method, CHUNKS[0]) for method in METHODS] + [(METHODS[i], CHUNKS[1]) for i in (2, 3)],
    ids=str,
)
def test_fits_and_forecasts_are_those_of_the_host(cupy, data, method, chunks):
    hindcast, forecast, observations = data
    model = hindcast.recal.fit(observations, method)
    here, new, seen = (to_device(cupy, part, chunks) for part in data)
    lazy = here.recal.fit(seen, method)
    moved = lazy.compute()
    require_same(cupy, lazy.state, model.state, computed=moved.state, tolerance=1e-7)
    require_same(cupy, new.recal.apply(moved), forecast.recal.apply(model), tolerance=1e-7)
    require_same(cupy, moved.novelty(new), model.novelty(forecast))


@pytest.mark.parametrize("condition_on", [None, "season"])
def test_chosen_settings_are_as_good_as_those_of_the_host(cupy, data, condition_on):
    hindcast, forecast, observations = data
    method = xrecal.CKME(condition_on=condition_on)
    model = hindcast.recal.fit(observations, method)
    here, new, seen = (to_device(cupy, part) for part in data)
    moved = here.recal.fit(seen, method)
    for name in ("support", "bandwidth", "strength"):
        if name in model.state:
            found = cupy.asnumpy(moved.state[name].data)
            np.testing.assert_allclose(found, model.state[name], rtol=1e-10)
    found = new.recal.apply(moved).as_numpy().recal.crps(observations, ...)
    # Held-out losses agree to 0.2 %, see tests.arrays.device; these are 20 forecasts.
    assert found.item() == pytest.approx(model.crps(forecast, observations, ...).item(), rel=0.01)


@pytest.mark.parametrize("chunks", CHUNKS, ids=["plain", "dask"])
def test_quantiles_are_forecasts_too(cupy, data, chunks):
    hindcast, forecast, observations = data
    levels = np.arange(0.05, 1, 0.1)
    past, new = hindcast.recal.quantile(levels), forecast.recal.quantile(levels)
    here = [to_device(cupy, part, chunks) for part in (past, new, observations)]
    found = here[0].recal.fit(here[2], GIVEN).apply(here[1])
    expected = past.recal.fit(observations, GIVEN).apply(new)
    require_same(cupy, found, expected, tolerance=1e-7)  # as above: both fit and apply


def test_float32_stays(cupy, data):
    narrow = [part.astype(np.float32) for part in data]
    hindcast, forecast, observations = narrow
    here, new, seen = (to_device(cupy, part) for part in narrow)
    found = here.recal.fit(seen, GIVEN).apply(new)
    expected = hindcast.recal.fit(observations, GIVEN).apply(forecast)
    require_same(cupy, found, expected, tolerance=1e-5)


@pytest.mark.parametrize("chunks", CHUNKS, ids=["plain", "dask"])
def test_observations_over_valid_time(cupy, rng, chunks):
    whole = xrecal.datasets.lorenz96(n_inits=60, n_members=5, n_locations=4, lead_days=[3, 5])
    whole = whole.isel(location=slice(2))
    hindcast, forecast = whole.forecast[:50], whole.forecast[50:]
    hindcast.lead.attrs["units"] = forecast.lead.attrs["units"] = "days"
    days = pd.date_range("2000-01-01", periods=900)
    dims = {"time": days, "location": whole.location}
    observations = xr.DataArray(rng.normal(size=(900, 2)), dims, list(dims), attrs=hindcast.attrs)
    here = [to_device(cupy, part, chunks) for part in (hindcast, forecast, observations)]
    found = here[0].recal.fit(here[2], GIVEN).apply(here[1])
    require_same(cupy, found, hindcast.recal.fit(observations, GIVEN).apply(forecast))


@pytest.mark.parametrize("pool", ["location", {"location": 1}], ids=str)
@pytest.mark.parametrize("lazy", [False, True], ids=["plain", "dask"])
def test_pooled_cases(cupy, data, pool, lazy):
    height = xr.DataArray([0.0, 100.0], {"location": data[0].location}, ["location"])
    hindcast, forecast = (part.assign_coords(height=height) for part in data[:2])
    chunks = {"location": -1, "init": -1} if lazy else None
    here, new, seen = (to_device(cupy, part, chunks) for part in (hindcast, forecast, data[2]))
    names = "height" if pool == "location" else None
    method = xrecal.CKME(support="observations", ridge=0.1, condition_on=names)
    found = here.recal.fit(seen, method, pool=pool).apply(new)
    require_same(cupy, found, hindcast.recal.fit(data[2], method, pool=pool).apply(forecast))


@pytest.mark.parametrize("chunks", CHUNKS, ids=["plain", "dask"])
def test_more_cases_join(cupy, data, chunks):
    hindcast, forecast, observations = data
    method = xrecal.CKME(support="mean", ridge=0.01)
    fewer = hindcast[40:].isel(member=slice(3))
    model = hindcast[:40].recal.fit(observations, method).update(fewer, observations)
    parts = (hindcast[:40], fewer, forecast, observations)
    here, added, new, seen = (to_device(cupy, part, chunks) for part in parts)
    lazy = here.recal.fit(seen, method).update(added, seen)
    moved = lazy.compute()
    require_same(cupy, lazy.state, model.state, computed=moved.state)
    require_same(cupy, moved.apply(new), model.apply(forecast))


def test_nothing_is_computed_until_asked(cupy, data):
    here, new, seen = (to_device(cupy, part, CHUNKS[1]) for part in data)
    with forbid_compute():
        model = here.recal.fit(seen, xrecal.CKME(support="observations", condition_on="season"))
        issued = model.apply(new)
    for result in (*issued.data_vars.values(), *model.state.data_vars.values()):
        assert isinstance(getattr(result.data, "_meta", result.data), cupy.ndarray)


def test_plans_never_read_values(cupy, data):
    here, new, seen = (to_device(cupy, part, CHUNKS[1]) for part in data)
    with forbid_compute():
        plan = xrecal.plan(here, seen, probe=False)
        host = xrecal.plan(*(data[i].chunk(CHUNKS[1]) for i in (0, 2)), probe=False)
        assert replace(plan, resources=host.resources) == host  # which vary from call to call
        here.recal.fit(seen).plan(new, probe=False)


def test_inputs_are_not_changed(cupy, data):
    here = [to_device(cupy, part) for part in data]
    here[0].recal.fit(here[2]).apply(here[1])
    for moved, part in zip(here, data, strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(moved.data), part.to_numpy())


def test_a_model_tells_of_itself_and_copies_to_the_host(cupy, data, tmp_path):
    hindcast, forecast, observations = data
    here, new, seen = (to_device(cupy, part) for part in data)
    moved, model = here.recal.fit(seen, GIVEN), hindcast.recal.fit(observations, GIVEN)
    assert repr(moved) == repr(model)
    with pytest.raises(TypeError, match=r"in CuPy arrays.*model.as_numpy\(\).save\(path\)"):
        moved.save(tmp_path / "model.nc")
    copied = moved.as_numpy()
    assert {type(array.data) for array in copied.state.values()} == {np.ndarray}
    copied.save(tmp_path / "model.nc")
    opened = xrecal.open_recalibrator(tmp_path / "model.nc")
    xr.testing.assert_allclose(
        opened.crps(forecast, observations), model.crps(forecast, observations)
    )
    assert isinstance(moved.apply(new).forecast.data, cupy.ndarray)


def test_no_locations_and_no_forecasts(cupy, data):
    here, new, seen = (to_device(cupy, part) for part in data)
    model = here.recal.fit(seen, GIVEN)
    assert isinstance(model.apply(new[:0]).forecast.data, cupy.ndarray)
    nowhere = here.isel(location=slice(0)).recal.fit(seen.isel(location=slice(0)), GIVEN)
    assert isinstance(nowhere.state.ridge.data, cupy.ndarray)
