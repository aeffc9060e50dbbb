"""Cases of a chunk of places as arrays, as methods learn from them and as a state keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Forecasts, sort_members, usable_observations
from xrecal.arrays.distributions.missing import forecasts_from
from xrecal.arrays.status import FILL, INVALID
from xrecal.chunks.run import Named
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR
from xrecal.methods.base import Cases, Covariates
from xrecal.typing import FloatArray, IntArray

from .missing import without_absurd

COVARIATE = "covariate_"
"""Prefix of covariates among the variables of the state."""

PARTNER = "partner_"
"""Prefix of observations of further variables that are recalibrated jointly."""


def cases_of(
    forecasts: Named,
    observed: Named,
    covariates: Named,
    axis: CaseAxis,
    periods: Mapping[str, float | None],
    largest: FloatArray | None = None,
) -> tuple[Cases, IntArray]:
    """Cases of L places, and bits of the status of each place.

    Parameters
    ----------
    forecasts : mapping
        Parts of the forecasts (L, n, m).
    observed : mapping
        Observations (L, n), first those of the variable itself, then of its partners.
    covariates : mapping
        Covariates (L, n).
    axis : CaseAxis
        Dates of the cases.
    periods : mapping
        Covariates that are used, with the periods of circular ones.
    largest : array, shape (L,), optional
        Largest value that a model has seen, beside which values are missing; without it all others
        of the place.
    """
    parts, values, filled = without_absurd(forecasts, list(observed.values()), largest)
    cases, flags = usable_cases(parts, values, covariates, axis, periods)
    return cases, flags | FILL * filled


def usable_cases(
    parts: Named,
    observed: Sequence[FloatArray],
    covariates: Named,
    axis: CaseAxis,
    periods: Mapping[str, float | None],
) -> tuple[Cases, IntArray]:
    """Cases of values none of which is absurd; see :func:`cases_of`."""
    forecasts, (own, *partners) = forecasts_of(parts), observed
    known = covariates_of([covariates[name] for name in periods], periods, own)
    usable, invalid = usable_observations(forecasts, own)
    usable[~np.isfinite(known.values).all(-1)] = np.nan
    invalid |= np.isinf(known.values).any((1, 2))
    for partner in partners:
        usable[~np.isfinite(partner)] = np.nan
        invalid |= np.isinf(partner).any(-1)
    shared = tuple(np.where(np.isfinite(usable), partner, np.nan) for partner in partners)
    return Cases(forecasts, usable, known, axis, partners=shared), INVALID * invalid


def kept_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of forecasts in the state and their types: of quantiles it keeps the masses."""
    types = {name: part.dtype for name, part in parts.items() if name != "levels"}
    return types | ({"weights": types["loc"]} if "levels" in parts else {})


def parts_to_keep(parts: Named, cases: Cases) -> dict[str, FloatArray]:
    """Parts (L, n, m) of the forecasts of cases as the state keeps them."""
    assert cases.forecasts is not None
    if "loc" in parts:
        ordered = sort_members(cases.forecasts)._asdict()
        return {n: ordered[n].astype(dtype, copy=False) for n, dtype in kept_parts(parts).items()}
    return {  # members of vectors stay where they are
        name: without_absurd({name: part}, [])[0][name] if name.startswith(VECTOR) else part
        for name, part in parts.items()
    }


def cases_of_state(
    state: Mapping[str, FloatArray], periods: Mapping[str, float | None], axis: CaseAxis
) -> Cases:
    """The cases that a state keeps, from its arrays (L, ...)."""
    parts = {name: a for name, a in state.items() if is_part(name)}
    covariates = covariates_of(
        [state[COVARIATE + name] for name in periods], periods, state["observations"]
    )
    return Cases(forecasts_of(parts) if parts else None, state["observations"], covariates, axis)


def forecasts_of(parts: Mapping[str, FloatArray]) -> Forecasts:
    """Forecasts (L, n, m) from their parts.

    Of vectors with the members of one variable after those of another; a member that one of them
    misses is missing in all.
    """
    names = [name for name in parts if name.startswith(VECTOR)]
    vector = [parts[n] for n in sorted(names, key=lambda n: int(n.removeprefix(VECTOR)))]
    if not vector:
        return forecasts_from(parts)
    missing = np.isnan(vector).any(0)
    whole = [np.where(missing, np.nan, members) for members in vector]
    return Forecasts(np.concatenate(whole, axis=-1), None, parts.get("weights"))


def covariates_of(
    values: Sequence[FloatArray], periods: Mapping[str, float | None], like: FloatArray
) -> Covariates:
    """Covariates (L, n) each, together; of the shape and library of an array where none."""
    xp = namespace(like)
    stacked = np.stack(values, axis=-1) if values else xp.zeros((*like.shape, 0))
    return Covariates(stacked, tuple(periods), tuple(periods.values()))


def is_part(name: str) -> bool:
    """Whether an array of the state holds calibration forecasts."""
    return name in ("loc", "scale", "weights") or name.startswith(VECTOR)
