"""Joining of two parts of a state: of the cases of a fit, and of those added to it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.chunks.blockwise import run_blockwise
from xrecal.typing import IntArray

from .case_order import Order
from .fitted import CASE, CASE_MEMBER, FittedVariable
from .state import COVARIATE, is_part, without_labels

Array = TypeVar("Array", xr.DataArray, xr.Variable)

ADDED, ADDED_MEMBER = "xrecal_added", "xrecal_added_member"
KEPT, KEPT_MEMBER = "xrecal_kept", "xrecal_kept_member"
"""Dimensions inside tasks, where old and new cases have their own."""

ENTERS = "xrecal_enters"
"""Whether an added case that is known already takes the place of what is kept of it."""


def join_states(fitted: FittedVariable, added: dict[str, xr.DataArray], order: Order) -> xr.Dataset:
    """The state with all cases in order."""
    state = fitted.state
    kept = without_labels(state) | _moved_slots(fitted, order.order)
    if "weights" in {**kept, **added} and fitted.method.keeps_cases:
        kept.setdefault("weights", xr.ones_like(_members(kept)))
        added.setdefault("weights", xr.ones_like(_members(added)))
    whole = state.drop_dims([d for d in (CASE, CASE_MEMBER) if d in state.dims])
    variables: dict[Hashable, xr.Variable] = {}
    for name, old in kept.items():
        joined = old
        if CASE in old.dims:
            # What is known of a covariate stays.
            enters = None if name.startswith(COVARIATE) else added[ENTERS]
            joined = _join(old, added[name], enters, order)
        elif name in added:
            joined = added[name].variable.copy(deep=False)
            joined.attrs = old.attrs
        variables[name] = joined
    # To look at the labels of a hundred arrays that stay as they are takes most of an update.
    changed = {name: v for name, v in variables.items() if v is not state.variables.get(name)}
    return whole.assign(changed)[list(variables)]


def at_known(observed: xr.DataArray, order: Order) -> xr.DataArray:
    """Kept observations (..., added) of the cases that are known, any for others."""
    bare = observed.drop_vars(list(observed.coords))
    return bare.isel({CASE: np.maximum(order.known, 0)}).rename({CASE: ADDED})


def _members(cases: Mapping[str, Array]) -> Array:
    """One part of the forecasts."""
    return next(values for name, values in cases.items() if is_part(name))


def _moved_slots(fitted: FittedVariable, order: IntArray) -> dict[str, xr.Variable]:
    """The positions of cases that the state holds, as they are after joining."""
    place = np.argsort(order)
    return {
        name: xr.apply_ufunc(
            partial(_moved, place=place),
            fitted.state.variables[name],
            dask="parallelized",
            output_dtypes=[parameter.dtype],
            keep_attrs=True,
        )
        for name, parameter in fitted.parameters.items()
        if parameter.of_slots
    }


def _moved(slot: IntArray, place: IntArray) -> IntArray:
    """Positions of cases (..., r), -1 for none, as they are after joining."""
    joined: IntArray = np.where(slot < 0, slot, namespace(slot).asarray(place)[slot])
    return joined.astype(slot.dtype)


def _join(
    kept: xr.Variable, added: xr.DataArray, enters: xr.DataArray | None, order: Order
) -> xr.Variable:
    """Kept and added cases (..., case) or (..., case, member), in order."""
    names: dict[Hashable, str] = {CASE: KEPT, CASE_MEMBER: KEPT_MEMBER}
    attrs, kept = kept.attrs, xr.Variable([names.get(d, d) for d in kept.dims], kept.data)
    core: list[tuple[str, ...]] = [(KEPT,), (ADDED,)]
    sizes: dict[Hashable, int] = {CASE: order.order.size}
    out: tuple[str, ...] = (CASE,)
    if ADDED_MEMBER in added.dims:
        core, out = [(KEPT, KEPT_MEMBER), (ADDED, ADDED_MEMBER)], (CASE, CASE_MEMBER)
        sizes[CASE_MEMBER] = max(kept.sizes[KEPT_MEMBER], added.sizes[ADDED_MEMBER])
    given = [kept, added.variable]
    if enters is not None and order.has_known:
        given, core = [*given, enters.variable], [*core, (ADDED,)]
    (joined,) = run_blockwise(
        _JoinTask(order, len(out)),
        *given,
        core=core,
        out=[out],
        dtypes=[kept.dtype],
        sizes=sizes,
        what="the update",
    )
    return joined.assign_attrs(attrs).variable


class _JoinTask:
    """Two arrays with ``n_core`` last axes in, one with the cases of both out.

    Of added cases (..., t) that are known those are taken that enter, by default where nothing is
    kept of them.
    """

    on_device = True

    def __init__(self, order: Order, n_core: int) -> None:
        self.order, self.n_core = order, n_core

    def __call__(
        self,
        kept: npt.NDArray[Any],
        added: npt.NDArray[Any],
        enters: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[Any]:
        k = self.n_core
        lead = np.broadcast_shapes(kept.shape[: kept.ndim - k], added.shape[: added.ndim - k])
        if enters is not None:
            lead = np.broadcast_shapes(lead, enters.shape[:-1])
        width = max(kept.shape[-1], added.shape[-1])
        both = []
        for array in (kept, added):
            if k == 2:  # missing members
                room = [(0, 0)] * (array.ndim - 1) + [(0, width - array.shape[-1])]
                array = np.pad(array, room, constant_values=np.nan)
            both.append(np.broadcast_to(array, (*lead, *array.shape[array.ndim - k :])))
        xp = namespace(kept)
        if self.order.has_known:
            both[0] = self._with_known(both[0], both[1], enters)
        joined = xp.concatenate(both, axis=-k).astype(kept.dtype, copy=False)
        in_order: npt.NDArray[Any] = xp.take(joined, xp.asarray(self.order.order), axis=-k)
        return in_order

    def _with_known(
        self,
        kept: npt.NDArray[Any],
        added: npt.NDArray[Any],
        enters: npt.NDArray[np.bool_] | None,
    ) -> npt.NDArray[Any]:
        """Kept cases, in place of which added ones stand where these enter."""
        xp = namespace(kept)
        of_added = np.flatnonzero(self.order.known >= 0)
        at = xp.asarray(self.order.known[of_added])
        members = (slice(None),) * (self.n_core - 1)
        place, new = (..., at, *members), added[(..., xp.asarray(of_added), *members)]
        whole: npt.NDArray[Any] = xp.array(kept)
        if enters is None:
            taken = xp.isnan(kept[place])
        else:
            taken = enters[..., xp.asarray(of_added)].reshape(
                (*enters.shape[:-1], of_added.size, *(1,) * len(members))
            )
        whole[place] = xp.where(taken, new, kept[place])
        return whole
