"""Update of a chunk of places: add cases to those of a state, and learn from the added cases.

A known case keeps its position, and gets the new observation if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.predictors import usual_of
from xrecal.arrays.status import FILL, INVALID
from xrecal.chunks.run import Inputs, Named, Outputs, run
from xrecal.inputs.dates import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import Cases, Parameter, SharedFits

from .case_order import ADDED, Order
from .cases import (
    Kept,
    cases_of,
    is_part,
    kept_of,
    largest_known,
    own_members,
    parameters_of,
    parts_to_keep,
)
from .common_regrets import NOTHING, as_objects
from .fitted import CASE, CASE_MEMBER

if TYPE_CHECKING:
    from xrecal.arrays.online.common import Record, Timeline

KEPT, KEPT_MEMBER = "xrecal_kept", "xrecal_kept_member"
"""Dimensions of stored cases and their members in tasks; added cases have other dimensions."""

NAMES: Mapping[Hashable, str] = {CASE: KEPT, CASE_MEMBER: KEPT_MEMBER}


@dataclass(frozen=True)
class UpdateTask:
    """Task that takes arrays of a state and new cases of places, and returns the updated arrays."""

    method: Method
    periods: Mapping[str, float | None]
    min_samples: int
    order: Order
    added: CaseAxis
    """Dates of the added cases."""
    axis: CaseAxis
    """Dates of all cases."""
    learns: bool = True
    """True if the method learns in this task; else :class:`LearnTask` follows."""

    @property
    def on_device(self) -> bool:
        """True if the task accepts CuPy arrays."""
        return self.method.on_device and not self.method.relearns

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Descriptions of the fitted parameters of the method, by name."""
        return parameters_of(self.method, self.periods)

    def __call__(
        self,
        state: Named,
        forecasts: Named,
        observed: Named,
        covariates: Named,
        partners: Named,
        common: Named = NOTHING,
    ) -> dict[str, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        kept, own = kept_of(state), own_members(self.method)
        members = [a for name, a in kept.forecasts.items() if name == own]
        seen = largest_known(*members, kept.observations)
        cases, flags = cases_of(forecasts, observed, covariates, self.added, self.periods, seen)
        parts = parts_to_keep(forecasts, cases) if self.method.keeps_cases else {}
        joined = self.joined(kept, cases, parts, partners)
        status = (state["status"] | flags).astype(state["status"].dtype)
        joined = joined._replace(fitted={**joined.fitted, "status": status})
        if self.learns:
            joined = self.learned_again(joined, common[0][0][0] if common else None)
        return {**joined.forecasts, "observations": joined.observations, **joined.fitted}

    def record(self, **given: Named) -> Sequence[Timeline | None]:
        """Do a first pass over these places; return their common regrets for the new cases."""
        return recorded(self, **given)

    def joined(self, kept: Kept, added: Cases, parts: Named, partners: Named) -> Kept:
        """Return cases and parameters after adding cases; ``parts`` are the forecasts to store."""
        covariates = added.covariates.joining(kept.known_covariates(self.periods))
        added = replace(added, covariates=covariates)
        of_cases = {name for name, p in self.parameters.items() if CASE in p.dims}
        chosen = {name: a for name, a in kept.fitted.items() if name not in of_cases}
        own = self.method.update_locations(added, chosen, self.order.slots)
        known = [a[:, np.maximum(self.order.known, 0)] for a in partners.values()]
        enters, gained = self._entering(added, known)
        old, new = dict(kept.forecasts), dict(parts)
        if "weights" in {**old, **new}:
            for one in (old, new):  # forecasts may lack this part
                one.setdefault("weights", np.ones_like(next(iter(one.values()))))
        fitted = {**chosen, "n_cases": kept.fitted["n_cases"] + gained}
        for name in of_cases & own.keys() & kept.fitted.keys():
            fitted[name] = join(kept.fitted[name], own[name], enters, self.order)
        for name, parameter in self.parameters.items():
            if parameter.of_slots:
                fitted[name] = self._moved(kept.fitted[name])
        return Kept(
            {name: join(old[name], new[name], enters, self.order, -2) for name in old},
            join(kept.observations, added.observations, enters, self.order),
            # A known value of a covariate stays.
            {
                name: join(kept.covariates[name], covariates.values[..., i], None, self.order)
                for i, name in enumerate(self.periods)
            },
            fitted,
        )

    def changes(self, name: str) -> bool:
        """Return whether an update changes an array of the state."""
        if name not in self.parameters:
            return name in ("n_cases", "status", "observations") or is_part(name)
        own = self.parameters[name]
        again = self.learns and self.method.relearns and not own.of_all_places
        return again or own.of_slots or CASE in own.dims

    def _entering(
        self, cases: Cases, known: list[npt.NDArray[Any]]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Mark added cases (L, t) that the method learns from, and count new observations (L,).

        The method learns from new cases, and from known cases whose observation has changed.
        """
        new = cases.observations
        there = np.isfinite(new)
        if not self.order.has_known:
            return np.ones_like(there), there.sum(-1)
        given = (new, *cases.partners)
        same = [a.astype(b.dtype, copy=False) == b for a, b in zip(given, known, strict=True)]
        is_known = namespace(new).asarray(self.order.known >= 0)
        enters = ~is_known | (there & ~reduce(and_, same))
        lost = enters & is_known & np.isfinite(known[0])
        return enters, (enters & there).sum(-1) - lost.sum(-1)

    def _moved(self, slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert ``slots`` (L, ...) to positions of cases after the join; -1 (no case) stays."""
        place = namespace(slots).asarray(np.argsort(self.order.order))
        moved: npt.NDArray[Any] = np.where(slots < 0, slots, place[slots]).astype(slots.dtype)
        return moved

    def learned_again(
        self,
        joined: Kept,
        common: Record | Timeline | None = None,
        shared: SharedFits | None = None,
        foretold: npt.NDArray[Any] | None = None,
    ) -> Kept:
        """Add the parameters that the method learns from all cases together.

        These parameters also depend on common regrets and shared fits, if there are any.
        """
        if not self.method.relearns:
            return joined
        every = self.parameters.items()
        law = {n for n, p in every if p.of_all_places and n not in self.method.in_common}
        fitted = {name: a for name, a in joined.fitted.items() if name not in law}
        cases = joined.cases(self.periods, self.axis)
        cases = replace(cases, common=common, shared=shared, foretold=foretold)
        learned = {**fitted, **self.method.relearn_locations(cases, fitted, self.min_samples)}
        learned["status"] = fitted["status"] & (INVALID | FILL) | learned["status"]
        return joined._replace(fitted={**joined.fitted, **learned})


@dataclass(frozen=True)
class ForetellTask:
    """Task that computes inputs of :class:`LearnTask` from a state that has the added cases.

    It calls ``foretell_locations`` of the method. This call takes long, so the task runs only once.
    """

    task: UpdateTask
    """Task that has joined the stored and the added cases."""

    def __call__(self, state: Named) -> dict[Any, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        kept, task = kept_of(state), self.task
        cases = kept.cases(task.periods, task.axis)
        return {0: as_objects(task.method.foretell_locations(cases, kept.fitted))}


@dataclass(frozen=True)
class LearnTask:
    """Task that learns from a state with added cases, and returns the arrays that change."""

    task: UpdateTask
    """Task that has joined the stored and the added cases."""

    @property
    def method(self) -> Method:
        """Method that learns from the cases."""
        return self.task.method

    @property
    def periods(self) -> Mapping[str, float | None]:
        """Period of each covariate by name; None if it is not circular."""
        return self.task.periods

    def __call__(
        self, state: Named, shared: Named, foretold: Named, common: Named = NOTHING
    ) -> dict[str, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        in_common = common[0][0][0] if common else None
        law = SharedFits(**shared)
        learned = self.task.learned_again(kept_of(state), in_common, law, foretold[0])
        return dict(learned.fitted)

    def record(self, **given: Named) -> Sequence[Timeline | None]:
        """Do a first pass over these places; return their common regrets for the new cases."""
        return recorded(self, **given)


def recorded(task: Callable[..., Any], **given: Named) -> Sequence[Timeline | None]:
    """Run a task on places, and return common regrets, which continue those of earlier cases."""
    from xrecal.arrays.online.common import Record, timelines

    records = [Record(with_known=True)]
    common = {0: as_objects([records])}
    return timelines(records, [True], lambda: task(**given, common=common))


def joined_values(
    kept: xr.Variable, added: xr.DataArray, order: Order, *, guarded: bool = False
) -> xr.DataArray:
    """Return values (..., case) of all cases: stored values, or else added values.

    If ``guarded``, added values far outside the usual range of the stored values become NaN.
    """
    given: Inputs = {"values": {"kept": (of_kept(kept), [KEPT]), "added": (added, [ADDED])}}
    out: Outputs = {"all": ({CASE: order.order.size}, kept.dtype)}
    return run(_JoinValues(order, guarded), given, out, what="the update")["all"]


def of_kept(variable: xr.Variable) -> xr.Variable:
    """Rename the dimensions of cases and members of a state's array to those of tasks."""
    return xr.Variable([NAMES.get(d, d) for d in variable.dims], variable.data)


@dataclass(frozen=True)
class _JoinValues:
    """Function that returns the values of all cases, from stored and added values."""

    order: Order
    guarded: bool
    on_device = True

    def __call__(self, values: Named) -> dict[str, npt.NDArray[Any]]:
        kept, added = values["kept"], values["added"]
        if self.guarded:
            added = namespace(added).where(usual_of(kept).broken(added), np.nan, added)
        return {"all": join(kept, added, None, self.order)}


def join(
    kept: npt.NDArray[Any],
    added: npt.NDArray[Any],
    enters: npt.NDArray[np.bool_] | None,
    order: Order,
    axis: int = -1,
) -> npt.NDArray[Any]:
    """Join stored and added cases in order, along ``axis``: -1, or -2 if axis -1 has members.

    An added case that the model knows replaces the stored case if ``enters`` (L, t) marks it.
    Without ``enters``, such an added case replaces only missing values of the stored case.
    """
    xp = namespace(kept)
    if axis == -2:  # missing members
        width = max(kept.shape[-1], added.shape[-1])
        kept, added = (
            np.pad(
                a,
                [(0, 0)] * (a.ndim - 1) + [(0, width - a.shape[-1])],
                constant_values=np.nan,
            )
            for a in (kept, added)
        )
    if order.has_known:
        kept = _with_known(kept, added, enters, order, axis)
    joined = xp.concatenate([kept, added], axis=axis).astype(kept.dtype, copy=False)
    in_order: npt.NDArray[Any] = xp.take(joined, xp.asarray(order.order), axis=axis)
    return in_order


def _with_known(
    kept: npt.NDArray[Any],
    added: npt.NDArray[Any],
    enters: npt.NDArray[np.bool_] | None,
    order: Order,
    axis: int,
) -> npt.NDArray[Any]:
    """Return the stored cases after added cases have replaced known ones; see :func:`join`."""
    xp = namespace(kept)
    of_added = np.flatnonzero(order.known >= 0)
    at, new = xp.asarray(order.known[of_added]), xp.asarray(of_added)
    members = (slice(None),) * (-1 - axis)
    place = (..., at, *members)
    whole: npt.NDArray[Any] = xp.array(kept)
    taken = xp.isnan(kept[place])
    if enters is not None:
        between = (1,) * (kept.ndim - 2 - len(members))
        taken = enters[:, new].reshape((len(enters), *between, new.size, *(1,) * len(members)))
    whole[place] = xp.where(taken, added[(..., new, *members)], kept[place])
    return whole
