"""Formats of files and stores, and safe writing: a path always has a complete result.

A process with the lock ``NAME.lock`` writes to a folder ``NAME.partial`` next to ``NAME``, and then
renames the result to ``NAME``. A renamed file replaces an old file in one step. A folder cannot
replace another folder, so the process first moves the old folder into ``NAME.partial``. After a
crash between these two steps, the next process moves the old folder back (:func:`restore`).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias

from xrecal.arrays.advice import Advice
from xrecal.inputs.libraries import require_library

from .grib import is_grib
from .lock import locked, require_held

FileFormat: TypeAlias = Literal["zarr", "netcdf", "grib"]

MARK = "xrecal_request.json"
"""File that marks a temporary folder of xrecal; xrecal never removes other folders."""

STORE, REPLACED = "store.zarr", "replaced"
"""Names in the temporary folder: store of finished blocks, and old result to be replaced."""

_OF_STORES = ("zarr.json", ".zgroup", ".zarray")

_SUFFIXES: dict[str, FileFormat] = {".zarr": "zarr", ".nc": "netcdf"}


def local_path(path: str | PathLike[str], *, name: str) -> Path:
    """Return a path on this machine; raise ValueError for an address of the form a://b."""
    text = fspath(path)
    if "://" in text:
        raise ValueError(f"{name} must be a path on this machine, got {text!r}; copy it first")
    return Path(text)


def format_to_write(path: Path) -> FileFormat:
    """Return the format of a new file by its suffix; raise ValueError for an unknown suffix."""
    if path.suffix not in _SUFFIXES:
        raise ValueError(
            f"the name {path.name!r} must end in .zarr (a Zarr store) or .nc (a netCDF file)"
        )
    require_library(_SUFFIXES[path.suffix])
    return _SUFFIXES[path.suffix]


def format_of(path: Path) -> FileFormat:
    """Return the format of an existing file or store; a directory is a Zarr store.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    """
    if not path.exists():
        one = "; give one file, because patterns are for cycle" if "*" in path.name else ""
        raise FileNotFoundError(f"there is no {path}{one}")
    file_format: FileFormat = "grib" if is_grib(path) else "netcdf"
    file_format = "zarr" if path.is_dir() else file_format
    require_library(file_format)
    return file_format


def real_path(path: Path) -> Path:
    """Return the target of a link; return a path that is not a link unchanged.

    Callers replace the target, so that the link stays.
    """
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def partial_of(path: Path) -> Path:
    """Return the path of the temporary folder for new content, next to a path."""
    place = real_path(path)
    return place.with_name(f"{place.name}.partial")


def can_go_on(path: Path) -> bool:
    """Return whether an interrupted run has left blocks that a later run can use."""
    return all((partial_of(path) / name).exists() for name in (MARK, STORE))


def require_free(path: Path, overwrite: bool, remedy: str) -> None:
    """Raise an error if writing to a path would fail, or would remove files without permission.

    Raises
    ------
    FileExistsError
        If the path exists and ``overwrite`` is False, or is a folder but not a Zarr store, or if
        ``NAME.partial`` is not from xrecal. xrecal never removes such folders.
    FileNotFoundError
        If the folder of the path does not exist.
    """
    place = real_path(path)
    require_folder(path)
    if place.is_dir() and not any((place / name).exists() for name in _OF_STORES):
        raise FileExistsError(
            f"{path} is a folder but not a Zarr store, {_holding(place)}; move it away, or take "
            "another path"
        )
    if path.exists() and not overwrite:
        raise FileExistsError(Advice(f"{path} exists; ", remedy))
    folder = partial_of(path)
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if os.path.lexists(folder) and not is_empty and not (folder / MARK).exists():
        raise FileExistsError(
            f"{folder} is in the way of {path.name} and is not from xrecal, "
            f"{_holding(folder)}; move it away, or take another path"
        )


def require_folder(path: Path) -> None:
    """Raise FileNotFoundError if the folder of a path does not exist."""
    place = real_path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {place.parent} to write {place.name} to")


def _holding(folder: Path) -> str:
    """Describe the content of a folder, for messages."""
    if not folder.is_dir():
        return "but a file"
    names = sorted(os.listdir(folder))
    return f"holding {', '.join(names[:3]) or 'nothing'}" + (" and more" if names[3:] else "")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Lock a path for writing; if a crash left an old result in ``NAME.partial``, move it back.

    Raises
    ------
    FileNotFoundError
        If the folder of the path does not exist.
    FileExistsError
        If another process writes to the path.
    """
    require_folder(path)
    with locked(real_path(path)):
        restore(path)
        yield


@contextmanager
def written_aside(path: Path, check: Callable[[Path], object]) -> Iterator[Path]:
    """Yield a temporary path to write to; then move the result to ``path`` if nothing has failed.

    Use it within :func:`writing`. ``check`` raises an error unless the result can be read.
    """
    try:
        new = begin_partial(path, "{}") / f"new{path.suffix}"
        try:
            yield new
        except RuntimeError as error:
            if not str(error).startswith("NetCDF"):  # its library gives no reason
                raise
            raise UnwritableError(f"{path} cannot be written: {error}") from error
        sync(new.rglob("*") if new.is_dir() else [new], new.parent)
        put_in_place(new, path, check)
    finally:
        discard_partial(path)


def begin_partial(path: Path, request: str) -> Path:
    """Make a new folder ``NAME.partial``, with a file that has the request as JSON."""
    discard_partial(path)
    folder = partial_of(path)
    folder.mkdir(exist_ok=True)
    (folder / MARK).write_text(request)
    return folder


class UnwritableError(OSError):
    """Error if a disk cannot store a result; the previous result stays at its path."""

    errno = errno.ENOSPC  # the netCDF library gives no reason


class UnreadableResultError(ValueError):
    """Error if a new result cannot be read back; the previous result stays at its path."""


def put_in_place(new: Path, path: Path, check: Callable[[Path], object]) -> None:
    """Move a new result from ``NAME.partial`` to ``NAME``.

    A rename cannot replace a folder, so an old folder ``NAME`` first moves into ``NAME.partial``.

    Raises
    ------
    UnreadableResultError
        If ``check`` raises an error for the new result.
    """
    try:
        check(new)
    except Exception as error:
        raise UnreadableResultError(
            f"the new result for {path} cannot be opened, so {path} is left as it was: {error}; "
            "check labels, attributes and values of the inputs, and the disk"
        ) from error
    place = real_path(path)
    require_held(place)
    if place.is_dir() or (new.is_dir() and place.exists()):
        place.rename(partial_of(path) / REPLACED)
    new.replace(place)
    sync([], place.parent)


def restore(path: Path) -> None:
    """Move the old result back to its path, if :func:`put_in_place` was interrupted."""
    folder, place = partial_of(path), real_path(path)
    if (folder / MARK).exists() and (folder / REPLACED).exists() and not place.exists():
        (folder / REPLACED).rename(place)


def discard_partial(path: Path) -> None:
    """Remove the folder ``NAME.partial``, if there is one.

    The function first renames the store, so that no later run continues with its blocks. It removes
    the file that marks a folder of xrecal last. So after a crash, the next call can remove the
    rest.
    """
    folder = partial_of(path)
    if not folder.exists():
        return
    require_held(real_path(path))
    if not (folder / MARK).exists():  # not from xrecal, unless it is empty
        folder.rmdir()
        return
    restore(path)
    if (folder / STORE).exists():
        (folder / STORE).rename(folder / "discarded")
    for one in folder.iterdir():
        if one.name != MARK:
            remove(one)
    (folder / MARK).unlink(missing_ok=True)
    folder.rmdir()


def remove(path: Path) -> None:
    """Remove a file or a store, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync(paths: Iterable[Path], within: Path) -> None:
    """Wait until files, and their names in all folders up to ``within``, are on disk."""
    folders = {within}
    for path in paths:
        if path.is_file():
            _sync(path)
        for folder in path.parents:
            if folder in folders:
                break
            folders.add(folder)
    for folder in folders if os.name == "posix" else ():  # needless on other systems
        _sync(folder)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
