"""Metadata of results."""

from __future__ import annotations

from typing import Any


def describing(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes that still hold for a statistic, which has no ancillary variables."""
    return {name: value for name, value in attrs.items() if name != "ancillary_variables"}


def history_line(attrs: dict[str, Any], what: str) -> dict[str, Any]:
    """Attributes with a line added to ``history``."""
    before = str(attrs.get("history", ""))
    return {**attrs, "history": f"{before}\nxrecal: {what}".lstrip()}
