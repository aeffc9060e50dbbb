"""Metadata of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .units import same_units


def describing(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes that still hold for a statistic, which has no ancillary variables."""
    return {name: value for name, value in attrs.items() if name != "ancillary_variables"}


def history_line(attrs: dict[str, Any], what: str) -> dict[str, Any]:
    """Attributes with a line added to ``history``."""
    before = str(attrs.get("history", ""))
    return {**attrs, "history": f"{before}\nxrecal: {what}".lstrip()}


def history_only(attrs: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """``history`` with a line added, for results that the other attributes do not describe."""
    return history_line({name: value for name, value in attrs.items() if name == "history"}, what)


def shown_units(attrs: Mapping[Any, Any]) -> str:
    """Units to print behind a number; nothing for a dimensionless variable."""
    units = str(attrs.get("units", "1"))
    return "" if same_units(units, "1") else units
