"""A command, or a model being saved, that is killed at a step on disk, and taken up again.

A step is a file opened for writing, a rename, a removal, a new folder or a wait for the disk, in
the folder of the output. Before a step the process gets SIGKILL: all that it wrote is there, as
after the kill of a job, or, as after the loss of power, each file is cut in half that was not
waited for. Processes are forked from one that has no threads.
"""

import json
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from hashlib import sha256
from itertools import product
from pathlib import Path

import dask
import xarray as xr

import xrecal
from xrecal.cli.commands import xrecal as command

STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
REMEDIES = (("remove it: rm", "--resume"), ("start again with --overwrite", "--overwrite"))
"""What a refusal may advise after a kill, and the option with which the command is repeated."""


class Killer:
    """Counts the steps of this process in a folder, and kills it before one of them."""

    def __init__(self, folder, at):
        self.folder, self.at = str(folder), at
        self.n = 0
        self.on_disk = {state(file.stat()) for file in files_in(folder)}
        wait = os.fsync

        def fsync(number):
            self.step(os.readlink(f"/proc/self/fd/{number}"))
            wait(number)
            self.on_disk.add(state(os.fstat(number)))

        os.fsync = fsync
        sys.addaudithook(self.heed)

    def heed(self, event, args):
        is_write = event == "open" and isinstance(args[2], int) and args[2] & WRITING
        if (is_write or event in STEPS) and not isinstance(args[0], int):
            self.step(os.path.abspath(os.fsdecode(args[0])))

    def step(self, path):
        if not path.startswith(self.folder):
            return
        self.n += 1
        if self.n == self.at:
            Path(f"{self.folder}.disk").write_text(json.dumps([*self.on_disk]))
            os.kill(os.getpid(), signal.SIGKILL)


def lose_power(folder):
    """Cut the files of a killed process in half that it has not waited for."""
    on_disk = {tuple(one) for one in json.loads(Path(f"{folder}.disk").read_text())}
    for file in files_in(folder):
        if state(file.stat()) not in on_disk:
            os.truncate(file, file.stat().st_size // 2)


def state(stat):
    """What tells a file and its contents apart from others."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def files_in(folder):
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def act(args):
    """Run a command; ``save`` stands for ``model.save``."""
    if args[0] != "save":
        command.main(args, standalone_mode=False)
        return
    try:
        xrecal.open_recalibrator(args[1]).save(args[2], overwrite=True)
    except FileExistsError as error:
        print(error)
        raise SystemExit(3) from error


def fork(args, folder, at=None):
    """Exit code (minus the signal), messages and number of steps of a command."""
    told, counted = folder.with_suffix(".err"), folder.with_suffix(".steps")
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(2, 1)
            killer = Killer(folder, at)
            try:
                act([str(one) for one in args])
                code = 0
            except SystemExit as done:
                code = done.code
            counted.write_text(str(killer.n))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code, told.read_text(), int(counted.read_text()) if code == 0 else None


def contents(path):
    """Hashes of the parts of a result, whose order may differ; None if there is none."""
    if not path.exists():
        return None
    if path.is_dir():
        parts = {str(file.relative_to(path)): file.read_bytes() for file in files_in(path)}
        for name, data in parts.items():
            if name.endswith(".json"):
                parts[name] = json.dumps(json.loads(data), sort_keys=True).encode()
    else:
        with xr.open_dataset(path, engine="netcdf4", decode_cf=False) as dataset:
            parts = {name: as_bytes(one) for name, one in dataset.variables.items()}
            parts["attributes"] = repr(dataset.attrs).encode()
    return {name: sha256(data).hexdigest() for name, data in parts.items()}


def as_bytes(variable):
    described = repr((variable.dims, variable.dtype, variable.attrs))
    values = variable.to_numpy()
    data = values.tobytes() if values.dtype.kind != "O" else repr(values.tolist()).encode()
    return described.encode() + data


class Trial:
    """A command, what stood at its output before, and what it writes there undisturbed."""

    def __init__(self, folder, name, args, old=None):
        """``OUT`` stands for the path of the output in ``args`` and ``old``, those of before."""
        self.folder, self.name, self.args = folder, name, [*args, "--quiet"]
        self.before = folder / "before"
        self.before.mkdir()
        if old is not None:
            self._succeed([*old, "--quiet"], self.before)
            self.args.append("--overwrite")
        self.old = contents(self.before / name)
        whole = self._fresh("whole")
        self.n_steps = self._succeed(self.args, whole)
        self.new = contents(whole / name)
        assert self.new not in (None, self.old)

    def _fresh(self, name):
        work = self.folder / name
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(self.before, work)
        return work

    def _typed(self, args, work, option=None):
        args = [work / self.name if one == "OUT" else one for one in args]
        return args if option is None else [*(a for a in args if a != "--overwrite"), option]

    def _succeed(self, args, work):
        code, told, n = fork(self._typed(args, work), work)
        assert code == 0, told
        return n

    def kill(self, at, power_loss):
        """Kill before a step and go on; what was refused, and "" where all went well."""
        work = self._fresh("work")
        target = work / self.name
        code, told, _ = fork(self._typed(self.args, work), work, at)
        assert code == -signal.SIGKILL, told
        if power_loss:
            lose_power(work)
        stands = contents(target)
        taken_away = work / f"{self.name}.partial" / "replaced"
        if stands is None and self.old is not None:
            assert contents(taken_away) == self.old
        else:
            assert stands in (self.old, self.new)
        option, refused = "--resume", ""
        for _ in range(3):
            code, told, _ = fork(self._typed(self.args, work, option), work)
            if code == 0:
                break
            assert code == 3, told
            remedy, option = next((one for one in REMEDIES if one[0] in told), ("", ""))
            assert remedy, told
            refused = remedy
            if remedy.endswith("rm"):
                target.with_name(f"{target.name}.lock").unlink()
        assert code == 0, told
        assert contents(target) == self.new, told
        assert [path.name for path in work.iterdir()] == [self.name], told
        return refused


def main(folder, trial, part):
    """Kill a trial at a part of its steps, given as a slice; prints what came of it as JSON."""
    trial = json.loads(trial)
    warm_up(Path(folder), trial["args"])
    made = Trial(Path(folder), trial["name"], trial["args"], trial["old"])
    steps = range(1, made.n_steps + 1)[slice(*json.loads(part))]
    came, failed = Counter(), []
    for at, power_loss in product(steps, (False, True)):
        try:
            came[made.kill(at, power_loss)] += 1
        except AssertionError as error:
            failed.append([at, power_loss, str(error)])
    told = {"steps": made.n_steps, "tried": len(steps), "came": came, "failed": failed}
    print(json.dumps(told))


def warm_up(folder, args):
    """Run a command in this process, which imports and loads what forks then need not.

    A single block in a netCDF file needs no thread, which a fork would lack.
    """
    folder.mkdir()
    args = args[: args.index("--chunks")] if "--chunks" in args else args
    warm = str(folder / "warm.nc")
    dask.config.set(scheduler="synchronous")
    act([*(warm if one == "OUT" else one for one in args), "--quiet"])
    xr.backends.file_manager.FILE_CACHE.clear()
    assert threading.active_count() == 1
