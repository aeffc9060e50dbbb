"""Check for optional libraries; errors name a missing library and the command that installs it."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec

CRASHING = ("1.7.3", "1.7.4", "1.7.5")
"""Versions of netCDF4 that crash if a process opens the same file twice and the file holds text."""

_NEEDED = {
    "zarr": ("zarr", "io"),
    "netcdf": ("netCDF4", "io"),
    "grib": ("cfgrib", "grib"),
    "parquet": ("pyarrow", "hubs"),
}


def require_library(file_format: str) -> None:
    """Raise ImportError unless a working version of the library for a format is installed."""
    library, extra = _NEEDED[file_format]
    if find_spec(library) is None:
        raise ImportError(
            f"{file_format} files need {library}, which is not installed; use "
            f"pip install 'xrecal[{extra}]'"
        )
    if file_format == "netcdf" and version("netCDF4").startswith(CRASHING):
        raise ImportError(
            f"netCDF4 {version('netCDF4')} crashes if a process opens the same file "
            "twice and the file holds text; use pip install 'xrecal[io]' 'netcdf4<1.7.3'"
        )
