"""Checks of opened models: fields, shapes and ranges of numbers must be as a fit makes them.

Opening a model checks its fields, names, dimensions and sizes. Numbers are checked when they are
read. A model in memory and small arrays are read at opening, all other arrays chunk by chunk when
they are needed. Later code relies on these checks: with them, compiled code never reads beyond its
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.status import MEANINGS
from xrecal.fit.cases import COVARIATE, is_part
from xrecal.fit.fitted import CASE, CASE_MEMBER, MODEL, MODEL_PARTS, FittedVariable
from xrecal.fit.shared_places import PLACES
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR
from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.pool import Pool
from xrecal.methods import Method, SharedCKME, VectorCKME
from xrecal.methods.base import ANY, FINITE, Parameter, is_method
from xrecal.methods.settings import is_positive
from xrecal.methods.shared_ckme import as_shared

from .untrusted import reading


@dataclass(frozen=True)
class Expected:
    """Properties that an array in the state of a fit must have."""

    dims: tuple[Hashable, ...]
    """Dimensions of the array, without those of the locations."""
    kinds: str
    """Allowed kinds of types, as one-letter codes of NumPy."""
    within: tuple[float, float] = ANY
    """Smallest and largest allowed number; NaN is always allowed."""
    known: int | None = None
    """Sum of all valid bits of a status; None for other arrays."""

    def require(self, name: str, values: npt.NDArray[Any]) -> None:
        """Raise ValueError if an array has a number that no fit stores."""
        least, most = map(np.float64, self.within)  # single precision may round the limits
        wrong = (values < least) | (values > most)
        if self.known is not None:
            wrong |= (values.astype(np.int64) & ~self.known) != 0
        if wrong.any():
            raise ValueError(
                f"{name!r} contains {values[wrong][0]}, but a fit stores {least:g} to {most:g}"
            )


_TYPES = {
    cls: get_type_hints(cls, localns={"Pool": Pool})
    for cls in (FittedVariable, Pool, MatchedLeads, VectorCKME, SharedCKME)
}
"""Types of fields, for classes that do not check the types of their fields themselves."""


def require_sound(fitted: FittedVariable) -> dict[str, Expected]:
    """Raise ValueError unless fields, dimensions and sizes are those of a fit.

    Returns
    -------
    dict from str to Expected
        Expected properties of each array of the state. This function does not check the numbers in
        the arrays.
    """
    state, method = fitted.state, fitted.method
    if CASE not in state.dims or "status" not in state:
        raise ValueError("the state lacks its cases or the status of the fit")
    n = state.sizes[CASE]
    _require_types(fitted)
    counts = fitted.n_matched, fitted.n_added, fitted.min_samples
    if min(counts) < 0 or max(counts[:2]) > fitted.n_forecasts:
        raise ValueError(f"the counts {counts} do not belong to {fitted.n_forecasts} forecasts")
    if not set(method.covariates) <= {*fitted.periods}:
        raise ValueError(f"{method!r:.80} needs other covariates than {list(fitted.periods)}")
    _require_periods(fitted.periods.values())
    _require_axis(fitted.axis, n)
    _require_leads(fitted.leads, state)
    _require_pool(fitted.pool, state)
    _require_method(method, fitted.pool)
    parameters = fitted.parameters
    expected = _expected(fitted, parameters, n)
    unknown = [name for name in state.data_vars if name not in expected]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not an array that {method!r:.80} stores")
    for name in expected:
        _require_array(state, name, expected[name])
        if name in parameters:
            _require_sizes(state, name, parameters[name], n)
    return expected


def _require_types(owner: Any) -> None:
    """Raise ValueError unless all fields of an object, even nested, have the declared types."""
    for f in fields(owner):
        value = getattr(owner, f.name)
        if not _is_of(value, _TYPES[type(owner)][f.name]):
            raise ValueError(f"{f.name} is {value!r:.80}, not of the type {f.type}")
        if type(value) in _TYPES:
            _require_types(value)


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value and its contents have the type ``hint``."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_of(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(one, parts[0]) for one in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(
            _is_of(key, parts[0]) and _is_of(one, parts[1]) for key, one in value.items()
        )
    if hint is Hashable:  # a name, which can be a key
        names = value if isinstance(value, tuple) else (value,)
        return all(isinstance(name, (str, int, float, NoneType)) for name in names)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return is_method(value) if hint is Method else hint is Any or isinstance(value, hint)


def _require_periods(periods: Iterable[float | None]) -> None:
    """Raise ValueError unless each period is positive or None."""
    wrong = [period for period in periods if period is not None and not is_positive(period)]
    if wrong:
        raise ValueError(f"a covariate has the period {wrong[0]}")


def _require_axis(axis: CaseAxis, n: int) -> None:
    """Raise ValueError unless each array of dates has one finite number for each case."""
    for f in fields(axis):
        values = getattr(axis, f.name)
        if values is None:
            continue
        if values.shape != (n,) or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"the dates {f.name!r} are not {n} finite numbers")
        if f.name in ("season", "day") and not ((values >= 0) & (values < 1)).all():
            raise ValueError(f"the dates {f.name!r} are not fractions of a year")
        if f.name == "step" and (np.diff(values) < 0).any():
            raise ValueError("the dates 'step' descend")


def _require_leads(leads: MatchedLeads | None, state: xr.Dataset) -> None:
    """Raise ValueError unless leads are valid and the state has as many leads.

    Valid leads have two labels (the first and the last lead) or none, and counts of at least 0.
    """
    if leads is None:
        return
    counts = leads.n_matched
    right = len(leads.labels) in (0, 2) and min(counts, default=-1) >= 0
    if not right or state.sizes.get(leads.dim, len(counts)) != len(counts):
        raise ValueError(f"{leads!r:.160} has counts of other leads than those of the state")


def _require_pool(pool: Pool | None, state: xr.Dataset) -> None:
    """Raise ValueError unless the sizes and positions of a pool match the state."""
    if pool is None:
        return
    windows = pool.sizes if pool.widths is None else pool.widths
    right = len(pool.dims) == len(pool.sizes) == len(windows)
    right = right and min((*pool.sizes, *windows), default=0) > 0
    right = right and min(pool.taken, default=-1) >= 0 and max(pool.taken) < math.prod(windows)
    right = right and all(
        state.sizes.get(d) == size
        for d, size in zip(pool.dims, pool.sizes, strict=True)
        if d in pool.own_fits
    )
    each = 1 if PLACES in state.dims else len(pool.taken)
    if not right or state.sizes[CASE] % each:
        raise ValueError(f"the pool {pool!r:.120} does not belong to the state")


def _require_method(method: Method, pool: Pool | None) -> None:
    """Raise ValueError unless the internal settings of a method are valid."""
    of = method.variables
    if of is not None:
        _require_periods(of.periods)
        n = len(of.names)
        if not 0 <= of.own < n == len(of.periods) == len(of.units):
            raise ValueError(f"the vectors of {method!r:.120} are not valid for several variables")
    for shared in (as_shared(one) for one in (method, *method.mixed) if one.by_sums):
        _require_types(shared)
        if min(shared.rank, shared.places) < 1 or not math.isfinite(shared.middle_longitude):
            raise ValueError(f"the settings {shared!r:.120} are not valid for a shared fit")
    if method.by_sums:
        taken = () if pool is None or pool.widths is not None else sorted(pool.taken)
        if pool is None or not as_shared(method).places == len(taken) == math.prod(pool.sizes):
            raise ValueError(f"the places of {method!r:.120} are not those of the pool")


def _expected(
    fitted: FittedVariable, parameters: Mapping[str, Parameter], n: int
) -> dict[str, Expected]:
    """Return the arrays that the state of a fit with room for ``n`` cases must have."""
    state, method = fitted.state, fitted.method
    shared = method.by_sums
    n_places = as_shared(method).places if shared else 1
    expected = {
        "n_cases": Expected((), "iu", (0, n * n_places)),
        "status": Expected((), "iu", (0, sum(MEANINGS)), sum(MEANINGS)),
        "observations": Expected((CASE, PLACES) if shared else (CASE,), "f", FINITE),
    }
    if method.keeps_cases:
        parts = [str(name) for name in state.data_vars if is_part(str(name))]
        due = ["loc"] if fitted.kind not in ("normal", "censored") else ["loc", "scale"]
        if method.variables is not None:
            due = [f"{VECTOR}{k}" for k in range(len(method.variables.names))]
        expected |= {name: Expected((CASE, CASE_MEMBER), "iuf") for name in {*due, *parts}}
    for name, parameter in parameters.items():
        kinds = "f" if np.dtype(parameter.dtype).kind == "f" else "iu"
        expected[name] = Expected(tuple(parameter.dims), kinds, _range_of(parameter, n))
    if not method.exchangeable:
        ranges = zip(MODEL_PARTS, ((0.0, 1.0), FINITE), strict=True)
        expected |= {name: Expected((MODEL,), "f", within) for name, within in ranges}
        if MODEL not in state.indexes or not state.indexes[MODEL].is_unique:
            raise ValueError("the state lacks the names of the models")
    kept = () if shared else fitted.periods
    return expected | {COVARIATE + name: Expected((CASE,), "iuf") for name in kept}


def _range_of(parameter: Parameter, n: int) -> tuple[float, float]:
    """Return the least and largest valid value of a parameter, in a state of ``n`` cases."""
    if parameter.flags:
        return 0, len(parameter.flags) - 1
    return (-1, n - 1) if parameter.of_slots else parameter.within


def _require_array(state: xr.Dataset, name: str, expected: Expected) -> None:
    """Raise ValueError unless an array is present, with the expected dimensions and type."""
    if name not in state.data_vars:
        raise ValueError(f"the state lacks {name!r}")
    variable, locations = state.variables[name], state.variables["status"].dims
    own = tuple(d for d in variable.dims if d not in locations)
    if own != expected.dims:
        raise ValueError(f"{name!r} is along {own} at each location, not along {expected.dims}")
    if variable.dtype.kind not in expected.kinds:
        raise ValueError(f"{name!r} is of the type {variable.dtype}")


def _require_sizes(state: xr.Dataset, name: str, parameter: Parameter, n: int) -> None:
    """Raise ValueError unless a parameter has the sizes and labels that its method declares."""
    for d, size in parameter.sizes(n).items():
        # An update adds room for cases, but neither landmarks nor nodes of trees.
        grows = callable(parameter.dims[d])
        if d != CASE and (state.sizes[d] > size if grows else state.sizes[d] != size):
            raise ValueError(f"{name!r} has the size {state.sizes[d]} along {d!r}, not {size}")
        if parameter.labels and (
            d not in state.coords or [*map(str, state[d].to_numpy())] != list(parameter.labels)
        ):
            raise ValueError(f"{d!r} has other labels than {', '.join(parameter.labels)}")


def require_ordered(numbers: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise ValueError if a lower bound exceeds the upper bound of the same fit."""
    for name, upper in numbers.items():
        lower = numbers.get(f"{name.removesuffix('upper')}lower")
        if name.endswith("upper") and lower is not None and (lower > upper).any():
            raise ValueError(f"a lower bound is above {name!r}")


class Checked:
    """A stored array that Dask reads in parts, with a check of each part; errors name the file."""

    def __init__(
        self, variable: xr.Variable, name: str, expected: Mapping[str, Expected], what: str
    ) -> None:
        self.variable, self.name, self.what = variable, name, what
        self.expected = expected.get(name)
        self.shape, self.dtype, self.ndim = variable.shape, variable.dtype, variable.ndim

    def __getitem__(self, key: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Read the numbers of a part; raise UnreadableError if this fails or they are not valid."""
        with reading(self.what):
            values = self.variable[key].to_numpy()
            if self.expected is not None:
                self.expected.require(self.name, values)
            return values
