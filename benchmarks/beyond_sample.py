"""What a place of a large grid costs, where the places of a sample choose for all of them."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import xarray as xr

from xrecal.inputs.forms import read_forms
from xrecal.inputs.place_order import order_of_places


class Fitted(NamedTuple):
    """A fit of a place, beyond those of a sample."""

    each: float
    """Seconds of a place"""
    choices: float
    """Seconds of what all places share"""
    model: Any
    hindcast: xr.DataArray
    """That it is of"""


def beyond_sample(
    fit: Callable[[xr.DataArray, xr.DataArray], Any],
    hindcast: xr.DataArray,
    observed: xr.DataArray,
    dim: Hashable,
    first: int,
    clock: Callable[[], float],
) -> Fitted:
    """Fit all places, and time them less the first ones.

    Places come in the order in which samples take them, so that both fits search the same ones.
    """
    labels = {dim: range(hindcast.sizes[dim])}
    hindcast, observed = hindcast.assign_coords(labels), observed.assign_coords(labels)
    (form,) = read_forms(hindcast, None, name="hindcast").values()
    order = order_of_places(form, (dim,))
    hindcast, observed = hindcast.isel({dim: order}), observed.isel({dim: order})
    few, some = {dim: slice(2)}, {dim: slice(first)}
    fit(hindcast.isel(few), observed.isel(few))  # compiles
    times = [clock()]
    fit(hindcast.isel(some), observed.isel(some))
    times.append(clock())
    model = fit(hindcast, observed)
    times.append(clock())
    of_first, of_all = times[1] - times[0], times[2] - times[1]
    each = (of_all - of_first) / (order.size - first)
    return Fitted(each, max(of_first - first * each, 0.0), model, hindcast)
