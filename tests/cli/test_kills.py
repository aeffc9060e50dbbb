"""Runs that are killed at any step on disk: the result is the same, or what to type is told.

A small run has 12 steps for a netCDF file of one block, and about 140 (apply) or 280 (fit)
otherwise, most of which Zarr takes to lay out a store. Each is tried twice, as a kill and as a loss
of power: all steps of some runs, some steps of all. With ``-m slow`` these are about 1800 kills.
"""

import json
from itertools import product

import pytest

import xrecal
from tests.processes import python

from .files import write, write_model

RUNS = [
    *product(["fit", "apply"], ["nc", "zarr"], [1, 2], [False, True]),
    *product(["save"], ["nc", "zarr"], [1], [False, True]),
]
"""Command or ``model.save``, format, number of blocks, and whether a former result is replaced."""

IN_FULL = [
    ("fit", "nc", 1, False),
    ("fit", "nc", 1, True),
    ("fit", "zarr", 2, True),
    ("apply", "nc", 2, False),
    ("apply", "zarr", 1, False),
    ("apply", "zarr", 2, True),
    ("save", "nc", 1, True),
]
KILL = "import sys\nfrom tests.cli.kills import main\nmain(*sys.argv[1:])"


def trial(files, command, kind, n_blocks, overwrite):
    """A run, and the one before whose result it replaces."""
    model, of_new = str(files.folder / "model.nc"), [files.new, "OUT", "--members"]
    fit = ["fit", files.hindcast, files.truth, "OUT", "--method"]
    runs = {
        "fit": ([*fit, "climatology"], [*fit, "raw"]),
        "apply": (["apply", model, *of_new, "2"], ["apply", model, *of_new, "3"]),
        "save": (["save", model, "OUT"], ["save", str(files.folder / "other.nc"), "OUT"]),
    }
    chunks = ["--chunks", "lat=2"] if n_blocks == 2 else []
    args, old = ([*one, *chunks] for one in runs[command])
    return {"name": f"out.{kind}", "args": args, "old": old if overwrite else None}


def kill(folder, run, part):
    """Kill a run at a part of its steps, and go on; what was refused is what has to be."""
    files = write(folder)
    write_model(folder / "model.nc")
    write_model(folder / "other.nc", xrecal.Raw())
    done = python(KILL, folder / "trial", json.dumps(trial(files, *run)), json.dumps(part))
    assert done.code == 0, done.err
    told = json.loads(done.out.splitlines()[-1])
    print(run, told)
    assert told["failed"] == []
    one_file, overwrite = run[1:3] == ("nc", 1), run[3]
    assert told["steps"] < 16 if one_file else 120 < told["steps"] < 400
    assert sum(told["came"].values()) == 2 * told["tried"] > 0
    # A lock may be cut off as it is written; a former result may be all that there is.
    assert told["came"].get("remove it: rm", 0) <= 1
    assert overwrite or "start again with --overwrite" not in told["came"]


@pytest.mark.parametrize(
    ("run", "part"),
    [
        (("fit", "nc", 1, True), [1, None, 6]),
        (("apply", "zarr", 2, True), [-16, None, 8]),  # sealing, two renames, removing the rest
    ],
)
def test_a_kill_at_some_steps(tmp_path, run, part):
    kill(tmp_path, run, part)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS, ids=lambda run: "-".join(map(str, run)))
def test_a_kill_at_any_step(tmp_path, run):
    kill(tmp_path, run, [None, None, 1 if run in IN_FULL else 25])
