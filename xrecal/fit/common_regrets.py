"""Common regrets of places: a first pass over a sample of them, with a small result.

The tasks of the second pass get it along with their own cases, so the result does not depend on
chunks or on the order of places.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.run import Array, Inputs, Named, Outputs, run
from xrecal.inputs.forms import Form
from xrecal.inputs.place_order import order_of_places
from xrecal.methods import Method
from xrecal.typing import IntArray

from .cases import OBSERVATIONS, parameters_of

if TYPE_CHECKING:
    from xrecal.arrays.online.common import Timeline

SAMPLE = 64
"""Number of places with observations that represent all: an eighth of the noise of one."""

READ = 512
"""Number of places that are read, as some may have no observations."""

PLACE = "xrecal_sampled"
"""Dimension of the places that are read."""

TIMELINES = "timelines"

NOTHING: Named = MappingProxyType({})
"""A group without arrays."""


class Recording(Protocol):
    """A task on a chunk of places that can run the first pass."""

    @property
    def method(self) -> Method:
        """The method that learns."""

    @property
    def periods(self) -> Mapping[str, float | None]:
        """Covariates, and the periods of circular ones."""

    def record(self, **given: Named) -> Sequence[Timeline | None]:
        """Common regrets of the places in each round."""


def with_common_regrets(
    task: Recording, given: Inputs, form: Form, places: Sequence[Hashable]
) -> tuple[dict[str, Any], dict[str, xr.DataArray]]:
    """Inputs of a task, with common regrets of places if its method needs them.

    Parameters
    ----------
    task : Recording
        The task of the second pass.
    given : mapping
        Its inputs.
    form : Form
        Forecasts, with the labels of places.
    places : sequence of hashable
        Dimensions of places; none if cases are pooled.

    Returns
    -------
    tuple
        The inputs, and the parameters that all places share; none for a single place.
    """
    along = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    shape = [along[d] for d in places]
    if not task.method.in_common or math.prod(shape) < 2:
        return {**given}, {}
    order = order_of_places(form, places)[:READ]
    at = dict(zip(places, np.unravel_index(order, shape), strict=True))
    sampled = {
        group: {name: _sampled(array, core, at) for name, (array, core) in of.items()}
        for group, of in given.items()
    }
    out: Outputs = {
        TIMELINES: ({}, object),
        **{name: (own, np.float64) for name, own in _sizes_of_shared(task).items()},
    }
    found = run(_FirstPass(task), sampled, out, what="the first pass over places")
    return {**given, "common": {0: (found.pop(TIMELINES), ())}}, found


def nothing_in_common(task: Recording) -> dict[str, xr.DataArray]:
    """Empty common parameters of all places."""
    if not task.method.in_common:
        return {}
    sizes = _sizes_of_shared(task).items()
    return {n: xr.DataArray(np.full([*own.values()], np.nan), dims=[*own]) for n, own in sizes}


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Objects as an array (n,), without looking into them."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _sizes_of_shared(task: Recording) -> dict[str, dict[Hashable, int]]:
    """Dimensions and sizes of the parameters that all places share."""
    parameters = parameters_of(task.method, task.periods).items()
    return {
        name: dict(p.sizes(0).items()) for name, p in parameters if name in task.method.in_common
    }


def _sampled(
    array: Array, core: Sequence[Hashable], at: Mapping[Hashable, IntArray]
) -> tuple[xr.Variable, tuple[Hashable, ...]]:
    """An array at the places that are read, which become its first core dimension."""
    variable = array.variable if isinstance(array, xr.DataArray) else array
    own = {d: xr.Variable(PLACE, i) for d, i in at.items() if d in variable.dims}
    taken = variable.isel(own)
    if not own:
        n = next(iter(at.values())).size
        taken = xr.DataArray(variable).expand_dims({PLACE: n}).variable
    if taken.chunks is not None:
        whole = {taken.dims.index(PLACE): -1}  # xarray would compute the objects
        taken = taken.copy(data=taken.data.rechunk(whole))
    return taken.transpose(PLACE, *core), (PLACE, *core)


@dataclass(frozen=True)
class _FirstPass:
    """Function from arrays of the places that are read to the common regrets of some of them."""

    task: Recording

    def __call__(self, **given: Named) -> dict[str, npt.NDArray[Any]]:
        """Run the task on the first places that have observations."""
        observed = given["state"][OBSERVATIONS] if "state" in given else given["observed"][0]
        there = np.isfinite(observed[0]).any(-1)
        which = np.flatnonzero(there | ~there.any())[:SAMPLE]
        own = {g: {name: a[0][which] for name, a in of.items()} for g, of in given.items()}
        found = self.task.record(**own)
        out = {TIMELINES: as_objects([found])}
        for name, sizes in _sizes_of_shared(self.task).items():
            out[name] = np.full((1, *sizes.values()), np.nan)
            if found[-1] is not None:
                out[name][0] = found[-1].last
        return out
