"""Cases of a chunk of places, as arrays for methods and for the fitted state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Forecasts, sort_members, usable_observations
from xrecal.arrays.distributions.missing import (
    LEAST,
    absurd_among,
    beyond,
    forecasts_from,
    largest_of,
)
from xrecal.arrays.status import FILL, INVALID
from xrecal.chunks.run import Named
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR
from xrecal.methods.base import Cases, Method, Parameter
from xrecal.methods.covariates import Covariates, count_features, may_break
from xrecal.typing import FloatArray, IntArray

COVARIATE = "covariate_"
"""Prefix of the names of covariates in the state."""

OBSERVATIONS = "observations"
"""Name of the observations in the state."""


def parameters_of(method: Method, periods: Mapping[str, float | None]) -> Mapping[str, Parameter]:
    """Return descriptions of the fitted parameters of a method, by name.

    ``periods`` has the period of each covariate of the method.
    """
    return _parameters_of(method, count_features(periods))


@lru_cache(maxsize=256)
def _parameters_of(method: Method, n_features: int) -> Mapping[str, Parameter]:
    """Return descriptions of parameters from a cache, because a pool has a hundred parameters."""
    return MappingProxyType(dict(method.parameters(n_features)))


def cases_of(
    forecasts: Named,
    observed: Named,
    covariates: Named,
    axis: CaseAxis,
    periods: Mapping[str, float | None],
    largest: FloatArray | None = None,
) -> tuple[Cases, IntArray]:
    """Return the cases of L places, and the status of each place as bits.

    Parameters
    ----------
    forecasts : mapping
        Parts of the forecasts (L, n, m) by name, such as members and weights.
    observed : mapping
        Observations (L, n) by number of the variable: 0 for the variable itself, then 1, 2, ... for
        variables that are recalibrated jointly with it.
    covariates : mapping
        Covariates (L, n) by name.
    axis : CaseAxis
        Dates of the cases.
    periods : mapping
        Period of each covariate that the method uses, by name; None if it is not circular.
    largest : array, shape (L,), optional
        Largest absolute value that the model has seen at each place. A much larger value is absurd
        and counts as missing. By default the function compares each value with all other values of
        the place.
    """
    parts, values, filled = without_absurd(forecasts, list(observed.values()), largest)
    cases, flags = usable_cases(parts, values, covariates, axis, periods)
    return cases, flags | FILL * filled


def without_absurd(
    parts: Mapping[str, FloatArray],
    observed: Sequence[FloatArray],
    largest: FloatArray | None = None,
) -> tuple[dict[str, FloatArray], list[FloatArray], npt.NDArray[np.bool_]]:
    """Replace absurdly large members (L, n, m) and observations (L, n) by NaN.

    The last result marks the locations (L,) with such values. ``largest`` (L,) has the largest
    absolute value that a model has seen at each location; by default the function compares each
    value with all other values of the location. If forecasts are vectors, the function compares a
    value only with values of its own array, because variables may have different units. Arrays
    on a GPU stay unchanged.
    """
    own = [name for name in parts if name == "loc" or name.startswith(VECTOR)]
    arrays = [*(parts[name] for name in own), *observed]
    filled = namespace(arrays[0]).zeros(len(arrays[0]), dtype=bool)
    if namespace(arrays[0]) is not np:
        return dict(parts), list(observed), filled
    if own != ["loc"]:
        masks = tuple(absurd_among(a)[0] for a in arrays)
    elif largest is None:
        masks = absurd_among(*arrays)
    else:
        masks = tuple(beyond(a, largest.reshape(-1, *[1] * (a.ndim - 1))) for a in arrays)
    for place, mask in enumerate(masks):
        if mask.any():
            arrays[place] = np.where(mask, arrays[place].dtype.type(np.nan), arrays[place])
            filled |= mask.reshape(len(mask), -1).any(-1)
    cleaned = {**parts, **dict(zip(own, arrays, strict=False))}
    return cleaned, arrays[len(own) :], filled


def usable_cases(
    parts: Named,
    observed: Sequence[FloatArray],
    covariates: Named,
    axis: CaseAxis,
    periods: Mapping[str, float | None],
) -> tuple[Cases, IntArray]:
    """Return cases and status bits, from arrays without absurdly large values.

    See :func:`cases_of` for the parameters.

    A case without a date is unusable if a covariate needs the date. Values of other covariates may
    be missing, because the median of the record replaces them later.
    """
    forecasts, (own, *partners) = forecasts_of(parts), observed
    known = covariates_of([covariates[name] for name in periods], periods, own)
    usable, invalid = usable_observations(forecasts, own)
    infinite = np.isinf(known.values)
    needed = [not may_break(name) for name in periods]
    lacking = np.isnan(known.values) & namespace(own).asarray(needed, dtype=bool)
    usable[(infinite | lacking).any(-1)] = np.nan
    invalid |= infinite.any((1, 2))
    for partner in partners:
        usable[~np.isfinite(partner)] = np.nan
        invalid |= np.isinf(partner).any(-1)
    shared = tuple(np.where(np.isfinite(usable), partner, np.nan) for partner in partners)
    return Cases(forecasts, usable, known, axis, partners=shared), INVALID * invalid


def kept_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data type of each part of forecasts that the state stores.

    For quantiles, the state stores weights in place of levels.
    """
    types = {name: part.dtype for name, part in parts.items() if name != "levels"}
    return types | ({"weights": types["loc"]} if "levels" in parts else {})


def parts_to_keep(parts: Named, cases: Cases) -> dict[str, FloatArray]:
    """Return the parts (L, n, m) of the forecasts, in the form that the state stores."""
    assert cases.forecasts is not None
    if "loc" in parts:
        ordered = sort_members(cases.forecasts)._asdict()
        return {n: ordered[n].astype(dtype, copy=False) for n, dtype in kept_parts(parts).items()}
    return {  # do not sort members of vectors
        name: without_absurd({name: part}, [])[0][name] if name.startswith(VECTOR) else part
        for name, part in parts.items()
    }


class Kept(NamedTuple):
    """Cases of a chunk of places, and their fit, as the state stores them."""

    forecasts: Named
    """Parts (L, n, m) of the forecasts, by name."""
    observations: FloatArray
    """(L, n) observations of the cases"""
    covariates: Named
    """(L, n) values of each covariate, by name"""
    fitted: Named
    """Fitted parameters, ``n_cases`` and ``status`` by name."""

    def cases(self, periods: Mapping[str, float | None], axis: CaseAxis) -> Cases:
        """Return the cases, with the dates ``axis`` and the covariates in ``periods``."""
        forecasts = forecasts_of(self.forecasts) if self.forecasts else None
        return Cases(forecasts, self.observations, self.known_covariates(periods), axis)

    def known_covariates(self, periods: Mapping[str, float | None]) -> Covariates:
        """Return the covariates of the cases; ``periods`` has the names of these covariates."""
        values = [self.covariates[name] for name in periods]
        return covariates_of(values, periods, self.observations)


def kept_of(state: Named) -> Kept:
    """Return the cases and the fit that a state stores in its arrays (L, ...), by name."""
    parts = {name: a for name, a in state.items() if is_part(name)}
    known = {n.removeprefix(COVARIATE): a for n, a in state.items() if n.startswith(COVARIATE)}
    others = {*parts, *(COVARIATE + name for name in known), OBSERVATIONS}
    fitted = {name: a for name, a in state.items() if name not in others}
    return Kept(parts, state[OBSERVATIONS], known, fitted)


def without_unseen(
    parts: Mapping[str, FloatArray], state: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return new forecasts (L, T, m) with NaN for values far beyond all values seen by the fit.

    The function checks each forecast alone, so other forecasts of the call do not affect it.
    Arrays on a GPU stay unchanged.
    """
    cleaned = dict(parts)
    for name, part in parts.items():
        if name not in ("loc", "scale") and not name.startswith(VECTOR):
            continue
        if namespace(part) is np and largest_of(part[np.newaxis])[0] > LEAST:
            own = name if name.startswith(VECTOR) else "loc"
            seen = [state[n] for n in (own, *(["observations"] * (own == "loc"))) if n in state]
            mask = beyond(part, largest_of(*seen)[:, np.newaxis, np.newaxis])
            cleaned[name] = np.where(mask, part.dtype.type(np.nan), part)
    return cleaned


def largest_known(*seen: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the largest absolute value (L,) of arrays (L, ...).

    On a GPU the function does not read the values, and returns zero.
    """
    xp = namespace(seen[0])
    return largest_of(*seen) if xp is np else xp.zeros(len(seen[0]))


def forecasts_of(parts: Mapping[str, FloatArray]) -> Forecasts:
    """Return forecasts (L, n, m) as one object, from the arrays of their parts by name.

    For vectors, the last axis has the members of the first variable, then the members of the second
    variable, and so on. A member that is missing in one variable counts as missing in all
    variables.
    """
    names = [name for name in parts if name.startswith(VECTOR)]
    vector = [parts[n] for n in sorted(names, key=lambda n: int(n.removeprefix(VECTOR)))]
    if not vector:
        return forecasts_from(parts)
    missing = np.isnan(vector).any(0)
    whole = [np.where(missing, np.nan, members) for members in vector]
    return Forecasts(np.concatenate(whole, axis=-1), None, parts.get("weights"))


def in_blocks(
    products: Callable[[slice, slice], Sequence[FloatArray]],
    method: Method,
    n_cases: int,
    shape: tuple[int, int],
) -> Iterator[list[FloatArray]]:
    """Yield results (l, T, ...) of ``products`` for one block after another.

    l is the number of locations of the block, and T is the number of forecasts at each location.

    A block is a group of locations. It is so small that the weights of its forecasts fit into the
    workspace, a fixed number of bytes. If one location has too many forecasts for the workspace,
    the function computes these forecasts in parts. Each part must rebuild the fit of the location,
    so a part may be larger: up to four times the workspace. ``products`` takes slices of the
    locations and of the forecasts. ``shape`` is the number of locations, and the number of
    forecasts at each location.
    """
    from xrecal.arrays.rows import WORKSPACE, location_blocks

    n_locations, n_new = shape
    row = 8 * method.slots(n_cases)[0].size * (1 if method.shares_members else 2)
    step = max(1, 4 * WORKSPACE // max(row, 1))
    for block in location_blocks(n_locations, row * min(n_new, step)):
        made = [products(block, slice(start, start + step)) for start in range(0, n_new, step)]
        yield [np.concatenate(one, axis=1) for one in zip(*made, strict=True)]


def covariates_of(
    values: Sequence[FloatArray], periods: Mapping[str, float | None], like: FloatArray
) -> Covariates:
    """Stack arrays (L, n) of covariates.

    If there are no covariates, the result has the shape and the array library of ``like``.
    """
    xp = namespace(like)
    stacked = np.stack(values, axis=-1) if values else xp.zeros((*like.shape, 0))
    return Covariates(stacked, tuple(periods), tuple(periods.values()))


def own_members(method: Method) -> str:
    """Return the name of the stored array that has the members of the variable itself."""
    variables = method.variables
    return "loc" if variables is None else f"{VECTOR}{variables.own}"


def is_part(name: str) -> bool:
    """Return whether an array of the state, given by name, is a part of the stored forecasts."""
    return name in ("loc", "scale", "weights") or name.startswith(VECTOR)
