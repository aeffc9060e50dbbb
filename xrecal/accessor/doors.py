"""Docstrings of doors: each shows those of the function behind it, for ``help`` and notebooks."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

SHOWN = ("Parameters", "Returns", "Raises", "Examples")
_BEHIND = re.compile(r"see :(?:func|meth):`([\w.]+)`")
_SECTIONS = re.compile(r"\n\n(?=[A-Z]\w+\n-{3,}\n)")
_NEAR = re.compile(r":(func|meth):`(\w+)`")
_REFERENCE = re.compile(r"\s*\[\d+\]_")


def show_what_is_behind(cls: type) -> None:
    """Complete the docstrings of methods that name a function with ``see :func:``.

    Formulas and sources stay with the function. What is not imported yet is left as it is.
    """
    for base in cls.__mro__[:-1]:
        for door in vars(base).values():
            named = inspect.isfunction(door) and _BEHIND.search(door.__doc__ or "")
            behind = _found(named[1]) if named else None
            if named and behind is not None:
                text = _completed(inspect.getdoc(door) or "", behind)
                # Names that are near to the function are far from its door.
                near = named[1].rpartition(".")[0]
                door.__doc__ = _NEAR.sub(rf":\1:`~{near}.\2`", text)


def _found(name: str) -> Callable[..., Any] | None:
    """A function by its full name, in modules that are imported already."""
    parent, _, last = name.rpartition(".")
    owner: Any = sys.modules.get(parent)
    if owner is None:  # the method of a class
        module, _, cls = parent.rpartition(".")
        owner = getattr(sys.modules.get(module), cls, None)
    found: Callable[..., Any] | None = getattr(owner, last, None)
    return found


def _completed(text: str, behind: Callable[..., Any]) -> str:
    """The text of a door with sections of the docstring behind it, unless it has its own."""
    sections = _SECTIONS.split(inspect.getdoc(behind) or "")[1:]
    shown = [part for part in sections if part.partition("\n")[0] in SHOWN]
    if not shown or "Parameters\n---" in text:
        return text
    first = next(name for name in inspect.signature(behind).parameters if name != "self")
    given = f"The forecasts held here are `{first}` below, which is not given."
    return _REFERENCE.sub("", "\n\n".join([text, given, *shown])) + "\n"
