"""Remarks on updates of a model that learns case after case: what comes late, changed or early."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import numpy as np
import xarray as xr

from xrecal.chunks.warnings import warn_once
from xrecal.inputs.dates import CaseAxis, calendar_of, date_axis
from xrecal.inputs.dims import text_of
from xrecal.inputs.pairing import Pairs
from xrecal.methods import Method
from xrecal.typing import IntArray

from .case_order import Order, order_by_labels
from .fit_hindcast import axis_of
from .fitted import CASE, FittedVariable

ADDED = "xrecal_added"
"""Dimension of the cases that are added."""

LONG, MANY_STEPS = 28.0, 5
"""Days without a case, and how many times the usual step, from which on a gap is told."""


def warn_of_order(pairs: Pairs, fitted: FittedVariable) -> None:
    """Warn of new cases that an :class:`OnlinePool` does not learn from as from others.

    Values are looked at where model and observations are in memory and no positions are pooled.
    """
    if not fitted.method.in_order:
        return
    order, dates = order_by_labels(pairs, fitted)[0], axis_of(pairs)
    remarks = [*_of_dates(pairs, fitted, order, dates), *_of_values(pairs, fitted, order)]
    for remark in remarks:
        warn_once(f"update of {pairs.form.name!r}: {remark}")


def _of_dates(pairs: Pairs, fitted: FittedVariable, order: Order, dates: CaseAxis) -> Iterator[str]:
    """Remarks on cases of the future, and on gaps."""
    new = order.known < 0
    label = _labels(pairs)
    if label is None or dates.days is None or fitted.axis.days is None or not new.any():
        return
    now = _now(label)
    ahead = np.flatnonzero(dates.days > now) if now is not None else np.array([], int)
    if ahead.size:
        yield (
            f"{ahead.size} cases are of the future, the first of {text_of(label[ahead[0]])}; what "
            "is given as observed then is learned from like any other observation"
        )
    last = fitted.axis.days.max()
    after = dates.days[new & (dates.days > last)]
    usual = float(np.median(np.diff(np.unique(fitted.axis.days)))) if last.size else np.inf
    gap = float(after.min() - last) if after.size else 0.0
    if gap > max(LONG, MANY_STEPS * usual):
        yield (
            f"{gap:.0f} days without a case come before {text_of(label[new][0])}; experts of the "
            "last cases go on with those from before"
        )


def _of_values(pairs: Pairs, fitted: FittedVariable, order: Order) -> Iterator[str]:
    """Remarks on observations that differ from those that are known, or come late."""
    state, observed = fitted.state, pairs.observations
    arrays = state["observations"].data, state["last_learned"].data, observed.data
    if fitted.pool is not None or not all(isinstance(a, np.ndarray) for a in arrays):
        return
    # Variables have no labels, which cost more than the values of a few cases.
    of_all = state.variables["observations"].transpose(..., CASE)
    seen = np.where(order.known >= 0, of_all.values[..., order.known], np.nan)
    kept = xr.Variable([*of_all.dims[:-1], ADDED], seen.astype(of_all.dtype))
    dims = [ADDED if d == pairs.dim else d for d in observed.dims]
    given = xr.Variable(dims, observed.values.astype(kept.dtype))
    revised = int((kept.notnull() & given.notnull() & (kept != given)).sum())
    if revised:
        yield (
            f"{revised} observations differ from those that are known; experts learn from the new "
            "ones, weights have learned from the others"
        )
    last = state.variables["last_learned"]
    place = xr.Variable([ADDED], _places(order))
    loc, issued = pairs.form.loc.variable, xr.Variable((), np.True_)
    if pairs.form.member_dim in loc.dims and isinstance(loc.data, np.ndarray):
        issued = loc.notnull().any(pairs.form.member_dim)
        issued = xr.Variable([ADDED if d == pairs.dim else d for d in issued.dims], issued.data)
    late = int((kept.isnull() & given.notnull() & issued & (place <= last)).sum())
    if late:
        yield (
            f"{late} observations come after later ones were learned from; experts learn from "
            "them, weights do not"
        )


def _places(order: Order) -> IntArray:
    """Place (t,) of each added case among those that are kept, of new ones that of the next."""
    new = np.flatnonzero(order.known < 0)
    rank = np.argsort(order.order)
    at = rank[np.searchsorted(order.order, order.n_kept + new, sorter=rank)]
    places = order.known.copy()
    places[new] = np.cumsum(order.order < order.n_kept)[at]
    return places


def _labels(pairs: Pairs) -> np.ndarray | None:
    """Labels (t,) of the cases that are added."""
    indexes = [
        part.indexes[pairs.dim] for part in pairs.form.parts.values() if pairs.dim in part.indexes
    ]
    return indexes[0].to_numpy() if indexes else None


def _now(labels: np.ndarray) -> float | None:
    """Today as days of the calendar of the labels; None where they are no dates."""
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


def require_updates(method: Method) -> None:
    """Raise ValueError for a method whose fits take no more cases."""
    if not method.updates:
        raise ValueError(
            f"{type(method).__name__} keeps nothing that more cases could join; fit anew with all "
            "cases: hindcast.recal.fit(observations, model.method)"
        )
