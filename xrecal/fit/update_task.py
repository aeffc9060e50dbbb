"""Update of a chunk of places: more cases join those of a state, and are learned from.

Known cases keep their place among all, with the new observation if there is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.status import FILL, INVALID
from xrecal.chunks.run import Inputs, Named, Outputs, run
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR
from xrecal.methods import Method
from xrecal.methods.base import Cases, Parameter

from .case_order import ADDED, Order
from .cases import (
    COVARIATE,
    cases_of,
    cases_of_state,
    is_part,
    largest_known,
    parameters_of,
    parts_to_keep,
)
from .fitted import CASE, CASE_MEMBER

KEPT, KEPT_MEMBER = "xrecal_kept", "xrecal_kept_member"
"""Dimensions inside tasks, where old and new cases have their own."""

NAMES: Mapping[Hashable, str] = {CASE: KEPT, CASE_MEMBER: KEPT_MEMBER}


@dataclass(frozen=True)
class UpdateTask:
    """Arrays of a state and new cases of a chunk of locations in, arrays of the new state out."""

    method: Method
    periods: Mapping[str, float | None]
    min_samples: int
    order: Order
    added: CaseAxis
    """Dates of the added cases."""
    axis: CaseAxis
    """Dates of all cases."""

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device and not self.method.relearns

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Parameters of the method by name."""
        return parameters_of(self.method, self.periods)

    def __call__(
        self,
        state: Named,
        forecasts: Named,
        observed: Named,
        covariates: Named,
        partners: Named,
    ) -> dict[str, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        variables = self.method.variables
        own = "loc" if variables is None else f"{VECTOR}{variables.own}"
        seen = largest_known(*(state[name] for name in (own, "observations") if name in state))
        cases, flags = cases_of(forecasts, observed, covariates, self.added, self.periods, seen)
        new = parts_to_keep(forecasts, cases) if self.method.keeps_cases else {}
        new |= {COVARIATE + name: covariates[name] for name in self.periods}
        joined = self.joined(state, cases, new, partners)
        joined["status"] = (state["status"] | flags).astype(state["status"].dtype)
        return self.learned_again(joined)

    def joined(
        self, state: Named, added: Cases, kept: Named, partners: Named
    ) -> dict[str, npt.NDArray[Any]]:
        """Arrays of the state with more cases.

        Of these ``kept`` has parts of the forecasts and covariates as a state keeps them.
        """
        chosen = {name: a for name, a in state.items() if not self.of_cases(name)}
        own = self.method.update_locations(added, chosen, self.order.slots)
        known = [a[:, np.maximum(self.order.known, 0)] for a in partners.values()]
        enters, gained = self._entering(added, known)
        new = {**kept, **own, "observations": added.observations}
        old = dict(state)
        if "weights" in {**old, **new} and self.method.keeps_cases:
            old.setdefault("weights", _ones(old))
            new.setdefault("weights", _ones(new))
        joined: dict[str, npt.NDArray[Any]] = {**chosen, "n_cases": state["n_cases"] + gained}
        for name in (name for name in old if name in new):
            # What is known of a covariate stays.
            entering = None if name.startswith(COVARIATE) else enters
            axis = -2 if is_part(name) else -1
            joined[name] = join(old[name], new[name], entering, self.order, axis)
        moved = (name for name, p in self.parameters.items() if p.of_slots)
        return joined | {name: self._moved(state[name]) for name in moved}

    def of_cases(self, name: str) -> bool:
        """Whether an array of the state has values of each case."""
        case = CASE in self.parameters[name].dims if name in self.parameters else False
        return case or name == "observations" or is_part(name) or name.startswith(COVARIATE)

    def changes(self, name: str) -> bool:
        """Whether an update changes an array of the state."""
        if name not in self.parameters:
            return name in ("n_cases", "status") or self.of_cases(name)
        own = self.parameters[name]
        again = self.method.relearns and not own.of_all_places
        return again or own.of_slots or CASE in own.dims

    def _entering(
        self, cases: Cases, known: list[npt.NDArray[Any]]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Which added cases (L, t) count, and how many (L,) more observations there are then.

        New ones do, and known ones with an observation that differs from the known one, if any.
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
        """Positions of cases (L, ...), -1 for none, as they are after joining."""
        place = namespace(slots).asarray(np.argsort(self.order.order))
        moved: npt.NDArray[Any] = np.where(slots < 0, slots, place[slots]).astype(slots.dtype)
        return moved

    def learned_again(self, joined: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """The arrays, with those that the method learns from all cases together."""
        if not self.method.relearns:
            return joined
        shared = {name for name, p in self.parameters.items() if p.of_all_places}
        state = {name: a for name, a in joined.items() if name not in shared}
        cases = cases_of_state(state, self.periods, self.axis)
        learned = {**state, **self.method.relearn_locations(cases, state, self.min_samples)}
        learned["status"] = state["status"] & (INVALID | FILL) | learned["status"]
        return {**joined, **learned}


def joined_values(kept: xr.Variable, added: xr.DataArray, order: Order) -> xr.DataArray:
    """Values (..., case) of all cases: kept ones, and added ones where nothing is kept."""
    given: Inputs = {"values": {"kept": (of_kept(kept), [KEPT]), "added": (added, [ADDED])}}
    out: Outputs = {"all": ({CASE: order.order.size}, kept.dtype)}
    return run(_JoinValues(order), given, out, what="the update")["all"]


def of_kept(variable: xr.Variable) -> xr.Variable:
    """An array of the state whose cases, and members, are those that are kept."""
    return xr.Variable([NAMES.get(d, d) for d in variable.dims], variable.data)


@dataclass(frozen=True)
class _JoinValues:
    """Kept and added values in, those of all cases out."""

    order: Order
    on_device = True

    def __call__(self, values: Named) -> dict[str, npt.NDArray[Any]]:
        return {"all": join(values["kept"], values["added"], None, self.order)}


def _ones(cases: Named) -> npt.NDArray[Any]:
    """Weights of forecasts that have none."""
    return np.ones_like(next(values for name, values in cases.items() if is_part(name)))


def join(
    kept: npt.NDArray[Any],
    added: npt.NDArray[Any],
    enters: npt.NDArray[np.bool_] | None,
    order: Order,
    axis: int = -1,
) -> npt.NDArray[Any]:
    """Kept and added cases along an axis (-1, or -2 before that of members), in order.

    Of added cases (L, t) that are known those are taken that enter, by default where nothing is
    kept of them.
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
    """Kept cases, in place of which added ones stand where these enter."""
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
