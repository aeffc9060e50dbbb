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


METHODS = [
    xrecal.CKME(support="observations"),
    xrecal.CKME(support="errors"),
    xrecal.CKME(support="errors", compare="shapes"),
    xrecal.CKME(support="auto", condition_on="season", half_life=300.0),
    xrecal.CKME(projection="energy", ridge=0.01, support="errors", bounds=(-50, None)),
    xrecal.CKME(support="observations", loss="laplace", kernel="laplace"),
    xrecal.CKME(support="observations", solver="lowrank"),
    xrecal.CKME(support="observations", solver="exact", bandwidth="cv"),
]


@pytest.mark.parametrize(
    ("method", "chunks"),
    [(method, CHUNKS[0]) for method in METHODS] + [(METHODS[i], CHUNKS[1]) for i in (2, 3, 6)],
    ids=str,
)
def test_fits_and_products_are_those_of_the_host(cupy, data, method, chunks):
    hindcast, forecast, observations = data
    model = hindcast.recal.fit(observations, method)
    here, new, seen = (to_device(cupy, part, chunks) for part in data)
    lazy = here.recal.fit(seen, method)
    moved = lazy.compute()
    require_same(cupy, lazy.state, model.state, computed=moved.state)
    require_same(cupy, new.recal.apply(moved), forecast.recal.apply(model))
    require_same(cupy, moved.quantile(new, [0.1, 0.5]), model.quantile(forecast, [0.1, 0.5]))
    require_same(cupy, moved.crps(new, seen), model.crps(forecast, observations))
    require_same(cupy, moved.mean(new), model.mean(forecast))
    require_same(cupy, moved.std(new), model.std(forecast))
    require_same(cupy, moved.exceedance(new, [0.0, 5.0]), model.exceedance(forecast, [0.0, 5.0]))
    require_same(cupy, moved.cdf(new, 5.0), model.cdf(forecast, 5.0))
    require_same(cupy, moved.pit(new, seen), model.pit(forecast, observations))
    require_same(cupy, moved.members(new, 7, seed=3), model.members(forecast, 7, seed=3))


@pytest.mark.parametrize("chunks", CHUNKS, ids=["plain", "dask"])
def test_statistics_and_scores_of_forecasts(cupy, data, chunks):
    hindcast, forecast, observations = data
    new, seen = (to_device(cupy, part, chunks) for part in (forecast, observations))
    weighted = forecast.recal.apply(hindcast.recal.fit(observations))
    moved = weighted.map(lambda part: to_device(cupy, part, chunks))
    moved.attrs = weighted.attrs
    for here, host in ((new, forecast), (moved, weighted)):
        require_same(cupy, here.recal.mean(), host.recal.mean())
        require_same(cupy, here.recal.std(), host.recal.std())
        require_same(cupy, here.recal.quantile([0.2, 0.7]), host.recal.quantile([0.2, 0.7]))
        require_same(cupy, here.recal.exceedance(4.0), host.recal.exceedance(4.0))
        require_same(cupy, here.recal.cdf([4.0, 5.0]), host.recal.cdf([4.0, 5.0]))
        require_same(cupy, here.recal.categories([3, 5]), host.recal.categories([3, 5]))
        require_same(cupy, here.recal.members(4, seed=1), host.recal.members(4, seed=1))
        require_same(cupy, here.recal.pit(seen), host.recal.pit(observations))
        require_same(cupy, here.recal.crps(seen), host.recal.crps(observations))
        for dim in ("init", ["init", "location"]):
            require_same(cupy, here.recal.crps(seen, dim), host.recal.crps(observations, dim))


@pytest.mark.parametrize("chunks", CHUNKS, ids=["plain", "dask"])
def test_quantiles_are_forecasts_too(cupy, data, chunks):
    hindcast, forecast, observations = data
    levels = np.arange(0.05, 1, 0.1)
    past, new = hindcast.recal.quantile(levels), forecast.recal.quantile(levels)
    here = [to_device(cupy, part, chunks) for part in (past, new, observations)]
    found = here[0].recal.fit(here[2]).crps(here[1], here[2])
    require_same(cupy, found, past.recal.fit(observations).crps(new, observations))


def test_float32_stays(cupy, data):
    narrow = [part.astype(np.float32) for part in data]
    hindcast, forecast, observations = narrow
    here, new, seen = (to_device(cupy, part) for part in narrow)
    found = here.recal.fit(seen).quantile(new, [0.1, 0.9])
    expected = hindcast.recal.fit(observations).quantile(forecast, [0.1, 0.9])
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
    found = here[0].recal.fit(here[2]).crps(here[1], here[2])
    require_same(cupy, found, hindcast.recal.fit(observations).crps(forecast, observations))


@pytest.mark.parametrize("pool", ["location", {"location": 1}], ids=str)
@pytest.mark.parametrize("lazy", [False, True], ids=["plain", "dask"])
def test_pooled_cases(cupy, data, pool, lazy):
    height = xr.DataArray([0.0, 100.0], {"location": data[0].location}, ["location"])
    hindcast, forecast = (part.assign_coords(height=height) for part in data[:2])
    chunks = {"location": -1, "init": -1} if lazy else None
    here, new, seen = (to_device(cupy, part, chunks) for part in (hindcast, forecast, data[2]))
    names = "height" if pool == "location" else None
    method = xrecal.CKME(support="observations", ridge=0.1, condition_on=names)
    found = here.recal.fit(seen, method, pool=pool).crps(new, seen)
    require_same(
        cupy, found, hindcast.recal.fit(data[2], method, pool=pool).crps(forecast, data[2])
    )


@pytest.mark.parametrize("chunks", CHUNKS, ids=["plain", "dask"])
@pytest.mark.parametrize("solver", ["exact", "lowrank"])
def test_more_cases_join(cupy, data, chunks, solver):
    hindcast, forecast, observations = data
    method = xrecal.CKME(solver=solver, support="errors", ridge=0.01)
    fewer = hindcast[40:].isel(member=slice(3))
    model = hindcast[:40].recal.fit(observations, method).update(fewer, observations)
    parts = (hindcast[:40], fewer, forecast, observations)
    here, added, new, seen = (to_device(cupy, part, chunks) for part in parts)
    lazy = here.recal.fit(seen, method).update(added, seen)
    moved = lazy.compute()
    require_same(cupy, lazy.state, model.state, computed=moved.state)
    require_same(cupy, moved.crps(new, seen), model.crps(forecast, observations))


def test_nothing_is_computed_until_asked(cupy, data):
    here, new, seen = (to_device(cupy, part, CHUNKS[1]) for part in data)
    with forbid_compute():
        model = here.recal.fit(seen, xrecal.CKME(support="observations", condition_on="season"))
        quantile = model.quantile(new, 0.5)
        score = model.crps(new, seen, dim="init")
    for result in (quantile, score, *model.state.data_vars.values()):
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
    here[0].recal.fit(here[2]).crps(here[1], here[2])
    for moved, part in zip(here, data, strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(moved.data), part.to_numpy())


def test_a_model_tells_of_itself_and_copies_to_the_host(cupy, data, tmp_path):
    hindcast, forecast, observations = data
    here, new, seen = (to_device(cupy, part) for part in data)
    moved, model = here.recal.fit(seen), hindcast.recal.fit(observations)
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
    assert isinstance(moved.crps(new, seen).data, cupy.ndarray)


def test_no_locations_and_no_forecasts(cupy, data):
    here, new, seen = (to_device(cupy, part) for part in data)
    model = here.recal.fit(seen)
    for nothing in (new[:0], new.isel(location=slice(0))):
        assert isinstance(nothing.recal.mean().data, cupy.ndarray)
    assert model.quantile(new[:0], [0.1, 0.9]).shape == (0, 2, 2)
