"""Small hindcasts, observations and forecasts in files, and the command run on them."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

import xrecal
from tests.processes import python
from tests.strategies import ensemble_and_truth, new_cases
from xrecal.cli.commands import xrecal as command

SIZES = {"n_lat": 4, "n_lon": 3}
HINDCAST, TRUTH = ensemble_and_truth(**SIZES)
NEW, VERIFIED = new_cases(**SIZES)
TRUTH = TRUTH.rename("t2m")
VERIFIED = VERIFIED.rename("t2m")
DATA = {"hindcast": HINDCAST, "truth": TRUTH, "new": NEW, "verified": VERIFIED}
KINDS = ["nc", "zarr"]
CLIMATOLOGY = xrecal.Climatology()
FEW = {"lat": slice(2), "lon": slice(2)}
"""Places of comparisons and summaries, whose time grows with their number."""


class Files(NamedTuple):
    hindcast: str
    truth: str
    new: str
    verified: str
    folder: Path


@cache
def _written(kind):
    """A temporary folder with the data sets, whose files no test changes."""
    folder = tempfile.TemporaryDirectory()
    for name, array in DATA.items():
        dataset, path = array.to_dataset(name="t2m"), f"{folder.name}/{name}.{kind}"
        dataset.to_netcdf(path) if kind == "nc" else dataset.to_zarr(path, consolidated=False)
    return folder


def write(folder, kind="nc"):
    """The data sets in a folder, as netCDF files or Zarr stores: copies, which take less time."""
    shutil.copytree(_written(kind).name, folder, dirs_exist_ok=True)
    paths = {name: str(folder / f"{name}.{kind}") for name in DATA}
    return Files(**paths, folder=folder)


@cache
def _model(method):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nc"
        HINDCAST.recal.fit(TRUTH, method).save(path)
        return path.read_bytes()


def write_model(path, method=CLIMATOLOGY):
    """A model of the hindcast in a netCDF file: of each method one, which is fitted once."""
    path.write_bytes(_model(method))
    return path


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def data(self):
        (line,) = self.out.splitlines()
        return json.loads(line)


def run(*args):
    """The command in this process; faults of the code are raised."""
    result = CliRunner().invoke(command, [str(a) for a in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def succeed(*args):
    """The command, quiet, which must go well."""
    done = run(*args, "--quiet")
    assert done.code == 0, done.err
    return done


def refused(*args):
    """The message of a command whose inputs or request are refused."""
    done = run(*args, "--json")
    assert done.code == 3
    assert done.data["status"] == "refused"
    assert done.data["exit_code"] == 3
    assert done.err == f"xrecal {args[0]}: {done.data['error']}\n"
    return done.data["error"]


ONE_BY_ONE = "import dask; dask.config.set(scheduler='synchronous')"


def run_apart(*args, before=""):
    """The command in a process of its own, after some lines of Python, one task at a time."""
    code = f"{ONE_BY_ONE}\n{before}\nfrom xrecal.cli import main\nmain()"
    return Done(*python(code, *args))
