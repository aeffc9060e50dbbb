"""What Dask sees: one task a chunk, graphs that grow with chunks, errors that name their place."""

import pickle
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import dask
import numpy as np
import pytest
import xarray as xr

import xrecal
from tests.marks import forbid_compute
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.chunks.blockwise import TaskError

HINDCAST, TRUTH = ensemble_and_truth(n=30, n_lat=4, n_lon=4)
NEW, VERIFIED = new_cases(n_lat=4, n_lon=4)
FOUR = {"lat": 2, "lon": 2}
METHOD = xrecal.Climatology()
PRODUCTS = {
    "apply": lambda model, x: model.apply(x).t2m_weight,
    "quantile": lambda model, x: model.quantile(x, [0.1, 0.9]),
    "exceedance": lambda model, x: model.exceedance(x, [280.0, 281.0]),
    "by place": lambda model, x: model.exceedance(x, TRUTH.mean("time")),
    "members": lambda model, x: model.members(x, 3),
    "mean": lambda model, x: model.mean(x),
    "crps": lambda model, x: model.crps(x, VERIFIED),
}
STATISTICS = {
    "quantile": lambda x: x.recal.quantile([0.1, 0.9]),
    "exceedance": lambda x: x.recal.exceedance([280.0, 281.0]),
    "members": lambda x: x.recal.members(3),
    "crps": lambda x: x.recal.crps(VERIFIED),
}


def tasks(lazy, name):
    """Number of tasks of the graph that call a function of ours."""
    return Counter(str(key).strip("('").split("-")[0] for key in lazy.__dask_graph__())[name]


# one task a chunk ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("chunks", "expected"), [(FOUR, 4), ({"lat": 1}, 4), ({"lon": 4}, 1)])
def test_a_fit_is_one_task_a_chunk(chunks, expected):
    model = HINDCAST.chunk(chunks).recal.fit(TRUTH, xrecal.CKME())
    assert tasks(model.state, "FitTask") == expected


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_product_is_one_task_a_chunk(product):
    model = HINDCAST.recal.fit(TRUTH, METHOD)
    lazy = PRODUCTS[product](model, NEW.chunk(FOUR))
    assert tasks(lazy, "PredictTask") == 4
    assert tasks(PRODUCTS[product](model, NEW.chunk(FOUR | {"time": 4})), "PredictTask") == 8


@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_statistic_is_one_task_a_chunk(statistic):
    assert tasks(STATISTICS[statistic](NEW.chunk(FOUR)), "StatisticTask") == 4


@dataclass(frozen=True)
class Counting(xrecal.Climatology):
    """Remembers what it was asked to fit."""

    runs: ClassVar = []

    def fit_locations(self, cases, min_samples):
        self.runs.append(cases.observations.shape)
        return super().fit_locations(cases, min_samples)


def test_a_fit_with_all_its_state_runs_once_a_chunk():
    Counting.runs.clear()
    HINDCAST.chunk(FOUR).recal.fit(TRUTH, Counting()).compute()
    assert Counting.runs == [(4, 30)] * 4


@pytest.mark.parametrize("product", PRODUCTS)
def test_graphs_grow_with_chunks_and_not_with_cells(product):
    def size(n, chunks):
        hindcast, truth = ensemble_and_truth(n=30, n_lat=n, n_lon=n)
        model = hindcast.chunk(chunks).recal.fit(truth, METHOD)
        new = hindcast.isel(time=slice(7)).chunk(chunks)
        lazy = model.exceedance(new, [1.0]) if product == "by place" else None
        if product not in ("by place", "crps"):
            lazy = PRODUCTS[product](model, new)
        lazy = model.crps(new, truth) if lazy is None else lazy
        return len(model.state.__dask_graph__()), len(lazy.__dask_graph__())

    small, large = size(4, {"lat": 2, "lon": 2}), size(16, {"lat": 8, "lon": 8})
    assert small == large
    many = size(16, {"lat": 2, "lon": 2})
    assert all(a < b <= 16 * a for a, b in zip(small, many, strict=True))


# chunks that cannot be ----------------------------------------------------------------------------


@pytest.mark.parametrize("dim", ["member", "time"])
def test_every_way_to_learn_says_what_to_type(dim):
    cut, seen = HINDCAST.chunk({dim: 4}), HINDCAST.isel(time=slice(20))
    model = seen.recal.fit(TRUTH, xrecal.CKME())
    match = rf"hindcast has '{dim}' in \d+ chunks.*hindcast\.chunk\(\{{'{dim}': -1\}}\)"
    for learn in (
        lambda: cut.recal.fit(TRUTH, METHOD),
        lambda: cut.recal.cross_validate(TRUTH, METHOD, by="block"),
        lambda: xrecal.compare(cut, TRUTH, [METHOD]),
        lambda: model.update(cut.isel(time=slice(20, 30)), TRUTH),
    ):
        with forbid_compute(), pytest.raises(ValueError, match=match):
            learn()


def test_observations_in_several_chunks_say_what_to_type():
    cut = TRUTH.chunk(time=4)
    model = HINDCAST.isel(time=slice(20)).recal.fit(TRUTH, xrecal.CKME())
    match = r"observations have 'time' in \d+ chunks.*observations\.chunk\(\{'time': -1\}\)"
    for learn in (
        lambda: HINDCAST.recal.fit(cut, METHOD),
        lambda: HINDCAST.recal.cross_validate(cut, METHOD, by="block"),
        lambda: xrecal.compare(HINDCAST, cut, [METHOD]),
        lambda: model.update(HINDCAST.isel(time=slice(20, 30)), cut),
    ):
        with forbid_compute(), pytest.raises(ValueError, match=match):
            learn()


@pytest.mark.parametrize("product", [*PRODUCTS, "its own"])
def test_every_product_needs_all_members(product):
    cut = NEW.chunk(member=2)
    model = HINDCAST.recal.fit(TRUTH, METHOD)
    calls = [lambda: PRODUCTS[product](model, cut)] if product in PRODUCTS else []
    calls = calls or [lambda s=s: s(cut) for s in STATISTICS.values()]
    for call in calls:
        with (
            forbid_compute(),
            pytest.raises(ValueError, match=r"forecast.*forecast\.chunk\(\{'member': -1\}\)"),
        ):
            call()


# failing tasks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failing(xrecal.Climatology):
    """Fails where observations are hot."""

    def fit_locations(self, cases, min_samples):
        if np.nanmax(cases.observations) > 1000:
            raise ZeroDivisionError("too hot")
        return super().fit_locations(cases, min_samples)


HOT = TRUTH.where((TRUTH.lat != 47) | (TRUTH.lon != 5), 2000.0)
PLACE = r"the fit of 't2m' failed at lat 47\.0 to 48\.0, lon 5\.0: ZeroDivisionError: too hot"


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_a_task_that_fails_names_its_place_and_keeps_its_cause(scheduler):
    model = HINDCAST.chunk(lat=2, lon=1).recal.fit(HOT, Failing())
    one = dask.config.set(scheduler=scheduler, num_workers=1)
    with one, pytest.raises(TaskError, match=PLACE) as caught:
        model.compute()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.args == ("too hot",)


def test_without_dask_an_error_is_as_it_is():
    with pytest.raises(ZeroDivisionError, match=r"^too hot$"):
        HINDCAST.recal.fit(HOT, Failing())


def test_other_work_names_its_place_too():
    def refuse(*_):
        raise ArithmeticError("no")

    model = HINDCAST.recal.fit(TRUTH, METHOD)
    failing = type("Failing", (xrecal.Climatology,), {"predict_locations": refuse})()
    object.__setattr__(model.variables["t2m"], "method", failing)
    lazy = model.mean(NEW.chunk(lat=1, time=4))
    match = r"the recalibration of 't2m' failed at lat 45\.0, lon 0\.0 to 15\.0, time 2011-01-15 to"
    with dask.config.set(scheduler="synchronous"), pytest.raises(TaskError, match=match):
        lazy.isel(time=0, lat=0).compute()


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (None, "x 2 to 3"),
        (list("abcd"), "x c to d"),
        (
            xr.date_range("2000-01-01", periods=4, calendar="360_day", use_cftime=True),
            "x 2000-01-0",
        ),
        (np.arange(4).astype("timedelta64[D]").astype("timedelta64[ns]"), "x 172800000000000 nan"),
    ],
)
def test_labels_of_every_type(labels, told):
    flat = HINDCAST.stack(x=["lat", "lon"]).drop_vars(["x", "lat", "lon"]).isel(x=slice(4))
    truth = flat.isel(member=0, drop=True)
    hot = truth.where(truth.x != 2, 2000.0)
    if labels is not None:
        flat, hot = (a.assign_coords(x=labels) for a in (flat, hot))
    with pytest.raises(TaskError, match=f"failed at {told}"):
        flat.chunk(x=2).recal.fit(hot, Failing()).compute()


def test_errors_survive_the_way_from_another_process():
    cause = ValueError("why")
    again = pickle.loads(pickle.dumps(TaskError("where", cause)))
    assert str(again) == "where"
    assert isinstance(again.__cause__, ValueError)
    assert str(again.__cause__) == "why"
    cause.hook = lambda: None  # cannot be pickled
    make, parts = TaskError("where", cause).__reduce__()  # tblib, if loaded, has a way of its own
    changed = make(*parts)
    assert isinstance(changed.__cause__, RuntimeError)
    assert str(changed.__cause__) == "ValueError: why"
