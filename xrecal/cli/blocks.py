"""Results written block by block, so that an interrupted run can be taken up where it stopped.

Beside the target stands a folder, ``NAME.partial``: a Zarr store, the request as JSON, and an empty
file for each block whose data are written. The store is moved to the target at the very end, and
bears a mark until then. A netCDF file of a single block needs no store: there is nothing to take
up.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import xarray as xr

from xrecal.storage.paths import format_to_write, partial_of, put_in_place, remove, require_free
from xrecal.storage.storage import CHUNKS, read_plain, seal
from xrecal.storage.stored import UNFINISHED

REQUEST = "xrecal_request"
"""Attribute of a result that holds the request, as JSON."""

Request = Mapping[str, Any]
"""Inputs and settings of a run as JSON has them: two runs with equal ones make the same result."""

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

    @property
    def folder(self) -> Path:
        """Folder of the data, the request and the markers until the result is complete."""
        return partial_of(self.target)

    @property
    def store(self) -> Path:
        """Zarr store of the data."""
        return self.folder / "store.zarr"

    @property
    def _request_file(self) -> Path:
        return self.folder / "request.json"

    def marker(self, number: int) -> Path:
        """The file that says that a block is written."""
        return self.folder / "done" / str(number)

    def is_complete(self, *, overwrite: bool, resume: bool) -> bool:
        """Whether the target is there and all that is asked for; changes nothing.

        Raises
        ------
        FileExistsError
            If something is there, complete or not, and neither resume nor overwrite is asked for.
        ValueError
            If what is there, complete or not, was made by another request.
        FileNotFoundError
            If there is no folder to write to.
        """
        self.check(overwrite=overwrite, resume=resume)
        return resume and self.target.exists() and not self._can_go_on

    @property
    def _can_go_on(self) -> bool:
        """Whether an earlier run left something to keep; one that was at its very end did not."""
        return self._request_file.exists() and self.store.exists()

    def make_way(self, *, overwrite: bool) -> None:
        """Remove what an earlier run left, unless this one goes on with it."""
        if overwrite or not self._can_go_on:
            remove(self.folder)

    def check(self, *, overwrite: bool, resume: bool) -> None:
        """The errors of :meth:`is_complete` alone."""
        format_to_write(self.target)
        require_free(
            self.target, overwrite or resume, "use --overwrite to replace it, or another path"
        )
        if overwrite:
            return
        if self._request_file.exists():
            if not resume:
                raise FileExistsError(f"an interrupted run left {self.folder}; {RESTART}")
            self._require_same(json.loads(self._request_file.read_text()), "the interrupted run")
        elif self.target.exists():
            with read_plain(self.target, str(self.target)) as made:
                self._require_same(json.loads(made.attrs.get(REQUEST, "{}")), str(self.target))

    def _require_same(self, other: Request, who: str) -> None:
        if not other:
            raise ValueError(f"{who} was not made by this command; {RESTART}")
        was, now = _differences(other, json.loads(json.dumps(self.request)))
        if now:
            key = next(iter(now))
            raise ValueError(
                f"{who} belongs to another request: {key} was {was[key]!r}, now it is "
                f"{now[key]!r}; {RESTART}"
            )

    def begin(self, dataset: xr.Dataset) -> None:
        """Lay out the store, unless an earlier run has: all but the values of lazy arrays."""
        if self._request_file.exists():
            return
        self.marker(0).parent.mkdir(parents=True)
        attrs = {
            REQUEST: json.dumps(self.request),
            UNFINISHED: f"xrecal {self.request['command']}",
        }
        dataset = dataset.assign_attrs(attrs)
        dataset.to_zarr(self.store, mode="w-", consolidated=False, compute=False)
        aside = self._request_file.with_suffix(".new")
        aside.write_text(json.dumps(self.request, indent=1))
        aside.replace(self._request_file)

    @property
    def needs_store(self) -> bool:
        """Whether blocks are put together in a store: of a single one an interruption keeps none.

        To lay out a store and copy it takes as long as a morning's forecast of a station.
        """
        return self._can_go_on or format_to_write(self.target) != "netcdf"

    def write_whole(self, dataset: xr.Dataset) -> None:
        """Put a result in place that is in memory."""
        self.folder.mkdir()
        result = self.folder / "store.nc"
        dataset = dataset.assign_attrs({REQUEST: json.dumps(self.request)})
        dataset.to_netcdf(result, engine="netcdf4")
        put_in_place(result, self.target)
        shutil.rmtree(self.folder)

    def finish(self) -> None:
        """Take off the mark and move the result to the target."""
        seal(self.store, without=UNFINISHED)
        result = self.store
        if format_to_write(self.target) == "netcdf":
            result = self.folder / "store.nc"
            _to_netcdf(self.store, result)
        put_in_place(result, self.target)
        shutil.rmtree(self.folder)


def _differences(a: Request, b: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of two requests that differ, as they are in each."""
    was, now = {}, {}
    for key in {**a, **b}:
        one, two = a.get(key), b.get(key)
        if one != two and isinstance(one, dict) and isinstance(two, dict):
            one, two = _differences(one, two)
        if one != two:
            was[key], now[key] = one, two
    return was, now


def write_in_blocks(
    dataset: xr.Dataset, run: Run, compute: Callable[[list[Any]], list[Any]]
) -> Written:
    """Compute the blocks that are not written yet, and put the result in place.

    Parameters
    ----------
    dataset : Dataset
        Lazy, with equal chunks; its names and types such as files take them.
    run : Run
        Where to; :meth:`Run.is_complete` and :meth:`Run.make_way` come first.
    compute : callable
        Computes a list of Dask's collections.

    Raises
    ------
    RunError
        If a block cannot be computed or written, or the result cannot be moved.
    """
    blocks = blocks_of(dataset)
    whole = len(blocks) == 1 and not run.needs_store
    if not whole:
        run.begin(dataset)
    missing = [n for n in range(len(blocks)) if not run.marker(n).exists()]
    try:
        if whole:
            (computed,) = compute([dataset])
            run.write_whole(computed)
        else:
            compute(_tasks(dataset, run, {n: blocks[n] for n in missing}))
            run.finish()
    except Exception as error:
        done = sum(run.marker(n).exists() for n in range(len(blocks)))
        raise RunError(
            f"{type(error).__name__}: {error} ({done} of {len(blocks)} blocks are finished and "
            "kept; repeat the command with --resume)"
        ) from error
    return Written(len(blocks), len(blocks) - len(missing))


def _tasks(dataset: xr.Dataset, run: Run, blocks: Mapping[int, Block]) -> list[Any]:
    """Tasks of Dask that compute and write blocks, given by their numbers."""
    from dask.delayed import delayed

    names = {name for block in blocks.values() for name in block.chunks}
    # Without optimisation the arrays of a block still share the task that makes all of them.
    lazy = {name: dataset.variables[name].data.to_delayed(optimize_graph=False) for name in names}
    write = delayed(write_block, pure=False)
    return [
        write(
            {name: lazy[name][at] for name, at in block.chunks.items()},
            block.regions,
            str(run.store.absolute()),
            str(run.marker(number).absolute()),
        )
        for number, block in blocks.items()
    ]


def write_block(
    values: Mapping[str, npt.NDArray[Any]],
    regions: Mapping[str, tuple[slice, ...]],
    store: str,
    marker: str,
) -> None:
    """Write arrays into their regions of a store, then the file that says so."""
    import zarr

    group = zarr.open_group(store, mode="r+")
    for name, value in values.items():
        array: Any = group[name]
        array[regions[name]] = value
    Path(marker).touch()


def _to_netcdf(store: Path, path: Path) -> None:
    """Copy a store, a chunk at a time."""
    import dask

    with (
        read_plain(store, str(store), chunks={}) as opened,
        dask.config.set(scheduler="threads"),
    ):
        text = [name for name, array in opened.variables.items() if array.dtype.kind not in "iuf"]
        plain = opened.assign({name: opened.variables[name].load() for name in text})
        plain.attrs.pop(CHUNKS)
        plain.to_netcdf(path, engine="netcdf4")
