import dask
import dask.array
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import FORMS, METHODS, PAIRS, ensemble_and_truth, new_cases
from xrecal.inputs import pool as pooling
from xrecal.plan import planning
from xrecal.plan.costs import Probe
from xrecal.plan.planning import BEST_BYTES

HINDCAST, TRUTH = ensemble_and_truth(n_lat=3, n_lon=4)
NEW, VERIFIED = new_cases(n_lat=3, n_lon=4)


def without_values(n=500, m=20, n_lat=100, n_lon=100, chunks=None):
    """A large hindcast that nobody can compute."""

    def refuse(_):
        raise AssertionError("values were computed")

    shape = n, m, n_lat, n_lon
    chunks = shape if chunks is None else chunks
    data = dask.array.zeros(shape, chunks=chunks, dtype="f4").map_blocks(refuse, dtype="f4")
    times = np.datetime64("2000-01-01", "ns") + np.arange(n) * np.timedelta64(3, "D")
    dims = ["time", "member", "lat", "lon"]
    return xr.DataArray(data, dims=dims, coords={"time": times}, name="t2m", attrs={"units": "K"})


def one(plan):
    (part,) = plan.variables
    return part


# what is known without values ---------------------------------------------------------------------


@pytest.mark.each_value
@pytest.mark.parametrize(("form", "method"), PAIRS)
def test_bytes_and_tasks_are_those_of_the_fit(form, method):
    hindcast = FORMS[form](HINDCAST).chunk(lat=2)
    with forbid_compute():
        part = one(xrecal.plan(hindcast, TRUTH, METHODS[method], probe=False))
        model = hindcast.recal.fit(TRUTH, METHODS[method])
    assert (part.cases, part.locations, part.tasks, part.locations_per_task) == (48, 12, 2, 8)
    state = model.state.isel(lat=slice(2)).drop_vars(list(model.state.coords))
    assert part.output_bytes == state.nbytes
    given = [hindcast] if isinstance(hindcast, xr.DataArray) else list(hindcast.data_vars.values())
    expected = sum(a.isel(lat=slice(2)).nbytes if "lat" in a.dims else a.nbytes for a in given)
    expected += TRUTH.isel(lat=slice(2)).nbytes
    expected += 48 * 8 if method in ("season", "lowrank", "window", "online") else 0
    expected += 8 * hindcast.sizes[form] if form in ("quantile", "percentile") else 0
    if form == "mixture":  # a scale for each component
        assert part.input_bytes > expected
    else:
        assert part.input_bytes == expected
    assert part.seconds_per_location is part.seconds is None


@pytest.mark.parametrize("method", METHODS)
def test_tasks_and_bytes_are_those_of_the_product(method):
    model = HINDCAST.recal.fit(TRUTH, METHODS[method])
    forecast = NEW.chunk(lat=2, time=4)
    with forbid_compute():
        part = one(model.plan(forecast, values=3, probe=False))
    assert (part.forecasts, part.locations, part.tasks, part.locations_per_task) == (7, 12, 4, 8)
    largest = model.quantile(forecast, [0.1, 0.5, 0.9]).isel(lat=slice(2), time=slice(4))
    assert part.output_bytes == largest.nbytes
    state = model.state.isel(lat=slice(2)).drop_vars(list(model.state.coords)).nbytes
    assert part.input_bytes == state + NEW.isel(lat=slice(2), time=slice(4)).nbytes


@pytest.mark.parametrize("method", ["ckme", "errors", "pool"])
def test_weights_count_where_all_are_wanted(method):
    model = HINDCAST.recal.fit(TRUTH, METHODS[method])
    part = one(model.plan(NEW, values=None, probe=False))
    issued = model.apply(NEW)
    own = [v for v in issued.data_vars.values() if "time" in v.dims]
    assert part.output_bytes == sum(v.nbytes for v in own)


def test_a_fit_that_places_share_is_passes_over_chunks_of_cases(monkeypatch):
    monkeypatch.setattr(pooling, "MAX_POOLED", 100)
    hindcast = HINDCAST.chunk(lat=2, time=12)
    given = {"pool": ("lat", "lon"), "probe": False}
    with forbid_compute():
        plan = xrecal.plan(hindcast, TRUTH, **given)
        more = xrecal.plan(hindcast, TRUTH, xrecal.CKME(gap=1), **given)
    part = one(plan)
    n_dates = HINDCAST.sizes["time"]
    assert (part.work, part.cases, part.locations) == ("shared fit", 12 * n_dates, 12 * n_dates)
    assert (part.tasks, part.locations_per_task) == (2 * n_dates // 12, 96)
    inputs = [a.isel(lat=slice(2), time=slice(12)).nbytes for a in (HINDCAST, TRUTH)]
    assert part.input_bytes >= sum(inputs)  # and numbers of places
    assert one(more).workspace_bytes > part.workspace_bytes
    assert f"cases          {12 * n_dates}, at most 96 a task" in str(plan)
    assert plan.seconds is None
    with pytest.raises(ValueError, match=r"cannot have splits of .* leave out the argument by"):
        xrecal.plan(HINDCAST, TRUTH, by="block", **given)


def test_a_plan_names_the_shared_component_that_it_leaves_out(monkeypatch):
    left_out = "the plan leaves out the fit of the component that all places share"
    given = {"pool": ("lat", "lon"), "probe": False}
    assert left_out not in xrecal.plan(HINDCAST, TRUTH, xrecal.LinearPool(), **given).notes
    monkeypatch.setattr(pooling, "MAX_POOLED", 100)
    assert left_out in xrecal.plan(HINDCAST, TRUTH, xrecal.LinearPool(), **given).notes


def test_numpy_and_dask_are_planned_alike():
    eager = xrecal.plan(HINDCAST, TRUTH, probe=False)
    whole = xrecal.plan(HINDCAST.chunk(), TRUTH, probe=False)
    assert eager.variables == whole.variables
    (note,) = eager.notes
    assert note == "NumPy arrays are one task on one thread; the suggested chunks make more tasks"
    assert whole.notes == ()
    model = HINDCAST.recal.fit(TRUTH)
    assert model.plan(NEW, probe=False).variables == model.plan(NEW.chunk(), probe=False).variables


def test_without_observations_there_is_one_for_each_forecast():
    assert one(xrecal.plan(HINDCAST, probe=False)) == one(xrecal.plan(HINDCAST, TRUTH, probe=False))
    assert one(xrecal.plan(FORMS["shared"](HINDCAST), probe=False)).cases == 48


def test_values_are_never_computed():
    hindcast = without_values(chunks=(500, 20, 10, 100))
    plan = xrecal.plan(hindcast, probe=False)
    assert one(plan).tasks == 10
    assert one(plan).input_bytes == 500 * 21 * 1000 * 4
    lazy = hindcast.recal.fit(hindcast.isel(member=0))
    told = lazy.plan(hindcast.isel(time=slice(50)), probe=False)
    assert one(told).tasks == 10
    assert told.notes == (
        "the model is not in memory; each product fits it again, unless you persist the model",
    )


def test_several_variables_and_covariates():
    hindcast = xr.Dataset({"t2m": HINDCAST, "dew": HINDCAST - 3})
    plan = xrecal.plan(hindcast, xr.Dataset({"t2m": TRUTH, "dew": TRUTH}), probe=False)
    assert [part.variable for part in plan.variables] == ["t2m", "dew"]
    assert plan.tasks == 2
    assert plan.largest.variable == "t2m"
    model = hindcast.recal.fit(xr.Dataset({"t2m": TRUTH, "dew": TRUTH}))
    assert model.plan(hindcast, probe=False).tasks == 2
    extra = xr.DataArray(np.arange(48.0), dims="time", coords={"time": HINDCAST.time})
    given = {"condition_on": "extra", "covariates": {"extra": extra}}
    plain = one(xrecal.plan(HINDCAST, TRUTH, probe=False))
    assert one(xrecal.plan(HINDCAST, TRUTH, **given, probe=False)).input_bytes == (
        plain.input_bytes + extra.nbytes
    )


@pytest.mark.parametrize("pool", ["lat", {"lat": 3, "lon": 3}])
def test_pooled_dimensions_stay_whole(pool):
    plan = xrecal.plan(HINDCAST, TRUTH, pool=pool, probe=False)
    part = one(plan)
    model = HINDCAST.recal.fit(TRUTH, pool=pool)
    assert part.cases == model.state.sizes["calibration"]
    assert part.locations == model.state.status.size
    assert part.chunks["lat"] == -1
    assert one(model.plan(NEW, probe=False)).locations == part.locations


def test_what_a_fit_refuses_is_refused():
    with pytest.raises(ValueError, match=r"hindcast\.chunk\(\{'member': -1\}\)"):
        xrecal.plan(HINDCAST.chunk(member=2), TRUTH)
    with pytest.raises(ValueError, match="fewer than min_samples=60"):
        xrecal.plan(HINDCAST, TRUTH, min_samples=60)
    with pytest.raises(TypeError, match="method must be settings"):
        xrecal.plan(HINDCAST, TRUTH, "CKME")


# suggestions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [1, 8])
def test_suggested_chunks_are_small_and_numerous_and_work(at_once):
    hindcast = without_values()
    with dask.config.set(num_workers=at_once):
        part = one(xrecal.plan(hindcast, probe=False))
        assert part.task_bytes > BEST_BYTES
        again = one(xrecal.plan(hindcast.chunk(part.chunks), probe=False))
    assert again.input_bytes + again.output_bytes <= BEST_BYTES
    assert again.tasks >= 4 * at_once
    assert again.chunks == part.chunks
    assert part.chunks["time"] == part.chunks["member"] == -1


def test_suggested_chunks_are_short(monkeypatch):
    monkeypatch.setattr(planning, "BEST_SECONDS", 1e-9)
    part = one(xrecal.plan(HINDCAST, TRUTH, METHODS["climatology"]))
    assert (part.chunks["lat"], part.chunks["lon"]) == (1, 1)


def test_a_single_location_has_nothing_to_cut():
    part = one(xrecal.plan(HINDCAST.isel(lat=0, lon=0), TRUTH.isel(lat=0, lon=0), probe=False))
    assert part.chunks == {"time": -1, "member": -1}
    assert part.locations == part.tasks == part.locations_per_task == 1


# time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["ensemble", "quantile", "mixture"])
def test_time_is_estimated_for_every_form(form):
    plan = xrecal.plan(FORMS[form](HINDCAST), TRUTH, METHODS["season"])
    assert one(plan).seconds_per_location > 0
    assert 0 < plan.seconds <= one(plan).seconds * 1.001
    model = FORMS[form](HINDCAST).recal.fit(TRUTH)
    assert one(model.plan(FORMS[form](NEW))).seconds > 0


def test_time_of_a_product_counts_the_rebuilds():
    model = HINDCAST.recal.fit(TRUTH)
    whole, cut = (one(model.plan(f)) for f in (NEW, NEW.chunk(time=1)))
    assert cut.seconds > 2 * whole.seconds


# cross-validation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [None, "lat", {"lat": 3}])
@pytest.mark.parametrize(
    "splits", [{"by": "year", "gap": 2}, {"by": "rolling", "window": 30, "every": 6}]
)
def test_a_cross_validation_has_tasks_and_bytes_of_its_result(splits, pool):
    hindcast, method = HINDCAST.chunk(lon=2), xrecal.Climatology()
    given = {**splits, "pool": pool, "min_samples": 10}
    with forbid_compute():
        part = one(xrecal.plan(hindcast, TRUTH, method, **given, probe=False))
        made = hindcast.recal.cross_validate(TRUTH, method, **given)
    shared = 3 if pool == "lat" else 1  # locations that a fit serves
    assert (part.work, part.tasks, part.locations) == ("cross-validation", 2, 12 // shared)
    assert part.output_bytes == made.isel(lon=slice(2)).nbytes
    assert part.input_bytes == (HINDCAST.nbytes + TRUTH.nbytes) // 2
    n_forecasts = 48 if splits["by"] == "year" else 18
    assert part.forecasts == n_forecasts * shared
    assert part.splits == (4 if splits["by"] == "year" else 3)


@pytest.mark.parametrize("pool", ["lat", {"lat": 3}])
def test_pooled_splits_are_timed(pool):
    """The trial has the folds of pooled cases, more than there are dates."""
    plan = xrecal.plan(HINDCAST, TRUTH, xrecal.CKME(), by="year", pool=pool, min_samples=10)
    assert one(plan).cases_tried > HINDCAST.sizes["time"]
    assert plan.seconds > 0


@pytest.mark.parametrize("window", [None, 20])
def test_a_model_that_is_updated_is_planned(window, monkeypatch):
    """48 cases: from the 24th on an update every 4, of which every third fits."""
    monkeypatch.setattr(planning, "probe_of", lambda _: Probe(10.0, 3.0, 0.5, 48))
    given = {"by": "rolling", "blocks": 2, "every": 4, "refit": 12, "min_samples": 10}
    given |= {} if window is None else {"window": window}
    with forbid_compute():
        part = one(xrecal.plan(HINDCAST, TRUTH, xrecal.EMOS(), **given))
    n_updates = 6 if window is None else 7  # a window begins with what it can hold
    n_fits = -(-n_updates // 3)
    n_predicted = 24 if window is None else 28
    assert (part.splits, part.forecasts) == (n_updates, n_predicted)
    expected = n_fits * 10.0 + n_updates * 3.0 + (n_predicted - n_updates) * 0.5
    assert part.seconds_per_location == expected
    assert part.cases == (44 if window is None else 28)


def test_the_time_of_a_cross_validation_is_that_of_its_fits_and_forecasts(monkeypatch):
    monkeypatch.setattr(planning, "probe_of", lambda _: Probe(10.0, 3.0, 0.5, 48))
    part = one(xrecal.plan(HINDCAST, TRUTH, xrecal.EMOS(), by="block", gap=1, blocks=4))
    assert part.seconds_per_location == 4 * 13.0 + 44 * 0.5
    assert part.cases < 48
