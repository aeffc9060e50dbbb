"""Writing of quantiles and probabilities in GRIB2, as changed copies of the forecast's messages.

For each field, xrecal copies the first message of the forecast with the same variable, times and
level, and replaces the values and the template in the copy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from .grib import PERCENTILES, PROBABILITIES, TEMPLATE, Field, fields_of

_TIMES = ("time", "step", "forecastMonth")
_GRIDS = (("latitude", "longitude"), ("y", "x"), ("values",))
_MOST_DIGITS, _LARGEST = 9, 2**31 - 1  # of decimal places and of the scaled value of a threshold


def written_as_grib(dataset: xr.Dataset, path: Path) -> xr.Dataset:
    """Return the variables that GRIB can store: quantiles and probabilities of exceedance.

    Raises
    ------
    ValueError
        If there is no such variable, or a level or threshold has too many digits.
    """
    products = _products(dataset)
    if not products:
        raise ValueError(
            f"{path.name} would be a GRIB file, which takes only quantiles and probabilities "
            "of exceedance; use a name that ends in .zarr or .nc"
        )
    for name, dim in products.items():
        for value in dataset[name][dim].to_numpy():
            _keys(dim, float(value))
    return dataset[list(products)]


def _products(dataset: xr.Dataset) -> dict[Hashable, str]:
    """Return the variables that GRIB can store, each with its dimension of levels or thresholds."""
    dims = ("quantile", "threshold")
    return {name: d for name, array in dataset.items() for d in dims if d in array.dims}


def write_grib(dataset: xr.Dataset, forecast: Path, path: Path) -> None:
    """Write the variables of a Dataset that GRIB can store, one message for each field.

    Parameters
    ----------
    dataset : Dataset
        Products of a forecast, with the coordinates of the forecast.
    forecast : Path
        GRIB file of the forecast.
    path : Path
        File to write.

    Raises
    ------
    ValueError
        If the forecast has no message with the variable, times and level of a field, or if the
        message has other places than the field.
    """
    fields = fields_of(forecast)
    with path.open("wb") as file:
        for name, dim in _products(dataset).items():
            own = [f for f in fields if name in (f["cfVarName"], f["shortName"])]
            for like, array in _with_messages(dataset[name], own, str(forecast)):
                for i, value in enumerate(array[dim].to_numpy()):
                    values = array.isel({dim: i}).to_numpy().ravel()
                    _write(file, like, dim, float(value), values)


def _with_messages(
    array: xr.DataArray, fields: list[Field], forecast: str
) -> Iterator[tuple[Field, xr.DataArray]]:
    """Yield, for each time and level, the message to copy and the array of new values."""
    level = str(fields[0]["typeOfLevel"]) if fields else ""
    keys = {c: c for c in _TIMES if c in array.coords}
    keys |= {level: "level:float"} if level in array.coords else {}
    messages: dict[tuple[Any, ...], Field] = {}
    for field in fields:
        messages.setdefault(tuple(float(field[key]) for key in keys.values()), field)
    headers = [d for d in array.dims if d in keys]
    grid = next((dims for dims in _GRIDS if {*dims} <= {*array.dims}), ())
    for at in product(*(range(array.sizes[d]) for d in headers)):
        one = array.isel(dict(zip(headers, at, strict=True))).transpose(..., *grid)
        like = messages.get(tuple(_number(one.coords[c]) for c in keys))
        size = int(np.prod([one.sizes[d] for d in grid]))
        if like is None or size != like["numberOfPoints"] or one.ndim != len(grid) + 1:
            raise ValueError(
                f"{forecast} has no field of {array.name!r} with the times and places of the "
                "result; use a name that ends in .zarr or .nc"
            )
        yield like, one


def _number(label: xr.DataArray) -> float:
    """Return a label as the number that cfgrib uses: dates in seconds, steps in hours."""
    value = label.to_numpy()
    if value.dtype.kind == "M":
        return float(value.astype("datetime64[s]").astype(np.int64))
    if value.dtype.kind == "m":
        return float(value / np.timedelta64(1, "h"))
    return float(value)


def _keys(dim: str, value: float) -> dict[str, int]:
    """Return the keys of GRIB that describe a quantile level or a threshold.

    Raises
    ------
    ValueError
        If a level is not a whole per cent, or a threshold has too many digits.
    """
    if dim == "quantile":
        if abs(100 * value - round(100 * value)) > 1e-9:
            raise ValueError(
                f"GRIB takes quantile levels of whole per cents, but one level is {value}; use "
                "other levels, or a name that ends in .zarr or .nc"
            )
        return {"percentileValue": round(100 * value)}
    for digits in range(_MOST_DIGITS + 1):
        scaled = value * 10**digits
        whole = round(scaled)
        if abs(scaled - whole) <= 1e-12 * max(abs(scaled), 1) and abs(whole) <= _LARGEST:
            return {"scaleFactorOfUpperLimit": digits, "scaledValueOfUpperLimit": whole}
    raise ValueError(
        f"GRIB takes thresholds of at most nine digits, but one threshold is {value}; round it, or "
        "use a name that ends in .zarr or .nc"
    )


def _write(
    file: Any, like: Field, dim: str, value: float, values: npt.NDArray[np.floating[Any]]
) -> None:
    """Write a copy of a message with a new template and values; probabilities are in per cent."""
    import eccodes

    original = like.message  # keep it: its memory is freed with it
    message = eccodes.codes_clone(original.codes_id)
    try:
        for key, number in _described(original, dim, value).items():
            eccodes.codes_set(message, key, number)
        for key in ("scaleFactorOfLowerLimit", "scaledValueOfLowerLimit") * (dim == "threshold"):
            eccodes.codes_set_missing(message, key)
        given = values.astype(np.float64) * (1.0 if dim == "quantile" else 100.0)
        missing = np.isnan(given)
        if missing.any():
            outside = float(np.nanmax(given, initial=0.0)) + 1e4
            given[missing] = outside
            eccodes.codes_set(message, "bitmapPresent", 1)
            eccodes.codes_set(message, "missingValue", outside)
        eccodes.codes_set_values(message, given)
        eccodes.codes_write(message, file)
    finally:
        eccodes.codes_release(message)


def _described(original: Mapping[str, Any], dim: str, value: float) -> Mapping[str, Any]:
    """Return the keys to set in a copy of a message, in the order of setting."""
    at_once = original["stepType"] == "instant"
    templates = PERCENTILES if dim == "quantile" else PROBABILITIES
    keys: dict[str, Any] = {"edition": 2, "deleteLocalDefinition": 1}
    keys[TEMPLATE] = templates[0] if at_once else templates[1]
    if dim == "threshold":
        keys |= {"typeOfProcessedData": 8, "typeOfGeneratingProcess": 5, "probabilityType": 1}
    else:
        keys |= {"typeOfProcessedData": 5, "typeOfGeneratingProcess": 13}
    if original["packingType"] not in ("grid_simple", "grid_ccsds"):
        keys["packingType"] = "grid_simple"
    return keys | _keys(dim, value) | {"bitsPerValue": 24}
