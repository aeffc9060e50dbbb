"""Choices of all places: two passes over them, of a sample the search, then a small result.

A place knows little about the ridge, support and weights that suit it. Places of one kind choose
together, from a sample of them; all are then fitted with what was chosen, without a search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.dispatch import to_host
from xrecal.arrays.distributions.forms import find_bounds, moments
from xrecal.chunks.run import Named
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Form
from xrecal.inputs.place_order import order_of_places
from xrecal.inputs.roles import is_lead
from xrecal.methods import Method
from xrecal.methods.base import CHOSEN_FROM, Cases, FitArrays, SharedFits
from xrecal.typing import FloatArray, IntArray

from .cases import cases_of

Choose: TypeAlias = Hashable | Sequence[Hashable]
"""Whose cases choices come from: "together", "each", or the dimensions of places that share."""

TOGETHER, EACH = "together", "each"

SAMPLE = 64
"""Places of a kind that are searched, at most: they leave an eighth of the noise of one."""

OF_A_KIND = 16
"""Places of a kind, at least, for them to choose together where there are several kinds."""

KINDS = 16
"""Kinds that choose together, at most; the rarer ones choose each for itself."""

OF_ALL = 200.0
"""Cases that the choices of all places count as, beside those of a place itself, at most."""

TOTAL = "total"
"""Cases of all places of a kind, where all of them were searched; else 0."""

KIND = "xrecal_kind"
"""Dimension of the choices of kinds."""

LOWER, UPPER, SKILFUL, CLASSES = 1, 2, 4, 16
"""Bits of a kind, and the number of classes by the number of cases, and by how precise forecasts
are where many places differ in it."""

SIGNIFICANT = 2.0
"""Correlation of forecasts and observations, mean over the places at a lead, above which the lead
has skill: in standard errors of that of one place."""


@dataclass(frozen=True)
class Together:
    """Places that choose together."""

    dims: tuple[Hashable, ...]
    """Dimensions that they share choices along."""
    order: IntArray
    """(P,) places along these, flattened, in the order in which a sample is taken"""
    sizes: tuple[int, ...]
    lead: int | None
    """Place of the dimension of the leads among these"""

    def among(self, facts: Named, min_samples: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Kind of each place (..., P), -1 for one that chooses for itself; and the sample."""
        lead = facts["n_cases"].shape[: -len(self.sizes)]
        flat = {name: a.reshape(math.prod(lead), -1) for name, a in facts.items()}
        kind = np.full(flat["n_cases"].shape, -1, np.int8)
        sample = np.zeros(kind.shape, np.bool_)
        for group in range(len(kind)):
            one = {name: a[group] for name, a in flat.items()}
            kind[group], sample[group] = self._of_group(one, min_samples)
        shape = (*lead, *self.sizes)
        return kind.reshape(shape), sample.reshape(shape)

    def _of_group(self, facts: Named, min_samples: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Kinds and sample of the places (P,) of one group."""
        n_cases = facts["n_cases"]
        enough = n_cases >= max(min_samples, 2)
        kind, sample = np.full(n_cases.size, -1, np.int8), np.zeros(n_cases.size, np.bool_)
        if enough.sum() < 2:
            return kind, sample
        fewer = np.ceil(np.log2(n_cases.max() / n_cases[enough])) - 1  # by factors of two
        code = np.full(n_cases.size, -1)
        fewer = np.clip(fewer, 0, CLASSES - 1).astype(int)
        code[enough] = facts["bounded"][enough] + 2 * SKILFUL * fewer
        code[enough] += SKILFUL * self._skilful(facts)[enough]
        if enough.sum() > SAMPLE:
            code[enough] += 2 * SKILFUL * CLASSES * facts["precision"][enough].astype(int)
        codes, counts = np.unique(code[enough], return_counts=True)
        if codes.size > 1:
            codes, counts = codes[counts >= OF_A_KIND], counts[counts >= OF_A_KIND]
        for number, own in enumerate(codes[np.argsort(-counts, kind="stable")][:KINDS]):
            kind[code == own] = number
            sample[self.order[code[self.order] == own][:SAMPLE]] = True
        return kind, sample

    def _skilful(self, facts: Named) -> IntArray:
        """Whether each place (P,) is at a lead with skill; all are where leads do not differ."""
        skill, n = facts["skill"], facts["n_cases"]
        if self.lead is None:
            return np.ones(n.size, np.int64)
        axes = tuple(a for a in range(len(self.sizes)) if a != self.lead)
        there = np.isfinite(skill)
        units = np.where(there, skill * np.sqrt(n), 0.0).reshape(self.sizes)
        total = there.reshape(self.sizes).sum(axes, keepdims=True)
        mean = units.sum(axes, keepdims=True) / np.maximum(total, 1)
        return np.asarray(np.broadcast_to(mean > SIGNIFICANT, self.sizes).ravel(), np.int64)

    def joined(
        self,
        method: Method,
        kind: IntArray,
        sample: npt.NDArray[np.bool_],
        n_cases: FloatArray,
        choices: Named,
    ) -> dict[str, npt.NDArray[Any]]:
        """Choices (..., K, ...) of each kind, and the places that they come from."""
        lead = kind.shape[: -len(self.sizes)]
        n_groups, n_places = math.prod(lead), math.prod(self.sizes)
        kinds, sampled = (a.reshape(n_groups, n_places) for a in (kind, sample))
        whole = {name: np.zeros((n_groups, KINDS)) for name in (TOTAL, CHOSEN_FROM)}
        for name, size in method.choice_sizes.items():
            whole[name] = np.full((n_groups, KINDS, *size), np.nan)
        flat = {
            name: a.reshape(n_groups, n_places, *a.shape[kind.ndim :])
            for name, a in choices.items()
        }
        for group in range(n_groups):
            ordered = self.order[sampled[group, self.order]]
            for number in np.unique(kinds[group, ordered]).tolist():
                rows = ordered[kinds[group, ordered] == number]
                of_all = method.together({name: a[group, rows] for name, a in flat.items()})
                whole[CHOSEN_FROM][group, number] = rows.size
                if rows.size == (kinds[group] == number).sum():
                    whole[TOTAL][group, number] = n_cases.reshape(n_groups, -1)[group, rows].sum()
                for name, value in of_all.items():
                    whole[name][group, number] = np.asarray(value)[0]
        return {name: a.reshape((*lead, *a.shape[1:])) for name, a in whole.items()}


def places_together(form: Form, places: Sequence[Hashable], choose: Choose) -> Together | None:
    """Places that choose together, or None where each chooses for itself.

    ``places`` are the dimensions with a fit of their own. Raises ValueError for others.
    """
    dims = read_choose(choose, places)
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    if math.prod(sizes[d] for d in dims) < 2:
        return None
    labels = {d: part[d] for part in form.parts.values() for d in part.indexes}
    leads = [i for i, d in enumerate(dims) if is_lead(d, labels.get(d))]
    return Together(
        dims, order_of_places(form, dims), tuple(sizes[d] for d in dims), next(iter(leads), None)
    )


def read_choose(choose: Choose, places: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Dimensions of places that choose together; ValueError for names that are none of these."""
    if isinstance(choose, str) and choose in (TOGETHER, EACH):
        return tuple(places) if choose == TOGETHER else ()
    given = (choose,) if isinstance(choose, str) or not isinstance(choose, Sequence) else choose
    unknown = [d for d in given if d not in places]
    if unknown:
        raise ValueError(
            Advice(
                f"{unknown[0]!r} is no dimension of places with a fit of their own, which are "
                f"{list(places)}; use ",
                Typed("choose", TOGETHER),
                ", ",
                Typed("choose", EACH),
                " or names of these",
            )
        )
    return tuple(d for d in places if d in given)


def axes_of(name: Hashable, size: Sequence[int]) -> dict[Hashable, int]:
    """Dimensions of a choice after those of places."""
    return {f"xrecal_{name}_{axis}": n for axis, n in enumerate(size)}


class Chosen(NamedTuple):
    """Choices of all places, at each of them."""

    choices: Mapping[Any, tuple[xr.DataArray, Sequence[Hashable]]]
    """By name, with their core dimensions; none where each place chooses for itself."""
    known: Sequence[Any] = ()
    """Small arrays, perhaps of Dask, after which the cases of all places are read anew."""


def choices_of(
    together: Together,
    method: Method,
    facts: Mapping[Any, xr.DataArray],
    min_samples: int,
    search: Callable[[xr.DataArray, Sequence[Any]], Mapping[Any, xr.DataArray]],
    last: Sequence[Hashable],
) -> Chosen:
    """Choices at each place with their core dimensions: those of places that come ``last``, axes.

    Parameters
    ----------
    facts : mapping of str to DataArray
        Of :class:`KindTask`, over places.
    search : callable
        Choices of :class:`ChooseTask` at the places of a sample, given as an array of truth values,
        and as arrays of Dask after which cases are read anew.
    """
    names, dims = list(KindTask.facts), list(together.dims)
    chunks = facts[names[0]].chunksizes
    kind, sample = xr.apply_ufunc(
        lambda *given: together.among(dict(zip(names, given, strict=True)), min_samples),
        *(facts[name] for name in names),
        input_core_dims=[dims] * len(names),
        output_core_dims=[dims] * 2,
        dask="parallelized",
        output_dtypes=[np.int8, np.bool_],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    known = [sample.data]
    if chunks:
        kind, sample = (a.chunk({d: chunks[d] for d in a.dims}) for a in (kind, sample))
    chosen = search(sample, known)
    spread = Spread(method)
    axes = {name: axes_of(name, size) for name, size in spread.every.items()}
    tables = xr.apply_ufunc(
        lambda kind, sample, n_cases, *given: tuple(
            together.joined(
                method, kind, sample, n_cases, dict(zip(chosen, given, strict=True))
            ).values()
        ),
        kind,
        sample,
        facts["n_cases"],
        *chosen.values(),
        input_core_dims=[*[dims] * 3, *([*dims, *axes[name]] for name in chosen)],
        output_core_dims=[[KIND, *axes[name]] for name in spread.tables],
        dask="parallelized",
        output_dtypes=[np.float64] * len(spread.tables),
        dask_gufunc_kwargs={
            "allow_rechunk": True,
            "output_sizes": {
                KIND: KINDS,
                **{d: n for name in spread.tables for d, n in axes[name].items()},
            },
        },
    )
    found = xr.apply_ufunc(
        spread,
        kind,
        facts["n_cases"],
        *tables,
        *(chosen[name] for name in method.choice_sizes),
        input_core_dims=[
            [],
            [],
            *([KIND, *axes[name]] for name in spread.tables),
            *([*axes[name]] for name in method.choice_sizes),
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


@dataclass(frozen=True)
class Spread:
    """Choices of kinds in, those of each place of a chunk out."""

    method: Method

    @property
    def results(self) -> dict[str, tuple[int, ...]]:
        """Axes of what each place gets."""
        return {CHOSEN_FROM: (), **self.method.choice_sizes}

    @property
    def tables(self) -> dict[str, tuple[int, ...]]:
        """Axes of what is known of each kind."""
        return {TOTAL: (), **self.results}

    @property
    def every(self) -> dict[str, tuple[int, ...]]:
        """Axes of all of it, and of the evidence of each place."""
        return {**self.tables, **self.method.evidence_sizes}

    def __call__(
        self, kind: IntArray, n_cases: FloatArray, *given: FloatArray
    ) -> tuple[npt.NDArray[Any], ...]:
        """Choices (..., axes) at places (...) from tables (..., K, axes) and from their own ones.

        Where all places of a kind were searched, the own evidence counts by its cases, and that of
        all by those of the others, ``OF_ALL`` at most. Where some were, all are fitted alike.
        """
        flat = kind.ravel()
        of_kind = {
            name: _at_kind(kind, table, len(size)).reshape(flat.size, *size)
            for (name, size), table in zip(self.tables.items(), given, strict=False)
        }
        own = {
            name: a.reshape(flat.size, *self.results[name])
            for name, a in zip(self.method.choice_sizes, given[len(self.tables) :], strict=True)
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
    """Choices (..., axes) of the kind (...) of each place in a table (..., K, axes), or NaN."""
    lacking = kind.ndim + 1 + n_axes - table.ndim
    table = table.reshape((*(1,) * lacking, *table.shape))
    wide = np.maximum(kind, 0).astype(np.intp).reshape((*kind.shape, *(1,) * (n_axes + 1)))
    taken = np.take_along_axis(table, wide, axis=kind.ndim).squeeze(kind.ndim)
    known = (kind >= 0).reshape((*kind.shape, *(1,) * n_axes))
    return np.where(known, taken, np.nan)


@dataclass(frozen=True)
class KindTask:
    """Cases of a chunk of places in, facts that kinds of places differ in out."""

    method: Method
    axis: CaseAxis
    periods: Mapping[str, float | None]
    of_line: bool
    """Whether forecasts are numbers on a line."""

    facts: ClassVar = ("n_cases", "bounded", "skill", "precision")

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device

    def __call__(
        self, forecasts: Named, observed: Named, covariates: Named, shared: Named | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Run the task on one chunk."""
        cases, _ = cases_of(forecasts, observed, covariates, self.axis, self.periods)
        values = to_host(cases.observations)
        low, high, _ = find_bounds(values, "auto")
        skill, precision = np.full(len(values), np.nan), np.zeros(len(values))
        if self.of_line and cases.forecasts is not None:
            means = to_host(moments(cases.forecasts)[0])
            precision = np.array([_precision(*both) for both in zip(means, values, strict=True)])
            skill = np.array([_rank_correlation(*both) for both in zip(means, values, strict=True)])
        return {
            "n_cases": np.isfinite(values).sum(-1),
            "bounded": LOWER * np.isfinite(low) + UPPER * np.isfinite(high),
            "skill": skill,
            "precision": precision,
        }


@dataclass(frozen=True)
class ChooseTask:
    """Cases of a chunk of places in, choices of those in the sample out; NaN at the others."""

    method: Method
    axis: CaseAxis
    periods: Mapping[str, float | None]
    min_samples: int

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return self.method.on_device

    @property
    def sizes(self) -> Mapping[str, tuple[int, ...]]:
        """Axes of the results after that of places."""
        return {**self.method.choice_sizes, **self.method.evidence_sizes}

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
        n_places = len(cases.observations)
        out = {name: np.full((n_places, *size), np.nan) for name, size in self.sizes.items()}
        at = np.flatnonzero(to_host(of_place["sample"]))
        if at.size:
            found = self.method.choose_locations(cases.take(at), self.min_samples)
            for name, values in out.items():
                values[at] = to_host(found[name])
        return out


def fit_with(
    method: Method, cases: Cases, min_samples: int, choices: Named
) -> dict[str, npt.NDArray[Any]]:
    """Fit to cases (L, n) with choices (L, ...) of all places where there are any.

    Without choices, or where they are of no place, each place chooses for itself.
    """
    n_places = len(cases.observations)
    if not choices:
        return {**method.fit_locations(cases, min_samples), CHOSEN_FROM: np.ones(n_places, int)}
    chosen_from = np.nan_to_num(to_host(choices[CHOSEN_FROM]))
    together = chosen_from > 0
    own = {name: to_host(a) for name, a in choices.items() if name != CHOSEN_FROM}
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
        fitted = {name: np.concatenate([part[name] for _, part in parts])[order] for name in fitted}
    return {**fitted, CHOSEN_FROM: np.where(together, chosen_from, 1).astype(np.int32)}


def _precision(mean: FloatArray, observed: FloatArray) -> int:
    """How many times errors (n,) are half as large as departures from climatology, in the mean."""
    there = np.isfinite(mean) & np.isfinite(observed)
    if not there.any():
        return 0
    error, anomaly = (a - np.median(a) for a in (observed[there] - mean[there], observed[there]))
    size, usual = np.abs(error).mean(), np.abs(anomaly).mean()
    if not size < usual:
        return 0
    return CLASSES - 1 if size == 0 else min(int(np.log2(usual / size)), CLASSES - 1)


def _rank_correlation(x: FloatArray, y: FloatArray) -> float:
    """Correlation of the ranks of values (n,) that are there; NaN of fewer than three."""
    there = np.isfinite(x) & np.isfinite(y)
    n = int(there.sum())
    if n < 3:
        return math.nan
    first, second = (np.argsort(np.argsort(a[there], kind="stable"), kind="stable") for a in (x, y))
    return float(1 - 6 * ((first - second) ** 2).sum() / (n * (n**2 - 1)))
