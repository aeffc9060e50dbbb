"""What xrecal.OnlinePool issues, by the public call that replays operations."""

import warnings
from collections.abc import Sequence

import numpy as np
import xarray as xr

import xrecal

from .experts import LEVELS, REFIT
from .streams import Stream

STREAM = "stream"
"""Dimension of the streams of a source."""

SHARING = (
    "toulouse", "prices DE", "prices PJM", "flusight", "hannover", "prices EPEX", "glofas",
)  # fmt: skip
"""Sources whose streams are positions of one system: they share regrets in one call."""


def issued_by_pool(streams: Sequence[Stream]):
    """Quantiles (L, n, J) of each stream from its first day on, as a pool knew them.

    It is fitted to the hindcast, at whose end it warms up, and learns each case as it verifies.
    Several streams of a source are positions of one call.
    """
    one = streams[0]
    window = min(stream.first for stream in streams)
    method = xrecal.OnlinePool(refit=np.timedelta64(REFIT.get(one.source, 90), "D"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        issued = xr.concat([bare(stream.issued, stream) for stream in streams], STREAM)
        observed = xr.concat([bare(stream.observations, stream) for stream in streams], STREAM)
        late = [np.timedelta64(round(24 * stream.lag), "h") for stream in streams]
        valid = issued[one.dim] + xr.DataArray(late, dims=[STREAM])
        found = issued.assign_coords(valid_time=valid).recal.cross_validate(
            observed, method, by="rolling", every=1, window=window, q=list(LEVELS)
        )
    if isinstance(found, xr.Dataset):  # of a normal forecast, by the name of its variable
        (found,) = found.data_vars.values()
    return [quantiles_of(found.isel({STREAM: i}), own) for i, own in enumerate(streams)]


def bare(part, stream: Stream):
    """Forecasts or observations without coordinates in which streams of a source differ."""
    kept = {stream.dim, "location", "member", "quantile"}
    return part.drop_vars([name for name in part.coords if name not in kept])


def quantiles_of(found: xr.DataArray, stream: Stream):
    """Quantiles (L, n, J) of a stream from its first day on."""
    days = stream.issued[stream.dim][stream.first :]
    own = found.sel({stream.dim: days}).transpose(..., stream.dim, "quantile").values
    return own.reshape(-1, *own.shape[-2:])
