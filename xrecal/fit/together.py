"""Joint choices of places in two passes: a search at a sample of places, then all fits.

The cases of one place determine the best ridge, support and weights poorly. So places of one kind
choose together, from a sample of these places. Then the fit of each place uses the joint choices,
without a search. The evidence for a choice is the loss of each candidate in cross-validation; the
joint evidence is the loss at all sampled places together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import namespace, to_host
from xrecal.chunks.run import Named
from xrecal.inputs.dates import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import CHOSEN_FROM, Cases, FitArrays, SharedFits
from xrecal.typing import FloatArray, IntArray

from .cases import cases_of
from .kinds import KINDS, KindTask, Together

OF_ALL = 200.0
"""Largest number of cases that the joint evidence may count as, when a place mixes it with its own
evidence."""

TOTAL = "total"
"""Name of the array with the number of cases of all places of a kind. The number is 0 if the search
left out some of these places."""

KIND = "xrecal_kind"
"""Dimension of kinds, in arrays with one choice per kind."""


def axes_of(name: Hashable, size: Sequence[int]) -> dict[Hashable, int]:
    """Return the dimensions of a choice, other than places, with their sizes."""
    return {f"xrecal_{name}_{axis}": n for axis, n in enumerate(size)}


def choices_and_evidence(method: Method) -> dict[str, tuple[int, ...]]:
    """Return the sizes of a place's choices, and of the evidence for each choice, by name."""
    return {**method.choice_sizes, **method.evidence_sizes}


class Chosen(NamedTuple):
    """Settings that places have chosen together, for each place."""

    choices: Mapping[Any, tuple[xr.DataArray, Sequence[Hashable]]]
    """Arrays by name, with their core dimensions; empty if each place chooses alone."""
    known: Sequence[Any] = ()
    """Small arrays, perhaps lazy. Tasks wait for these arrays before they read the cases again."""


def choices_of(
    together: Together,
    method: Method,
    facts: Mapping[Any, xr.DataArray],
    min_samples: int,
    search: Callable[[xr.DataArray, Sequence[Any]], Mapping[Any, xr.DataArray]],
    last: Sequence[Hashable],
) -> Chosen:
    """Return choices at each place; core dimensions are ``last``, then the axes of a choice.

    Parameters
    ----------
    facts : mapping of str to DataArray
        Results of :class:`KindTask`, over places.
    search : callable
        Function that returns the choices of :class:`ChooseTask` at sampled places. It takes a
        boolean array of the sample, and small arrays. Dask computes these small arrays before it
        reads the cases.
    """
    dims = list(together.dims)
    chunks = facts[KindTask.facts[0]].chunksizes
    kind, sample = xr.apply_ufunc(
        Among(together, min_samples),
        *(facts[name] for name in KindTask.facts),
        input_core_dims=[dims] * len(KindTask.facts),
        output_core_dims=[dims] * 2,
        dask="parallelized",
        output_dtypes=[np.int8, np.bool_],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    known = [sample.data]
    if chunks:
        bare = (a.reset_coords(drop=True) for a in (kind, sample))  # chunks include coordinates
        kind, sample = (a.chunk({d: chunks[d] for d in a.dims}) for a in bare)
    chosen = search(sample, known)
    spread = Spread(method)
    tables = _tables(Join(together, method, tuple(chosen)), spread, kind, sample, facts, chosen)
    axes = {name: axes_of(name, size) for name, size in spread.tables.items()}
    found = xr.apply_ufunc(
        spread,
        kind,
        facts["n_cases"],
        *tables,
        *(chosen[name] for name in spread.own),
        input_core_dims=[
            *[[]] * 2,
            *([KIND, *axes[name]] for name in spread.tables),
            *([*axes[name]] for name in spread.own),
        ],
        output_core_dims=[[*axes[name]] for name in spread.results],
        dask="parallelized",
        output_dtypes=[np.float64] * len(spread.results),
    )
    each: dict[Any, tuple[xr.DataArray, Sequence[Hashable]]] = {}
    for name, own in zip(spread.results, found, strict=True):
        core: list[Hashable] = [*last, *axes[name]]
        each[name] = own.transpose(..., *core), core
    return Chosen(each, [table.data for table in tables])


def _tables(
    join: Join,
    spread: Spread,
    kind: xr.DataArray,
    sample: xr.DataArray,
    facts: Mapping[Any, xr.DataArray],
    chosen: Mapping[Any, xr.DataArray],
) -> Sequence[xr.DataArray]:
    """Return tables with the choices of each kind, from the choices of the sampled places."""
    dims = list(join.together.dims)
    axes = {name: axes_of(name, size) for name, size in spread.tables.items()}
    sizes = {d: n for name in spread.tables for d, n in axes[name].items()}
    tables: Sequence[xr.DataArray] = xr.apply_ufunc(
        join,
        kind,
        sample,
        facts["n_cases"],
        *chosen.values(),
        input_core_dims=[*[dims] * 3, *([*dims, *axes[name]] for name in chosen)],
        output_core_dims=[[KIND, *axes[name]] for name in spread.tables],
        dask="parallelized",
        output_dtypes=[np.float64] * len(spread.tables),
        dask_gufunc_kwargs={"allow_rechunk": True, "output_sizes": {KIND: KINDS, **sizes}},
    )
    return tables


@dataclass(frozen=True)
class Among:
    """Function that returns the kinds of all places, and a sample, from facts about the places."""

    together: Together
    min_samples: int

    def __call__(self, *facts: FloatArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the kind of each place, and a mask of the sample."""
        return self.together.among(dict(zip(KindTask.facts, facts, strict=True)), self.min_samples)


@dataclass(frozen=True)
class Join:
    """Function that returns the choices of each kind, from the choices of the sample."""

    together: Together
    method: Method
    names: tuple[str, ...]
    """Names of the choices, and of the arrays of evidence for the choices."""

    def __call__(
        self,
        kind: IntArray,
        sample: npt.NDArray[np.bool_],
        n_cases: FloatArray,
        *chosen: FloatArray,
    ) -> tuple[npt.NDArray[Any], ...]:
        """Return tables (..., K, ...) of the choices of K kinds, from the choices of the sample."""
        method, sizes = self.method, self.together.sizes
        lead = kind.shape[: -len(sizes)]
        n_groups, n_places = math.prod(lead), math.prod(sizes)
        kinds, sampled, n = (a.reshape(n_groups, n_places) for a in (kind, sample, n_cases))
        whole = {name: np.zeros((n_groups, KINDS)) for name in (TOTAL, CHOSEN_FROM)}
        for name, size in choices_and_evidence(method).items():
            whole[name] = np.full((n_groups, KINDS, *size), np.nan)
        flat = {
            name: a.reshape(n_groups, n_places, *a.shape[kind.ndim :])
            for name, a in zip(self.names, chosen, strict=True)
        }
        for group in range(n_groups):
            ordered = self.together.order[sampled[group, self.together.order]]
            for number in np.unique(kinds[group, ordered]).tolist():
                rows = ordered[kinds[group, ordered] == number]
                of_all = method.together({name: a[group, rows] for name, a in flat.items()})
                whole[CHOSEN_FROM][group, number] = rows.size
                if rows.size == (kinds[group] == number).sum():
                    whole[TOTAL][group, number] = n[group, rows].sum()
                for name, value in of_all.items():
                    whole[name][group, number] = np.asarray(value)[0]
        return tuple(a.reshape((*lead, *a.shape[1:])) for a in whole.values())


@dataclass(frozen=True)
class Spread:
    """Function that returns the choices of each place of a chunk, from the choices of kinds."""

    method: Method

    @property
    def results(self) -> dict[str, tuple[int, ...]]:
        """Sizes of the results of each place, by name."""
        return {CHOSEN_FROM: (), **self.method.choice_sizes}

    @property
    def own(self) -> dict[str, tuple[int, ...]]:
        """Array shapes of each sampled place's choices and evidence, by the name of the choice."""
        return choices_and_evidence(self.method)

    @property
    def tables(self) -> dict[str, tuple[int, ...]]:
        """Array shapes of each kind's choices and evidence, by the name of the choice."""
        return {TOTAL: (), CHOSEN_FROM: (), **self.own}

    def __call__(
        self, kind: IntArray, n_cases: FloatArray, *given: FloatArray
    ) -> tuple[npt.NDArray[Any], ...]:
        """Return choices (..., axes) at places (...), from tables of kinds and from own choices.

        Tables are (..., K, axes). If the search covered all places of a kind, each place mixes its
        own evidence with the joint evidence. The weight of its own evidence is its number of
        cases. The weight of the joint evidence is the number of cases of the other places, but at
        most ``OF_ALL``. If the search covered only some places of a kind, all places of the kind
        get the joint choices.
        """
        flat = kind.ravel()
        of_kind = {
            name: _at_kind(kind, table, len(size)).reshape(flat.size, *size)
            for (name, size), table in zip(self.tables.items(), given, strict=False)
        }
        own = {
            name: a.reshape(flat.size, *size)
            for (name, size), a in zip(self.own.items(), given[len(self.tables) :], strict=True)
        }
        n = n_cases.ravel()
        others = of_kind.pop(TOTAL) - n
        share = np.where(others > 0, n / np.maximum(n + np.minimum(others, OF_ALL), 1.0), 0.0)
        chosen_from = of_kind.pop(CHOSEN_FROM)
        found = {CHOSEN_FROM: chosen_from, **self.method.with_own(of_kind, own, share)}
        return tuple(
            np.asarray(found[name], np.float64).reshape(*kind.shape, *size)
            for name, size in self.results.items()
        )


def _at_kind(kind: IntArray, table: FloatArray, n_axes: int) -> FloatArray:
    """Return the choices of the kind of each place, from a table (..., K, axes) of K kinds.

    A place without a kind gets NaN.
    """
    lacking = kind.ndim + 1 + n_axes - table.ndim
    table = table.reshape((*(1,) * lacking, *table.shape))
    wide = np.maximum(kind, 0).astype(np.intp).reshape((*kind.shape, *(1,) * (n_axes + 1)))
    taken = np.take_along_axis(table, wide, axis=kind.ndim).squeeze(kind.ndim)
    known = (kind >= 0).reshape((*kind.shape, *(1,) * n_axes))
    return np.where(known, taken, np.nan)


@dataclass(frozen=True)
class ChooseTask:
    """Task that takes the cases of a chunk of places and returns choices of the sampled places.

    Choices are NaN at other places.
    """

    method: Method
    axis: CaseAxis
    periods: Mapping[str, float | None]
    min_samples: int

    @property
    def on_device(self) -> bool:
        """True if the task accepts CuPy arrays."""
        return self.method.on_device

    @property
    def sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Sizes of the results without the axis of places, by name."""
        return choices_and_evidence(self.method)

    def __call__(
        self,
        forecasts: Named,
        observed: Named,
        covariates: Named,
        of_place: Named,
        shared: Named | None = None,
    ) -> dict[str, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        cases, _ = cases_of(forecasts, observed, covariates, self.axis, self.periods)
        if shared:
            cases = replace(cases, shared=SharedFits(**shared))
        return self.of(cases, to_host(of_place["sample"]))

    def of(self, cases: Cases, sample: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
        """Return choices (L, ...) by name from cases (L, n); NaN at places outside the sample."""
        out = {name: np.full((sample.size, *size), np.nan) for name, size in self.sizes.items()}
        at = np.flatnonzero(sample)
        if at.size:
            found = self.method.choose_locations(cases.take(at), self.min_samples)
            for name, values in out.items():
                values[at] = to_host(found[name])
        return out


def choose_in_memory(
    together: Together, sizes: Mapping[Hashable, int], method: Method, cases: Cases, least: int
) -> Named:
    """Return joint choices (L, ...) of all places from their cases (L, n), for :func:`fit_with`.

    ``sizes`` has the dimensions of the L places; ``least`` is the least number of cases of a fit.
    """
    search = ChooseTask(method, cases.axis, {}, least)
    facts = KindTask(method, cases.axis, {}, method.variables is None).of(cases)

    def over_places(found: Named) -> dict[Any, xr.DataArray]:
        return {
            name: xr.DataArray(
                a.reshape((*sizes.values(), *a.shape[1:])),
                dims=[*sizes, *axes_of(name, a.shape[1:])],
            )
            for name, a in found.items()
        }

    def searched(sample: xr.DataArray, known: Sequence[Any]) -> dict[Any, xr.DataArray]:
        return over_places(search.of(cases, sample.transpose(*sizes).to_numpy().ravel()))

    chosen = choices_of(together, method, over_places(facts), least, searched, [])
    whole = {name: a.transpose(*sizes, *core) for name, (a, core) in chosen.choices.items()}
    n, n_dims = len(cases.observations), len(sizes)
    return {name: a.to_numpy().reshape((n, *a.shape[n_dims:])) for name, a in whole.items()}


def fit_with(
    method: Method, cases: Cases, min_samples: int, choices: Named
) -> dict[str, npt.NDArray[Any]]:
    """Fit a method to cases (L, n), with joint choices (L, ...) where there are any.

    All other places choose alone.
    """
    n_places, xp = len(cases.observations), namespace(cases.observations)
    if not choices:
        alone = xp.ones(n_places, dtype=np.int32)
        return {**method.fit_locations(cases, min_samples), CHOSEN_FROM: alone}
    chosen_from = np.nan_to_num(choices[CHOSEN_FROM])
    together = chosen_from > 0
    own = {name: a for name, a in choices.items() if name != CHOSEN_FROM}
    parts: list[tuple[IntArray, FitArrays]] = []
    for some, given in ((together, own), (~together, None)):
        at = np.flatnonzero(some)
        if at.size:
            mine = None if given is None else {name: a[at] for name, a in given.items()}
            part = cases if at.size == n_places else cases.take(at)
            parts.append((at, method.fit_locations(part, min_samples, mine)))
    fitted = dict(parts[0][1]) if parts else dict(method.fit_locations(cases, min_samples))
    if len(parts) > 1:
        order = np.argsort(np.concatenate([at for at, _ in parts]))
        fitted = {name: xp.concatenate([part[name] for _, part in parts])[order] for name in fitted}
    where = xp.asarray(np.where(together, chosen_from, 1).astype(np.int32))
    return {**fitted, CHOSEN_FROM: where}
