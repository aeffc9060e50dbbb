from pathlib import Path

import dask
import pytest

import xrecal
from xrecal.plan import resources
from xrecal.plan.resources import (
    PROCESS,
    Resources,
    apply_workspace,
    available_memory,
    find_resources,
    fit_workspace,
)


def test_a_machine_without_a_client_shares_its_memory_among_threads():
    with dask.config.set(num_workers=4):
        four = find_resources()
    with dask.config.set(scheduler="synchronous"):
        one = find_resources()
    assert (four.at_once, one.at_once) == (4, 1)
    assert one.memory == pytest.approx(4 * four.memory, rel=0.1)


def test_a_client_tells_the_limits_of_its_workers():
    from distributed import Client, LocalCluster

    options = {"processes": False, "dashboard_address": ":0", "memory_limit": "1GB"}
    with LocalCluster(n_workers=2, threads_per_worker=2, **options) as cluster, Client(cluster):
        assert find_resources() == Resources(int((0.8e9 - PROCESS) // 2), 4)
    options["memory_limit"] = 0
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster, Client(cluster):
        assert find_resources() == Resources(None, 1)


def test_memory_of_the_machine(monkeypatch):
    assert 2**20 < available_memory() < 2**50
    monkeypatch.setattr(Path, "exists", lambda self: False)
    assert available_memory() > 2**20
    monkeypatch.setattr(resources.os, "sysconf_names", {})
    assert available_memory() is None
    with dask.config.set(num_workers=2):
        assert find_resources().memory is None


def test_matrices_of_the_solver():
    exact = fit_workspace(xrecal.CKME(), 1000, 10, 1)
    assert exact > 5 * 8 * 1000**2
    assert fit_workspace(xrecal.EMOS(), 1000, 10, 1) < exact / 10
    assert fit_workspace(xrecal.LinearPool(), 1000, 10, 1) > exact
    assert apply_workspace(xrecal.CKME(), 1000, 1, 10, 1) > 5 * 8 * 1000**2


def test_landmarks_take_less_than_all_pairs():
    many = 10_000
    saved = 6 * 8 * many * (many - 1000)
    exact = fit_workspace(xrecal.CKME(solver="exact"), many, 10, 1)
    assert exact - fit_workspace(xrecal.CKME(), many, 10, 1) == saved
    components = (xrecal.CKME(), xrecal.EMOS())
    assert fit_workspace(xrecal.LinearPool(components), many, 10, 1) < exact


def test_copies_are_bounded_by_the_workspace():
    small, large = (fit_workspace(xrecal.EMOS(), 100, 10, n) for n in (10, 10**6))
    assert small < 10**6
    assert large == 2 * 64_000_000
    dense, errors = (
        apply_workspace(xrecal.CKME(support=support), 100, 50, 10, 10**6)
        for support in ("observations", "errors")
    )
    assert dense == errors < 4 * 64_000_000 + 10**6
