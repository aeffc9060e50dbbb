"""What a place of a large grid costs, where the places of a sample choose for all of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import xarray as xr

from xrecal.fit.together import ChooseTask


class Fitted(NamedTuple):
    """A fit of many places on one thread."""

    each: float
    """Seconds of a place, without the search"""
    choices: float
    """Seconds of the search at the places of the sample, which all places share"""
    model: Any


def beyond_sample(
    fit: Callable[[xr.DataArray, xr.DataArray], Any],
    hindcast: xr.DataArray,
    observed: xr.DataArray,
    dim: str,
    clock: Callable[[], float],
) -> Fitted:
    """Fit all places, and time the search apart.

    The difference of two fits would not do: a search takes as long as hundreds of places, and the
    speed of a machine varies from minute to minute.
    """
    few = {dim: slice(2)}
    fit(hindcast.isel(few), observed.isel(few))  # compiles
    with time_of_search(clock) as searches:
        start = clock()
        model = fit(hindcast, observed)
        whole = clock() - start
    return Fitted((whole - sum(searches)) / hindcast.sizes[dim], sum(searches), model)


@contextmanager
def time_of_search(clock: Callable[[], float]) -> Iterator[list[float]]:
    """Seconds of each search for settings inside the block."""
    seconds: list[float] = []
    search = ChooseTask.__call__

    def timed(task: ChooseTask, *cases: Any, **more: Any) -> Any:
        start = clock()
        found = search(task, *cases, **more)
        seconds.append(clock() - start)
        return found

    with patch.object(ChooseTask, "__call__", timed):
        yield seconds
