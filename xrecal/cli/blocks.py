"""Results written block by block, so that an interrupted run can be taken up where it stopped.

Beside the target stands a folder, ``NAME.partial``: a Zarr store, the request as JSON, and for each
block whose data are written a file that proves them. The result is moved to the target at the very
end: that rename alone says that it is complete. A netCDF file of a single block needs no store:
there is nothing to take up. ``docs/batch.md`` says what is written when.
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
from itertools import accumulate, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import xarray as xr

from xrecal.storage.paths import (
    MARK,
    STORE,
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
from xrecal.storage.untrusted import DATA

from .inputs import Source
from .proofs import is_proven, prove
from .requests import Request, differences, read, text_of

REQUEST = "xrecal_request"
"""Attribute of a result that holds the request, as JSON."""

RESTART = "repeat the same command with --resume, or start again with --overwrite"


class Written(NamedTuple):
    """Number of blocks of a result, and of those that an earlier run has computed."""

    n_blocks: int
    n_skipped: int


class RunError(RuntimeError):
    """Computing stopped halfway; what is finished is kept."""


@dataclass(frozen=True)
class Block:
    """Chunks of several arrays that are computed and written together."""

    chunks: dict[str, tuple[int, ...]]
    """Position of the chunk of each array among its chunks."""
    regions: dict[str, tuple[slice, ...]]
    """Where that chunk lies."""


def blocks_of(dataset: xr.Dataset) -> list[Block]:
    """Blocks of the lazy arrays of a Dataset: those cut along the same dimensions go together.

    What is not lazy is in no block. The order depends on names and chunks alone.
    """
    families: dict[tuple[str, ...], list[str]] = {}
    for name, array in dataset.variables.items():
        if array.chunks is not None:
            cut = tuple(str(d) for d, sizes in array.chunksizes.items() if len(sizes) > 1)
            families.setdefault(tuple(sorted(cut)), []).append(str(name))
    slices = {str(d): _slices(sizes) for d, sizes in dataset.chunksizes.items()}
    dims = {str(name): [str(d) for d in v.dims] for name, v in dataset.variables.items()}
    blocks = []
    for cut, names in sorted(families.items()):
        for position in product(*(range(len(slices[d])) for d in cut)):
            at = dict(zip(cut, position, strict=True))
            chunks = {name: tuple(at.get(d, 0) for d in dims[name]) for name in names}
            regions = {
                name: tuple(slices[d][i] for d, i in zip(dims[name], chunks[name], strict=True))
                for name in names
            }
            blocks.append(Block(chunks, regions))
    return blocks


def _slices(sizes: Sequence[int]) -> list[slice]:
    """Where chunks of these sizes lie."""
    ends = list(accumulate(sizes))
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


@dataclass(frozen=True)
class Run:
    """A result in the making."""

    target: Path
    request: Request
    inputs: Sequence[Source] = ()
    """What is read from; the request has their fingerprints under their names."""

    @cached_property
    def request_text(self) -> str:
        """The request as JSON."""
        return text_of(self.request, self.folder / MARK)

    @property
    def folder(self) -> Path:
        """Folder of the data, the request and the markers until the result is complete."""
        return partial_of(self.target)

    @property
    def store(self) -> Path:
        """Zarr store of the data."""
        return self.folder / STORE

    @property
    def _layout(self) -> Path:
        """The file that proves all of the store that is in no block."""
        return self.folder / "layout"

    def marker(self, number: int) -> Path:
        """The file that says that a block is written, and proves it."""
        return self.folder / "done" / str(number)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one that writes to the target.

        Raises
        ------
        ValueError
            If the target is no name to write to, or an input.
        FileNotFoundError
            If there is no folder to write to.
        FileExistsError
            If another process writes there.
        """
        self._require_name()
        with writing(self.target):
            yield

    def is_complete(self, *, overwrite: bool, resume: bool) -> bool:
        """Whether the target is there and all that is asked for; changes nothing.

        Raises
        ------
        FileExistsError
            If something is there, complete or not, and neither resume nor overwrite is asked for;
            or if it is not xrecal's to remove.
        ValueError
            If the target is no name to write to, or an input, or if what is there, complete or not,
            was made by another request.
        FileNotFoundError
            If there is no folder to write to.
        """
        self._require_name()
        require_free(
            self.target, overwrite or resume, "use --overwrite to replace it, or another path"
        )
        if overwrite:
            return False
        if can_go_on(self.target):
            if not resume:
                raise FileExistsError(f"an interrupted run left {self.folder}; {RESTART}")
            self._require_same((self.folder / MARK).read_text(), "the interrupted run")
            return False
        if not self.target.exists():
            return False
        with read_plain(self.target, str(self.target), allowed=DATA) as made:
            self._require_same(made.attrs.get(REQUEST, "{}"), str(self.target))
        if self.target.is_dir():
            require_whole(self.target, str(self.target))
        return True

    def _require_name(self) -> None:
        """Raise an error unless the target can be written without touching an input."""
        format_to_write(self.target)
        require_folder(self.target)
        place = Path(os.path.realpath(self.target))
        for one in self.inputs:
            read = Path(os.path.realpath(one.path))
            if place.is_relative_to(read) or read.is_relative_to(place):
                raise ValueError(
                    f"the output {self.target} is the {one.name}, {one.path}, or a part of it; "
                    "take another path"
                )

    def make_way(self, *, overwrite: bool) -> None:
        """Remove what an earlier run left, unless this one goes on with it."""
        if overwrite or not can_go_on(self.target):
            discard_partial(self.target)

    def _require_same(self, other: str, who: str) -> None:
        made = read(other)
        if made is None:
            raise ValueError(f"{who} was not made by this command; {RESTART}")
        was, now = differences(made, json.loads(self.request_text))
        if now:
            key = next(iter(now))
            raise ValueError(
                f"{who} belongs to another request: {key} was {was[key]!r}, now it is "
                f"{now[key]!r}; {RESTART}"
            )

    def begin(self, dataset: xr.Dataset) -> None:
        """Lay out the store, unless an earlier run has: all but the values of lazy arrays."""
        if can_go_on(self.target):
            if self._is_laid_out():
                return
            warnings.warn(
                f"{self.store} is not as the interrupted run laid it out; all blocks are computed "
                "again",
                stacklevel=2,
            )
        new = begin_partial(self.target, self.request_text) / "new.zarr"
        attrs = {REQUEST: self.request_text, UNFINISHED: f"xrecal {self.request['command']}"}
        dataset = dataset.assign_attrs(attrs)
        dataset.to_zarr(new, mode="w-", consolidated=False, compute=False)
        self.marker(0).parent.mkdir()
        # Those at the top change when the store is sealed.
        files = [path for path in new.rglob("*") if path.is_file() and path.parent != new]
        prove([str(path.relative_to(new)) for path in files], new, self._layout, self.request_text)
        sync([*new.iterdir(), *self.folder.iterdir()], self.folder)
        new.rename(self.store)

    def _is_laid_out(self) -> bool:
        """Whether the store of an earlier run is as it was laid out, without what a kill left."""
        if not is_proven(self.store, self._layout, self.request_text):
            return False
        for path in self.store.rglob("*.partial"):  # names that Zarr writes to before the true ones
            if path.is_file():
                path.unlink()
        try:
            with read_plain(self.store, str(self.store), allowed=DATA) as laid:
                return bool(laid.attrs.get(REQUEST) == self.request_text)
        except ValueError:
            return False

    def count_finished(self, n_blocks: int) -> int:
        """Number of blocks that are written, by their markers alone."""
        return sum(self.marker(number).exists() for number in range(n_blocks))

    def unmark(self, blocks: Sequence[Block]) -> list[int]:
        """Numbers of blocks that are not written, or not as they were; these lose their markers."""

        def is_written(number: int) -> bool:
            return is_proven(self.store, self.marker(number), self.request_text)

        with ThreadPoolExecutor() as pool:
            written = list(pool.map(is_written, range(len(blocks))))
        missing = [number for number, there in enumerate(written) if not there]
        for number in missing:
            self.marker(number).unlink(missing_ok=True)
        return missing

    def require_same_inputs(self) -> None:
        """Raise RunError, and discard what was made, if an input is no more as it was read."""
        for one in self.inputs:
            was, now = self.request[one.name], _fingerprint(one)
            if was != now:
                discard_partial(self.target)
                raise RunError(
                    f"{one.name} {one.path} changed while it was read: it was {was}, now {now}; as "
                    "old and new values may be mixed, nothing is put in place and no block is "
                    "kept; repeat the command once it stays as it is"
                )

    @property
    def needs_store(self) -> bool:
        """Whether blocks are put together in a store: of a single one an interruption keeps none.

        To lay out a store and copy it takes as long as a morning's forecast of a station.
        """
        return can_go_on(self.target) or format_to_write(self.target) != "netcdf"

    def write_whole(self, dataset: xr.Dataset) -> None:
        """Put a result in place that is in memory."""
        new = begin_partial(self.target, self.request_text) / "new.nc"
        dataset.assign_attrs({REQUEST: self.request_text}).to_netcdf(new, engine="netcdf4")
        self._put(new)

    def finish(self) -> None:
        """Take off the mark and move the result to the target."""
        if format_to_write(self.target) == "netcdf":
            new = self.folder / "new.nc"
            _to_netcdf(self.store, new)
        else:
            new = self.store
            seal(new, without=UNFINISHED)
        self._put(new)

    def _put(self, new: Path) -> None:
        """Move a result to the target, once it is on disk."""
        sync([new], self.folder)
        try:
            put_in_place(new, self.target, require_opens)
        except UnreadableResultError as error:
            discard_partial(self.target)
            raise RunError(str(error)) from error
        discard_partial(self.target)


def _fingerprint(one: Source) -> Any:
    """Of an input that may have gone, which the error then tells."""
    try:
        return one.fingerprint()
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def write_in_blocks(
    dataset: xr.Dataset, run: Run, compute: Callable[[list[Any]], list[Any]]
) -> Written:
    """Compute the blocks that are not written yet, and put the result in place.

    Parameters
    ----------
    dataset : Dataset
        Lazy, with equal chunks; its names and types such as files take them.
    run : Run
        Where to; within :meth:`Run.alone`, after :meth:`Run.is_complete` and :meth:`Run.make_way`.
    compute : callable
        Computes a list of Dask's collections.

    Raises
    ------
    RunError
        If a block cannot be computed or written, the result cannot be moved, or an input has
        changed meanwhile.
    """
    blocks = blocks_of(dataset)
    n_skipped = 0
    try:
        if len(blocks) == 1 and not run.needs_store:
            (computed,) = compute([dataset])
            run.require_same_inputs()
            run.write_whole(computed)
        else:
            run.begin(dataset)
            missing = run.unmark(blocks)
            n_skipped = len(blocks) - len(missing)
            compute(_tasks(dataset, run, {n: blocks[n] for n in missing}))
            if changed := run.unmark(blocks):
                raise OSError(f"{len(changed)} blocks in {run.folder} are not as they were written")
            run.require_same_inputs()
            run.finish()
    except RunError:
        raise
    except Exception as error:
        run.require_same_inputs()
        done = run.count_finished(len(blocks))
        raise RunError(
            f"{type(error).__name__}: {error} ({done} of {len(blocks)} blocks are finished and "
            "kept; repeat the command with --resume)"
        ) from error
    return Written(len(blocks), n_skipped)


def _tasks(dataset: xr.Dataset, run: Run, blocks: Mapping[int, Block]) -> list[Any]:
    """Tasks of Dask that compute and write blocks, given by their numbers."""
    from dask.delayed import delayed

    names = {name for block in blocks.values() for name in block.chunks}
    # Without optimisation the arrays of a block still share the task that makes all of them.
    lazy = {name: dataset.variables[name].data.to_delayed(optimize_graph=False) for name in names}
    write = delayed(write_block, pure=False)
    store, request = str(run.store.absolute()), run.request_text
    return [
        write(
            {name: lazy[name][at] for name, at in block.chunks.items()},
            block,
            store,
            str(run.marker(number).absolute()),
            request,
        )
        for number, block in blocks.items()
    ]


def write_block(
    values: Mapping[str, npt.NDArray[Any]], block: Block, store: str, marker: str, request: str
) -> None:
    """Write arrays into their regions of a store, then the file that proves it."""
    import zarr

    group = zarr.open_group(store, mode="r+")
    files = []
    for name, value in values.items():
        array: Any = group[name]
        array[block.regions[name]] = value
        files.append(_chunk_file(array, block.chunks[name]))
    prove(files, Path(store), Path(marker), request)


def _chunk_file(array: Any, at: tuple[int, ...]) -> str:
    """File of a chunk of an array of Zarr, by its position among the chunks."""
    if hasattr(array, "_chunk_key"):  # version 2 of the library
        return str(array._chunk_key(at))
    return f"{array.path}/{array.metadata.encode_chunk_key(at)}"


def _to_netcdf(store: Path, path: Path) -> None:
    """Copy a store, a chunk at a time."""
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
