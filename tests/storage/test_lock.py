"""Who may write to a path, and what is known of processes that did not take their lock back."""

import json
import os
import re
import subprocess
import sys
import warnings
from dataclasses import asdict, replace

import pytest

from tests.processes import FORKS
from xrecal.storage import lock
from xrecal.storage.lock import lock_of, locked, require_held

HELD_BY = re.compile("process .* on this machine has been writing|another run has just begun")
HELD = "process .* on this machine has been writing .*a.nc since .*; wait for it or, if it is no"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.nc"


def ended():
    """Number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def leave(path, **changes):
    """A lock that another process has left."""
    lock_of(path).write_text(json.dumps(asdict(replace(lock._me(), **changes))))


def test_only_one_writes(path):
    with locked(path):
        require_held(path)
        with pytest.raises(FileExistsError, match=rf"{HELD} more, remove its lock: rm .*a.nc.lock"):
            locked(path).__enter__()
        require_held(path)
    assert not lock_of(path).exists()
    with locked(path):
        pass


def test_the_lock_of_a_process_that_has_ended_is_taken_over(path):
    leave(path, pid=ended())
    with pytest.warns(UserWarning, match=r"took over .*a.nc.lock of process \d+ on .*, which b"):  # noqa: SIM117
        with locked(path):
            require_held(path)


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell when a process began")
def test_a_number_may_be_that_of_a_later_process(path):
    leave(path, pid=os.getppid(), born="1")
    with pytest.warns(UserWarning, match="took over"), locked(path):
        pass


def test_a_dead_child_that_nobody_has_asked_for_is_gone(path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        leave(path, pid=child.pid, born=lock._born(child.pid))
        with pytest.raises(FileExistsError, match=HELD):
            locked(path).__enter__()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with pytest.warns(UserWarning, match="took over"), locked(path):
            pass


@pytest.mark.parametrize("changes", [{"host": "elsewhere"}, {"pids": 1}])
def test_what_another_machine_may_be_doing_is_not_known(path, changes):
    leave(path, pid=ended(), **changes)
    with pytest.raises(FileExistsError, match="wait for it or, if it is no more, remove its lock"):
        locked(path).__enter__()
    assert lock_of(path).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_lock_that_says_nothing_is_left(path, text):
    lock_of(path).write_text(text)
    with pytest.raises(FileExistsError, match=r"does not say whose it is; if no .* rm .*a.nc.lock"):
        locked(path).__enter__()


def test_who_has_lost_the_lock_is_told(path):
    with locked(path):
        lock_of(path).unlink()
        with pytest.raises(FileExistsError, match="is no more that of this run, so another may be"):
            require_held(path)
        leave(path, pid=os.getppid())
        with pytest.raises(FileExistsError, match="is no more that of this run"):
            require_held(path)
    assert lock_of(path).exists()  # that of the other one


def test_of_two_that_begin_at_once_one_goes_on(path, monkeypatch):
    monkeypatch.setattr(lock, "_read", lambda _: None)  # both see no lock
    lock_of(path).touch()
    with pytest.raises(FileExistsError, match="another run has just begun to write"):
        locked(path).__enter__()


def test_a_lock_that_cannot_be_written_is_none(path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        locked(path).__enter__()
    assert not lock_of(path).exists()


ROUNDS = 60


def compete(path, text, barrier, results):
    """Try again and again, at the same moment as another process, to take a dead run's lock."""
    for i in range(ROUNDS):
        if barrier.wait() == 0:
            lock_of(path).write_text(text)
        barrier.wait()
        try:
            with warnings.catch_warnings(record=True), locked(path):
                results.put((i, "got it"))
                barrier.wait()
        except FileExistsError as error:
            results.put((i, str(error)))
            barrier.wait()
        barrier.wait()


def test_of_two_that_take_over_at_once_one_gets_it(path):
    text = json.dumps(asdict(replace(lock._me(), pid=ended())))
    barrier, results = FORKS.Barrier(2), FORKS.SimpleQueue()
    both = [FORKS.Process(target=compete, args=(path, text, barrier, results)) for _ in range(2)]
    for process in both:
        process.start()
    told = [results.get() for _ in range(2 * ROUNDS)]
    for process in both:
        process.join()
    for i in range(ROUNDS):
        one, other = sorted(what == "got it" for n, what in told if n == i)
        assert (one, other) == (False, True), i
    assert all(what == "got it" or HELD_BY.match(what) for _, what in told)
    assert not list(path.parent.iterdir())
