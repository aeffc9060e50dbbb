"""A model that was opened is one that a fit can have left: fields, shapes and ranges of numbers.

Fields, names, dimensions and sizes are checked when a model is opened, and numbers where they are
read: at once what is in memory or small, and all other chunks as they are loaded. What follows
may then rely on them; compiled code looks nowhere beyond the arrays that it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.status import MEANINGS
from xrecal.fit.cases import COVARIATE, is_part
from xrecal.fit.fitted import CASE, CASE_MEMBER, FittedVariable
from xrecal.fit.shared_places import PLACES
from xrecal.inputs.covariates import DAY, SEASON
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR, Kind
from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.pool import Pool
from xrecal.methods import CKME, LinearPool, Method, SharedCKME, VectorCKME
from xrecal.methods.base import Parameter, is_method
from xrecal.methods.ranges import ANY, FINITE
from xrecal.methods.setting_checks import is_positive


@dataclass(frozen=True)
class Expected:
    """An array of the state as a fit leaves it."""

    dims: tuple[Hashable, ...]
    """After those of the locations."""
    kinds: str
    """Codes of NumPy's kinds of types."""
    within: tuple[float, float] = ANY
    """Least and greatest number; NaN stands for none."""
    known: int | None = None
    """All bits that there are, of a status."""

    def require(self, name: str, values: npt.NDArray[Any]) -> None:
        """Raise ValueError if a number is none that a fit leaves."""
        least, most = map(np.float64, self.within)  # which single precision may not hold
        wrong = (values < least) | (values > most)
        if self.known is not None:
            wrong |= (values.astype(np.int64) & ~self.known) != 0
        if wrong.any():
            raise ValueError(
                f"{name!r} is {values[wrong][0]} somewhere, where fits leave {least:g} to {most:g}"
            )


def require_sound(fitted: FittedVariable) -> dict[str, Expected]:
    """Raise ValueError unless fields, dimensions and sizes are those of a fit.

    Returns
    -------
    dict from str to Expected
        What each array of the state has to be; their numbers are not looked at here.
    """
    state = fitted.state
    if CASE not in state.dims or "status" not in state:
        raise ValueError("the state lacks its cases or the status of the fit")
    n = state.sizes[CASE]
    for name, (is_right, due) in _FIELDS.items():
        if not is_right(getattr(fitted, name)):
            raise ValueError(f"{name} is {getattr(fitted, name)!r:.80}, not {due}")
    if max(fitted.n_matched, fitted.n_added) > fitted.n_forecasts:
        raise ValueError(
            f"n_matched or n_added is more than the {fitted.n_forecasts} forecasts that there are"
        )
    known = {*fitted.periods, *([DAY] if SEASON in fitted.periods else [])}  # as before layout 7
    if not known.issuperset(fitted.method.covariates):
        raise ValueError(f"{fitted.method!r:.80} needs other covariates than {list(known)}")
    counts = {} if fitted.leads is None else {fitted.leads.dim: len(fitted.leads.n_matched)}
    if any(state.sizes.get(lead, count) != count for lead, count in counts.items()):
        raise ValueError(f"there are counts of other leads than those of the state: {counts}")
    _require_axis(fitted.axis, n)
    _require_pool(fitted.pool, state)
    if isinstance(fitted.method, VectorCKME):
        _require_vectors(fitted.method)
    if isinstance(fitted.method, SharedCKME):
        _require_places(fitted.method, fitted.pool)
    if isinstance(fitted.method, LinearPool) and fitted.method.shared is not None:
        _require_settings(fitted.method.shared.method)
    parameters = fitted.parameters
    expected = _expected(fitted, parameters, n)
    unknown = [name for name in state.data_vars if name not in expected]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no part of what {fitted.method!r:.80} leaves")
    lacking = {name for name, p in parameters.items() if p.is_new and name not in state}
    for name in expected.keys() - lacking:
        _require_array(state, name, expected[name])
        if name in parameters:
            _require_sizes(state, name, parameters[name], n)
    return expected


def _whole(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _wholes(values: object, least: int = 0) -> bool:
    return isinstance(values, tuple) and all(_whole(value, least) for value in values)


def _texts(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def _is_leads(leads: object) -> bool:
    """Whether leads are None or counts, with the text of the first and the last."""
    return leads is None or (
        isinstance(leads, MatchedLeads)
        and isinstance(leads.dim, str)
        and _texts(leads.labels)
        and len(leads.labels) in (0, 2)
        and isinstance(leads.units, str)
        and _wholes(leads.n_matched)
        and len(leads.n_matched) > 0
        and isinstance(leads.dated, bool)
    )


def _is_name(value: object) -> bool:
    """Whether a value may name a dimension or variable: it can be a key."""
    if isinstance(value, tuple):
        return all(map(_is_name, value))
    return value is None or isinstance(value, (str, int, float))


_COUNT: tuple[Callable[[Any], bool], str] = (_whole, "a whole number from 0 on")
_NAME: tuple[Callable[[Any], bool], str] = (_is_name, "a name")
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "kind": (lambda kind: kind in get_args(Kind), f"one of {', '.join(get_args(Kind))}"),
    "dim": _NAME,
    "member_dim": _NAME,
    "attrs": (lambda attrs: isinstance(attrs, dict), "attributes by name"),
    "method": (is_method, "a method"),
    "periods": (
        lambda periods: (
            isinstance(periods, dict)
            and all(isinstance(name, str) for name in periods)
            and all(p is None or is_positive(p) for p in periods.values())
        ),
        "positive periods, or None, by the name of a covariate",
    ),
    "n_matched": _COUNT,
    "n_forecasts": _COUNT,
    "n_added": _COUNT,
    "min_samples": _COUNT,
    "note": (lambda note: note is None or isinstance(note, str), "text"),
    "pool": (lambda pool: pool is None or isinstance(pool, Pool), "the positions of a pool"),
    "leads": (_is_leads, "counts of leads"),
    "jointly": (lambda names: isinstance(names, tuple) and _is_name(names), "names of variables"),
}
"""What fields of a fitted variable have to be."""


def _require_axis(axis: CaseAxis, n: int) -> None:
    """Raise ValueError unless dates are numbers of the cases."""
    for f in fields(axis):
        values = getattr(axis, f.name)
        if values is None:
            continue
        if values.shape != (n,) or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"the dates {f.name!r} are no finite numbers of {n} cases")
        if f.name in ("season", "day") and not ((values >= 0) & (values < 1)).all():
            raise ValueError(f"the dates {f.name!r} are no fractions of a year")
        if f.name == "step" and (np.diff(values) < 0).any():
            raise ValueError("the dates 'step' descend")


def _require_pool(pool: Pool | None, state: xr.Dataset) -> None:
    """Raise ValueError unless the positions of a pool are among those that there are."""
    if pool is None:
        return
    windows = pool.sizes if pool.widths is None else pool.widths
    right = isinstance(pool.dims, tuple) and _wholes(pool.sizes, 1) and _wholes(windows, 1)
    right = right and len(pool.dims) == len(pool.sizes) == len(windows) and _wholes(pool.taken)
    right = right and len(pool.taken) > 0 and max(pool.taken) < math.prod(windows)
    right = right and all(
        state.sizes.get(d) == size
        for d, size in zip(pool.dims, pool.sizes, strict=True)
        if d in pool.own_fits
    )
    each = 1 if PLACES in state.dims else len(pool.taken)
    if not right or state.sizes[CASE] % each:
        raise ValueError(f"the pool {pool!r:.120} does not belong to the state")


def _require_places(method: SharedCKME, pool: Pool | None) -> None:
    """Raise ValueError unless a shared fit is one of the positions of a pool."""
    _require_settings(method)
    every = [*range(method.places)]
    whole = pool is not None and pool.widths is None and math.prod(pool.sizes) == method.places
    if pool is None or not whole or sorted(pool.taken) != every:
        raise ValueError(f"the places {method!r:.120} are not those of the pool")


def _require_settings(method: Method) -> None:
    """Raise ValueError unless the settings of a shared fit are such as fits leave."""
    assert isinstance(method, SharedCKME)
    right = _whole(method.rank, 1) and _whole(method.places, 1) and isinstance(method.method, CKME)
    right = right and _texts(method.features) and isinstance(method.middle_longitude, (int, float))
    if not right or not math.isfinite(method.middle_longitude):
        raise ValueError(f"the settings {method!r:.120} are none of a fit that places share")


def _require_vectors(method: VectorCKME) -> None:
    """Raise ValueError unless each variable of the vectors has a name, a period and a unit."""
    right = _texts(method.names) and _whole(method.own) and method.own < len(method.names)
    right = right and all(
        isinstance(values, tuple) and len(values) == len(method.names)
        for values in (method.periods, method.units)
    )
    right = right and all(p is None or is_positive(p) for p in method.periods)
    if not right or not all(unit is None or isinstance(unit, str) for unit in method.units):
        raise ValueError(f"the vectors {method!r:.120} are none of several variables")


def _expected(
    fitted: FittedVariable, parameters: Mapping[str, Parameter], n: int
) -> dict[str, Expected]:
    """Arrays of the state of a method with ``n`` slots of cases."""
    state, method = fitted.state, fitted.method
    shared = isinstance(method, SharedCKME)
    n_places = method.places if isinstance(method, SharedCKME) else 1
    expected = {
        "n_cases": Expected((), "iu", (0, n * n_places)),
        "status": Expected((), "iu", (0, sum(MEANINGS)), sum(MEANINGS)),
        "observations": Expected((CASE, PLACES) if shared else (CASE,), "f", FINITE),
    }
    if method.keeps_cases:
        parts = [str(name) for name in state.data_vars if is_part(str(name))]
        due = ["loc"] if fitted.kind not in ("normal", "censored") else ["loc", "scale"]
        if isinstance(method, VectorCKME):
            due = [f"{VECTOR}{k}" for k in range(len(method.names))]
        expected |= {name: Expected((CASE, CASE_MEMBER), "iuf") for name in {*due, *parts}}
    for name, parameter in parameters.items():
        kinds = "f" if np.dtype(parameter.dtype).kind == "f" else "iu"
        expected[name] = Expected(tuple(parameter.dims), kinds, _range_of(parameter, n))
    kept = () if shared else fitted.periods
    return expected | {COVARIATE + name: Expected((CASE,), "iuf") for name in kept}


def _range_of(parameter: Parameter, n: int) -> tuple[float, float]:
    """Least and greatest value of a parameter with ``n`` slots of cases."""
    if parameter.flags:
        return 0, len(parameter.flags) - 1
    return (-1, n - 1) if parameter.of_slots else parameter.within


def _require_array(state: xr.Dataset, name: str, expected: Expected) -> None:
    """Raise ValueError unless an array is there, with its dimensions and type."""
    if name not in state.data_vars:
        raise ValueError(f"the state lacks {name!r}")
    variable, locations = state.variables[name], state.variables["status"].dims
    own = tuple(d for d in variable.dims if d not in locations)
    if own != expected.dims:
        raise ValueError(f"{name!r} is along {own} at each location, not along {expected.dims}")
    if variable.dtype.kind not in expected.kinds:
        raise ValueError(f"{name!r} is of the type {variable.dtype}")


def _require_sizes(state: xr.Dataset, name: str, parameter: Parameter, n: int) -> None:
    """Raise ValueError unless a parameter has its sizes and labels."""
    for d, size in parameter.sizes(n).items():
        # An update adds slots, but no landmarks.
        if d != CASE and (state.sizes[d] > size if parameter.of_slots else state.sizes[d] != size):
            raise ValueError(f"{name!r} has the size {state.sizes[d]} along {d!r}, not {size}")
        if parameter.labels and (
            d not in state.coords or [*map(str, state[d].to_numpy())] != list(parameter.labels)
        ):
            raise ValueError(f"{d!r} has other labels than {', '.join(parameter.labels)}")


def require_ordered(numbers: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise ValueError if a lower bound is above the upper one of the same fit."""
    for name, upper in numbers.items():
        lower = numbers.get(f"{name.removesuffix('upper')}lower")
        if name.endswith("upper") and lower is not None and (lower > upper).any():
            raise ValueError(f"a lower bound is above {name!r}")


class Checked:
    """A stored array that Dask reads by parts: what cannot be read, or be right, names the file."""

    def __init__(
        self, variable: xr.Variable, name: str, expected: Mapping[str, Expected], what: str
    ) -> None:
        self.variable, self.name, self.what = variable, name, what
        self.expected = expected.get(name)
        self.shape, self.dtype, self.ndim = variable.shape, variable.dtype, variable.ndim

    def __getitem__(self, key: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Numbers of a part; UnreadableError if there is none."""
        from .untrusted import reading

        with reading(self.what):
            values = self.variable[key].to_numpy()
            if self.expected is not None:
                self.expected.require(self.name, values)
            return values
