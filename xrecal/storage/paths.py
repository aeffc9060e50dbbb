"""Files and stores: which format, and written so that what stands at a path is always complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import uuid4

from xrecal.inputs.libraries import require_library

FileFormat: TypeAlias = Literal["zarr", "netcdf"]

_SUFFIXES: dict[str, FileFormat] = {".zarr": "zarr", ".nc": "netcdf"}


def local_path(path: str | PathLike[str], *, name: str) -> Path:
    """A path on this machine; raises ValueError for an address."""
    text = fspath(path)
    if "://" in text:
        raise ValueError(f"{name} must be a path on this machine, got {text!r}; copy it first")
    return Path(text)


def format_to_write(path: Path) -> FileFormat:
    """Format of a new file by its suffix; raises ValueError for another one."""
    if path.suffix not in _SUFFIXES:
        raise ValueError(
            f"the name {path.name!r} must end in .zarr (a Zarr store) or .nc (a netCDF file)"
        )
    require_library(_SUFFIXES[path.suffix])
    return _SUFFIXES[path.suffix]


def format_of(path: Path) -> FileFormat:
    """Format of what there is: stores are directories.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}")
    file_format: FileFormat = "zarr" if path.is_dir() else "netcdf"
    require_library(file_format)
    return file_format


def partial_of(path: Path) -> Path:
    """Folder of a run of the command line that has not finished yet."""
    return path.with_name(f"{path.name}.partial")


def require_free(path: Path, overwrite: bool, remedy: str) -> None:
    """Raise FileExistsError or, without a folder, FileNotFoundError."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; {remedy}")


def put_in_place(new: Path, path: Path) -> None:
    """Move a complete file or store to its path, in place of what is there."""
    if not path.is_dir():
        new.replace(path)
        return
    old = _beside(path)
    path.rename(old)
    new.rename(path)
    shutil.rmtree(old)


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to, moved there if nothing fails and removed otherwise."""
    aside = _beside(path)
    try:
        yield aside
        put_in_place(aside, path)
    finally:
        remove(aside)


def remove(path: Path) -> None:
    """Remove a file, a store, or nothing."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex[:8]}")
