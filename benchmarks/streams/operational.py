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
"""Sources whose streams are positions of one system: what they know is shared in one call."""

BY_VALID_TIME = ("hannover",)
"""Sources whose cases are dated by valid time, so that one date is of several issues."""


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
        late = [as_hours(stream.lag) for stream in streams]
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
    alone = part.drop_vars([name for name in part.coords if name not in kept])
    return alone.assign_coords({stream.dim: alone[stream.dim] - begun_before(stream)})


def begun_before(stream: Stream):
    """Time from when a forecast is issued to the date of its case."""
    return as_hours(stream.lag if stream.source in BY_VALID_TIME else 0.0)


def as_hours(days):
    """A length of time in whole hours."""
    return np.timedelta64(round(24 * days), "h")


def quantiles_of(found: xr.DataArray, stream: Stream):
    """Quantiles (L, n, J) of a stream from its first day on."""
    days = stream.issued[stream.dim][stream.first :] - begun_before(stream)
    own = found.sel({stream.dim: days}).transpose(..., stream.dim, "quantile").values
    return own.reshape(-1, *own.shape[-2:])
