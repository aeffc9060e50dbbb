"""Who may write to a path, and what is known of processes that did not take their lock back."""

import fcntl
import json
import os
import platform
import re
import subprocess
import sys
import warnings

import pytest

from tests.processes import FORKS
from xrecal.storage.lock import lock_of, locked, require_held

HELD_BY = re.compile(
    "process .* on this machine has been writing|another run has just begun|.*not name its run"
)
HELD = "process .* on this machine has been writing .*a.nc since .*; wait for it or, if it has"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.nc"


def left(**changes):
    """Content of the lock of another process of this machine."""
    names = {"host": platform.node(), "pid": 1, "since": "2026-01-01", "guarded": True}
    return json.dumps(names | changes)


def test_only_one_writes(path):
    with locked(path):
        require_held(path)
        with pytest.raises(FileExistsError, match=rf"{HELD} ended, remove its lock: rm .*nc.lock"):
            locked(path).__enter__()
        require_held(path)
    assert not lock_of(path).exists()
    with locked(path):
        pass


def test_the_lock_of_a_process_that_was_killed_is_taken_over(path):
    code = (
        "import sys; from pathlib import Path; from xrecal.storage.lock import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(FileExistsError, match=rf"process {child.pid} on this machine has"):
            locked(path).__enter__()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked for its end
        told = rf"took over .*a.nc.lock of process {child.pid} on .*, which began at"
        with pytest.warns(UserWarning, match=told), locked(path):
            require_held(path)
    assert not lock_of(path).exists()


@pytest.mark.parametrize(
    ("changes", "where"),
    [({"host": "elsewhere"}, "the host elsewhere"), ({"guarded": False}, "this machine")],
)
def test_what_a_process_may_be_doing_is_not_known(path, changes, where):
    lock_of(path).write_text(left(**changes))
    told = f"process 1 on {where} has been .* since 2026-01-01; wait for it or, if it has ended, r"
    with pytest.raises(FileExistsError, match=told):
        locked(path).__enter__()
    assert lock_of(path).read_text() == left(**changes)


def test_a_file_system_without_locks_refuses_all_that_is_there(path, monkeypatch):
    def none(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", none)
    with locked(path):
        require_held(path)
        content = lock_of(path).read_text()
        with pytest.raises(FileExistsError, match=HELD):
            locked(path).__enter__()
    monkeypatch.undo()
    lock_of(path).write_text(content)
    with pytest.raises(FileExistsError, match=HELD):
        locked(path).__enter__()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_lock_that_says_nothing_is_left(path, text):
    lock_of(path).write_text(text)
    with pytest.raises(FileExistsError, match=r"does not name its run; if no .* rm .*a.nc.lock"):
        locked(path).__enter__()


def test_who_has_lost_the_lock_is_told(path):
    with locked(path):
        lock_of(path).unlink()
        with pytest.raises(
            FileExistsError, match="no longer belongs to this run, so another run may be"
        ):
            require_held(path)
        lock_of(path).write_text(left())
        with pytest.raises(FileExistsError, match="no longer belongs to this run"):
            require_held(path)
    assert lock_of(path).exists()  # that of the other one


def test_of_two_that_begin_at_once_one_goes_on(path, monkeypatch):
    monkeypatch.setattr("xrecal.storage.lock._remove_left", lambda *_: None)  # both see no lock
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
    text = left()
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
