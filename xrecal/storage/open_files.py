"""NetCDF files, each opened once per process, for any number of readers.

HDF5 crashes, or raises an error, if a file with text of variable length is opened again while it is
open. So all readers of a file share one open file, from its check to the last of its values.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from xarray.backends import NetCDF4DataStore


class OpenFile(NetCDF4DataStore):
    """An open netCDF file, for :func:`xarray.open_dataset`."""

    __slots__ = ("__weakref__",)


_open: WeakValueDictionary[tuple[str, int, int], OpenFile] = WeakValueDictionary()
"""Open files by path without links, device and number."""

_lock = Lock()


def open_file(path: Path) -> OpenFile:
    """Return the open netCDF file at a path; it closes with the last Dataset that reads it."""
    with _lock:
        found, place = path.stat(), os.path.realpath(path)
        store = _open.get((place, found.st_dev, found.st_ino))
        if store is None:
            store = OpenFile.open(place)  # type: ignore[no-untyped-call]
            _open[place, found.st_dev, found.st_ino] = store
        return store
