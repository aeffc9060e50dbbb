"""Requests: inputs and settings of a run, compared with those of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

Request: TypeAlias = Mapping[str, Any]
"""Inputs and settings of a run as JSON has them: two runs with equal ones make the same result."""


def text_of(request: Request, before: Path) -> str:
    """The request as JSON.

    That of a run which was interrupted, the file ``before``, where it says the same in other words,
    such as 1.0 for 1: what is finished is proven for that text.
    """
    text = json.dumps(request)
    if not before.exists():
        return text
    left = before.read_text()
    return left if read(left) == json.loads(text) else text


def read(text: str) -> dict[str, Any] | None:
    """A request from its text; None if that is no request."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found else None


def differences(a: Request, b: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of two requests that differ, as they are in each."""
    was, now = {}, {}
    for key in {**a, **b}:
        one, two = a.get(key), b.get(key)
        if one != two and isinstance(one, dict) and isinstance(two, dict):
            one, two = differences(one, two)
        if one != two:
            was[key], now[key] = one, two
    return was, now
