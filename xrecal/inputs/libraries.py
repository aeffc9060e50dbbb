"""Optional libraries: which one is missing, and what to type."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDED = {"zarr": "zarr", "netcdf": "netCDF4"}


def require_library(file_format: str) -> None:
    """Raise ImportError unless the library of a format is installed."""
    if find_spec(_NEEDED[file_format]) is None:
        raise ImportError(
            f"{file_format} files need {_NEEDED[file_format]}, which is not installed; use "
            "pip install 'xrecal[io]'"
        )
