"""Coastlines of maps, from files of cartopy on this machine; xrecal downloads nothing."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from .reading import Floats
from .style import ink

SCALES = (("10m", 15.0), ("50m", 90.0), ("110m", np.inf))
"""Resolutions of the coastlines of Natural Earth, each with the largest width, in degrees, of a
map that uses it."""


def draw_coastlines(ax: Axes, x: Floats, y: Floats, **how: Any) -> None:
    """Draw coastlines in the area of the longitudes ``x`` and latitudes ``y``, in degrees.

    The function draws nothing if cartopy is not installed, or has not downloaded coastlines before.
    ``how`` may contain the transform of the coordinates.
    """
    left, right, low, high = float(x.min()), float(x.max()), float(y.min()), float(y.max())
    path = _file(max(right - left, high - low))
    if path is None:
        return
    lines = []
    for line in _lines(path):
        for turn in (0.0, 360.0, -360.0):  # longitudes may be from 0 to 360
            moved = line + np.array([turn, 0.0])
            inside = (moved[:, 0] > left - 5) & (moved[:, 0] < right + 5)
            inside &= (moved[:, 1] > low - 5) & (moved[:, 1] < high + 5)
            if inside.any():
                lines.append(moved)
    limits = ax.get_xlim(), ax.get_ylim()
    style: dict[str, Any] = {"colors": [ink(ax)], "linewidths": 0.7, "alpha": 0.8, "zorder": 2.5}
    ax.add_collection(LineCollection(lines, **style, **how), autolim=False)
    ax.set(xlim=limits[0], ylim=limits[1])


def _file(across: float) -> Path | None:
    """Path of the finest file that suits the width, or else of another file; None without files."""
    if find_spec("cartopy") is None:
        return None
    from cartopy import config

    order = sorted(SCALES, key=lambda scale: (scale[1] < across, scale[1]))
    for scale, _ in order:
        for folder in (config["pre_existing_data_dir"], config["data_dir"]):
            name = f"ne_{scale}_coastline.shp"
            path = Path(folder) / "shapefiles" / "natural_earth" / "physical" / name
            if str(folder) and path.is_file():
                return path
    return None


def _lines(path: Path) -> Iterator[Floats]:
    """Longitudes and latitudes (n, 2) of the n points of each line in a file."""
    from cartopy.io.shapereader import Reader

    for geometry in Reader(path).geometries():
        for part in getattr(geometry, "geoms", [geometry]):
            yield np.asarray(part.coords, dtype=np.float64)[:, :2]
