"""A morning's command that is killed at a step on disk, and repeated: see ``tests.cli.kills``."""

import json
import shutil
import signal
import sys
import threading
from pathlib import Path

import dask
import numpy as np
import xarray as xr

from .days import STARTS, first_fit
from .kills import contents, files_in, fork, lose_power

BEFORE, MORNING = 39, 41
"""The day that was done, and the one that is killed: it has two starts to issue."""


def tree(folder):
    """What is in a folder, by path: hashes of files of data, other files as they are."""
    found = {}
    for path in files_in(folder):
        name = str(path.relative_to(folder))
        found[name] = contents(path) if path.suffix == ".nc" else path.read_text()
    return found


def repeat(args, work):
    """Run the command until it is done, as it tells what to remove; what was refused."""
    refused = ""
    for _ in range(3):
        code, told, _ = fork(args, work)
        if code in (0, 10, 11):
            return refused
        assert code == 3, told
        assert "remove it: rm" in told, told
        refused = "remove it: rm"
        (work / "out.lock").unlink()
    raise AssertionError(told)


class Trial:
    def __init__(self, folder, keep):
        self.days = first_fit(folder)
        self.folder = folder
        self.keep = ["--keep", str(keep)]
        self.days.hand_over(BEFORE)
        self._go(folder / "before", BEFORE)
        self.days.hand_over(MORNING)
        shutil.copytree(folder / "before", folder / "whole")
        self.n_steps = self._go(folder / "whole", MORNING)
        self.old, self.new = tree(folder / "before"), tree(folder / "whole")

    def args(self, work, day):
        days = self.days._replace(output=work / "out")
        return days.args(str(STARTS[day]), *self.keep)

    def _go(self, work, day):
        work.mkdir(exist_ok=True)
        code, told, n = fork(self.args(work, day), work)
        assert code == 0, told
        return n

    def kill(self, at, power_loss):
        """Kill before a step, repeat, and compare; what was refused in between."""
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.folder / "before", work)
        code, told, _ = fork(self.args(work, MORNING), work, at)
        assert code == -signal.SIGKILL, told
        if power_loss:
            lose_power(work)
        for path in (work / "out").rglob("*.nc"):  # what stands there is complete
            name = str(path.relative_to(work))
            if ".partial" not in name:
                assert contents(path) in (self.old.get(name), self.new.get(name)), name
        refused = repeat(self.args(work, MORNING), work)
        found = tree(work)
        assert found.keys() == self.new.keys()
        # What an output names is the folder itself, which differs.
        assert {n: v for n, v in found.items() if v != self.new[n]} == {}
        code, told, _ = fork(self.args(work, MORNING), work)
        assert code == 11, told
        return refused


def main(folder, steps, seed, keep):
    """Kill at some random steps, each way in turn; prints what came of it as JSON."""
    folder = Path(folder)
    warm = folder / "warm"
    warm.mkdir(parents=True)
    dask.config.set(scheduler="synchronous")
    first_fit(warm).morning(BEFORE)
    xr.backends.file_manager.FILE_CACHE.clear()
    assert threading.active_count() == 1
    (folder / "trial").mkdir()
    trial = Trial(folder / "trial", int(keep))
    rng = np.random.default_rng(int(seed))
    at = sorted(rng.choice(trial.n_steps, int(steps), replace=False) + 1)
    came, failed = [], []
    for i, step in enumerate(map(int, at)):
        try:
            came.append(trial.kill(step, bool(i % 2)))
        except AssertionError as error:
            failed.append([step, str(error)])
    print(json.dumps({"steps": trial.n_steps, "tried": len(at), "came": came, "failed": failed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
