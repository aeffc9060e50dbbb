"""New, changed and late observations, compared with the known observations of a fit."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.warnings import warn_once
from xrecal.inputs.dates import CaseAxis, calendar_of, date_axis
from xrecal.inputs.dims import text_of
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.roles import Roles
from xrecal.inputs.verification import read_verified
from xrecal.typing import IntArray

from .case_order import (
    ADDED,
    ADDED_MEMBER,
    Order,
    added_cases,
    known_observations,
    order_by_labels,
)
from .fitted import CASE, FittedVariable
from .mismatch_warnings import without_unseen_values
from .select_fits import in_order_of_fits

LONG, MANY_STEPS = 28.0, 5
"""A time without cases causes a remark if it is longer than ``LONG`` days, and also longer than
``MANY_STEPS`` usual steps between cases."""


class News(NamedTuple):
    """New and changed observations among cases in the order of time."""

    cases: npt.NDArray[np.bool_]
    """(n,) true for dates with a new or a changed observation."""
    n_learned: int
    """Number of observations that were missing before."""
    n_revised: int
    """Number of observations that differ from the known ones."""


def news_of(fitted: FittedVariable, pairs: Pairs) -> News:
    """Compare observations of cases with the observations that a fitted variable stores.

    Parameters
    ----------
    fitted : FittedVariable
        Variable with the known observations, which the function computes if they are lazy.
    pairs : Pairs
        Cases in the order of time. The function reads the forecasts of new observations, because a
        new observation counts only if its forecast has members.
    """
    k, pairs = fitted.n_positions, in_order_of_fits(pairs, fitted)
    order = order_by_labels(pairs, fitted)[0].at_positions(k)
    known = without_unseen_values(pairs.observations, fitted)
    added = added_cases(replace(pairs, observations=known, pool=fitted.pool), {})
    # First part of the forecasts that exists.
    forecasts, new = next(iter(added["forecasts"].values())), added["observed"][0]
    seen = xr.DataArray(known_observations(fitted.state.variables["observations"], order))
    new, seen = xr.broadcast(new.astype(seen.dtype).compute(), seen.compute())
    fresh, revised = _compared(new, seen)
    others = [d for d in fresh.dims if d != ADDED]
    if fresh.any():
        issued = _are_issued(forecasts, np.flatnonzero(fresh.any(others)))
        fresh = (fresh & issued).transpose(*new.dims)
    cases = (fresh | revised).any(others).to_numpy().reshape(-1, k)
    return News(np.asarray(cases.any(1)), int(fresh.sum()), int(revised.sum()))


def _compared(given: Any, known: Any) -> tuple[Any, Any]:
    """Mark observations that were missing before, and observations that have changed."""
    there = given.notnull()
    return there & known.isnull(), there & known.notnull() & (given != known)


def _are_issued(forecasts: xr.DataArray, which: IntArray) -> xr.DataArray:
    """Mark forecasts (..., added, member) that have a member.

    The function reads only the forecasts in ``which``, and marks all others without reading them.
    """
    bare = forecasts.drop_vars(list(forecasts.coords))
    some = bare.isel({ADDED: which}).notnull().any(ADDED_MEMBER).compute()
    sizes = {d: n for d, n in bare.sizes.items() if d != ADDED_MEMBER}
    issued = xr.DataArray(np.ones(tuple(sizes.values()), np.bool_), dims=list(sizes))
    issued[{ADDED: which}] = some
    return issued


def last_known(
    fitted: FittedVariable, ahead: xr.DataArray | None = None
) -> tuple[np.datetime64, np.datetime64] | None:
    """Return the newest start and the newest valid time that have an observation.

    The result is None without observations. Without leads, start and valid time are equal. If leads
    have no unit, ``ahead`` has the length of each lead, over the dimension of leads.

    Raises
    ------
    ValueError
        If cases have no dates (datetime64).
    """
    labels = fitted.state.coords.get(f"calibration_{fitted.dim}")
    if labels is None or labels.dtype.kind != "M":
        raise ValueError(
            f"the cases of the model have no dates along {fitted.dim!r} (datetime64), so past "
            "and future are unknown; fit with dates"
        )
    there = fitted.state["observations"].notnull().compute()
    lead = None if fitted.leads is None else fitted.leads.dim
    k = fitted.n_positions
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


def warn_of_order(pairs: Pairs, fitted: FittedVariable, order: Order, dates: CaseAxis) -> None:
    """Warn about new cases that an :class:`OnlinePool` treats differently from other cases.

    The function checks values only if model and observations are in memory and no positions are
    pooled.
    """
    if not fitted.method.in_order:
        return
    remarks = [*_of_dates(pairs, fitted, order, dates), *_of_values(pairs, fitted, order)]
    for remark in remarks:
        warn_once(f"update of {pairs.form.name!r}: {remark}")


def _of_dates(pairs: Pairs, fitted: FittedVariable, order: Order, dates: CaseAxis) -> Iterator[str]:
    """Yield remarks on cases in the future, and on long times without cases."""
    new = order.known < 0
    label = _labels(pairs)
    if label is None or dates.days is None or fitted.axis.days is None or not new.any():
        return
    now = _now(label)
    ahead = np.flatnonzero(dates.days > now) if now is not None else np.array([], int)
    if ahead.size:
        yield (
            f"{ahead.size} cases are in the future, the first on {text_of(label[ahead[0]])}; the "
            "update learns from their observations as from any others"
        )
    last = fitted.axis.days.max()
    after = dates.days[new & (dates.days > last)]
    usual = float(np.median(np.diff(np.unique(fitted.axis.days)))) if last.size else np.inf
    gap = float(after.min() - last) if after.size else 0.0
    if gap > max(LONG, MANY_STEPS * usual):
        yield (
            f"{gap:.0f} days without a case come before {text_of(label[new][0])}; experts that "
            "learn from the last cases thus learn from the cases before the gap"
        )


def _of_values(pairs: Pairs, fitted: FittedVariable, order: Order) -> Iterator[str]:
    """Yield remarks on observations that have changed, or that come late."""
    state, observed = fitted.state, pairs.observations
    arrays = state["observations"].data, state["last_learned"].data, observed.data
    if fitted.pool is not None or not all(isinstance(a, np.ndarray) for a in arrays):
        return
    # Variables have no labels; for a few cases labels cost more than values.
    kept = known_observations(state.variables["observations"], order)
    dims = [ADDED if d == pairs.dim else d for d in observed.dims]
    given = xr.Variable(dims, observed.values.astype(kept.dtype))
    fresh, revised = _compared(given, kept)
    if n_revised := int(revised.sum()):
        yield (
            f"{n_revised} observations differ from the known observations; experts learn from the "
            "new values, but weights have learned from the old values"
        )
    last = state.variables["last_learned"]
    place = xr.Variable([ADDED], _places(order))
    loc, issued = pairs.form.loc.variable, xr.Variable((), np.True_)
    if pairs.form.member_dim in loc.dims and isinstance(loc.data, np.ndarray):
        issued = loc.notnull().any(pairs.form.member_dim)
        issued = xr.Variable([ADDED if d == pairs.dim else d for d in issued.dims], issued.data)
    late = int((fresh & issued & (place <= last)).sum())
    if late:
        yield (
            f"{late} observations arrive after the model has learned from later ones; experts "
            "learn from the late observations, but weights do not"
        )


def _places(order: Order) -> IntArray:
    """Return the position (t,) of each added case among the stored cases.

    A new case has the position of the next stored case.
    """
    new = np.flatnonzero(order.known < 0)
    rank = np.argsort(order.order)
    at = rank[np.searchsorted(order.order, order.n_kept + new, sorter=rank)]
    places = order.known.copy()
    places[new] = np.cumsum(order.order < order.n_kept)[at]
    return places


def _labels(pairs: Pairs) -> np.ndarray | None:
    """Return the labels (t,) of the added cases."""
    indexes = [
        part.indexes[pairs.dim] for part in pairs.form.parts.values() if pairs.dim in part.indexes
    ]
    return indexes[0].to_numpy() if indexes else None


def _now(labels: np.ndarray) -> float | None:
    """Return the time one day from now, in days of the calendar of the labels.

    The result is None if the labels are not dates.
    """
    calendar = calendar_of(labels)
    if calendar is None:
        return None
    today = datetime.datetime.now(tz=datetime.UTC).replace(tzinfo=None)
    if calendar == "datetime64":
        dated = date_axis(np.array([today], "datetime64[s]"))
    else:
        first = labels[0]
        dated = date_axis(
            np.array([first.replace(year=today.year, month=today.month, day=min(today.day, 28))])
        )
    return None if dated is None or dated.days is None else float(dated.days[0]) + 1
