"""Held-out forecasts: fits predict cases from which they have not learned."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.splitting import ROUNDING
from xrecal.arrays.splitting import splits as split_cases
from xrecal.chunks.blockwise import require_one_side, work_on
from xrecal.chunks.progress import counted, stage
from xrecal.chunks.run import Inputs, arrays_of, run
from xrecal.chunks.warnings import warn, warn_once
from xrecal.inputs.covariates import Given
from xrecal.inputs.dates import CaseAxis, years_of_cases
from xrecal.inputs.forms import Form, numbers_of
from xrecal.inputs.lengths import Span, as_span, read_year_start
from xrecal.inputs.metadata import describing
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import PoolOver
from xrecal.inputs.valid_time_lookup import longest_lead
from xrecal.methods import Method
from xrecal.methods.covariates import may_break
from xrecal.methods.folds import (
    WEEK,
    learned_from_neighbours,
    learned_from_unverified,
    note_on_year_start,
)
from xrecal.typing import IntArray

from .common_regrets import with_common_regrets
from .conditioned import settled
from .fit_hindcast import pair_hindcast, prepare
from .fitted import dtype_of_members
from .kinds import TOGETHER, Choose
from .loop import Fold, KnownName, LoopTask, Round, Wanted, choices_group
from .named_members import learn_members, weigh
from .natural_bounds import within_nature
from .shared_component import sharing
from .shared_places import pools_share, require_few, require_splits, shares, warn_of_features
from .state import Prepared, choices_of_all, given_cases, works_on_all_first

By: TypeAlias = Literal["year", "block", "retrospective", "rolling"]

EACH_LEAD = "the delay of each lead"
"""Text for the gap of a model that learns from each forecast once its observation is known."""


@dataclass(frozen=True)
class Splits:
    """Settings that determine the held-out cases and the training cases of each fit."""

    by: By
    gap: Span | None = 0
    """None means a gap of the lead time if the model is updated, and no gap otherwise."""
    blocks: int = 5
    window: Span | None = None
    every: Span | None = None
    pool: PoolOver = None
    min_samples: int = 20
    year_start: str | int | None = None
    refit: Span | None = None
    """Time between two fits of a model; updates come between these fits."""
    updates: bool = False
    """True if a model learns from new cases by updates, not by a new fit each time."""
    choose: Choose = TOGETHER
    """Places that choose their settings together, as in ``fit``."""
    features: str | Sequence[str] = ()
    """Names of coordinates by which a shared fit compares places."""

    @property
    def options(self) -> dict[str, Any]:
        """Arguments for the function that makes the splits, by name."""
        names = ("gap", "blocks", "window", "every")
        given = {name: as_span(getattr(self, name), name) for name in names}
        return given | {"gap": 0 if self.gap is None else given["gap"]}

    def years(self, axis: CaseAxis) -> IntArray | None:
        """Return the year (n,) of each case; None without dates.

        Raises ValueError for too few years, or an invalid start of the year.
        """
        start = read_year_start(self.year_start, "cross-validation")
        if start is not None and self.by != "year":
            raise ValueError(
                Advice(
                    "year_start belongs to ",
                    Typed("by", "year"),
                    f", but by is {self.by!r}; leave it out",
                )
            )
        if start is not None and axis.month_day is None:
            raise ValueError(
                "year_start needs dates along the calibration dimension (datetime64 or cftime); "
                "leave it out"
            )
        year = years_of_cases(axis, start)
        if self.by == "year" and year is not None and np.unique(year).size < 2:
            raise ValueError(
                Advice(
                    Typed("by", "year"),
                    f" needs two years at least, but all cases are of {year[0]}"
                    f"{note_on_year_start(axis, year)}; use ",
                    Typed("by", "block"),
                )
            )
        return year

    def __str__(self) -> str:
        """Return the splits as the arguments that users would type."""
        has_blocks = self.by != "year" and self.window is None
        names = (*self.options, "refit", "year_start", "pool")
        given = {name: getattr(self, name) for name in names}
        if self.gap is None:
            given["gap"] = EACH_LEAD if self.updates else 0
        return f"by={self.by!r}" + "".join(
            f", {name}={_plain(value)}"
            for name, value in given.items()
            if value is not None and (name != "blocks" or has_blocks)
        )


def _plain(value: object) -> str:
    """Return a length of time as text such as "10 days", and other values as users type them."""
    as_text = isinstance(value, (datetime.timedelta, np.generic)) or value is EACH_LEAD
    return str(value) if as_text else repr(value)


@dataclass(frozen=True)
class HeldOut:
    """Held-out forecasts of a hindcast: the fit that forecasts a case has not learned from it."""

    given: Form
    """Raw forecasts, in the order of the user's hindcast."""
    prepared: Prepared
    rounds: Sequence[Round]
    splits: Splits
    known: xr.DataArray | None = None
    """For each observation: position, in order of time, of the first case issued once it is known.

    None unless the model learns from cases as they verify.
    """

    @property
    def folds(self) -> list[Fold]:
        """Splits of the cases, one for each fit."""
        return [one.fit for one in self.rounds if one.fit is not None]

    @property
    def form(self) -> Form:
        """The forecasts, in the order of time."""
        return self.prepared.pairs.form

    @property
    def dim(self) -> Hashable:
        """Dimension of the cases."""
        return self.prepared.pairs.dim

    @property
    def units(self) -> dict[str, Any]:
        """Attribute with the unit of the observations, or else with the unit of the forecasts."""
        given = (self.form.loc, self.prepared.pairs.observations)
        return {k: v for array in given for k, v in array.attrs.items() if k == "units"}

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes for arrays with values of the variable."""
        return describing({**self.form.loc.attrs, **self.units})

    @property
    def threshold_dtype(self) -> npt.DTypeLike:
        """Floating type of issued members, in which values are compared with thresholds."""
        pairs = self.prepared.pairs
        return dtype_of_members(self.prepared.method, pairs.form, pairs.observations)

    def reduce(
        self,
        reduction: Callable[..., tuple[Any, ...]],
        *out: Mapping[Hashable, int],
        extras: Sequence[xr.DataArray | KnownName] = (),
        dtypes: Sequence[npt.DTypeLike] | None = None,
    ) -> tuple[xr.DataArray, ...]:
        """Apply a reduction, such as a score, to the held-out forecasts.

        A reduction replaces the dimension of the members by other dimensions. ``out`` has these
        dimensions for each result, with their sizes. ``extras`` are further inputs of the
        reduction. An input is either an array over cases (in order of time), locations and perhaps
        other dimensions, or the name of a fact about the cases; see :data:`KnownName`. There is one
        task for each chunk of locations.
        """
        pairs, steps, given = self.prepared.pairs, self._steps, given_cases(self.prepared)
        arrays = {i: extra for i, extra in enumerate(extras) if not isinstance(extra, str)}
        dtypes = tuple(dtypes or [self.form.loc.dtype] * len(out))
        wanted = Wanted(
            reduction,
            tuple(extra if isinstance(extra, str) else i for i, extra in enumerate(extras)),
            tuple(tuple(new.values()) for new in out),
            dtypes,
        )
        observed, cases = given["observed"][0]
        sizes = {d: observed.sizes[d] for d in cases}
        known = {} if self.known is None else {0: self._over(cases, self.known.astype(float))}
        task, form = self._task(wanted), pairs.form
        places = [d for d in form.dims if pairs.pool is None and d != pairs.dim]
        what = work_on("the cross-validation", form.name)
        require_one_side(task, arrays_of(given)[0], what)
        with stage(0, steps):
            given = {**given, "known": known, "extras": {}, **self._choices()}
            given, _ = with_common_regrets(task, given, form, places)
        with stage(steps - 1, steps):
            results = run(
                task,
                {**given, "extras": {i: self._over(cases, extra) for i, extra in arrays.items()}},
                {
                    i: ({**sizes, **new}, dtype)
                    for i, (new, dtype) in enumerate(zip(out, dtypes, strict=True))
                },
                windows=None if pairs.pool is None else pairs.pool.windows,
                what=what,
            )
        return tuple(
            self.in_user_order(result.rename({cases[-1]: self.dim}), tuple(new))
            for result, new in zip(results.values(), out, strict=True)
        )

    @property
    def _steps(self) -> int:
        """Number of steps of the work: 2 if work on all places precedes the loop, else 1."""
        own, choose = self.prepared.pairs, self.splits.choose
        searched = (one for one in self.folds if one.sharing is None)
        pairs = ((one.method, replace(own, pool=one.pool)) for one in searched)
        return 1 + any(works_on_all_first(*pair, choose) for pair in pairs)

    def _choices(self) -> Inputs:
        """Return the joint choices of places, and the weights of named models, for each fit."""
        least, choose, found = self.splits.min_samples, self.splits.choose, {}
        for number, one in enumerate(counted(self.rounds) if self._steps > 1 else self.rounds):
            if one.fit is None or (one.fit.sharing is not None and one.fit.method.exchangeable):
                continue
            learned = self._learned_by(one)
            pairs = replace(learned.pairs, pool=one.fit.pool)
            members = learn_members(pairs, one.fit.method, choose)
            each: dict[Any, Any] = {} if members is None else members.inputs(pairs.pool)
            if one.fit.sharing is None:
                learned = learned._replace(pairs=weigh(learned.pairs, members))
                each |= choices_of_all(learned, given_cases(learned), least, choose).choices
            if each:
                found[choices_group(number)] = each
        return found

    def _learned_by(self, one: Round) -> Prepared:
        """Return the cases from which places choose the settings of a fit together.

        The function leaves out a training case if its distance in time to a predicted case is at
        most the longest lead, because both cases may have the same observation. If the model learns
        from cases as they verify, the function instead keeps all training cases. But it replaces
        observations by NaN if they are still unknown when the first predicted case is issued.
        """
        fold, prepared, dim = one.fit, self.prepared, self.dim
        assert fold is not None
        dates, axis = one.learn, prepared.axis
        ahead = longest_lead(self.form)
        if ahead > 0 and axis.days is not None and self.known is None:
            apart = np.abs(axis.days[dates, np.newaxis] - axis.days[one.test]).min(1)
            dates = dates[apart > ahead + ROUNDING]
        pairs = prepared.pairs
        observed = [pairs.observations, *pairs.partners]
        if self.known is not None:  # only observations known at the issue of the first test case
            late = self.known.transpose(dim, ...) > int(one.test[0])
            bare = late.drop_vars(list(late.coords))
            observed = [o.where(~bare) for o in observed]
        at = {dim: dates}
        form = self.form.with_parts(
            {n: part.isel(at, missing_dims="ignore") for n, part in self.form.parts.items()}
        )
        first, *partners = (o.isel(at) for o in observed)
        axis = axis.take(dates)
        if fold.pooled is not None:
            axis = fold.pooled.axis(axis, dates.size)
        return prepared._replace(
            pairs=replace(
                pairs,
                form=form,
                observations=first,
                partners=tuple(partners),
                pool=fold.pooled,
            ),
            method=fold.method,
            axis=axis,
            covariates={
                name: value.isel(at, missing_dims="ignore")
                for name, value in prepared.covariates.items()
            },
        )

    def numbers(self) -> list[xr.DataArray]:
        """Return the positions of cases and of locations in the user's hindcast.

        The array of cases is sorted by time.
        """
        cases, *location = numbers_of(self.given, self.dim)
        order = _order(self.given, self.dim)
        return [cases if order is None else cases.isel({self.dim: order}), *location]

    def _task(self, wanted: Wanted) -> LoopTask:
        """Return the task that runs on each chunk of locations."""
        prepared, splits, pool = self.prepared, self.splits, self.prepared.pairs.pool
        reuse = splits.by in ("year", "block") and pool is None and prepared.method.exchangeable
        return LoopTask(
            self.rounds,
            prepared.axis,
            prepared.periods,
            wanted,
            splits.min_samples,
            pool,
            reuse and any(fold.method.keeps_cases for fold in self.folds),
            pool is not None or self.known is not None,
        )

    def _over(
        self, cases: Sequence[Hashable], array: xr.DataArray
    ) -> tuple[xr.DataArray, list[Hashable]]:
        """Expand an array to all cases and pooled dimensions; also return its core dimensions."""
        pairs = self.prepared.pairs
        sizes = {d: n for part in self.form.parts.values() for d, n in part.sizes.items()}
        array = array.drop_vars([c for c in array.coords if c in (self.dim, *cases)])
        array = array.rename({self.dim: cases[-1]} if self.dim in array.dims else {})
        sizes[cases[-1]] = pairs.observations.sizes[self.dim]
        array = array.expand_dims({d: sizes[d] for d in cases if d not in array.dims})
        if array.chunks is not None:
            array = array.chunk(dict.fromkeys(cases, -1))
        own = [d for d in array.dims if d not in (*cases, *self.form.dims)]
        return array.transpose(..., *cases, *own), [*cases, *own]

    def in_user_order(self, result: xr.DataArray, new: tuple[Hashable, ...]) -> xr.DataArray:
        """Put cases, dimensions and coordinates in the order of the user's hindcast."""
        form, dim = self.given, self.dim
        order = _order(form, dim)
        if order is not None:
            result = result.isel({dim: np.argsort(order)})
        coords = {
            name: coordinate
            for part in form.parts.values()
            for name, coordinate in part.coords.items()
            if form.member_dim not in coordinate.dims and name not in new
        }
        return result.assign_coords(coords).transpose(*form.order(new))

    def as_given(self, result: xr.DataArray) -> xr.DataArray:
        """Return the result unchanged."""
        return result


def _order(form: Form, dim: Hashable) -> IntArray | None:
    """Return the positions that sort the cases by time; None if they are sorted already."""
    indexes = [part.indexes[dim] for part in form.parts.values() if dim in part.indexes]
    if not indexes or indexes[0].is_monotonic_increasing:
        return None
    return np.asarray(indexes[0].argsort())


def hold_out(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    splits: Splits,
    dim: Hashable | None,
    covariates: Given,
) -> HeldOut:
    """Match, sort and split the cases of a variable, without computing any values."""
    method, _ = within_nature(form, observed, method)
    prepared = prepare_all(form, observed, method, splits, dim, covariates)
    folds = folds_of(method, prepared, splits, longest_lead(form))
    return HeldOut(form, prepared, [Round(f, f.train, f.test) for f in folds], splits)


def prepare_all(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    splits: Splits,
    dim: Hashable | None,
    covariates: Given,
) -> Prepared:
    """Prepare all cases of a variable; each fit will get some of these cases."""
    learned = splits.min_samples, splits.pool, splits.features
    pairs = pair_hindcast(form, observed, method, dim)
    prepared = prepare(pairs, method, covariates, *learned, in_splits=True)
    require_splits(prepared.method, prepared.pairs)
    return prepared


def folds_of(method: Method, prepared: Prepared, splits: Splits, longest: float) -> list[Fold]:
    """Return the splits of the cases, each with the method's settings for its training cases.

    Warns if scores may be too good because the gap is too short, given the longest lead in days.
    """
    from xrecal.arrays.ckme.folds import count_near

    axis = prepared.axis
    n = prepared.pairs.observations.sizes[prepared.pairs.dim]
    folds, notes, near, late = [], [], 0, 0
    year = splits.years(axis)
    for split in split_cases(n, splits.by, year=year, days=axis.days, **splits.options):
        train, test = np.flatnonzero(split.train), np.flatnonzero(split.test)
        if axis.days is not None and not splits.options["gap"]:
            near += count_near(axis.days, test, train, WEEK)
        if axis.days is not None and train.size and splits.by in ("retrospective", "rolling"):
            known = axis.days[train].max() + longest  # when the last observation is known
            late += int((axis.days[test] < known - ROUNDING).sum())
        fold, note = suited(method, axis, train, test, prepared, splits.choose)
        folds.append(fold)
        notes += [] if note is None else [note]
    if near:
        warn_once(learned_from_neighbours(near, n, longest))
    elif late:
        warn_once(learned_from_unverified(late, n, longest))
    warn_of_features(prepared.pairs.pool, [fold.train.size for fold in folds])
    n_cases, min_samples = [fold.n_cases for fold in folds], splits.min_samples
    few = sum(n < min_samples for n in n_cases)
    if few == len(folds):
        raise ValueError(
            Advice(
                "every split leaves fewer than ",
                Typed("min_samples", min_samples),
                f" cases to learn from, {max(n_cases)} at most; give ",
                more_cases(prepared.pairs, splits),
                "a smaller ",
                Typed("min_samples"),
                " to fit with so few",
            )
        )
    if few:
        warn(
            Advice(
                f"{few} of {len(folds)} splits leave fewer than ",
                Typed("min_samples", min_samples),
                " cases to learn from; the results of the cases that these splits predict are NaN",
            )
        )
    if notes and prepared.note is None:  # the note on all cases has been reported
        warn(f"{notes[0]} (in {len(notes)} of {len(folds)} splits)")
    return folds


def more_cases(pairs: Pairs, splits: Splits) -> Advice:
    """Return a text with ways to get more cases into each split."""
    ways: list[str] = []
    if splits.by == "rolling" and splits.window is not None:
        ways.append("a longer window")
    if splits.gap:
        ways.append("a smaller gap")
    places = [d for d in pairs.form.dims if d != pairs.dim]
    if pairs.pool is None and places:
        pool = Typed("pool", places[0] if len(places) == 1 else tuple(places))
        ways.append(Advice(pool, " to learn from the cases of all positions together"))
    return Advice(*(part for way in ways for part in (way, ", ")), "or " if ways else "")


def suited(
    method: Method,
    axis: CaseAxis,
    train: IntArray,
    test: IntArray,
    prepared: Prepared,
    choose: Choose,
) -> tuple[Fold, str | None]:
    """Return a split with the settings that suit its training cases, and a remark or None."""
    own, n_cases, pool = axis.take(train), train.size, prepared.pairs.pool
    given = [name for name in prepared.covariates if may_break(name)]
    try:
        if pool is not None:
            if pools_share(method, pool, train.size):  # each place has its own cases
                method, note = settled(method, own, n_cases, given)
                method, shared = sharing(method, prepared.pairs, pool, n_cases, choose)
                return Fold(method, train, test, pool, shared), note
            if prepared.shared is not None and shares(method, pool, train.size):
                method = prepared.shared.for_cases(train.size * len(pool.taken))
            else:
                require_few(method, pool, train.size)
            own, n_cases = pool.axis(own, train.size), train.size * len(pool.taken)
        suited, note = settled(method, own, n_cases, given)
    except ValueError as error:
        raise ValueError(
            f"{error} (learning from {n_cases} cases to predict cases {test[0]} to {test[-1]})"
        ) from error
    return Fold(suited, train, test, pool), note
