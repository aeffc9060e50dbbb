"""Messages for the command line, which name options in place of Python parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

OPTIONS = {"folder": "output"}
"""Names of options that differ from the names of their parameters."""

VALUES = {"dim": "DIM", "member_dim": "DIM", "pool": "DIM,...", "observed_variable": "NAME"}
"""Placeholders for the values of options, by the names of the parameters."""

DIMENSIONLESS = ("", "1", "-", "~", "dimensionless", "unitless", "fraction", "(0 - 1)")
"""Units that are not printed."""


def quoted(text: object, keep: str = "") -> str:
    """Return a text with escapes for characters that are neither printable nor in ``keep``."""
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in str(text))


def in_options(error: Any) -> str:
    """Return the message of an error or warning, with options in place of Python parameters."""
    text = error.args[0] if error.args else ""
    if hasattr(text, "worded"):
        return str(text.worded(_option))
    return str(text if isinstance(error, KeyError) else error)


def _option(part: Any) -> str:
    """Return a parameter as an option, with its value if it has one."""
    name: str = part.name
    value = part.value
    if name == "units":  # Python code
        return f"write a file of {value[0]} in {value[1]!r}"
    if name == "chunks" and value == {}:
        return "nothing to cut"
    option = "--" + OPTIONS.get(name, name).replace("_", "-")
    if value is None or value is True:
        return option
    if value is ...:
        return f"{option} {VALUES[name]}" if name in VALUES else option
    if isinstance(value, dict):
        return f"{option} " + ",".join(f"{key}={size}" for key, size in value.items())
    several = isinstance(value, (tuple, list))
    return " ".join([option, ",".join(map(str, value)) if several else str(value)])


def require_local_figure(name: str, path: str) -> None:
    """Raise an error if matplotlib is missing, or a path is not on this machine."""
    if find_spec("matplotlib") is None:
        raise ImportError(f"{name} needs matplotlib; use pip install matplotlib")
    if "://" in path:
        raise ValueError(f"{name} must be a path on this machine, got {path!r}; copy it first")


def shown_units(attrs: Mapping[Any, Any]) -> str:
    """Return the units to print after a number, or no text for a dimensionless variable."""
    units = str(attrs.get("units", ""))
    return "" if units.strip() in DIMENSIONLESS else quoted(units)


def number(value: float) -> float | None:
    """Return the value, or None for NaN and infinity, which JSON does not have."""
    return value if math.isfinite(value) else None
