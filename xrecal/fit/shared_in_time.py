"""A law of errors that all places share and that keeps learning, with a version for each date.

The version of a date is the law that was known when the forecasts of this date were issued. The law
follows from sums over dates. The state stores sums over the dates that were known when the last
case was issued. An update adds further dates one by one. So the law of each later day is
available, and the result does not depend on the number of days in an update.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import work_on
from xrecal.chunks.run import run
from xrecal.inputs.covariates import AHEAD
from xrecal.inputs.forms import Form
from xrecal.inputs.pool import Pool
from xrecal.methods import SharedCKME
from xrecal.methods.known import known_cases
from xrecal.methods.shared_cases import OfDates
from xrecal.methods.shared_ckme import HERE, NUMBER, OWN, PLACE, SUMMED, as_shared
from xrecal.methods.shared_packing import packed_fit
from xrecal.typing import FloatArray, IntArray

from .case_order import Order
from .cases import COVARIATE, OBSERVATIONS, is_part
from .common_regrets import with_common_regrets
from .fitted import CASE, CASE_MEMBER, FittedVariable
from .pooling import DATE
from .shared_fit import PassesOverChunks, SharedChunks
from .shared_places import component_of_all
from .shared_update import Unpacked, engine_of, join_any, packed_fits
from .state import shared_group
from .update_task import ForetellTask, LearnTask, UpdateTask

if TYPE_CHECKING:
    from xrecal.arrays.shared.held_out import InTime
    from xrecal.arrays.shared.network import Cases
    from xrecal.arrays.shared.passes import Shared


PLACE_FEATURE = OWN + "place_feature"

SUMS = "sum_", "place_sums"
"""Beginnings of the names of arrays with sums over cases."""


def shared_law(fitted: FittedVariable) -> set[str]:
    """Return the names of the arrays of a shared law of errors.

    Tasks of single places do not need these arrays.
    """
    every, own = fitted.parameters.items(), fitted.method.in_common
    return {name for name, p in every if p.of_all_places and name not in own}


def learned_with_law(
    task: UpdateTask, fitted: FittedVariable, joined: xr.Dataset, form: Form
) -> xr.Dataset:
    """Return the state after the shared law and the places have learned from cases in ``joined``.

    ``form`` must have the places of the state.
    """
    chunks = KeptChunks(fitted, joined, form.name)
    said, arrays = _advanced(chunks, task, fitted, joined)
    state = {str(n): v for n, v in joined.data_vars.items() if n not in shared_law(fitted)}
    given: dict[str, Any] = {
        "state": {
            n: (v.variable, [d for d in v.dims if d not in fitted.locations])
            for n, v in state.items()
        },
        "shared": shared_group((said, chunks.number, chunks.here)),
    }
    what = work_on("the update", form.name)
    given["foretold"] = {
        0: (run(ForetellTask(task), {"state": given["state"]}, {0: ({}, object)}, what=what)[0], ())
    }
    learn = LearnTask(task)
    given, common = with_common_regrets(learn, given, form, fitted.locations)
    changing = [n for n in state if n in ("n_cases", "status")]
    changing += [n for n in state if n in task.parameters and task.changes(n)]
    out = {n: given["state"][n] for n in changing}
    results = run(
        learn,
        given,
        {n: ({d: v.sizes[d] for d in core}, v.dtype) for n, (v, core) in out.items()},
        what=what,
    )
    results |= {**common, **arrays}
    changed = {n: r.assign_attrs(joined[n].attrs).variable for n, r in results.items()}
    return joined.assign(changed)[list(joined.data_vars)]


class KeptChunks(SharedChunks):
    """Cases that the pools at all places store, for passes over the cases of one date."""

    read_again = False
    """Passes do not read the chunks again, because the update holds the whole state in memory."""

    def __init__(self, fitted: FittedVariable, state: xr.Dataset, name: Hashable) -> None:
        self.component = component_of_all(fitted.method)
        method, label = as_shared(self.component.method), self.component.label
        self.number = state[f"{label}_{NUMBER}"].reset_coords(drop=True)
        dims, arrays = self.number.dims, {str(n): v for n, v in state.data_vars.items()}
        self.name, self.method, self.min_samples = name, method, fitted.min_samples
        self.pool = Pool(dims, tuple(state.sizes[d] for d in dims), None, ())
        nowhere = xr.DataArray(np.empty((*self.number.shape, 0)), dims=[*dims, PLACE_FEATURE])
        self.here = arrays.get(f"{label}_{HERE}", nowhere)
        own = {n: period for n, period in fitted.periods.items() if n in method.covariates}
        of_places = dict.fromkeys(method.of_places)
        self.periods = {**own, **of_places}
        locations = [d for d in fitted.locations if d not in dims]

        def by_date(
            array: xr.DataArray, *core: Hashable
        ) -> tuple[xr.DataArray, Sequence[Hashable]]:
            bare = array.drop_vars(list(array.coords)).rename({CASE: DATE})
            return bare.transpose(*locations, DATE, *dims, *core, missing_dims="ignore"), core

        known = {n: by_date(arrays[COVARIATE + n]) for n in own}
        known |= {n: (xr.DataArray(0.0), ()) for n in of_places}
        known[PLACE] = self.number.astype(np.float64), ()
        self.cases = {
            "forecasts": {n: by_date(v, CASE_MEMBER) for n, v in arrays.items() if is_part(n)},
            "observed": {0: by_date(arrays[OBSERVATIONS])},
            "covariates": known,
        }
        first = next(iter(self.cases["forecasts"].values()))[0]
        self._set_dates(OfDates.alike(first.sizes[DATE]), first)

    def on(self, date: int, at: Mapping[Hashable, int], seen: xr.DataArray) -> KeptChunks:
        """Return the cases of a date at a location.

        ``seen`` has the observations that the sums already contain.
        """
        one, where = copy(self), {DATE: slice(date, date + 1), **at}

        def here(array: xr.DataArray) -> xr.DataArray:
            return array.isel({d: i for d, i in where.items() if d in array.dims})

        one.cases = {
            group: {name: (here(array), core) for name, (array, core) in of.items()}
            for group, of in self.cases.items()
        }
        one.beside = {n: here(a) for n, a in {**self.beside, "seen": seen}.items()}
        return one


class Turns(NamedTuple):
    """Schedule of an update at one location: the order in which dates enter the sums.

    The sums grow date by date. After some dates, the update computes the law of errors.
    """

    first: int
    """The stored sums cover this many dates, from the first date on. Observations of these dates
    may come late."""
    late: IntArray
    """Positions of dates that the stored sums cover and for which the update has cases."""
    needed: frozenset[int]
    """Numbers of dates: when the sums cover so many dates, the update computes the law. For each
    case to learn from, the set has the number of dates known when the case was issued."""
    kept: int
    """The sums of the new state cover this many dates, from the first date on."""
    n: int
    """Number of all dates."""

    @classmethod
    def of(cls, summed: int, order: Order, known: IntArray) -> Turns:
        """Return the schedule for a state with sums over the first ``summed`` dates.

        ``known`` (n,): how many dates were known when the forecasts of each date were issued.
        """
        place = np.argsort(order.order)
        first = int(place[summed - 1]) + 1 if summed else 0
        added = place[np.where(order.known < 0, order.slots, order.known)]
        of_added = known[added[added >= first]]
        n = order.order.size
        kept = max(first, int(known[-1]) if n else 0)
        needed = frozenset(of_added[of_added >= first].tolist())
        return cls(first, np.sort(added[added < first]), needed, kept, n)


def _advanced(
    chunks: KeptChunks, task: UpdateTask, fitted: FittedVariable, joined: xr.Dataset
) -> tuple[xr.DataArray, dict[str, xr.DataArray]]:
    """Return the laws that each location had when cases were issued, and new state arrays."""
    label, order = chunks.component.label, task.order
    arrays = {
        name: fitted.state.variables[f"{label}_{name}"]
        for name in chunks.component.parameters(0)
        if name not in (NUMBER, HERE, SUMMED)
    }
    packed = packed_fits(arrays, chunks)
    summed = fitted.state[f"{label}_{SUMMED}"].compute()
    ahead = joined[COVARIATE + AHEAD].compute()
    pooled = [d for d in ahead.dims if d in chunks.pool.dims]
    ahead = ahead.min(pooled) if bool((ahead < 0).any()) else ahead.max(pooled)
    said, fits, counts = [], [], []
    for at in chunks.each_location:
        of_here = {d: i for d, i in at.items() if d in ahead.dims}
        delay = fitted.method.delay or 0
        known = known_cases(task.axis, ahead.isel(of_here).to_numpy(), delay)
        turns = Turns.of(int(summed.isel(at)), order, known)
        one, fit = _at_location(chunks, at, packed, turns, _seen(fitted, joined, order, turns))
        said.append(one)
        fits.append(fit)
        counts.append(turns.kept)
    found = {n: a for n, a in chunks.arrays_of(fits).items() if n in arrays}
    found[SUMMED] = chunks.of_locations(counts)
    return chunks.objects_of(said), {f"{label}_{n}": a for n, a in found.items()}


def _seen(fitted: FittedVariable, joined: xr.Dataset, order: Order, turns: Turns) -> xr.DataArray:
    """Return an array over all dates: observations that the sums contain, and NaN elsewhere."""
    kept, n_kept = fitted.state[OBSERVATIONS].reset_coords(drop=True), order.n_kept
    there = (order.order < n_kept) & (np.arange(turns.n) < turns.first)
    taken = kept.drop_vars(list(kept.coords)).isel({CASE: np.minimum(order.order, n_kept - 1)})
    return taken.rename({CASE: DATE}).where(xr.DataArray(there, dims=[DATE]))


def _at_location(
    chunks: KeptChunks,
    at: Mapping[Hashable, int],
    packed: xr.DataArray,
    turns: Turns,
    seen: xr.DataArray,
) -> tuple[Any, Any]:
    """Return the laws that a location had when cases were issued, and its arrays of the new state.

    Both are Delayed if the cases are lazy.
    """
    from xrecal.arrays.shared.passes import IfAny, solved, with_sums

    engine, here = engine_of(chunks, at, packed)
    begun = engine.once(Unpacked(np.empty((0, 0))), here)

    def with_date(fit: Any, date: int) -> Any:
        of_date = PassesOverChunks(chunks.on(date, at, seen), {}, engine.usual)
        return engine.once(IfAny(with_sums), fit, of_date.total(_added, join_any, begun))

    number = np.full(turns.n + 1, -1)
    fits: list[Any] = []
    current = begun
    for date in turns.late:
        current = with_date(current, int(date))
    kept = current
    for date in range(turns.first, turns.n):
        if date in turns.needed:
            current = engine.once(IfAny(solved), current)
            number[date] = len(fits)
            fits.append(current)
        kept = current if date == turns.kept else kept
        current = with_date(current, date)
    whole = engine.once(IfAny(solved), current)
    kept = current if turns.kept == turns.n else kept
    said = engine.once(_in_time, number, engine.usual, here, *fits)
    return said, engine.once(_Repacked(chunks.method, chunks.min_samples), whole, kept, here)


def _added(cases: Cases, date: IntArray, seen: FloatArray, fit: Shared | None) -> Any:
    """Return sums over the new cases that a chunk has at places of the fit; None without a fit."""
    from xrecal.arrays.shared.passes import added_sums_of

    if fit is None:
        return None
    new = cases._replace(observations=np.where(np.isfinite(seen), np.nan, cases.observations))
    return added_sums_of(fit, new.take(np.flatnonzero(cases.place >= 0)))


def _in_time(
    number: IntArray, usual: FloatArray, packed: npt.NDArray[Any], *fits: Shared | None
) -> InTime | None:
    """Return an object that finds fits by the number of known dates; None if a fit is missing."""
    from xrecal.arrays.shared.held_out import InTime
    from xrecal.arrays.shared.passes import without_sums

    if any(fit is None for fit in fits):
        return None
    arrays = packed.item()
    bounds = float(arrays["lower"]), float(arrays["upper"])
    return InTime(tuple(without_sums(fit) for fit in fits if fit), number, usual, bounds)


class _Repacked:
    """Function that returns the new arrays of a location.

    It takes a fit to all cases, a fit with the sums to store, and the old arrays.
    """

    __name__ = "repacked"

    def __init__(self, method: SharedCKME, min_samples: int) -> None:
        self.method, self.min_samples = method, min_samples

    def __call__(
        self, whole: Shared | None, kept: Shared | None, packed: npt.NDArray[Any]
    ) -> dict[str, Any]:
        """Return the arrays by name."""
        arrays: dict[str, Any] = {**packed.item(), "n_cases": np.int32(0), "status": np.int16(0)}
        if whole is None or kept is None:
            return arrays
        new = packed_fit(self.method.sizes(0), whole, self.min_samples)
        sums = packed_fit(self.method.sizes(0), kept, self.min_samples)
        return {**arrays, **new, **{n: sums[n] for n in sums if n.startswith(SUMS)}}
