"""Evaluate one method of a comparison: CRPS and PIT of each case, tests, and time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import xarray as xr

from xrecal.arrays.distributions.forms import N_QUANTILES, Distribution, equal_mass_levels
from xrecal.fit.fit_hindcast import fit
from xrecal.fit.held_out import Splits, hold_out
from xrecal.fit.mismatch_warnings import without_unseen_values
from xrecal.fit.pooling import read_pool
from xrecal.fit.select_fits import match_variables
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, Labelled, numbers_of
from xrecal.inputs.pairing import Pairs, in_order, known_pairs, pair_cases
from xrecal.methods import Method
from xrecal.products.recalibrated import Recalibrated
from xrecal.products.replayed import replayed, updates_as_it_goes
from xrecal.products.scores import CRPS, crps_of, pit_of
from xrecal.products.source import Issued, reduce
from xrecal.products.statistics import quantiles_of
from xrecal.typing import FloatArray, IntArray

from .comparison import Known
from .evidence import Evidence, in_one_chunk
from .pit import pit_of_cases
from .rows import each_season
from .skce import skce_test, skce_test_of

LEVELS = equal_mass_levels(N_QUANTILES)
PIECE = 2**28
"""Limit of the memory for quantiles, in bytes, if inputs are not Dask arrays."""
SEED = 0
EVIDENCE: tuple[dict[Hashable, int], ...] = ({}, {}, {"quantile": LEVELS.size})
"""Sizes of further dimensions of each result of :func:`evidence_of` (CRPS, PIT, quantiles),
besides the dimensions of locations and cases."""


class Candidate(NamedTuple):
    """A method to be scored."""

    method: Method
    covariates: Given
    """Covariates that the method conditions on"""
    sequential: bool
    """True if quantiles of the forecasts are stored for a sequential comparison"""
    block_length: int | None = None
    """Number of successive cases that count as one in a test; if None, the test estimates it"""
    season: xr.DataArray | None = None
    """Season of each case, if each season is tested separately"""


def evidence_of(
    distribution: Distribution, observations: FloatArray, cases: IntArray, *location: IntArray
) -> tuple[FloatArray, ...]:
    """Return CRPS (L, T), PIT (L, T) and k quantiles (L, T, k), for L places and T cases."""
    return (
        *crps_of(distribution, observations),
        *pit_of(distribution, observations, cases, *location, seed=SEED),
        *quantiles_of(distribution, LEVELS),
    )


def splits_of(splits: Splits, method: Method) -> Splits:
    """Adapt splits to a method: use its own ``refit``, and add updates between its fits.

    Raises
    ------
    ValueError
        If ``refit`` is given for splits that are not rolling, or if the method does not support
        updates.
    """
    refit = None if splits.by == "rolling" and method.refit is not None else splits.refit
    updates = updates_as_it_goes(splits.by, refit, method)
    return replace(splits, refit=refit, updates=updates)


def cross_validated(
    form: Form, observed: xr.DataArray, candidate: Candidate, case: Hashable, splits: Splits
) -> Known:
    """Evaluate a method on held-out cases of the hindcast."""
    start = perf_counter()
    pooled = read_pool(splits.pool, form, case)
    whole = (case,) if pooled is None else (case, *pooled.dims)
    form, observed = _in_pieces(form, observed, whole)
    splits = splits_of(splits, candidate.method)
    predict = replayed if splits.updates else hold_out
    source = predict(form, observed, candidate.method, splits, case, candidate.covariates)
    scores, pit, quantiles = source.reduce(evidence_of, *EVIDENCE, extras=["observed", "cases"])
    scores = scores.assign_attrs(CRPS.attrs(source.units), cross_validation=str(splits))
    return _known((scores, pit, quantiles, observed), case, start, candidate)


def on_unseen(
    past: tuple[Labelled, xr.DataArray],
    unseen: tuple[Labelled, xr.DataArray],
    candidate: Candidate,
    case: Hashable,
    options: Mapping[str, Any],
) -> Known:
    """Fit a method to past cases and evaluate it on later forecasts."""
    start = perf_counter()
    covariates = candidate.covariates
    model = fit(*past, candidate.method, covariates=covariates, **options).compute()
    fit_seconds = perf_counter() - start
    start = perf_counter()
    forecast, verified = unseen
    ((form, fitted),) = match_variables(model, forecast).values()
    form, verified = _in_pieces(form, verified, (case,))
    pairs = pair_cases(form, verified, case, name="forecast")
    verified = without_unseen_values(pairs.observations, fitted)
    scores, pit, quantiles = Recalibrated(form, fitted, covariates).reduce(
        evidence_of,
        *EVIDENCE,
        extras=[verified, *numbers_of(form, case)],
    )
    units = {k: v for a in (form.loc, verified) for k, v in a.attrs.items() if k == "units"}
    scores = scores.assign_attrs(CRPS.attrs(units))
    known = _known((scores, pit, quantiles, verified), case, start, candidate)
    return known._replace(fit_seconds=fit_seconds, apply_seconds=known.fit_seconds)


def as_issued(
    form: Form,
    observed: xr.DataArray,
    case: Hashable,
    *,
    name: str = "forecast",
    sequential: bool = False,
    block_length: int | None = None,
    season: xr.DataArray | None = None,
) -> Known:
    """Evaluate the raw forecast."""
    start = perf_counter()
    pairs = known_pairs(pair_cases(form, observed, case, name=name), name=name)
    form = pairs.form
    scores = reduce(Issued(form), crps_of, extras=[pairs.observations])
    pit = pit_of_cases(Evidence(pairs, (case,)), SEED)
    whole = _whole(in_order(pairs), case)

    def test(observed: xr.DataArray) -> xr.Dataset:
        of_these = replace(whole, pairs=replace(whole.pairs, observations=observed))
        return skce_test_of(of_these, block_length, SEED)

    observed = whole.pairs.observations
    calibration = test(observed) if season is None else each_season(observed, season, test)
    kept: tuple[xr.DataArray, ...] = ()
    if sequential:
        quantiles = partial(quantiles_of, levels=LEVELS)
        kept = (reduce(Issued(form), quantiles, EVIDENCE[-1]), pairs.observations)
    known = _computed((scores, pit), calibration, start, kept)
    return known._replace(fit_seconds=0.0, apply_seconds=known.fit_seconds)


def _known(
    evidence: tuple[xr.DataArray, ...], case: Hashable, start: float, candidate: Candidate
) -> Known:
    """Test calibration with the quantiles of the forecasts, and compute all results of a method."""
    scores, pit, *others = evidence
    quantiles, observed = (in_one_chunk(array, case) for array in others)
    quantiles = quantiles.assign_coords(quantile=LEVELS)
    test = partial(
        skce_test,
        quantiles.drop_attrs(deep=False),
        dim=case,
        test="serial",
        block_length=candidate.block_length,
        seed=SEED,
    )
    observed, season = observed.drop_attrs(deep=False), candidate.season
    calibration = test(observed) if season is None else each_season(observed, season, test)
    kept = (quantiles,) if candidate.sequential else ()
    return _computed((scores, pit), calibration, start, kept)


def _computed(
    evidence: tuple[xr.DataArray, xr.DataArray],
    calibration: xr.Dataset,
    start: float,
    kept: tuple[xr.DataArray, ...],
) -> Known:
    from dask.base import compute

    tested = calibration[["skce", "p_value", "block_length", "status"]]
    (scores, pit), tested, kept = compute(evidence, tested, kept)  # type: ignore[no-untyped-call]
    return Known(scores, pit, tested, perf_counter() - start, kept=kept)


def _whole(pairs: Pairs, case: Hashable) -> Evidence:
    """Return forecasts and observations with all cases in one chunk."""
    parts = {name: in_one_chunk(part, case) for name, part in pairs.form.parts.items()}
    form, observed = pairs.form.with_parts(parts), in_one_chunk(pairs.observations, case)
    return Evidence(Pairs(form, observed, case, pairs.n_matched, pairs.note), (case,))


def _in_pieces(
    form: Form, observed: xr.DataArray, whole: tuple[Hashable, ...]
) -> tuple[Form, xr.DataArray]:
    """Chunk large forecasts that are in memory, to limit the memory for their quantiles.

    The dimensions in ``whole`` stay in one chunk, because each fit needs them whole.
    """
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items() if d in form.dims}
    places = {d: n for d, n in sizes.items() if d not in whole}
    size = math.prod(sizes.values()) * N_QUANTILES * form.loc.dtype.itemsize
    lazy = any(array.chunks is not None for array in (*form.parts.values(), observed))
    if lazy or not places or size <= PIECE:
        return form, observed
    widest = max(places, key=lambda d: places[d])
    step = {widest: max(1, places[widest] * PIECE // size)}
    parts = {
        name: part.chunk(step) if widest in part.dims else part for name, part in form.parts.items()
    }
    return form.with_parts(parts), observed.chunk(step) if widest in observed.dims else observed
