"""Conversion of a model to one Dataset and back: arrays are variables, settings are JSON."""

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
from xrecal.methods.base import is_method

from .checks import Expected, require_sound
from .settings import decode, encode
from .untrusted import UnreadableError, read_json, reading, require_small, to_json

try:
    VERSION = version("xrecal")
except PackageNotFoundError:  # a source tree that is not installed
    VERSION = "0+unknown"

SCHEMA = 14
"""Number of the layout of stored models. Increase it if the layout changes: xrecal refuses models
of other layouts."""

MODEL, SCHEMA_ATTR, UNFINISHED = "xrecal_model", "xrecal_schema", "xrecal_unfinished"
"""Names of attributes: settings as JSON, number of the layout, mark of an incomplete store."""

AXIS = "date_"
"""Prefix of the names of the variables that hold the dates of the cases."""

_APART = ("state", "axis", "selected")  # variables, not JSON; complete models have no `selected`


def to_dataset(model: Fitted) -> xr.Dataset:
    """Return state and settings of a model as one Dataset, which is lazy if the model is lazy.

    Settings are JSON in attributes. If the model has several variables, the names of arrays and
    dimensions begin with the name of the variable and a dot.

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
        names = {*own.dims, *own.variables} if prefix else {}
        parts[prefix] = own.rename({n: f"{prefix}{n}" for n in names})
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
    """Return the variable that stores the past forecasts of ``name``: ``name`` or another."""
    return next((other for other in variables if other in variables[name].jointly), name)


def _vectors(state: xr.Dataset) -> list[Hashable]:
    return [name for name in state.data_vars if str(name).startswith(VECTOR)]


def _with_vectors(variables: Mapping[Hashable, FittedVariable]) -> dict[Hashable, FittedVariable]:
    """Return all variables; each gets its past forecasts, even if another variable stores them."""
    whole = {}
    for name, fitted in variables.items():
        owner = variables[_owner(variables, name)].state
        shared = owner[_vectors(owner)]
        state = shared.assign(fitted.state) if fitted.jointly else fitted.state
        whole[name] = replace(fitted, state=state)
    return whole


def prefix_of(model: Fitted, name: Hashable) -> str:
    """Return the prefix of the names of a variable's arrays; empty for a model of one variable."""
    return f"{name}." if len(model.variables) > 1 else ""


def _fields(fitted: FittedVariable) -> dict[str, Any]:
    """Return the fields of a fitted variable that are not arrays, as types of JSON."""
    return {
        f.name: encode(getattr(fitted, f.name), f"{f.name} of the model")
        for f in fields(FittedVariable)
        if f.name not in _APART
    }


def _with_axis(fitted: FittedVariable) -> xr.Dataset:
    dates = {AXIS + f.name: getattr(fitted.axis, f.name) for f in fields(CaseAxis)}
    return fitted.state.assign_coords({n: (CASE, a) for n, a in dates.items() if a is not None})


def _period(fitted: FittedVariable) -> str:
    label = fitted.state.coords.get(f"calibration_{fitted.dim}")
    if label is None:
        return f"{fitted.n_forecasts} cases without labels"
    return f"{label.values[0]} to {label.values[-1]}"


def from_dataset(dataset: xr.Dataset, what: str = "the Dataset") -> Fitted:
    """Undo :func:`to_dataset`.

    Raises
    ------
    ValueError
        If the Dataset is not a model, has another layout, or is incomplete.
    """
    header = read_header(dataset, what)
    with reading(what):
        variables = {decode(one["name"]): _variable(dataset, one) for one in header["variables"]}
        model = Fitted(decode(header["method"]), _with_vectors(variables))
        if not is_method(model.method) or not variables:
            raise ValueError("there is no method, or no variable")
        return model


def expected_arrays(model: Fitted) -> dict[str, Expected]:
    """Return the expected properties of each array of a model, by its name in the Dataset.

    Raises
    ------
    ValueError
        If fields, dimensions or sizes are not those of a fit.
    """
    return {
        prefix_of(model, name) + array: expected
        for name, fitted in model.variables.items()
        for array, expected in require_sound(fitted).items()
    }


def read_header(dataset: xr.Dataset, what: str) -> dict[str, Any]:
    """Return settings as types of JSON; raise ValueError unless a Dataset is a complete model.

    The model must also have the current layout.
    """
    require_finished(dataset, what)
    if SCHEMA_ATTR not in dataset.attrs:
        names = ", ".join(map(str, dataset.data_vars)) or "no variables"
        raise UnreadableError(
            f"{what} is not a model of xrecal: it holds {names:.200}; open a "
            "file or store that model.save(path) wrote"
        )
    schema = dataset.attrs[SCHEMA_ATTR]
    if not (isinstance(schema, (int, np.integer)) and schema == SCHEMA):
        raise UnreadableError(
            f"{what} has the layout {schema!s:.60}, written by "
            f"{dataset.attrs.get('source')!s:.120}, but this xrecal {VERSION} reads only the "
            f"layout {SCHEMA}; fit and save the model again, "
            "hindcast.recal.fit(observations).save(path, overwrite=True), or install the version "
            "of xrecal that wrote it"
        )
    with reading(what):
        header: dict[str, Any] = read_json(dataset.attrs[MODEL])
        return header


def require_finished(dataset: xr.Dataset, what: str) -> None:
    """Raise UnreadableError for a store left by an interrupted run."""
    if UNFINISHED in dataset.attrs:
        raise UnreadableError(
            f"{what} is unfinished: {dataset.attrs[UNFINISHED]} was interrupted; run it again with "
            "--resume"
        )


def _variable(dataset: xr.Dataset, described: Mapping[str, Any]) -> FittedVariable:
    """Restore one variable from the part of the Dataset with the prefix of the variable."""
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
    return FittedVariable(axis=CaseAxis(**dates), state=state, **given)


def _dates(state: xr.Dataset, name: str) -> npt.NDArray[Any]:
    """Read the dates of the cases that are stored as ``name``."""
    require_small(name, state[name].variable)
    return state[name].to_numpy()
