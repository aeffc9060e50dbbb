"""What observations tell a fitted variable that it does not know yet."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.inputs.pairing import Pairs
from xrecal.inputs.roles import Roles
from xrecal.inputs.verification import read_verified
from xrecal.typing import IntArray

from .case_order import n_positions, order_by_labels
from .fitted import CASE, FittedVariable
from .learning_order import ADDED
from .missing import without_unseen_values
from .select_fits import in_order_of_fits
from .update import ADDED_MEMBER, added_arguments, at_known


class News(NamedTuple):
    """What is new among cases in the order of time."""

    cases: npt.NDArray[np.bool_]
    """(n,) whether a date has an observation that the model does not know."""
    n_learned: int
    """Observations where none was known."""
    n_revised: int
    """Observations of another value than the one known."""


def news_of(fitted: FittedVariable, pairs: Pairs) -> News:
    """Compare observations of cases with those that a fitted variable keeps.

    Parameters
    ----------
    fitted : FittedVariable
        Its observations are computed if they are lazy.
    pairs : Pairs
        Cases in the order of time; forecasts are read where something is new, since nothing is
        learned of one without a member.
    """
    k, pairs = n_positions(fitted), in_order_of_fits(pairs, fitted)
    order = order_by_labels(pairs, fitted)[0].at_positions(k)
    known = without_unseen_values(pairs.observations, fitted)
    forecasts, new = added_arguments(replace(pairs, observations=known), fitted)
    known = xr.DataArray(order.known >= 0, dims=[ADDED])
    seen = at_known(fitted.state["observations"], order).where(known)
    new, seen = xr.broadcast(new.astype(seen.dtype).compute(), seen.compute())
    fresh = new.notnull() & seen.isnull()
    revised = new.notnull() & seen.notnull() & (new != seen)
    others = [d for d in fresh.dims if d != ADDED]
    if fresh.any():
        issued = _are_issued(forecasts, np.flatnonzero(fresh.any(others)))
        fresh = (fresh & issued).transpose(*new.dims)
    cases = (fresh | revised).any(others).to_numpy().reshape(-1, k)
    return News(np.asarray(cases.any(1)), int(fresh.sum()), int(revised.sum()))


def _are_issued(forecasts: xr.DataArray, which: IntArray) -> xr.DataArray:
    """Whether forecasts (..., added, member) have a member; of ``which`` alone they are read."""
    bare = forecasts.drop_vars(list(forecasts.coords))
    some = bare.isel({ADDED: which}).notnull().any(ADDED_MEMBER).compute()
    sizes = {d: n for d, n in bare.sizes.items() if d != ADDED_MEMBER}
    issued = xr.DataArray(np.ones(tuple(sizes.values()), np.bool_), dims=list(sizes))
    issued[{ADDED: which}] = some
    return issued


def last_known(
    fitted: FittedVariable, ahead: xr.DataArray | None = None
) -> tuple[np.datetime64, np.datetime64] | None:
    """The newest start with an observation, and the newest valid time of one.

    None of a variable without any; the same where there are no leads. ``ahead`` has the lengths of
    leads without a unit, over their dimension.

    Raises
    ------
    ValueError
        If cases have no dates (datetime64).
    """
    labels = fitted.state.coords.get(f"calibration_{fitted.dim}")
    if labels is None or labels.dtype.kind != "M":
        raise ValueError(
            f"the cases of the model have no dates along {fitted.dim!r} (datetime64) by which to "
            "tell past and future; fit with dates"
        )
    there = fitted.state["observations"].notnull().compute()
    lead = None if fitted.leads is None else fitted.leads.dim
    k = n_positions(fitted)
    starts = labels.to_numpy()[::k]
    leads: xr.DataArray | None
    if lead in there.dims:
        there = there.any([d for d in there.dims if d not in (CASE, lead)]).transpose(CASE, lead)
        leads, table = fitted.state[lead], there.to_numpy()
    else:
        own = there.any([d for d in there.dims if d != CASE]).to_numpy().reshape(-1, k)
        leads, table = fitted.state.coords.get(f"calibration_{lead}"), own
        if leads is not None:
            values, place = np.unique(leads.to_numpy()[:k], return_inverse=True)
            table = np.stack([own[:, place == i].any(1) for i in range(values.size)], axis=1)
            leads = xr.DataArray(values, dims=[lead], attrs=leads.attrs)
    if not table.any():
        return None
    newest = starts[table.any(1)].max()
    if leads is None:
        return newest, newest
    coords = {fitted.dim: starts, lead: (lead, leads.to_numpy(), leads.attrs)}
    when = read_verified(Roles(xr.DataArray(table, coords, [fitted.dim, lead])), fitted.dim)
    if (when is None or when.verified is None) and ahead is not None and lead in ahead.dims:
        lengths = ahead.sel({lead: leads.to_numpy()}) if lead in ahead.indexes else ahead
        return newest, (starts[:, np.newaxis] + lengths.to_numpy())[table].max()
    if when is None or when.verified is None:
        return newest, newest
    return newest, np.broadcast_to(when.verified, table.shape)[table].max()
