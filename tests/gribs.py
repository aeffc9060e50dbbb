"""GRIB2 files of arrays, written with eccodes alone."""

from itertools import product

import numpy as np
import pytest

GRID = "OfFirstGridPointInDegrees", "OfLastGridPointInDegrees"


def write_grib(path, *arrays, **keys):
    """Write a message for each start, step in hours and member of arrays.

    An array has the dimensions lat and lon, and some of time, step and number. It is named by
    GRIB's short name.
    """
    eccodes = pytest.importorskip("eccodes", reason="needs pip install 'xrecal[grib]'")
    with path.open("wb") as file:
        for array in arrays:
            headers = [d for d in ("time", "step", "number") if d in array.dims]
            for at in product(*(range(array.sizes[d]) for d in headers)):
                one = array.isel(dict(zip(headers, at, strict=True)))
                message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
                for key, value in (_described(one) | keys).items():
                    eccodes.codes_set(message, key, value)
                values = one.transpose("lat", "lon").to_numpy().astype(np.float64).ravel()
                eccodes.codes_set_values(message, np.nan_to_num(values, nan=9999.0))
                eccodes.codes_write(message, file)
                eccodes.codes_release(message)
    return path


def _described(one):
    """Keys of a message in the order in which they are set."""
    start = one["time"].to_numpy().astype("datetime64[s]").item()
    keys = {"productDefinitionTemplateNumber": int("number" in one.coords)}
    if one.name == "tp":  # a sum over time
        keys["productDefinitionTemplateNumber"] = 11
    keys |= {"shortName": one.name, "dataDate": int(f"{start:%Y%m%d}"), "dataTime": 0}
    keys |= {"endStep": int(one["step"])} if "step" in one.coords else {}
    if "number" in one.coords:
        keys |= {"perturbationNumber": int(one["number"])}
        keys |= {"typeOfProcessedData": 3 + (int(one["number"]) > 0)}  # control, perturbed
    for name, dim, n in (("latitude", "lat", "Nj"), ("longitude", "lon", "Ni")):
        labels = one[dim].to_numpy().astype(float)
        keys[n] = labels.size
        keys |= {name + end: float(labels[i]) for end, i in zip(GRID, (0, -1), strict=True)}
        keys[f"{n[1]}DirectionIncrementInDegrees"] = float(np.ptp(labels[:2]) or 1)
    keys["jScansPositively"] = int(one["lat"][-1] > one["lat"][0])
    return keys | {"bitsPerValue": 16, "bitmapPresent": 1, "missingValue": 9999.0}
