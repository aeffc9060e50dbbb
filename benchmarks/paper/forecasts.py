"""What base models forecast, as arrays, as labelled forecasts, and in a folder of files."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from xrecal.arrays import Forecasts as ArrayForecasts

CACHE = Path(__file__).parent / "cache"
"""Forecasts of models that were trained once; ignored by git."""


class Forecasts(NamedTuple):
    """Mixtures of normal distributions (n, k), or values (s,) that share weights (n, s)."""

    loc: np.ndarray
    scale: np.ndarray | None
    weights: np.ndarray

    @property
    def n(self) -> int:
        return len(self.weights)


class Forecasted(NamedTuple):
    """Forecasts of one model for the cases to calibrate it on and for those of the test."""

    calibration: Forecasts
    test: Forecasts


def labelled(forecasts: Forecasts) -> xr.Dataset:
    """A forecast that xrecal understands, over ``case``."""
    weights = np.ascontiguousarray(forecasts.weights, np.float64)
    if forecasts.scale is None:
        values = xr.DataArray(forecasts.loc, dims="member", name="y")
        return xrecal.weighted(values, xr.DataArray(weights, dims=("case", "member")))
    if weights.shape[1] == 1:
        loc, scale = forecasts.loc[:, 0], forecasts.scale[:, 0]
        loc = xr.DataArray(loc, dims="case", name="y")
        return xrecal.gaussian(loc, xr.DataArray(scale, dims="case"))
    dims = ("case", "component")
    loc = xr.DataArray(forecasts.loc, dims=dims, name="y")
    return xrecal.gaussian(
        loc, xr.DataArray(forecasts.scale, dims=dims), xr.DataArray(weights, dims=dims)
    )


def as_arrays(forecasts: Forecasts) -> ArrayForecasts:
    """With one location in front, as the array layer takes them."""
    loc = np.broadcast_to(forecasts.loc, forecasts.weights.shape)[np.newaxis]
    scale = None if forecasts.scale is None else forecasts.scale[np.newaxis]
    return ArrayForecasts(np.ascontiguousarray(loc), scale, forecasts.weights[np.newaxis])


def observed(y: np.ndarray) -> xr.DataArray:
    """Targets over ``case``."""
    return xr.DataArray(np.asarray(y, np.float64), dims="case", name="y")


def kept(path: Path, make: Callable[[], Forecasted]) -> Forecasted:
    """Forecasts from a file, which is written first if it is not there."""
    if not path.exists():
        made = make()
        arrays = {
            f"{part}_{name}": array
            for part, forecasts in made._asdict().items()
            for name, array in forecasts._asdict().items()
            if array is not None
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".tmp.npz")
        np.savez_compressed(partial, **{k: a.astype(np.float32) for k, a in arrays.items()})
        partial.replace(path)
    with np.load(path) as file:
        parts = [
            {name: file.get(f"{part}_{name}") for name in Forecasts._fields}
            for part in Forecasted._fields
        ]
    return Forecasted(*(Forecasts(**{k: _wide(a) for k, a in part.items()}) for part in parts))


def _wide(array: np.ndarray | None) -> np.ndarray | None:
    return None if array is None else array.astype(np.float64)
