"""A Recalibrator as one Dataset, and back: arrays as variables, settings as JSON."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.fit.fitted import CASE, Fitted, FittedVariable
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import VECTOR
from xrecal.methods import CKME, EMOS, IDR, Climatology, OnlinePool, Raw
from xrecal.methods.base import Method, is_method, names_of
from xrecal.methods.components import COMPONENT, components_of
from xrecal.methods.pool import LinearPool

from .checks import Expected, require_sound
from .settings import decode, encode
from .untrusted import UnreadableError, damaged, read_json, reading, require_small, to_json

try:
    VERSION = version("xrecal")
except PackageNotFoundError:  # a source tree that is not installed
    VERSION = "0+unknown"

SCHEMA = 9
"""Version of the layout; raised when older versions of xrecal could not read it rightly.

2: variables that share a fit, and circular ones. 3: kernels on the shapes of forecasts, which pools
mix by default. 4: tails. 5: pools in which observations give way to novelty. 6: so they do in
CKMEs that choose their support. 7: pools of fewer methods, of which half is an average of
quantiles; CKMEs with one kind of errors. 8: EMOS with the means and variances of its cases, which
updates learn from. 9: online pools with experts that are corrected by their errors; those of before
are to be fitted anew. All other models of every version stay readable: ``tests/stored`` has some of
each, ``tests/stored/make.py`` says how those of a new one come there.
"""

MODEL, SCHEMA_ATTR, UNFINISHED = "xrecal_model", "xrecal_schema", "xrecal_unfinished"
"""Attributes: the settings as JSON, the version of the layout, the mark of an incomplete store."""

AXIS = "date_"
"""Prefix of the dates of the cases among the variables."""

_APART = ("state", "axis", "selected")  # variables rather than JSON; the last is of no whole model


def to_dataset(model: Fitted) -> xr.Dataset:
    """State and settings as one Dataset, lazy if the model is.

    Settings are JSON in attributes. Several variables have their name, and a dot, before the
    names of their arrays and dimensions.

    Examples
    --------
    >>> "ridge" in model.to_dataset()
    True
    """
    parts: dict[str, xr.Dataset] = {}
    described = []
    for name, fitted in model.variables.items():
        prefix = prefix_of(model, name)
        described.append(
            {"name": encode(name, "a name"), "prefix": prefix, "fields": _fields(fitted)}
        )
        own = _with_axis(fitted)
        if _owner(model.variables, name) != name:
            own = own.drop_vars(_vectors(own))
        parts[prefix] = _prefixed(own, prefix)
    header = {"method": encode(model.method, "the method"), "variables": described}
    versions = {"xrecal": VERSION, "numpy": np.__version__, "xarray": xr.__version__}
    periods = [prefix_of(model, name) + _period(fitted) for name, fitted in model.variables.items()]
    return xr.merge(parts.values(), join="exact", compat="no_conflicts").assign_attrs(
        {
            "title": "forecast recalibration model",
            "source": ", ".join(f"{name} {number}" for name, number in versions.items()),
            "method": repr(model.method),
            "calibration_period": "; ".join(periods),
            SCHEMA_ATTR: SCHEMA,
            MODEL: to_json(header, "attributes or settings of the model"),
        }
    )


def _owner(variables: Mapping[Hashable, FittedVariable], name: Hashable) -> Hashable:
    """The variable with which the vectors are stored that several have in common."""
    return next((other for other in variables if other in variables[name].jointly), name)


def _vectors(state: xr.Dataset) -> list[Hashable]:
    return [name for name in state.data_vars if str(name).startswith(VECTOR)]


def _with_vectors(variables: Mapping[Hashable, FittedVariable]) -> dict[Hashable, FittedVariable]:
    """All variables with the vectors that they have in common, each in its order."""
    whole = {}
    for name, fitted in variables.items():
        owner = variables[_owner(variables, name)].state
        shared = owner[_vectors(owner)]
        state = shared.assign(fitted.state) if fitted.jointly else fitted.state
        whole[name] = replace(fitted, state=state)
    return whole


def prefix_of(model: Fitted, name: Hashable) -> str:
    """Prefix of the names of a variable's arrays and dimensions, where there are several."""
    return f"{name}." if len(model.variables) > 1 else ""


def _fields(fitted: FittedVariable) -> dict[str, Any]:
    """Fields of a fitted variable that are no arrays, as JSON."""
    return {
        f.name: encode(getattr(fitted, f.name), f"{f.name} of the model")
        for f in fields(FittedVariable)
        if f.name not in _APART
    }


def _with_axis(fitted: FittedVariable) -> xr.Dataset:
    dates = {AXIS + f.name: getattr(fitted.axis, f.name) for f in fields(CaseAxis)}
    return fitted.state.assign_coords({n: (CASE, a) for n, a in dates.items() if a is not None})


def _prefixed(dataset: xr.Dataset, prefix: str) -> xr.Dataset:
    if not prefix:
        return dataset
    return dataset.rename({n: f"{prefix}{n}" for n in {*dataset.dims, *dataset.variables}})


def _period(fitted: FittedVariable) -> str:
    label = fitted.state.coords.get(f"calibration_{fitted.dim}")
    if label is None:
        return f"{fitted.n_forecasts} cases without labels"
    return f"{label.values[0]} to {label.values[-1]}"


def from_dataset(dataset: xr.Dataset, what: str = "the Dataset") -> Fitted:
    """The model that :func:`to_dataset` was given.

    Raises
    ------
    ValueError
        If the Dataset holds no model, or one of a newer layout, or is incomplete.
    """
    header = read_header(dataset, what)
    with reading(what):
        _require_present_experts(decode(header["method"]), dataset.attrs[SCHEMA_ATTR], what)
        variables = {decode(one["name"]): _variable(dataset, one) for one in header["variables"]}
        model = Fitted(decode(header["method"]), _with_vectors(variables))
        if not is_method(model.method) or not variables:
            raise ValueError("there is no method, or no variable")
        return model


def expected_arrays(model: Fitted) -> dict[str, Expected]:
    """What each array of a model has to be, by its name in the Dataset.

    Raises
    ------
    ValueError
        If fields, dimensions or sizes are not those that a fit leaves.
    """
    return {
        prefix_of(model, name) + array: expected
        for name, fitted in model.variables.items()
        for array, expected in require_sound(fitted).items()
    }


def read_header(dataset: xr.Dataset, what: str) -> dict[str, Any]:
    """Settings as JSON; ValueError unless the Dataset is a finished model of a known layout."""
    if UNFINISHED in dataset.attrs:
        raise UnreadableError(
            f"{what} is unfinished: {dataset.attrs[UNFINISHED]} was interrupted; run it again with "
            "--resume"
        )
    if SCHEMA_ATTR not in dataset.attrs:
        names = ", ".join(map(str, dataset.data_vars)) or "no variables"
        raise UnreadableError(
            f"{what} is no model of xrecal: it holds {names:.200}; open what model.save(path) wrote"
        )
    schema = dataset.attrs[SCHEMA_ATTR]
    if not isinstance(schema, (int, np.integer)) or schema < 1:
        raise damaged(what, ValueError(f"the version of its layout is {schema!r:.60}"))
    if schema > SCHEMA:
        raise UnreadableError(
            f"{what} has the layout {schema}, written by {dataset.attrs.get('source')}, but this "
            f"xrecal {VERSION} reads layouts up to {SCHEMA}; use pip install --upgrade xrecal"
        )
    with reading(what):
        header: dict[str, Any] = read_json(dataset.attrs[MODEL])
        return header


def _require_present_experts(method: object, schema: int, what: str) -> None:
    """Raise UnreadableError for an online pool with fewer experts than it has now."""
    if isinstance(method, OnlinePool) and schema < 9:
        raise UnreadableError(
            f"{what} is an OnlinePool of the layout {schema}, whose experts were fewer than those "
            f"of xrecal {VERSION}; fit it anew, which warms it up on the end of the hindcast: "
            f"hindcast.recal.fit(observations, xrecal.{method!r})"
        )


def _variable(dataset: xr.Dataset, described: Mapping[str, Any]) -> FittedVariable:
    """One variable, from the part of the Dataset that bears its prefix."""
    prefix = described["prefix"]
    others = [name for name in dataset.variables if not str(name).startswith(prefix)]
    state = dataset.drop_vars(others)
    state = state.rename(
        {n: str(n).removeprefix(prefix) for n in {*state.dims, *state.variables} if prefix}
    )
    dates = {
        f.name: _dates(state, AXIS + f.name)
        for f in fields(CaseAxis)
        if AXIS + f.name in state.variables
    }
    state = state.drop_vars([AXIS + name for name in dates]).drop_attrs(deep=False)
    given = {name: decode(value) for name, value in described["fields"].items()}
    if dataset.attrs[SCHEMA_ATTR] < 7:
        given["method"] = _as_fitted(given["method"], state)
    return FittedVariable(axis=CaseAxis(**dates), state=state, **given)


def _dates(state: xr.Dataset, name: str) -> npt.NDArray[Any]:
    """Dates of the cases."""
    require_small(name, state[name].variable)
    return state[name].to_numpy()


def _as_fitted(method: Method, state: xr.Dataset) -> Method:
    """A pool without methods of its own mixed other methods by default up to layout 6."""
    if not isinstance(method, LinearPool) or method.methods is not None:
        return method
    labels = {str(label) for label in state["pool_weight"][COMPONENT].values}
    names = names_of(method.condition_on) or None
    ckme = CKME(bounds=method.bounds, condition_on=names, gap=method.gap)
    ckme = replace(
        ckme, bandwidth="median" if names is None else "cv", year_start=method.year_start
    )
    emos = EMOS(bounds=method.bounds)
    mixed: list[Method] = [ckme, replace(ckme, support="errors", compare="shapes"), emos, IDR()]
    if names is not None:
        emos = replace(emos, condition_on=names)
        mixed += [emos, replace(emos, vary_spread=True), IDR(condition_on=names)]
    mixed += [Climatology(), Raw()]
    # Layouts before 3 had no shapes.
    kept = tuple(m for m in mixed if {c.label for c in components_of((m,))} <= labels)
    return replace(method, methods=kept, condition_on=None, bounds="auto")
