"""Small labelled arrays for tests of names, labels and dates."""

import numpy as np
import xarray as xr

SIZES = {"time": 30, "init": 30, "lat": 3, "lon": 2, "member": 5, "component": 2, "quantile": 4}
DATES = xr.date_range("2000-01-01", periods=30, freq="D", use_cftime=False)


def random(*dims, seed=0, name="t2m", sizes=None, **coords):
    """Normal numbers over dimensions, dated along time unless ``time=None``."""
    sizes = SIZES | {d: 3 for d in dims if d not in SIZES} | (sizes or {})
    if "time" in dims and "time" not in coords:
        coords["time"] = DATES[: sizes["time"]]
    values = np.random.default_rng(seed).normal(size=[sizes[d] for d in dims])
    coords = {c: v for c, v in coords.items() if v is not None}
    return xr.DataArray(values, dims=dims, coords=coords, name=name)


def freeze(obj):
    """Make the arrays of an xarray object read-only, so that writing to them raises."""
    for array in obj.data_vars.values() if isinstance(obj, xr.Dataset) else [obj]:
        array.values.flags.writeable = False
    return obj
