"""Metadata of results."""

from __future__ import annotations

from typing import Any


def history_line(attrs: dict[str, Any], what: str) -> dict[str, Any]:
    """Attributes with a line added to ``history``."""
    before = str(attrs.get("history", ""))
    return {**attrs, "history": f"{before}\nxrecal: {what}".lstrip()}
