"""Writing of a result block by block, so that a later run can continue an interrupted run.

Next to the path of the result, a run makes the folder ``NAME.partial`` with a Zarr store, the
request (inputs and settings of the run) as JSON, and a marker file for each written block (part of
the result that one task computes). At the end, the run moves the complete result to its path by a
rename. A netCDF file of a single block needs no store. ``docs/batch.md`` lists the steps.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.blockwise import TaskError
from xrecal.chunks.warnings import warn
from xrecal.inputs.libraries import require_library
from xrecal.storage.grib import is_grib
from xrecal.storage.grib_writing import write_grib, written_as_grib
from xrecal.storage.paths import (
    MARK,
    STORE,
    FileFormat,
    UnreadableResultError,
    begin_partial,
    can_go_on,
    discard_partial,
    format_to_write,
    partial_of,
    put_in_place,
    require_folder,
    require_free,
    sync,
    writing,
)
from xrecal.storage.storage import read_plain, require_opens, require_whole, seal
from xrecal.storage.stored import UNFINISHED
from xrecal.storage.untrusted import DATA, open_known

from .blocks import Block, blocks_of, is_marked, mark, write_block
from .files import Source

REQUEST = "xrecal_request"
"""Attribute of a result: the request (inputs and settings of the run) as JSON."""

RESTART = (
    "repeat the same command with ",
    Typed("resume", True),
    ", or start again with ",
    Typed("overwrite", True),
)


class RunError(TaskError):
    """Error that stopped a run before its end."""


class Written(NamedTuple):
    """Number of blocks of a result, and number of blocks that an earlier run has finished."""

    n_blocks: int
    n_skipped: int
    was_complete: bool = False


@dataclass(frozen=True)
class Target:
    """The path of a result, and the request for this result."""

    path: Path
    request: Mapping[str, Any]
    """Inputs and settings of the run, as JSON; equal requests give equal results."""
    inputs: Sequence[Source] = ()
    """Inputs of the run; the request has the fingerprint of each input under its name."""

    @cached_property
    def request_text(self) -> str:
        """The request as JSON."""
        return json.dumps(self.request)

    @cached_property
    def digest(self) -> str:
        """Hash of the request, the same for 1 and 1.0 and for any order of keys."""
        same = json.loads(self.request_text, parse_float=_number)
        return blake2b(json.dumps(same, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def folder(self) -> Path:
        """Folder that has data, request and markers until the result is complete."""
        return partial_of(self.path)

    @property
    def store(self) -> Path:
        """Zarr store of the data."""
        return self.folder / STORE

    def file_format(self) -> FileFormat:
        """Return the format of the result by its suffix; raise ValueError for an unknown suffix."""
        return "grib" if is_grib(self.path) else format_to_write(self.path)

    def grib_forecast(self) -> Path:
        """Return the GRIB file of the forecast; results in GRIB are changed copies of its messages.

        Raises
        ------
        ValueError
            If the forecast is not a GRIB file, or there is no forecast.
        """
        read = [one.path for one in self.inputs if one.name == "forecast" and is_grib(one.path)]
        if not read:
            raise ValueError(
                f"{self.path.name} would take its grid and variables from the forecast, which is "
                "not a GRIB file; use a name that ends in .zarr or .nc"
            )
        return read[0]

    def as_written(self, dataset: xr.Dataset) -> xr.Dataset:
        """Return the variables that the format can store; warn about all other variables.

        Raises
        ------
        ValueError
            If a GRIB file cannot store any of the variables, or the forecast is not a GRIB file.
        """
        if self.file_format() != "grib":
            return dataset
        for needed in ("grib", "zarr"):  # blocks need Zarr until all are there
            require_library(needed)
        kept = written_as_grib(dataset, self.path)
        self.grib_forecast()  # raises an error if there is no result
        if left := [str(name) for name in dataset.data_vars if name not in kept]:
            warn(f"GRIB has no template for {', '.join(left)}; {self.path.name} leaves them out")
        return kept

    def marker(self, block: int | str) -> Path:
        """Return the path of the marker of a block, or of the files outside blocks ("layout")."""
        return self.folder / "done" / str(block)

    def is_marked(self, block: int | str) -> bool:
        """Return whether a block has a marker with the hash of its current files."""
        return is_marked(self.marker(block), self.store, self.digest)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the path for writing.

        Raises
        ------
        ValueError
            If the path has an unknown ending, or is an input.
        FileNotFoundError
            If the folder of the path does not exist.
        FileExistsError
            If another process writes to the path.
        """
        self._require_name()
        with writing(self.path):
            yield

    def is_complete(self, *, overwrite: bool, resume: bool) -> bool:
        """Return whether the path has the complete result of this request; change nothing.

        Raises
        ------
        FileExistsError
            If there is a result at the path, complete or not, and neither resume nor overwrite is
            True; if the path is a folder but not a Zarr store; or if ``NAME.partial`` is not from
            xrecal.
        ValueError
            If the path has an unknown ending, or is an input, or if the result at the path,
            complete or not, has another request.
        FileNotFoundError
            If the folder of the path does not exist.
        """
        self._require_name()
        remedy = Advice("use ", Typed("overwrite", True), " to replace it, or another path")
        require_free(self.path, overwrite or resume, remedy)
        if overwrite:
            return False
        if can_go_on(self.path):
            if not resume:
                raise FileExistsError(Advice(f"an interrupted run left {self.folder}; ", *RESTART))
            self._require_same((self.folder / MARK).read_text(), "the interrupted run")
            return False
        if not self.path.exists():
            return False
        if self.file_format() == "grib":
            what = f"{self.path} is a GRIB file, which does not show if this run has made it; "
            raise ValueError(Advice(what, "start again with ", Typed("overwrite", True)))
        with read_plain(self.path, str(self.path), allowed=DATA) as made:
            self._require_same(made.attrs.get(REQUEST, "{}"), str(self.path))
        if self.path.is_dir():
            require_whole(self.path, str(self.path))
        return True

    def _require_name(self) -> None:
        """Raise an error if the path is an input, or has an unknown ending or a missing folder."""
        self.file_format()  # raises an error for another ending
        require_folder(self.path)
        place = Path(os.path.realpath(self.path))
        for one in self.inputs:
            read = Path(os.path.realpath(one.path))
            if place.is_relative_to(read) or read.is_relative_to(place):
                raise ValueError(
                    f"the output {self.path} is the {one.name} {one.path}, or one contains "
                    "the other; take another path"
                )

    def _require_same(self, text: str, who: str) -> None:
        """Raise ValueError if the request in ``text`` differs from the request of this run."""
        try:
            made = json.loads(text)
        except ValueError:
            made = None
        if not made or not isinstance(made, dict):
            raise ValueError(Advice(f"{who} was not made by this command; ", *RESTART))
        was, now = _differences(made, json.loads(self.request_text))
        if now:
            key = next(iter(now))
            differs = f"{key} was {was[key]!r}, now it is {now[key]!r}; "
            raise ValueError(Advice(f"{who} belongs to another request: {differs}", *RESTART))

    def make_way(self, *, overwrite: bool) -> None:
        """Remove unfinished work of an earlier run, unless this run continues the work."""
        if overwrite or not can_go_on(self.path):
            discard_partial(self.path)

    def begin(self, dataset: xr.Dataset) -> None:
        """Create the store, without values of lazy arrays, unless an earlier run has created it."""
        if can_go_on(self.path):
            if self._is_laid_out():
                return
            warnings.warn(
                f"{self.store} differs from the layout of the interrupted run; all blocks are "
                "computed again",
                stacklevel=2,
            )
        new = begin_partial(self.path, self.request_text) / "new.zarr"
        unfinished = {UNFINISHED: f"xrecal {self.request['command']}"}
        dataset = dataset.assign_attrs({REQUEST: self.request_text} | unfinished)
        dataset.to_zarr(new, mode="w-", consolidated=False, compute=False)
        self.marker("layout").parent.mkdir()
        # Files at the top change when the store is sealed.
        files = [path for path in new.rglob("*") if path.is_file() and path.parent != new]
        names = [str(path.relative_to(new)) for path in files]
        mark(self.marker("layout"), new, names, self.digest)
        sync([self.folder / MARK, self.marker("layout"), *new.iterdir()], self.folder)
        new.rename(self.store)

    def _is_laid_out(self) -> bool:
        """Return whether an earlier run has created the store; remove its half-written files."""
        if not self.is_marked("layout"):
            return False
        for path in self.store.rglob("*.partial"):  # temporary names of Zarr
            if path.is_file():
                path.unlink()
        try:  # sealing may have been interrupted
            with read_plain(self.store, str(self.store), allowed=DATA) as laid:
                return REQUEST in laid.attrs
        except ValueError:
            return False

    def count_finished(self, n_blocks: int) -> int:
        """Count the blocks that have a marker, without a check of their files."""
        return sum(self.marker(number).exists() for number in range(n_blocks))

    def unmark(self, n_blocks: int) -> list[int]:
        """Remove the markers of missing or changed blocks; return the index of each such block."""
        with ThreadPoolExecutor() as pool:
            written = list(pool.map(self.is_marked, range(n_blocks)))
        missing = [number for number, there in enumerate(written) if not there]
        for number in missing:
            self.marker(number).unlink(missing_ok=True)
        return missing

    def require_same_inputs(self) -> None:
        """Raise TaskError, and discard the result, if an input has changed since it was opened."""
        for one in self.inputs:
            was, now = self.request[one.name], _fingerprint(one)
            if was != now:
                discard_partial(self.path)
                raise RunError(
                    f"{one.name} {one.path} changed while it was read: it was {was}, now {now}; as "
                    "old and new values may be mixed, the result and its blocks are discarded; "
                    "repeat the command once the file no longer changes"
                )

    @property
    def needs_store(self) -> bool:
        """True if even a single block needs a store.

        A netCDF file of a single block needs no store: if the run is interrupted, there is no
        finished block to keep. Creating and copying a store takes as long as recalibrating one
        station's forecast.
        """
        return can_go_on(self.path) or self.file_format() != "netcdf"

    def write_whole(self, dataset: xr.Dataset) -> None:
        """Write a result in memory to a netCDF file, and move the file to its path."""
        new = begin_partial(self.path, self.request_text) / "new.nc"
        dataset.assign_attrs({REQUEST: self.request_text}).to_netcdf(new, engine="netcdf4")
        self._put(new)

    def finish(self) -> None:
        """Make the result from the complete store, and move the result to its path."""
        if self.file_format() == "netcdf":
            new = self.folder / "new.nc"
            to_netcdf(self.store, new)
        elif self.file_format() == "grib":
            new = self.folder / "new.grib2"
            with open_known(self.store, DATA, decode_timedelta=False) as opened:
                write_grib(opened, self.grib_forecast(), new)
        else:
            new = self.store
            seal(new, without=UNFINISHED)
        self._put(new)

    def _put(self, new: Path) -> None:
        """Wait until a result is on disk, and move the result to its path."""
        sync([new], self.folder)
        try:
            put_in_place(new, self.path, require_opens)
        except UnreadableResultError as error:
            discard_partial(self.path)
            raise RunError(str(error), error) from error
        discard_partial(self.path)

    def tasks(self, dataset: xr.Dataset, blocks: Mapping[int, Block]) -> list[Any]:
        """Return, for each block, a Dask task that computes and writes the block."""
        from dask.delayed import delayed

        names = {name for block in blocks.values() for name in block.chunks}
        # Without optimisation, the arrays of a block still share the task that makes all of them.
        lazy = {n: dataset.variables[n].data.to_delayed(optimize_graph=False) for n in names}
        write = delayed(write_block, pure=False)
        return [
            write(
                {name: lazy[name][at] for name, at in block.chunks.items()},
                block,
                str(self.store.absolute()),
                str(self.marker(number).absolute()),
                self.digest,
            )
            for number, block in blocks.items()
        ]


def write_in_blocks(
    dataset: xr.Dataset, target: Target, compute: Callable[[list[Any]], Sequence[Any]]
) -> Written:
    """Compute the blocks that are not written yet, and move the result to its path.

    Parameters
    ----------
    dataset : Dataset
        Lazy Dataset with equal chunks; files must support its names and types.
    target : Target
        Target that :meth:`Target.alone` has locked. Call :meth:`Target.is_complete` and
        :meth:`Target.make_way` before.
    compute : callable
        Function that computes a list of Dask collections.

    Raises
    ------
    TaskError
        If a block cannot be computed or written, the result cannot be moved, or an input has
        changed during the run.
    """
    blocks = blocks_of(dataset)
    n_skipped = 0
    try:
        if len(blocks) == 1 and not target.needs_store:
            (computed,) = compute([dataset])
            target.require_same_inputs()
            target.write_whole(computed)
        else:
            target.begin(dataset)
            missing = target.unmark(len(blocks))
            n_skipped = len(blocks) - len(missing)
            compute(target.tasks(dataset, {n: blocks[n] for n in missing}))
            if changed := target.unmark(len(blocks)):
                left = f"{len(changed)} blocks in {target.folder}"
                raise OSError(f"{left} changed after being written")
            target.require_same_inputs()
            target.finish()
    except RunError:
        raise
    except Exception as error:
        target.require_same_inputs()
        done = target.count_finished(len(blocks))
        kept = f"{done} of {len(blocks)} blocks are finished and kept; repeat the command with "
        failed = f"{type(error).__name__}: {error} ({kept}"
        raise RunError(Advice(failed, Typed("resume", True), ")"), error) from error
    return Written(len(blocks), n_skipped)


def _number(text: str) -> int | float:
    """Read a number of JSON, as an integer if possible."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _differences(
    a: Mapping[str, Any], b: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries that differ between two requests, as they are in ``a`` and in ``b``."""
    was, now = {}, {}
    for key in {**a, **b}:
        one, two = a.get(key), b.get(key)
        if one != two and isinstance(one, dict) and isinstance(two, dict):
            one, two = _differences(one, two)
        if one != two:
            was[key], now[key] = one, two
    return was, now


def _fingerprint(one: Source) -> Any:
    """Return the fingerprint of an input, or the text of the error if the input is gone."""
    try:
        return one.fingerprint()
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def to_netcdf(store: Path, path: Path) -> None:
    """Copy a store to a netCDF file, one chunk after another."""
    import dask

    with (
        read_plain(store, str(store), chunks={}, allowed=DATA) as opened,
        dask.config.set(scheduler="threads"),
    ):
        text = {
            name: (array.dims, array.to_numpy().astype(object), array.attrs)
            for name, array in opened.variables.items()
            if array.dtype.kind not in "iuf"
        }
        plain = opened.assign(text)
        plain.attrs.pop(UNFINISHED, None)
        plain.to_netcdf(path, engine="netcdf4")
