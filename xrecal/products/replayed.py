"""Cases predicted as in operation: by a model that is fitted, applied, and updated as they verify.

It is the loop that a user would write, run inside one task for each chunk of locations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.splitting import Rolling, measure, replay
from xrecal.chunks.blockwise import run_blockwise, work_on
from xrecal.chunks.warnings import warn_once
from xrecal.fit.fit_hindcast import Prepared
from xrecal.fit.fitted import CASE_MEMBER
from xrecal.fit.folds import HeldOutReduction, KnownName
from xrecal.fit.held_out import HeldOut, Splits, hold_out, more_cases, prepare_all, suited
from xrecal.fit.learning_order import require_updates
from xrecal.fit.shared_places import pools_share
from xrecal.inputs.ahead import AHEAD
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form
from xrecal.inputs.lengths import as_span
from xrecal.inputs.pairing import Pairs
from xrecal.inputs.pool import MAX_POOLED
from xrecal.inputs.verification import case_that_knows
from xrecal.methods import Method
from xrecal.methods.known import case_that_knows_late

from .replay_task import ReplayTask, Round, Settings


def updates_as_it_goes(by: str, refit: Any, method: Method) -> bool:
    """Whether rolling predictions are those of a model that is updated.

    Raises
    ------
    ValueError
        If ``refit`` is given and of no use.
    """
    if refit is not None and by != "rolling":
        raise ValueError(
            Advice("refit belongs to ", Typed("by", "rolling"), f", but by is {by!r}; leave it out")
        )
    own = method.refit is not None
    if refit is not None and own:
        raise ValueError(
            f"{type(method).__name__} fits itself anew, with its own refit="
            f"{method.refit!r}; leave refit out, or set that of the method"
        )
    if refit is not None:
        require_updates(method)
    return by == "rolling" and (refit is not None or own)


def replayed(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    splits: Splits,
    dim: Hashable | None,
    covariates: Given,
) -> Replayed:
    """Pair and order the cases of a variable, and plan the loop; nothing is computed."""
    prepared = prepare_all(form, observed, method, splits, dim, covariates)
    known = _known(prepared, method, splits)
    rounds = _rounds(method, prepared, splits, known)
    return Replayed(form, prepared, [r.fit for r in rounds if r.fit], splits, rounds, known)


def held_out(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    splits: Splits,
    dim: Hashable | None,
    covariates: Given,
) -> HeldOut:
    """Pair, order and split the cases of a variable; nothing is computed.

    Pools at each place with a component that places share are fitted as a user would, split by
    split, by the loop.
    """
    source = hold_out(form, observed, method, splits, dim, covariates)
    pairs = source.prepared.pairs
    pool, n = pairs.pool, pairs.observations.sizes[pairs.dim]
    if pool is None or not any(pools_share(f.method, pool, f.train.size) for f in source.folds):
        return source
    rounds = [Round(fold, fold.train, fold.test) for fold in source.folds]
    known = xr.DataArray(np.zeros(n, np.int64), dims=[pairs.dim])
    return Replayed(form, source.prepared, source.folds, splits, rounds, known)


def _known(prepared: Prepared, method: Method, splits: Splits) -> xr.DataArray:
    """The first case at whose issue each is known: (n,), or (n, k) at leads."""
    pairs, days = prepared.pairs, prepared.axis.days
    dim = pairs.dim
    assert dim is not None
    if splits.gap is None:
        known = case_that_knows(pairs.form.broadcast().loc.isel({pairs.form.member_dim: 0}), dim)
        if method.delay is None:
            return known
        late = case_that_knows_late(prepared.axis, prepared.covariates[AHEAD], method.delay, dim)
        return known.where(known >= late, late).transpose(dim, ...).astype(np.int64)
    n = pairs.observations.sizes[dim]
    apart = measure("gap", as_span(splits.gap), n, days, least=0)
    beyond = apart.position + apart.length + 1e-6  # rounding of dates
    after = np.searchsorted(apart.position, beyond, side="right")
    return xr.DataArray(np.maximum(after, np.arange(1, n + 1)), dims=[dim])


def _rounds(method: Method, prepared: Prepared, splits: Splits, known: xr.DataArray) -> list[Round]:
    """The turns of the loop, each fit with the method as it suits its cases."""
    pairs, axis = prepared.pairs, prepared.axis
    if prepared.shared is not None:
        raise ValueError(
            f"refit is not for {pairs.pool} by one fit of more than {MAX_POOLED} cases; leave "
            "refit out, for a new fit each time"
        )
    of = splits.options
    n_each = 1 if pairs.pool is None else len(pairs.pool.taken)
    refit = None if splits.refit is None else as_span(splits.refit, "refit")
    least = -(-splits.min_samples // n_each)
    splits.years(axis)  # refuses a start of the year
    rolling = Rolling(of["every"], refit, of["window"], of["blocks"])
    steps = replay(known.to_numpy(), rolling, days=axis.days, least=least)
    rounds, notes = [], []
    for step in steps:
        fold = None
        if step.fits:
            fold, note = suited(method, axis, step.learn, step.test, prepared)
            notes += [] if note is None else [note]
        rounds.append(Round(fold, step.learn, step.test))
    n_fits = sum(step.fits for step in steps)
    if not n_fits:
        raise ValueError(
            Advice(
                "no fit has ",
                Typed("min_samples", splits.min_samples),
                " cases to learn from that had verified; give ",
                more_cases(pairs, splits),
                "a smaller ",
                Typed("min_samples"),
                " if so few are meant",
            )
        )
    first = next(i for i, step in enumerate(steps) if step.fits)
    if first:
        n_before = sum(step.test.size for step in steps[:first])
        warn_once(
            Advice(
                f"the first {n_before} cases to predict are NaN, as fewer than ",
                Typed("min_samples", splits.min_samples),
                " cases had verified",
            )
        )
    if notes and prepared.note is None:  # that on all cases has been told
        warn_once(f"{notes[0]} (in {len(notes)} of {n_fits} fits)")
    return rounds


@dataclass(frozen=True)
class Replayed(HeldOut):
    """Distributions of each case, predicted by a model that had learned what had verified."""

    rounds: Sequence[Round] = ()
    known: xr.DataArray | None = None
    """As :func:`case_that_knows` has it."""

    def reduce(
        self,
        reduction: Callable[..., tuple[Any, ...]],
        *out: Mapping[Hashable, int],
        extras: Sequence[xr.DataArray | KnownName] = (),
        dtypes: Sequence[npt.DTypeLike] | None = None,
    ) -> tuple[xr.DataArray, ...]:
        """Results of a reduction; see :meth:`HeldOut.reduce`."""
        form, core = self.form, self._core
        sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
        sizes[self.dim] = self.prepared.pairs.observations.sizes[self.dim]
        locations = tuple(d for d in form.dims if d not in core)
        given = self._given(extras)
        inside = {
            name: tuple(d for d in core if d in array.dims)
            + tuple(d for d in array.dims if d not in (*core, *locations))
            for name, array in given.items()
        }
        wanted = HeldOutReduction(
            reduction,
            tuple(extra if isinstance(extra, str) else 0 for extra in extras),
            tuple(tuple(new.values()) for new in out),
            tuple(dtypes or [form.loc.dtype] * len(out)),
        )
        task = ReplayTask(
            _stripped(self.prepared.pairs),
            self._settings(locations, tuple(out)),
            self.rounds,
            inside,
            wanted,
        )
        positions = [xr.DataArray(np.arange(sizes[d]), dims=[d]) for d in locations]
        results = run_blockwise(
            task,
            *positions,
            *(_bare(array, inside[name]) for name, array in given.items()),
            core=[*[()] * len(positions), *inside.values()],
            out=[(*core, *new) for new in out],
            dtypes=wanted.dtypes,
            sizes={d: sizes[d] for d in core} | {d: n for new in out for d, n in new.items()},
            what=work_on("the cross-validation", form.name),
        )
        return tuple(
            self.in_user_order(result, tuple(new)) for result, new in zip(results, out, strict=True)
        )

    @property
    def _core(self) -> tuple[Hashable, ...]:
        """Dimensions that a task needs whole: those pooled, and that of the cases."""
        pool = self.prepared.pairs.pool
        return (*(() if pool is None else pool.dims), self.dim)

    def _given(self, extras: Sequence[xr.DataArray | KnownName]) -> dict[str, xr.DataArray]:
        """Arrays that tasks take, by name."""
        assert self.known is not None
        members = {self.form.member_dim: CASE_MEMBER}
        arrays = {f"part_{name}": part.rename(members) for name, part in self.form.parts.items()}
        arrays |= {"observations": self.prepared.pairs.observations, "known": self.known}
        arrays |= {f"covariate_{name}": v for name, v in self.prepared.covariates.items()}
        own = (extra for extra in extras if not isinstance(extra, str))
        return arrays | {f"extra_{i}": extra for i, extra in enumerate(own)}

    def _settings(
        self, locations: tuple[Hashable, ...], new: tuple[Mapping[Hashable, int], ...]
    ) -> Settings:
        form, prepared = self.form, self.prepared
        whole = {self.dim, form.member_dim}  # what tells the place is read
        coords = {
            name: coordinate.variable
            if coordinate.chunks is None
            else coordinate.compute().variable
            for part in form.parts.values()
            for name, coordinate in part.coords.items()
            if form.member_dim not in coordinate.dims
            and (coordinate.chunks is None or not whole & {*coordinate.dims})
        }
        attrs = {name: dict(value.attrs) for name, value in prepared.covariates.items()}
        n_min = self.splits.min_samples
        labels = xr.Dataset(coords=coords)
        return Settings(locations, prepared.pairs.pool, labels, attrs, n_min, new)


def _bare(array: xr.DataArray, inside: tuple[Hashable, ...]) -> xr.DataArray:
    """An array without coordinates but those of locations, in one chunk along ``inside``."""
    array = array.drop_vars([c for c in array.coords if c not in array.dims or c in inside])
    if array.chunks is not None:
        array = array.chunk(dict.fromkeys(inside, -1))
    return array.transpose(..., *inside)


def _stripped(pairs: Pairs) -> Pairs:
    """Pairs without values, as a task carries them."""

    def empty(array: xr.DataArray) -> xr.DataArray:
        bare = xr.DataArray(np.empty((0,) * array.ndim, array.dtype), dims=array.dims)
        return bare.rename(array.name).assign_attrs(array.attrs)

    form = pairs.form.with_parts({name: empty(part) for name, part in pairs.form.parts.items()})
    return replace(pairs, form=form, observations=empty(pairs.observations))
