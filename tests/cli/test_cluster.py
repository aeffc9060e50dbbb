"""Clusters that do not answer, have no workers, or are lost halfway."""

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from time import perf_counter

import distributed
import pytest

from xrecal.runs import target as blocks

from .files import run, succeed

AT_ONCE = ["--timeout", "0.5"]


@pytest.fixture
def fit(files):
    """Arguments of a fit of four blocks."""
    args = ["fit", files.hindcast, files.truth, files.folder / "m.zarr", "--method", "climatology"]
    return [*args, "--chunks", "lat=1", "--quiet", "--json"]


def unreachable(*args):
    """The message of a run that finds no cluster in half a second, and leaves nothing."""
    start = perf_counter()
    done = run(*args, *AT_ONCE)
    assert perf_counter() - start < 30  # and not for ever
    assert (done.code, done.data["status"]) == (4, "unreachable")
    assert not list(args[3].parent.glob("m.zarr*"))
    return done.data["error"]


def cluster(**options):
    return distributed.LocalCluster(
        threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0", **options
    )


@pytest.mark.parametrize("answers", ["never", "not even to the knock"])
def test_schedulers_that_never_answer(fit, answers):
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        while answers != "never":  # a full backlog drops who knocks, as a firewall does
            knock = stack.enter_context(socket.socket())
            knock.settimeout(0.2)
            try:
                knock.connect(listening.getsockname())
            except TimeoutError:
                break
        address = "tcp://{}:{}".format(*listening.getsockname())
        told = unreachable(*fit, "--scheduler", address)
    assert f"no scheduler can be reached at {address!r} (" in told
    assert "such as tcp://127.0.0.1:8786, or a longer --timeout" in told


def test_schedulers_without_workers(fit):
    with cluster(n_workers=0) as empty:
        address = empty.scheduler_address
        assert unreachable(*fit, "--scheduler", address) == (
            f"the scheduler at {address!r} has had no worker for 0.5 s; start one with dask worker "
            f"{address}, or give a longer --timeout"
        )


def slowly(*args, write=blocks.write_block):
    write(*args)
    time.sleep(0.7)


@pytest.fixture
def slow_blocks(monkeypatch):
    """Blocks that take longer than the time-out."""
    monkeypatch.setattr(blocks, "write_block", slowly)


@contextmanager
def when_a_block_is_finished(model, act):
    """Do something in another thread as soon as a run has written its first block."""
    finished = model.parent / f"{model.name}.partial" / "done" / "0"

    def wait():
        while not finished.exists():
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    yield
    thread.join(10)


def test_workers_that_come_late_and_work_long(fit, slow_blocks):
    with cluster(n_workers=0) as late:
        late.loop.call_later(0.3, late.scale, 4)
        succeed(*fit, "--scheduler", late.scheduler_address, *AT_ONCE)


@pytest.mark.slow
def test_workers_that_leave(fit, slow_blocks):
    with (
        cluster(n_workers=1) as left,
        when_a_block_is_finished(fit[3], lambda: left.scale(0)),
    ):
        done = run(*fit, "--scheduler", left.scheduler_address, *AT_ONCE)
    assert (done.code, done.data["status"]) == (4, "unreachable")
    assert "has had no worker for 0.5 s; start one with" in done.data["error"]
    assert "of 4 blocks are finished and kept" in done.data["error"]
    assert succeed(*fit, "--resume").data["blocks_skipped"] >= 1


@pytest.mark.slow
def test_a_scheduler_that_dies(fit, tmp_path, slow_blocks):
    file = tmp_path / "scheduler.json"

    def start(*args):
        args = [sys.executable, "-m", "dask", *args, "--scheduler-file", file, "--no-dashboard"]
        process = stack.enter_context(subprocess.Popen(args, stderr=subprocess.DEVNULL))
        stack.callback(process.kill)
        return process

    with ExitStack() as stack:
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        start("worker", "--nthreads", "1", "--no-nanny")
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        begin = perf_counter()
        with when_a_block_is_finished(fit[3], scheduler.kill):
            done = run(*fit, "--scheduler", address, "--timeout", "10")
    assert perf_counter() - begin < 20
    assert (done.code, done.data["status"]) == (4, "unreachable")
    assert f"the connection to the scheduler at {address!r} was lost" in done.data["error"]
    assert "of 4 blocks are finished and kept; repeat the command" in done.data["error"]
    assert succeed(*fit, "--resume").data["blocks_skipped"] >= 1
