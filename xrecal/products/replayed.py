"""Predict cases in rounds, as in operation: a model learns from cases when they have verified."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.arrays.splitting import Rolling, measure, replay
from xrecal.chunks.warnings import warn_once
from xrecal.fit.held_out import HeldOut, Splits, more_cases, prepare_all, suited
from xrecal.fit.loop import Round
from xrecal.fit.natural_bounds import within_nature
from xrecal.fit.state import Prepared
from xrecal.fit.update import require_updates
from xrecal.inputs.covariates import AHEAD, Given
from xrecal.inputs.forms import Form
from xrecal.inputs.lengths import as_span
from xrecal.inputs.pool import MAX_POOLED
from xrecal.inputs.verification import case_that_knows
from xrecal.methods import Method
from xrecal.methods.known import case_that_knows_late


def updates_as_it_goes(by: str, refit: Any, method: Method) -> bool:
    """Return whether rolling predictions come from a model that is updated.

    Raises
    ------
    ValueError
        If ``refit`` is given but has no effect.
    """
    if refit is not None and by != "rolling":
        raise ValueError(
            Advice("refit belongs to ", Typed("by", "rolling"), f", but by is {by!r}; leave it out")
        )
    own = method.refit is not None
    if refit is not None and own:
        raise ValueError(
            f"{type(method).__name__} refits itself, with its own refit="
            f"{method.refit!r}; leave refit out, or set refit of the method"
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
) -> HeldOut:
    """Pair and order the cases of a variable, and plan fits and updates; compute nothing yet."""
    method, _ = within_nature(form, observed, method)
    prepared = prepare_all(form, observed, method, splits, dim, covariates)
    known = _known(prepared, method, splits)
    rounds = _rounds(method, prepared, splits, known)
    return HeldOut(form, prepared, rounds, splits, known)


def _known(prepared: Prepared, method: Method, splits: Splits) -> xr.DataArray:
    """Find, for each of n cases, the first later case whose forecast may learn from it.

    The result has the positions of these later cases, with shape (n,) or (n, leads).
    """
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
    """Plan fits and updates; each fit has a method with settings that suit its training cases."""
    pairs, axis = prepared.pairs, prepared.axis
    if prepared.shared is not None:
        raise ValueError(
            f"refit is not for a model {pairs.pool} by one fit to more than {MAX_POOLED} cases; "
            "leave refit out: then each period has a new fit"
        )
    of = splits.options
    n_each = 1 if pairs.pool is None else len(pairs.pool.taken)
    refit = None if splits.refit is None else as_span(splits.refit, "refit")
    least = -(-splits.min_samples // n_each)
    splits.years(axis)  # refuses a wrong start of the year
    rolling = Rolling(of["every"], refit, of["window"], of["blocks"])
    steps = replay(known.to_numpy(), rolling, days=axis.days, least=least)
    rounds, notes = [], []
    for step in steps:
        fold = None
        if step.fits:
            dates = step.learn, step.test
            fold, note = suited(method, axis, *dates, prepared, splits.choose)
            notes += [] if note is None else [note]
        rounds.append(Round(fold, step.learn, step.test))
    n_fits = sum(step.fits for step in steps)
    if not n_fits:
        raise ValueError(
            Advice(
                "no fit has ",
                Typed("min_samples", splits.min_samples),
                " training cases with known observations; give ",
                more_cases(pairs, splits),
                "a smaller ",
                Typed("min_samples"),
                " to fit with so few",
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
    if notes and prepared.note is None:  # the note on all cases has been reported
        warn_once(f"{notes[0]} (in {len(notes)} of {n_fits} fits)")
    return rounds
