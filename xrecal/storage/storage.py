"""Saving of models to netCDF or Zarr, and opening of models and data, in memory or lazily."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import on_device
from xrecal.fit.fitted import Fitted, chunks_of

from .checks import Checked, require_ordered
from .encoding import from_plain, to_plain
from .gathered import restored
from .grib import fields_of, is_grib, open_grib
from .open_files import open_file
from .paths import (
    FileFormat,
    can_go_on,
    format_of,
    format_to_write,
    local_path,
    partial_of,
    require_free,
    sync,
    writing,
    written_aside,
)
from .stored import (
    SCHEMA_ATTR,
    expected_arrays,
    from_dataset,
    prefix_of,
    read_header,
    require_finished,
    to_dataset,
)
from .untrusted import (
    DATA,
    MODEL,
    Allowed,
    UnreadableError,
    load_labels,
    open_known,
    read_json,
    reading,
)

CHUNKS = "xrecal_chunks"
"""Group in a complete store; its attributes are the numbers of chunks of the arrays. The store
itself does not have these attributes, because other software copies attributes of a store even if
it copies only some arrays."""

BLOCK_BYTES = 2**24
"""Largest size of a block of locations, in bytes, in storage and computation."""

TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".parquet")
"""Suffixes of files with tables, which xrecal does not read."""

CHECKED_BYTES = 2**20
"""Largest size, in bytes, of an array of one chunk that is checked when its store is opened."""


def save(
    model: Fitted,
    path: str | PathLike[str],
    *,
    overwrite: bool = False,
    zarr_format: Literal[2, 3] | None = None,
) -> None:
    """Write a model to a file or store that :func:`xrecal.open_recalibrator` opens.

    Parameters
    ----------
    model : Fitted
        Model to write. ``save`` computes a lazy model chunk by chunk.
    path : path
        Path that ends in ``.nc`` (netCDF) or ``.zarr``.
    overwrite : bool
        Whether to replace an existing file or store, once the new one is complete.
    zarr_format : {2, 3}, optional
        Format of the Zarr store; by default the format of the installed Zarr library.

    Raises
    ------
    FileExistsError
        If there is something at the path, or the unfinished result of a run, and ``overwrite`` is
        False; if another process writes to the path; or if the path is a folder but not a Zarr
        store.
    TypeError
        If labels, attributes or settings are of a type that cannot be stored, or the state is on
        a GPU.
    ValueError
        If the path has another ending, ``zarr_format`` is given for a netCDF file, or a name in the
        model is not text.
    ImportError
        If the library of the format is not installed.

    Notes
    -----
    ``save`` writes the model to ``path.partial`` beside the path and moves it there at the end, so
    the path always has a complete model. If the path is a link, ``save`` replaces its target. The
    next ``save`` removes the files that a crash has left.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.nc")
    ...     xrecal.open_recalibrator(f"{folder}/model.nc").method == model.method
    True
    """
    if any(on_device(array) for v in model.variables.values() for array in v.state.values()):
        raise TypeError(
            "the state of the model is in CuPy arrays, which files do not take; copy it to the "
            "host first: model.as_numpy().save(path)"
        )
    target = local_path(path, name="path")
    kind = format_to_write(target)
    if kind == "netcdf" and zarr_format is not None:
        raise ValueError(f"zarr_format={zarr_format} is for Zarr stores, but {target} is netCDF")
    dataset = to_plain(to_dataset(model))
    with writing(target):
        require_free(target, overwrite, "use overwrite=True to replace it, or another path")
        if can_go_on(target) and not overwrite:
            raise FileExistsError(
                f"an interrupted run left {partial_of(target)}; repeat its command with --resume, "
                "or use overwrite=True to discard it"
            )
        with written_aside(target, require_opens) as aside:
            if kind == "netcdf":
                dataset.to_netcdf(aside, engine="netcdf4")
            else:
                options: Any = {} if zarr_format is None else {"zarr_format": zarr_format}
                in_blocks(dataset, model).to_zarr(aside, mode="w-", consolidated=False, **options)
                seal(aside)


def in_blocks(dataset: xr.Dataset, model: Fitted) -> xr.Dataset:
    """Divide a model's Dataset into blocks: its Dask chunks, or else 16 MiB of locations each."""
    chunks: dict[Hashable, int] = {}
    for name, fitted in model.variables.items():
        sizes = {d: fitted.state.sizes[d] for d in fitted.locations}
        lazy_chunks = chunks_of(fitted.state)
        blocks = block_sizes(sizes, fitted.state.nbytes // max(math.prod(sizes.values()), 1))
        if lazy_chunks:
            blocks = {d: max(lazy_chunks.get(d, (sizes[d],))) for d in sizes}
        chunks |= {f"{prefix_of(model, name)}{d}": size for d, size in blocks.items()}
    located = {
        name: array.chunk({d: chunks.get(d, -1) for d in array.dims})
        for name, array in dataset.data_vars.items()
        if array.chunks is not None or (set(array.dims) & set(chunks) and array.dtype != object)
    }
    return dataset.assign(located)


def block_sizes(
    sizes: Mapping[Hashable, int], bytes_each: int, most: int = BLOCK_BYTES
) -> dict[Hashable, int]:
    """Return the sizes of blocks of locations such that a block has at most ``most`` bytes.

    The function divides the first dimensions, and leaves the last dimensions whole if possible.
    """
    blocks = dict(sizes)
    for d in sizes:
        n_bytes = math.prod(blocks.values()) * bytes_each
        blocks[d] = max(1, min(blocks[d], int(blocks[d] * most / max(n_bytes, 1))))
    return blocks


def seal(path: Path, *, without: str | None = None) -> None:
    """Record the numbers of chunks of a complete store, and gather its metadata in one file.

    Chunks that contain only the fill value have no file. So without this record, readers would take
    a lost chunk for fill values. ``seal`` also removes the attribute ``without``, which marks an
    incomplete store. A second call does no harm.
    """
    import zarr

    group = zarr.open_group(path, mode="r+")
    group.require_group(CHUNKS)
    zarr.open_group(path / CHUNKS, mode="r+").attrs.put(_count_chunks(path))
    group.attrs.put({name: value for name, value in group.attrs.items() if name != without})
    with warnings.catch_warnings():  # other readers expect gathered metadata
        warnings.filterwarnings("ignore", "Consolidated metadata is currently not part")
        zarr.consolidate_metadata(path)
    sync([*path.iterdir(), *(path / CHUNKS).iterdir()], path)


def _count_chunks(path: Path) -> dict[str, Any]:
    """Count the stored chunks of each array of a store."""
    import zarr

    arrays = dict(zarr.open_group(path, mode="r", use_consolidated=False).arrays())
    return {name: arrays[name].nchunks_initialized for name in sorted(arrays)}


def require_whole(path: Path, what: str) -> None:
    """Raise ValueError if a Zarr store has lost chunks, which readers would take for fill values.

    The check needs the record that :func:`seal` makes. Stores of other software have no record and
    cause no error.
    """
    import zarr

    with reading(what):
        group = zarr.open_group(path, mode="r", use_consolidated=False)
        counted: Mapping[str, Any] = group[CHUNKS].attrs if CHUNKS in group else {}
        found = _count_chunks(path) if counted else {}
        lost = {name: n - found.get(name, 0) for name, n in counted.items()}
        lost = {name: n for name, n in lost.items() if n > 0}
    for name, n in lost.items():
        raise UnreadableError(
            f"{what} is damaged: {n} of {counted[name]} chunks of {name!r} are missing; restore "
            "it, or make it again"
        )


def open_fitted(
    path: str | PathLike[str], *, chunks: Mapping[Hashable, int] | None = None
) -> Fitted:
    """Open a model that :meth:`Recalibrator.save` or ``xrecal fit`` wrote.

    Parameters
    ----------
    path : path
        Path of a Zarr store or a netCDF file.
    chunks : dict from dimension to int, optional
        Sizes of the blocks of locations of a lazy model. By default a Zarr store is opened lazily,
        in the blocks in which it was written, and a netCDF file is read into memory.

    Returns
    -------
    Recalibrator
        Model that makes the same forecasts, bit by bit, as the saved model.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    ValueError
        If there is no model at the path; if the model is unfinished or damaged, has the layout of
        another version, or needs codecs that might run code; or if ``chunks`` names a dimension
        other than locations. A damaged chunk of a lazy model raises an error when the chunk is
        read.

    Notes
    -----
    You may open the model of a stranger: xrecal runs no code from the file, and checks settings and
    state.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.nc")
    ...     model = xrecal.open_recalibrator(f"{folder}/model.nc").load()
    >>> model.is_computed
    True
    """
    return _opened(path, chunks)[0]


def _opened(
    path: str | PathLike[str], chunks: Mapping[Hashable, int] | None
) -> tuple[Fitted, list[xr.Variable]]:
    """Open a stored model; also return its lazy arrays whose numbers are not checked yet."""
    source = local_path(path, name="path")
    what, file_format = str(source), format_of_finished(source)
    in_memory = file_format == "netcdf" and chunks is None
    with read_plain(source, what) as plain, reading(what):
        dataset = _restored(plain.load() if in_memory else plain, what)
        model = from_dataset(dataset, what)
        expected = expected_arrays(model)
        if file_format == "zarr":
            require_whole(source, what)
        lazy = {
            str(name)
            for name in dataset.data_vars
            if not in_memory and plain.variables[name].dtype == dataset.variables[name].dtype
        }
        numbers = {
            name: dataset.variables[name].to_numpy()
            for name in expected
            if name in plain and (name not in lazy or _is_small(plain.variables[name]))
        }
        for array_name, values in numbers.items():
            expected[array_name].require(array_name, values)
        require_ordered(numbers)
    if in_memory:
        return model, []
    sizes = _stored_chunks(model, chunks or {})
    located = {
        f"{prefix_of(model, name)}{d}" for name, f in model.variables.items() for d in f.locations
    }
    by_parts = {}
    for array_name in lazy:
        array = dataset.variables[array_name]
        whole = dict.fromkeys(set(array.dims) - located, -1)
        checked = Checked(plain.variables[array_name], array_name, expected, what)
        by_parts[array_name] = array.copy(data=_by_parts(checked, whole | sizes))
    later = [array for name, array in by_parts.items() if name not in numbers]
    return from_dataset(dataset.assign(by_parts), what), later


def _is_small(variable: xr.Variable) -> bool:
    """Return whether an array has few numbers, in one chunk; such arrays are checked at opening.

    A store of many locations has millions of numbers, and readers often need only some numbers.
    """
    stored = variable.encoding.get("preferred_chunks", {})
    whole = all(stored.get(d, size) == size for d, size in variable.sizes.items())
    return whole and variable.nbytes <= CHECKED_BYTES


def require_opens(path: Path) -> None:
    """Raise an error unless a result can be opened; check all numbers of a model, part by part."""
    if path.suffix == ".json":
        read_json(path.read_bytes())
        return
    if is_grib(path):
        fields_of(path)
        return
    with open_known(path, DATA, decode_cf=False) as found:
        is_model = SCHEMA_ATTR in found.attrs
    if not is_model:
        open_data(path, str(path)).close()
        return
    import dask.base

    _, later = _opened(path, {})
    with dask.config.set(scheduler="synchronous"):  # one part at a time
        read = [array.max(skipna=False).data for array in later if array.size]
        dask.base.compute(read)  # type: ignore[no-untyped-call]
    if path.is_file():
        open_file(path).close()  # type: ignore[no-untyped-call]


def open_data(path: Path, what: str) -> xr.Dataset:
    """Open forecasts, observations or scores: read labels now, and values when they are needed.

    Raises
    ------
    FileNotFoundError
        If nothing is at the path, or only the unfinished result of an interrupted run.
    ValueError
        If the file cannot be read, is unfinished or lacks chunks, or if decoding could run code
        from the file.
    """
    file_format = format_of_finished(path)
    if path.suffix.lower() in TABLES:
        raise ValueError(
            f"{what} is a table, but commands read netCDF files and Zarr stores; make a netCDF "
            "file of the table, as the page on inputs shows"
        )
    try:
        if file_format == "grib":
            dataset = open_grib(path)
        else:  # a number of days may be a forecast
            dataset = open_known(path, DATA, decode_timedelta=False)
        load_labels(dataset)
        dataset = restored(dataset)
    except Exception as error:  # libraries raise errors of any class for damaged files
        raise ValueError(f"{what} cannot be read: {error}") from error
    require_finished(dataset, what)
    if file_format == "zarr":
        require_whole(path, what)
    return dataset


def _by_parts(checked: Checked, sizes: Mapping[Hashable, int]) -> Any:
    """Return a stored array as a Dask array.

    ``sizes`` are the sizes of its chunks; -1 stands for a whole dimension. Along dimensions that
    ``sizes`` lacks, the chunks are those of the file. The caller sets -1 for all dimensions other
    than locations, because each task needs all positions along these dimensions.
    """
    from dask.array import from_array

    stored = checked.variable.encoding.get("preferred_chunks", {})
    return from_array(  # type: ignore[no-untyped-call]
        checked,
        tuple(sizes.get(d, stored.get(d, -1)) for d in checked.variable.dims),
        name=f"{checked.name}-{uuid4().hex}",
        meta=np.empty((0,) * checked.ndim, checked.dtype),
    )


def format_of_finished(path: Path) -> FileFormat:
    """Return the format of a path; if only an unfinished result exists, the error names it."""
    if not path.exists() and partial_of(path).exists():
        raise FileNotFoundError(
            f"there is no {path} yet, only {partial_of(path)} of an interrupted run; run it again "
            "with --resume, or save the model again"
        )
    return format_of(path)


def read_plain(
    path: Path,
    what: str,
    chunks: Mapping[Hashable, int] | None = None,
    allowed: Allowed = MODEL,
) -> xr.Dataset:
    """Open a file or store lazily, without decoding.

    If ``chunks`` is given, even an empty dict, the variables are Dask arrays.
    """
    format_of(path)  # names a missing library
    try:
        return open_known(path, allowed, decode_cf=False, chunks=chunks)
    except Exception as error:  # libraries raise errors of any class for damaged files
        kind = "Zarr store" if path.is_dir() else "netCDF file"
        raise UnreadableError(
            f"{what} cannot be read as a {kind}, as it is of another kind or damaged: {error}"
        ) from error


def _restored(plain: xr.Dataset, what: str) -> xr.Dataset:
    """Restore a model's Dataset, with coordinates in memory; raise ValueError for other content."""
    read_header(plain, what)
    dataset = from_plain(plain)
    load_labels(dataset)
    return dataset


def _stored_chunks(model: Fitted, chunks: Mapping[Hashable, int]) -> dict[Hashable, int]:
    """Return the sizes of blocks by the names that dimensions have in the file."""
    locations = {d for fitted in model.variables.values() for d in fitted.locations}
    unknown = [d for d in chunks if d not in locations]
    if unknown:
        raise ValueError(
            f"chunks names {unknown[0]!r}, but the locations of the model are along "
            f"{sorted(map(str, locations))}; leave it out, as every task needs all of it"
        )
    return {
        f"{prefix_of(model, name)}{d}": size
        for d, size in chunks.items()
        for name, fitted in model.variables.items()
        if d in fitted.locations
    }
