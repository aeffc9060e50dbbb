"""NetCDF files, each open once in a process, however many read it.

HDF5 ends the process, or answers with an error, where a file with text of variable length is opened
again while it is open. So all readers of a file share one open file, from its check to the last of
its values.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from uuid import uuid4
from weakref import WeakValueDictionary

from xarray.backends import NetCDF4DataStore

CRASHING = ("1.7.3", "1.7.4", "1.7.5")
"""Versions of netCDF4 with which the process ends there; ``pyproject.toml`` excludes them."""


class OpenFile(NetCDF4DataStore):
    """An open netCDF file, for :func:`xarray.open_dataset`."""

    __slots__ = ("__weakref__",)


_open: WeakValueDictionary[tuple[str, int, int], OpenFile] = WeakValueDictionary()
"""Files that are read, by path without links, device and number."""

_lock = Lock()


def open_file(path: Path) -> OpenFile:
    """The open netCDF file at a path; it closes with the last Dataset that reads it.

    Raises
    ------
    ValueError
        If somebody else holds the file open, and to open it again may end the process.
    """
    with _lock:
        found, place = path.stat(), os.path.realpath(path)
        store = _open.get((place, found.st_dev, found.st_ino))
        if store is None:
            _require_safe(path, found)
            store = OpenFile.open(place)  # type: ignore[no-untyped-call]
            _open[place, found.st_dev, found.st_ino] = store
        return store


def _require_safe(path: Path, found: os.stat_result) -> None:
    """Raise ValueError for a file with text that is open, with a netCDF4 that ends the process."""
    import netCDF4

    version = netCDF4.__version__
    if version.startswith(CRASHING) and _is_open(found) and _has_text(path):
        raise ValueError(
            f"{path} holds text and is open in this process already, and netCDF4 {version} ends a "
            "process that opens such a file twice; close the Dataset that was opened first "
            "(dataset.close()), or use pip install 'xrecal[io]' 'netcdf4<1.7.3'"
        )


def _is_open(found: os.stat_result) -> bool:
    """Whether this process has a file open, by the numbers that POSIX gives to open files."""
    folder = Path("/dev/fd")
    for name in os.listdir(folder) if folder.is_dir() else ():
        try:
            if os.path.samestat(os.fstat(int(name)), found):
                return True
        except OSError:  # closed meanwhile, as the one that has listed the folder
            continue
    return False


def _has_text(path: Path) -> bool:
    """Whether a file has variables of text, from a copy in memory: to open the file is not safe."""
    import netCDF4
    from xarray.backends.netCDF4_ import NETCDF4_PYTHON_LOCK

    def has_text(group: netCDF4.Dataset) -> bool:
        own = any(variable.dtype is str for variable in group.variables.values())
        return own or any(map(has_text, group.groups.values()))

    name = f"copy-{uuid4().hex}"
    with NETCDF4_PYTHON_LOCK, netCDF4.Dataset(name, memory=path.read_bytes()) as copy:
        return has_text(copy)
