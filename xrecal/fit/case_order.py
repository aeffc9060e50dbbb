"""Join the cases that an update adds with the stored cases of a model.

With a pool, each date has one case at each pooled position, which is a place or a lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Form
from xrecal.inputs.pairing import Pairs
from xrecal.typing import IntArray

from .fitted import CASE, FittedVariable
from .pooling import across, pooled_cases, pooled_covariate, position_coordinates
from .shared_places import PLACES, place_labels
from .state import Groups, arrays_of_cases

Coordinates: TypeAlias = dict[str, tuple[str, Any, dict[str, Any]]]
"""Coordinates of the cases by name; each entry has dimension, labels and attributes."""

ADDED = "xrecal_added"
"""Dimension of the added cases."""

ADDED_MEMBER = "xrecal_added_member"
"""Dimension of the members of the added cases."""

DATES = ("year", "season", "days", "month_day", "day")
"""Fields of a :class:`CaseAxis` (dates of cases) that :func:`join_axes` joins. The field ``step``
is not among them, because joining changes the numbers of the time steps."""


@dataclass(frozen=True)
class Order:
    """Order in time of the stored and the added cases."""

    n_kept: int
    known: IntArray
    """(t,) position of each added case among the stored cases, -1 for a new case."""
    order: IntArray
    """(n,) indexes that put the cases in order of time. Indexes count the stored cases first, and
    then the added cases."""

    @property
    def has_known(self) -> bool:
        """True if the model already knows one of the added cases."""
        return bool((self.known >= 0).any())

    @property
    def n_new(self) -> int:
        """Number of added cases that are new."""
        return int((self.known < 0).sum())

    @property
    def slots(self) -> IntArray:
        """(t,) position of each added case in an array of stored cases, followed by new cases."""
        new = self.known < 0
        return np.where(new, self.n_kept + np.cumsum(new) - 1, self.known)

    def at_positions(self, k: int) -> Order:
        """Return the order of pooled cases, if each date has one case at each of k positions.

        The k cases of a date are next to each other.
        """
        position = np.arange(k)
        known = np.where(
            self.known[:, np.newaxis] < 0, -1, self.known[:, np.newaxis] * k + position
        )
        order = self.order[:, np.newaxis] * k + position
        return Order(self.n_kept * k, known.ravel(), order.ravel())


def order_by_labels(pairs: Pairs, fitted: FittedVariable) -> tuple[Order, Coordinates]:
    """Return the order of stored and added dates, and the sorted labels of all cases.

    Raises
    ------
    ValueError
        If only the model or only the hindcast has labels, or their labels have different types.
    """
    dim, name = fitted.dim, f"calibration_{fitted.dim}"
    k = fitted.n_positions
    n_kept, n_added = fitted.state.sizes[CASE] // k, pairs.observations.sizes[dim]
    new = [part.indexes[dim] for part in pairs.form.parts.values() if dim in part.indexes]
    if bool(new) != (name in fitted.state.coords):
        bare, other = ("the model", "hindcast") if new else ("hindcast", "the model")
        raise ValueError(
            f"{bare} has no labels along {dim!r}, but {other} has; labels identify cases, so fit "
            "and update with labels, or do both without labels"
        )
    if not new:
        return Order(n_kept, np.full(n_added, -1), np.arange(n_kept + n_added)), {}
    coordinate = fitted.state.coords[name]
    kept = coordinate.to_index()[::k]
    types = type(kept[0]), type(new[0][0])
    if types[0] != types[1]:
        raise ValueError(
            f"labels along {dim!r} are of the type {types[1].__name__} in hindcast, but "
            f"{types[0].__name__} in the model; use the same calendar and type"
        )
    order, labels = _ordered(kept, new[0])
    return order, {name: (CASE, labels.repeat(k), coordinate.attrs)}


def order_of_positions(kept: IntArray, added: IntArray) -> tuple[Order, IntArray]:
    """Return the order of stored and added cases, and the positions in time of all cases."""
    import pandas as pd

    order, every = _ordered(pd.Index(kept), pd.Index(added))
    return order, every.to_numpy()


def _ordered(kept: Any, added: Any) -> tuple[Order, Any]:
    """Return the order of cases from their labels in two pandas indexes, and the sorted labels."""
    known = kept.get_indexer(added)
    of_new = np.flatnonzero(known < 0)
    both = kept.append(added[of_new])
    ascending = np.asarray(both.argsort())
    places = np.concatenate([np.arange(len(kept)), len(kept) + of_new])[ascending]
    return Order(len(kept), known, places), both[ascending]


def added_cases(pairs: Pairs, covariates: Mapping[str, xr.DataArray]) -> Groups:
    """Return the added cases as arrays (..., added, ...), in the form that a state stores."""
    added, pool = arrays_of_cases(pairs, covariates, (ADDED, ADDED_MEMBER)), pairs.pool
    if pool is None:
        return added
    return {
        "forecasts": {n: pooled_cases(a, pool, ADDED) for n, a in added["forecasts"].items()},
        "observed": {
            n: pooled_cases(across(a, pool), pool, ADDED) for n, a in added["observed"].items()
        },
        "covariates": {n: pooled_covariate(a, pool, ADDED) for n, a in added["covariates"].items()},
    }


def known_observations(kept: xr.Variable, order: Order) -> xr.Variable:
    """Return the stored observation of each added case (..., added); NaN for a new case."""
    at = kept.isel({CASE: np.maximum(order.known, 0)})
    seen = xr.Variable([ADDED if d == CASE else d for d in at.dims], at.data)
    known: xr.Variable = seen.where(xr.Variable([ADDED], order.known >= 0))  # type: ignore[no-untyped-call]
    return known


def join_axes(fitted: FittedVariable, added: CaseAxis, order: Order) -> CaseAxis:
    """Return the dates of the stored and the ``added`` cases, joined in order of time.

    The result has only the fields (such as the year) that both stored and added cases have.
    """
    kept = fitted.axis.take(slice(None, None, fitted.n_positions))
    dates = {name: (getattr(kept, name), getattr(added, name)) for name in DATES}
    known = {name: pair for name, pair in dates.items() if not any(a is None for a in pair)}
    joined = CaseAxis(**{name: np.concatenate(pair) for name, pair in known.items()})
    joined = joined.take(order.order)
    if fitted.pool is None or fitted.method.by_sums:
        return joined
    return fitted.pool.axis(joined, order.order.size)


def positions_of_cases(fitted: FittedVariable, n_dates: int) -> Coordinates:
    """Return labels of the pooled position (place or lead) of each case, for ``n_dates`` dates."""
    k = fitted.n_positions
    pooled = fitted.pool is not None and fitted.pool.forecast_dims
    return {
        str(name): (CASE, np.tile(label.to_numpy()[:k], n_dates), label.attrs)
        for name, label in fitted.state.coords.items()
        if pooled and label.dims == (CASE,) and name != f"calibration_{fitted.dim}"
    }


def require_positions(form: Form, fitted: FittedVariable) -> None:
    """Raise ValueError unless a hindcast has the same pooled positions as the fit."""
    pool = fitted.pool
    if pool is None:
        return
    sizes = {d: size for part in form.parts.values() for d, size in part.sizes.items()}
    other = [d for d, n in zip(pool.dims, pool.sizes, strict=True) if sizes.get(d) != n]
    if other:
        size = dict(zip(pool.dims, pool.sizes, strict=True))[other[0]]
        raise ValueError(
            f"the model is {pool}, with {size} positions along {other[0]!r}, but hindcast has "
            f"{sizes.get(other[0], 'no such dimension')}; update with all positions of the fit, "
            "and fit again for other positions"
        )
    if pool.own_fits:  # locations have the labels of the positions
        return
    if fitted.method.by_sums:
        given = {n: label.to_numpy() for n, label in place_labels(form, pool).items()}
        known = {n: fitted.state.coords[n].to_numpy() for n in given if n in fitted.state.coords}
    else:
        given = {n: labels for n, (_, labels, _) in position_coordinates(form, pool, 1).items()}
        known = {n: labels for n, (_, labels, _) in positions_of_cases(fitted, 1).items()}
    for name, labels in known.items():
        found = given.get(name)
        if found is not None and not np.array_equal(found, labels):
            d = name.removeprefix("calibration_").removeprefix(f"{PLACES}_")
            raise ValueError(
                f"labels along {d!r}, which the fit pools, differ: {_few(found)} in hindcast, "
                f"{_few(labels)} in the model; select the labels of the model, in its order"
            )


def _few(labels: Any) -> str:
    """Return the first three labels as text."""
    return ", ".join(map(str, labels[:3])) + (", ..." if len(labels) > 3 else "")
