"""Values of a hindcast and of new forecasts that are missing beside others, or all that was seen.

:mod:`xrecal.inputs.missing` has the rule.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.missing import LEAST, MILLION, largest_of
from xrecal.chunks.blockwise import on_device
from xrecal.chunks.run import Inputs, Named, run
from xrecal.inputs.forms import Form
from xrecal.inputs.missing import warn_of_absurd, warn_of_customary
from xrecal.inputs.places import like_places

from .cases import largest_known
from .fitted import FittedVariable

SEEN = "the largest that the model has seen"
"""Words for the values with which new ones are compared."""


def largest_seen(fitted: FittedVariable) -> xr.DataArray:
    """Largest absolute value of the members and observations of a fit at each of its locations.

    Zero on a GPU, where nothing is searched. Without labels.
    """
    names = [name for name in (fitted.members, "observations") if name in fitted.arrays]
    seen = {name: fitted.arrays[name] for name in names}
    cores = {name: [d for d in a.dims if d not in fitted.locations] for name, a in seen.items()}
    given: Inputs = {"seen": {name: (array, cores[name]) for name, array in seen.items()}}
    return run(_Largest(), given, {0: ({}, np.float64)}, what="the largest value that was seen")[0]


class _Largest:
    """Arrays (L, ...) in, their largest absolute value (L,) out."""

    on_device = True

    def __call__(self, seen: Named) -> Named:
        return {0: largest_known(*seen.values())}


def warn_of_unseen(forecasts: Iterable[tuple[Form, FittedVariable]]) -> None:
    """Warn of members in memory that are missing beside all that the fit has seen, or may be."""
    for form, fitted in forecasts:
        if isinstance(form.loc.data, np.ndarray):
            name = "forecast" if form.name is None else f"forecast[{form.name!r}]"
            known = without_unseen_values(form.loc, fitted)
            if known.chunks is None:
                found = form.loc.data[np.isnan(known.data) & ~np.isnan(form.loc.data)]
                warn_of_absurd(found, name=name, beside=SEEN)
                warn_of_customary({name: known.data})


def warn_of_unseen_values(observed: xr.DataArray, known: xr.DataArray) -> None:
    """Warn of observations in memory that are missing beside all that was seen, or may be."""
    if observed.dims == known.dims:
        given = np.broadcast_to(observed.to_numpy(), known.shape)
        found = given[np.isnan(known.data) & ~np.isnan(given)]
        warn_of_absurd(found[:0], found, name="forecast", beside=SEEN)
    warn_of_customary({"observations": known.data})


def without_unseen_values(values: xr.DataArray, fitted: FittedVariable) -> xr.DataArray:
    """Members or observations, NaN where missing beside all that a fit has seen at their place.

    Values in memory of which none is that large are returned as they are.
    """
    in_memory = isinstance(values.data, np.ndarray)
    if in_memory and largest_of(values.data[np.newaxis])[0] <= LEAST:
        return values
    if on_device(values):
        return values
    seen = largest_seen(fitted)
    seen = like_places(seen, values, seen.dims, names=("values", "the model"), select=True)
    seen = seen.drop_vars(list(seen.coords))  # whose spelling may be another
    sizes = abs(values)
    absurd = (seen > 0) & (sizes > LEAST) & (sizes < np.inf) & (sizes > MILLION * seen)
    return values.where(~absurd).transpose(*values.dims, ...)
