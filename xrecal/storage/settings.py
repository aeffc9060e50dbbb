"""Conversion of settings to types of JSON, and back without loss."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.pool import Pool
from xrecal.methods import METHODS, Forest, SharedCKME, VectorCKME

STORED: dict[str, type] = {
    cls.__name__: cls for cls in (*METHODS, VectorCKME, SharedCKME, Forest, MatchedLeads, Pool)
}
"""Classes that a file may name; xrecal makes objects of no other classes."""

_PLAIN = re.compile(r"[<>|=]?([biuf]\d{1,2}|U\d{1,5})")
"""Allowed types of arrays in settings, as NumPy names them."""


def encode(value: Any, what: str) -> Any:
    """Convert a value to types of JSON.

    Tuples become lists, and values of other types that JSON lacks become objects of JSON.

    Parameters
    ----------
    value
        Text, number (also NaN and infinity), None, tuple, list, dict, numeric or text array,
        timedelta, or object of a class in ``STORED``; containers may have other containers in them.
    what : str
        Name of the value, for the message of the error.

    Raises
    ------
    TypeError
        If a value is of another type.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return [encode(item, what) for item in value]
    if isinstance(value, list):
        return {"list": [encode(item, what) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[encode(k, what), encode(v, what)] for k, v in value.items()]}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": encode(value.tolist(), what), "dtype": value.dtype.str}
    name = type(value).__name__
    if is_dataclass(value) and STORED.get(name) is type(value):
        of = {f.name: encode(getattr(value, f.name), f"{name}.{f.name}") for f in fields(value)}
        return {"class": name, "fields": of}
    raise TypeError(
        f"{what} holds {_short(value)} of the type {name}, which cannot be stored; use text, "
        f"numbers, tuples, lists, dicts, arrays, timedeltas, {', '.join(STORED)}"
    )


def decode(value: Any) -> Any:
    """Undo :func:`encode`.

    Raises
    ------
    ValueError
        If this version of xrecal does not know an object, a class or a field.
    """
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    match value:
        case {"float": text}:
            return float(text)
        case {"list": items}:
            return [decode(item) for item in items]
        case {"dict": items}:
            return {decode(k): decode(v) for k, v in items}
        case {"timedelta": [days, seconds, microseconds]}:
            return timedelta(days, seconds, microseconds)
        case {"array": items, "dtype": str(dtype)} if _PLAIN.fullmatch(dtype):
            return np.array(decode(items), dtype)
        case {"class": str(name), "fields": dict(given)}:
            return _made(name, given)
    raise ValueError(f"an object with the keys {list(value)} is not known")


def _made(name: str, given: dict[str, Any]) -> Any:
    """Make an object of a class in ``STORED`` from all of its fields."""
    if name not in STORED:
        raise ValueError(f"the class {name!r} is not known; known classes are {', '.join(STORED)}")
    cls = STORED[name]
    differ = given.keys() ^ {f.name for f in fields(cls)}
    if differ:
        raise ValueError(f"{name} has other fields than those given, such as {min(differ)!r}")
    return cls(**{key: decode(value) for key, value in given.items()})


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 and "\n" not in text else "a value"
