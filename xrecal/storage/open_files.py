"""NetCDF files: a process opens each file once, for any number of readers.

HDF5 crashes, or raises an error, if a file with text of variable length is opened again while it is
open. So all readers of a file share one open file, from the first check to the last value.
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
"""Open files, by real path, number of the device and number of the file."""

_lock = Lock()


def open_file(path: Path) -> OpenFile:
    """Return a netCDF file, opened if necessary; its last reader closes it."""
    with _lock:
        found, place = path.stat(), os.path.realpath(path)
        store = _open.get((place, found.st_dev, found.st_ino))
        if store is None:
            store = OpenFile.open(place)  # type: ignore[no-untyped-call]
            _open[place, found.st_dev, found.st_ino] = store
        return store
