"""What each expert said of each case when it was issued: quantiles, by fits of the past alone."""

import warnings
from dataclasses import replace

import numpy as np

import xrecal
from xrecal.arrays.distributions.forms import distribution_of, find_bounds, moments
from xrecal.arrays.online.corrections import corrected, corrections, normal_scores
from xrecal.arrays.online.rolling import rolling_emos, rolling_errors
from xrecal.methods.components import Forecasting
from xrecal.methods.corrected import USED, predictors
from xrecal.methods.mixing import mixture_of

from .streams import Stream

J = 100
LEVELS = (np.arange(J) + 0.5) / J
WINDOWS = (30, 60, 120)  # verified cases
ERRORS = 91
REFIT = {"glofas": 365}
"""Days between two fits of what is not fitted every day, where not 90: of two cases a week."""

FEWEST = 20
MEMORY, HALF, REWEIGHED = 250, 60, 5
"""Cases that a CKME with a memory learns from, their half-life, and between two fits."""

POOLED = ("ckme_season", "ckme_shapes_season", "ckme", "idr_season", "climatology")
FITTED = (
    "raw", "EMOS + season", *(f"EMOS {w}" for w in WINDOWS), f"errors {ERRORS}", "CKME recent",
    *POOLED, "pool",
)  # fmt: skip
SIMPLE = FITTED[:6]
"""Of which the best is picked in hindsight."""

CORRECTABLE = ("pool", "CKME recent")
CORRECTED = ("pool moved", "pool corrected", "CKME recent corrected")
LABELS = (*FITTED, *CORRECTED)


def said(stream: Stream):
    """What the fitted experts said: quantiles (L, n, K, J) at the levels (j - ½) / J.

    NaN before the warm-up and where unfit.
    """
    found = {"raw": raw(stream), **rolled(stream)}
    found |= refitted(stream)
    shape = (*stream.cases.observations.shape, J)
    return np.stack([found.get(label, np.full(shape, np.nan)) for label in FITTED], axis=2)


def rolled(stream: Stream):
    """Quantiles of what is fitted to the last verified cases for each case."""
    found: dict[str, np.ndarray] = {}
    observed = stream.cases.observations
    moments_of = np.stack(moments(stream.cases.forecasts))
    for i, bounds in enumerate(zip(*bounds_of(stream), strict=True)):
        for t, end in enumerate(stream.known):
            past, new = moments_of[:, i, :end], moments_of[:, i, [t]]
            said = {f"EMOS {w}": rolling_emos(past, observed[i, :end], new, w, LEVELS, bounds)
                    for w in WINDOWS}  # fmt: skip
            said[f"errors {ERRORS}"] = rolling_errors(
                past[0], observed[i, :end], new[0], ERRORS, LEVELS, bounds
            )
            for label, quantiles in said.items():
                whole = found.setdefault(label, np.full((*observed.shape, J), np.nan))
                whole[i, t] = quantiles[0]
    return found


def with_corrected(stream: Stream, said, **constants):
    """What all experts said, from what the fitted ones did; constants are of the corrections."""
    more = []
    for i, bounds in enumerate(zip(*bounds_of(stream), strict=True)):
        cases = stream.cases.take(slice(i, i + 1))
        pool, recent = (said[i, :, FITTED.index(k)].astype(np.float64) for k in CORRECTABLE)
        of_pool, of_recent = (
            corrections_of(cases, one, stream.known, **constants) for one in (pool, recent)
        )
        moved, both = (corrected(pool, c, bounds) for c in (of_pool * [1, 0], of_pool))
        more.append(np.stack([moved, both, corrected(recent, of_recent, bounds)], axis=1))
    return np.concatenate([said, more], axis=2)


def corrections_of(cases, quantiles, known, **constants):
    """Corrections (n, 2) of quantiles (n, J) at one location, each by the errors known then."""
    scores = normal_scores(quantiles, cases.observations[0])
    own = predictors(cases, cases.forecasts, known)
    which = np.flatnonzero(np.isfinite(scores))
    known_then = np.searchsorted(which, known)
    found = np.full((scores.size, 2), np.nan)
    for t in range(scores.size):
        used = slice(max(known_then[t] - USED, 0), known_then[t])
        past = which[used]
        earlier = np.maximum(known_then[past] - used.start, 0)
        found[t] = corrections(scores[past], earlier, own[past], own[[t]], **constants)
    return found


def bounds_of(stream: Stream):
    """Bounds (L,) of the variable, from what had verified before the warm-up."""
    return find_bounds(stream.cases.observations[:, : stream.known[stream.warm_up]])[:2]


def raw(stream: Stream):
    """The forecasts as they were issued; between quantiles that were issued on straight lines."""
    forecasts = stream.cases.forecasts
    if stream.levels is None:
        return distribution_of(forecasts).quantile(LEVELS)
    flat = np.sort(forecasts.loc, axis=-1).reshape(-1, len(stream.levels))
    rows = [np.interp(LEVELS, stream.levels, row) for row in flat]
    return np.reshape(rows, (*forecasts.loc.shape[:2], J))


def refitted(stream: Stream):
    """Quantiles of what is fitted every 90 days, and of the CKME that is every 5 cases."""
    found: dict[str, np.ndarray] = {}
    shape = (*stream.cases.observations.shape, J)

    def keep(label, which, quantiles):
        found.setdefault(label, np.full(shape, np.nan))[:, which] = quantiles

    elapsed = stream.days - stream.days[stream.warm_up]
    for which in blocks(np.floor(elapsed / REFIT.get(stream.source, 90)), stream.warm_up):
        train = np.arange(stream.known[which[0]])
        if train.size >= FEWEST:
            for label, quantiles in fitted_once(stream.cases.select(train), stream, which):
                keep(label, which, quantiles)
    for which in blocks(np.arange(stream.days.size) // REWEIGHED, stream.warm_up):
        train = np.arange(stream.known[which[0]])[-MEMORY:]
        if train.size >= FEWEST:
            keep("CKME recent", which, recent(stream, train, which))
    return found


def blocks(number, first):
    """Cases of each number, from the first one on."""
    later = np.arange(first, number.size)
    return [later[number[later] == k] for k in np.unique(number[later])]


def recent(stream, train, which):
    """Errors of the last cases, which count half after so many more."""
    cases = stream.cases.select(train)
    spacing = float(np.median(np.diff(stream.days)))
    method = xrecal.CKME(support="regression", half_life=HALF * spacing, tails=None)
    return quantiles_of(method, cases, stream.cases.as_new(which))


def quantiles_of(method, cases, new):
    """Quantiles (L, T, J) of a method that learns from cases."""
    fitted = method.fit_locations(cases, FEWEST)
    return method.predict_locations(new, cases, fitted).quantile(LEVELS)


def fitted_once(cases, stream, which):
    """Labels and quantiles of the pool, its components, and EMOS with the season if it can."""
    new = stream.cases.as_new(which)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method, _ = xrecal.LinearPool().check(cases.axis, cases.axis.days.size)
    season = method.covariates or None
    yield "EMOS + season", quantiles_of(xrecal.EMOS(condition_on=season), cases, new)
    fitted = method.fit_locations(cases, FEWEST)
    yield "pool", method.predict_locations(new, cases, fitted).quantile(LEVELS)
    mixed = replace(method, tails=None)
    every = np.ones_like(fitted["pool_weight"])
    alone = mixture_of(
        Forecasting(mixed.components, new, cases, fitted),
        every,
        mixed.blocks(cases.axis.days.size),
        np.stack(find_bounds(cases.observations)[:2], axis=-1),
    )
    for c, quantiles in alone.quantiles.items():
        label = mixed.components[c].label
        renamed = {"ckme": "ckme_season", "ckme_shapes": "ckme_shapes_season", "idr": "idr_season"}
        label = label if season else renamed.get(label, label)
        if label in POOLED:
            yield label, np.quantile(quantiles, LEVELS, axis=-1, method="hazen").transpose(1, 2, 0)
