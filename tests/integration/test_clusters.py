"""The same results on every scheduler, whatever happens to a worker on the way."""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from time import sleep, time

import numpy as np
import pytest
import threadpoolctl
import xarray as xr

import xrecal
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.chunks.blockwise import TaskError

distributed = pytest.importorskip("distributed")

HINDCAST, TRUTH = ensemble_and_truth(n=40, n_lat=3, n_lon=3)
NEW, VERIFIED = new_cases(n_lat=3, n_lon=3)
RECIPES = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()
PATIENCE = 60.0
"""Seconds that a worker may take for what is waited for."""


@pytest.fixture(scope="module")
def processes():
    """A client of two worker processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def products(model, forecast, verified):
    """Everything that leaves a model, as one Dataset."""
    issued = model.apply(forecast).data_vars
    found = {str(name): part for name, part in issued.items() if "time" in part.dims}
    found |= {
        "quantile": model.quantile(forecast, [0.1, 0.5, 0.9]),
        "exceedance": model.exceedance(forecast, [280.0, 283.0]),
        "drawn": model.members(forecast, 5, seed=2).rename(member="draw"),
        "mean": model.mean(forecast),
        "crps": model.crps(forecast, verified),
    }
    return xr.Dataset({name: value.drop_attrs() for name, value in found.items()})


def lazily(method):
    model = HINDCAST.chunk(lat=1).recal.fit(TRUTH, method)
    return products(model, NEW.chunk(lon=1), VERIFIED)


def in_memory(method):
    return products(HINDCAST.recal.fit(TRUTH, method), NEW, VERIFIED)


def test_threads_of_a_cluster_agree():
    options = {"processes": False, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=1, **options) as cluster, distributed.Client(cluster):
        found = lazily(xrecal.CKME()).compute()
    xr.testing.assert_identical(found, in_memory(xrecal.CKME()))


def test_processes_of_a_cluster_agree(processes):
    xr.testing.assert_identical(lazily(xrecal.EMOS()).compute(), in_memory(xrecal.EMOS()))
    model = HINDCAST.chunk(lat=2).recal.fit(TRUTH, xrecal.EMOS()).persist()
    found = products(model, NEW.chunk(lat=2), VERIFIED).compute()
    xr.testing.assert_identical(found, in_memory(xrecal.EMOS()))


def blas_threads():
    return {
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas"
    }


def test_worker_processes_keep_one_blas_thread(processes):
    HINDCAST.chunk(lat=1).recal.fit(TRUTH, xrecal.EMOS()).compute()
    assert set().union(*processes.run(blas_threads).values()) == {1}


@dataclass(frozen=True)
class Hot(xrecal.Climatology):
    """Fails where observations are hot."""

    def fit_locations(self, cases, min_samples):
        if np.nanmax(cases.observations) > 1000:
            raise FloatingPointError("too hot")
        return super().fit_locations(cases, min_samples)


def test_a_task_that_fails_elsewhere_names_its_place(processes):
    hot = TRUTH.where((TRUTH.lat != 47) | (TRUTH.lon != 5), 2000.0)
    model = HINDCAST.chunk(lat=1).recal.fit(hot, Hot())
    match = r"the fit of 't2m' failed at lat 47\.0, lon 0\.0 to 10\.0: FloatingPointError: too hot"
    with pytest.raises(TaskError, match=match) as caught:
        model.compute()
    assert isinstance(caught.value.__cause__, FloatingPointError)


# a worker that dies -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slow(xrecal.EMOS):
    """Takes its time, so that a worker can be killed in the middle."""

    def fit_locations(self, cases, min_samples):
        sleep(0.5)
        return super().fit_locations(cases, min_samples)


def wait_until(condition):
    end = time() + PATIENCE
    while not condition():
        assert time() < end, "waited in vain"
        sleep(0.02)


def test_killing_a_worker_in_the_middle_of_a_fit_loses_nothing(processes):
    model = HINDCAST.chunk(lat=1, lon=1).recal.fit(TRUTH, Slow())
    future = processes.compute(model.state)
    before = processes.run(os.getpid)
    started = processes.cluster.scheduler.tasks
    wait_until(lambda: sum("FitTask" in str(k) and t.state == "memory" for k, t in started.items()))
    assert not future.done()
    os.kill(next(iter(before.values())), signal.SIGKILL)
    found = future.result(timeout=PATIENCE)
    xr.testing.assert_identical(found, HINDCAST.recal.fit(TRUTH, xrecal.EMOS()).state)
    wait_until(lambda: len(processes.scheduler_info()["workers"]) == 2)
    assert set(processes.run(os.getpid).values()) != set(before.values())


@pytest.mark.slow
def test_a_fit_kept_by_a_worker_that_dies_is_made_again(processes):
    model = HINDCAST.chunk(lat=1).recal.fit(TRUTH, xrecal.EMOS()).persist()
    distributed.wait(model.state)
    os.kill(next(iter(processes.run(os.getpid).values())), signal.SIGKILL)
    found = products(model, NEW.chunk(lat=1), VERIFIED).compute()
    xr.testing.assert_identical(found, in_memory(xrecal.EMOS()))


# recipes ------------------------------------------------------------------------------------------


def recipe(package):
    """The Python of the page that uses a package."""
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", RECIPES, re.S) if package in b]
    return block


def test_the_recipe_for_slurm_asks_for_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(recipe("dask_jobqueue").split("cluster.scale")[0], names)
    with names["cluster"] as cluster:
        script = cluster.job_script()
    for line in (
        "#SBATCH -p compute",
        "#SBATCH -A forecast",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=16",
        "#SBATCH --mem=60G",
        "#SBATCH -t 02:00:00",
        "--nthreads 4 ",
        "--memory-limit 14.90GiB ",  # a quarter of 64 GB
        "--nworkers 4 ",
        "--local-directory /tmp",
    ):
        assert line in script, script


def test_the_recipe_for_a_gpu_machine_runs(tmp_path, monkeypatch):
    pytest.importorskip("dask_cuda")
    pytest.importorskip("cupy").cuda.runtime.getDeviceCount()
    names = {"hindcast": HINDCAST.chunk(lat=1), "observations": TRUTH}
    monkeypatch.chdir(tmp_path)
    exec(recipe("dask_cuda"), names)
    xr.testing.assert_identical(names["model"].state, HINDCAST.recal.fit(TRUTH).state)
