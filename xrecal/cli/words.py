"""Messages for the command line: options in place of parameters of functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

OPTIONS = {"folder": "output"}
"""Options with other names than their parameters."""

VALUES = {"dim": "DIM", "member_dim": "DIM", "pool": "DIM,...", "observed_variable": "NAME"}
"""Placeholder for any value of an option."""

DIMENSIONLESS = ("", "1", "-", "~", "dimensionless", "unitless", "fraction", "(0 - 1)")
"""Units that are not printed."""


def quoted(text: object, keep: str = "") -> str:
    """A text with escapes for characters that change what a terminal shows."""
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in str(text))


def in_options(error: Any) -> str:
    """The message of an error or a warning, with options in place of Python parameters."""
    text = error.args[0] if error.args else ""
    if hasattr(text, "worded"):
        return str(text.worded(_option))
    return str(text if isinstance(error, KeyError) else error)


def _option(part: Any) -> str:
    """A parameter, with its value if it has one, as an option."""
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
    """Raise an error unless figures can be drawn, and written to a path on this machine."""
    if find_spec("matplotlib") is None:
        raise ImportError(f"{name} needs matplotlib; use pip install matplotlib")
    if "://" in path:
        raise ValueError(f"{name} must be a path on this machine, got {path!r}; copy it first")


def shown_units(attrs: Mapping[Any, Any]) -> str:
    """Units to print after a number; empty for a dimensionless variable."""
    units = str(attrs.get("units", ""))
    return "" if units.strip() in DIMENSIONLESS else quoted(units)


def number(value: float) -> float | None:
    """The value, or None if it is not finite, as JSON has no such numbers."""
    return value if math.isfinite(value) else None
