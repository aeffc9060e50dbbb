"""Signals, while the program begins, computes and cleans up."""

import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from time import perf_counter

import pytest
import xarray as xr

from tests.processes import python
from xrecal_command import SIGNALS

from .files import ONE_BY_ONE, Done, succeed, write
from .test_resume import CHUNKS, contents

PROGRAM = "\nfrom xrecal_command import main\nmain()"
# A process that a shell starts in the background ignores interrupts, and one under nohup SIGHUP.
HEED = """import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
IN_IMPORTS = """
class Finder:
    def find_spec(name, *_):
        if name == "xrecal.accessor":
            os.kill(os.getpid(), signal.{name})
sys.meta_path.insert(0, Finder)
"""
AFTER_TWO_BLOCKS = """
import xrecal.runs.target as b
write = b.write_block; n = []
def some(*args):
    n.append(1)
    os.kill(os.getpid(), signal.{name}) if len(n) == 3 else write(*args)
b.write_block = some
"""
WHILE_IT_CLEANS_UP = """
import xrecal.runs.target as b
def until_interrupted(*_):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
b.write_block = until_interrupted
"""
IN_A_LONG_TASK = """
import xrecal.runs.target as b
def long(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
b.write_block = long
"""


def run_program(*args, before):
    """The program, after some lines of Python."""
    return Done(*python(HEED + before + PROGRAM, *args))


@pytest.fixture
def fit(files):
    """Arguments of a fit of four blocks."""
    args = ["fit", files.hindcast, files.truth, files.folder / "m.zarr", "--method", "climatology"]
    return [*args, *CHUNKS, "--quiet", "--json"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What is in the result of the same fit that nothing interrupts."""
    files = write(tmp_path_factory.mktemp("whole"))
    model = files.folder / "m.zarr"
    succeed("fit", files.hindcast, files.truth, model, "--method", "climatology", *CHUNKS)
    return contents(model)


def test_the_program_is_what_is_installed():
    project = Path(__file__).parents[2] / "pyproject.toml"
    scripts = tomllib.loads(project.read_text())["project"]["scripts"]
    assert scripts == {"xrecal": "xrecal_command:main"}
    assert [signal.Signals(n).name for n in SIGNALS] == ["SIGINT", "SIGTERM", "SIGHUP"]


@pytest.mark.parametrize("number", SIGNALS)
def test_while_it_imports(number):
    before = IN_IMPORTS.format(name=signal.Signals(number).name)
    assert run_program("--version", before=before) == (128 + number, "", "xrecal: interrupted\n")
    done = run_program("score", "a", "b", "--json", before=before)
    assert done.data == {
        "command": "score",
        "status": "interrupted",
        "error": "interrupted",
        "exit_code": 128 + number,
    }


def test_ignored_signals_stay_ignored():
    ignore = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"  # as nohup does
    done = run_program("--version", before=ignore + IN_IMPORTS.format(name="SIGHUP"))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("xrecal, version ")


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_finished_is_kept(fit, whole, number):
    before = AFTER_TWO_BLOCKS.format(name=signal.Signals(number).name)
    done = run_program(*fit, before=f"{ONE_BY_ONE}\n{before}")
    assert done.code == done.data["exit_code"] == 128 + number
    assert (done.data["command"], done.data["status"]) == ("fit", "interrupted")
    told = "interrupted; finished work is kept, repeat the command with --resume"
    assert (done.data["error"], done.err) == (told, f"xrecal fit: {told}\n")
    assert succeed(*fit, "--resume").data["blocks_skipped"] == 2
    xr.testing.assert_identical(contents(fit[3]), whole)


def test_a_second_signal_does_not_wait(fit):
    done = run_program(*fit, before=f"{ONE_BY_ONE}\n{WHILE_IT_CLEANS_UP}")
    assert (done.code, done.err) == (143, "xrecal: interrupted\n")
    assert json.loads(done.out)["exit_code"] == 143


def test_running_tasks_are_not_waited_for(fit):
    start = perf_counter()
    done = run_program(*fit, before=IN_A_LONG_TASK)
    assert (done.code, done.data["status"]) == (143, "interrupted")
    assert perf_counter() - start < 30
    assert succeed(*fit, "--resume").data["blocks_skipped"] == 0


def test_what_a_full_disk_has_cut_off_is_not_closed(files):
    """HDF5 may crash at the end of a process, where it closes such a file."""
    before = """import atexit, resource
atexit.register(os.abort)
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, -1))
"""
    args = ["fit", files.hindcast, files.truth, files.folder / "m.nc", "--method", "emos"]
    code = [sys.executable, "-c", HEED + before + PROGRAM]  # a fork leaves out what comes at exit
    done = subprocess.run([*code, *args, "--quiet", "--json"], capture_output=True, text=True)
    assert done.returncode == json.loads(done.stdout)["exit_code"] == 5
