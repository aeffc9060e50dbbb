"""What xrecal.OnlinePool issues, by the public call that replays operations."""

import warnings

import numpy as np
import xarray as xr

import xrecal

from .experts import LEVELS, REFIT
from .streams import Stream


def issued_by_pool(stream: Stream):
    """Quantiles (L, n, J) from the first day on, each by a pool that knew what had verified.

    It is fitted to the hindcast, at whose end it warms up, and learns each case as it verifies.
    """
    method = xrecal.OnlinePool(
        delay=np.timedelta64(round(24 * stream.lag), "h"),
        refit=np.timedelta64(REFIT.get(stream.source, 90), "D"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The delay tells all of the time to verification: labels of a lead would count it twice.
        bare = stream.issued.drop_vars(["lead", "valid_time"], errors="ignore")
        issued = bare.recal.cross_validate(
            stream.observations, method, by="rolling", every=1, window=stream.first, q=list(LEVELS)
        )
    if isinstance(issued, xr.Dataset):  # of a normal forecast, by the name of its variable
        (issued,) = issued.data_vars.values()
    later = issued.isel({stream.dim: slice(stream.first, None)})
    quantiles = later.transpose(..., stream.dim, "quantile").values
    return quantiles.reshape(-1, *quantiles.shape[-2:])
