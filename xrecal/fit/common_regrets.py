"""Compute what places have in common, such as common regrets, in a first pass over some places.

The first pass runs the method at a sample of the places. The second pass fits all places. Each task
of the second pass gets the common regrets along with its own cases, so the result does not depend
on chunks or on the order of places.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import is_lazy, require_one_side
from xrecal.chunks.run import (
    Call,
    Inputs,
    Named,
    Outputs,
    arrays_of,
    labelled,
    looped_sizes,
    of_each_chunk,
    run,
    with_axes,
)
from xrecal.chunks.warnings import warn
from xrecal.inputs.covariates import issued_together
from xrecal.inputs.forms import Form
from xrecal.inputs.place_order import order_of_places
from xrecal.methods import Method
from xrecal.typing import IntArray

from .cases import OBSERVATIONS, parameters_of

if TYPE_CHECKING:
    from xrecal.arrays.online.common import Timeline

SAMPLE = 64
"""Number of places in the sample. The random error of a mean over 64 places is an eighth of the
error of one place."""

RANK = "rank"
"""Name of the group of inputs with the ranks (L,) of places in the sample, -1 for other places."""

TIMELINES = "timelines"
FIRST_PASS = "the first pass over places"

NOTHING: Named = MappingProxyType({})
"""Group of inputs without arrays."""


class Recording(Protocol):
    """A task on a chunk of places; in the first pass, it can also compute common regrets."""

    @property
    def method(self) -> Method:
        """Method that learns from the cases."""

    @property
    def periods(self) -> Mapping[str, float | None]:
        """Period of each covariate by name; None if it is not circular."""

    def record(self, **given: Named) -> Sequence[Timeline | None]:
        """Return the common regrets of the places, one entry for each round (fit or update)."""


def with_common_regrets(
    task: Recording, given: Inputs, form: Form, places: Sequence[Hashable]
) -> tuple[dict[str, Any], dict[str, xr.DataArray]]:
    """Return the inputs of a task, with common regrets of places if the method needs these.

    Parameters
    ----------
    task : Recording
        The task of the second pass.
    given : mapping
        Inputs of the task.
    form : Form
        Forecasts, with the labels of places.
    places : sequence of hashable
        Dimensions of places; empty if cases are pooled.

    Returns
    -------
    tuple
        The inputs, and the parameters that all places share. There are no such parameters for a
        single place, if the method needs no common regrets, or if forecasts with equal labels are
        not issued at the same time.
    """
    along = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    shape = [along[d] for d in places]
    if not task.method.in_common or math.prod(shape) < 2:
        return {**given}, {}
    (dim,) = set(form.dims) - set(places)
    if not issued_together(form, dim):
        warn(
            f"the labels of {dim!r} are valid times and the leads differ, so places and leads "
            "share no regrets and no errors; label the cases by their start to share them"
        )
        return {**given}, {}
    ranks = ranks_of_places(given, form, places, shape)
    parts = _parts_of_sample({RANK: {0: (ranks, ())}, **given}, places)
    out: Outputs = {
        TIMELINES: ({}, object),
        **{name: (own, np.float64) for name, own in _sizes_of_shared(task).items()},
    }
    found = run(_FirstPass(task), {"parts": {0: (parts, places)}}, out, what=FIRST_PASS)
    return {**given, "common": {0: (found.pop(TIMELINES), ())}}, found


def nothing_in_common(task: Recording) -> dict[str, xr.DataArray]:
    """Return the parameters that all places share, filled with NaN."""
    if not task.method.in_common:
        return {}
    sizes = _sizes_of_shared(task).items()
    return {n: xr.DataArray(np.full([*own.values()], np.nan), dims=[*own]) for n, own in sizes}


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return an array (n,) of objects; an object that is a sequence stays one entry."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _sizes_of_shared(task: Recording) -> dict[str, dict[Hashable, int]]:
    """Return the dimensions and sizes of the parameters that all places share."""
    parameters = parameters_of(task.method, task.periods)
    return {name: dict(parameters[name].sizes(0).items()) for name in task.method.in_common}


def ranks_of_places(
    given: Inputs, form: Form, places: Sequence[Hashable], shape: Sequence[int]
) -> xr.DataArray:
    """Return the rank of each place in the sample; -1 for places outside the sample.

    The sample has all places if they are few, or else the first places with observations, in the
    order of a hash of their labels.
    """
    order = order_of_places(form, places)
    observed, _ = given["state"][OBSERVATIONS] if "state" in given else given["observed"][0]
    there = labelled(observed).notnull().any([d for d in observed.dims if d not in places])
    there = there.drop_vars(list(there.coords))
    along = dict(zip(places, shape, strict=True))
    whole = there.expand_dims({d: n for d, n in along.items() if d not in there.dims})
    whole = whole.transpose(*places)
    ranked: xr.DataArray = xr.apply_ufunc(
        partial(_rank, order),
        whole.chunk(dict.fromkeys(places, -1)) if is_lazy(whole) else whole,
        input_core_dims=[places],
        output_core_dims=[places],
        dask="parallelized",
        output_dtypes=[np.int64],
    )
    return ranked


def _rank(order: IntArray, there: npt.NDArray[np.bool_]) -> IntArray:
    """Return the rank of each place in the sample, or -1; ``there`` marks places with observations.

    Without observations at any of many places, the sample consists of the first places.
    """
    in_order = there.ravel()[order]
    every = there.size <= SAMPLE or not in_order.any()
    first = order[in_order | every][:SAMPLE]
    ranks = np.full(there.size, -1)
    ranks[first] = np.arange(first.size)
    return ranks.reshape(there.shape)


def _parts_of_sample(given: Inputs, places: Sequence[Hashable]) -> xr.DataArray:
    """Return one object for each chunk, with the arrays of the sampled places of the chunk."""
    arrays, core = arrays_of(given)
    require_one_side(_sampled, arrays, FIRST_PASS)
    args = xr.align(*map(labelled, arrays), join="exact", copy=False)
    call, sizes = Call.of(_sampled, FIRST_PASS, given, {}), looped_sizes(args, core)
    if any(map(is_lazy, args)):
        found = of_each_chunk(call, args, core, over=places, new={}, dtype=object)
        found = found.rechunk(-1)  # xarray would compute the objects here
    else:
        pairs = zip(args, core, strict=True)
        found = call(*(with_axes(array, sizes, own) for array, own in pairs))
    return xr.DataArray(found, dims=[*sizes])


def _sampled(**given: Named) -> tuple[IntArray, dict[str, dict[Any, npt.NDArray[Any]]]]:
    """Return the ranks of the sampled places of a chunk, and the arrays of these places."""
    ranks = given.pop(RANK)[0]
    at = np.flatnonzero(ranks >= 0)
    return ranks[at], {g: {name: a[at] for name, a in of.items()} for g, of in given.items()}


@dataclass(frozen=True)
class _FirstPass:
    """Function that returns common regrets from the sampled places of all chunks."""

    task: Recording

    def __call__(self, parts: Named) -> dict[str, npt.NDArray[Any]]:
        """Run the task on the sampled places, in the order of their ranks."""
        ranks, given = zip(*parts[0].ravel(), strict=True)
        order = np.argsort(np.concatenate(ranks))
        own = {
            group: {name: np.concatenate([one[group][name] for one in given])[order] for name in of}
            for group, of in given[0].items()
        }
        found = self.task.record(**own)
        out = {TIMELINES: as_objects([found])}
        for i, (name, sizes) in enumerate(_sizes_of_shared(self.task).items()):
            out[name] = np.full((1, *sizes.values()), np.nan)
            if found[-1] is not None:
                out[name][0] = found[-1].last[i]
        return out
