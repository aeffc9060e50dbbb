"""Doors: methods of an accessor, each made of one function that takes forecasts first."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from xrecal.chunks.warnings import users_call
from xrecal.inputs.forms import Labelled
from xrecal.methods.call_errors import explain, unexplained

P = ParamSpec("P")
R = TypeVar("R")

SHOWN = ("Parameters", "Returns", "Raises", "Examples")
"""Sections of a function's docstring that its door shows; formulas and sources stay with it."""

_SECTIONS = re.compile(r"\n\n(?=[A-Z]\w+\n-{3,}\n)")
_LINK = re.compile(r":(?:func|meth):`")
_NEAR = re.compile(r":func:`(\w+)`")
_REFERENCE = re.compile(r"\s*\[\d+\]_")


class Accessor:
    """Forecasts, with doors as methods."""

    _typed_as: ClassVar[str]
    """What users type between the forecasts and a door."""

    def __init__(self, obj: Labelled) -> None:
        self._obj: Labelled = obj

    def _doors(self) -> str:
        return ", ".join(name for name in dir(type(self)) if not name.startswith("_"))


def door(function: Callable[Concatenate[Labelled, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Method of :class:`Accessor` that calls a function with the forecasts held there.

    It has the signature of the function without the first parameter. Wrong calls are explained as
    by :func:`~xrecal.methods.call_errors.explained`.
    """
    behind = unexplained(function)
    signature = inspect.signature(function)
    first, *others = signature.parameters.values()
    typed = signature.replace(parameters=others)

    @wraps(function)
    def called(self: Accessor, /, *args: P.args, **given: P.kwargs) -> R:
        with users_call():
            try:
                return behind(self._obj, *args, **given)
            except TypeError:
                call = f"{first.name}.{self._typed_as}.{called.__name__}"
                explain(function, typed, call, args, given)
                raise

    held = inspect.Parameter("self", first.kind)
    vars(called)["__signature__"] = typed.replace(parameters=[held, *others])
    called.__doc__ = _docstring(function, first.name)
    return called


def _docstring(function: Callable[..., Any], first: str) -> str | None:
    """Docstring of a door: first line and sections of that of the function behind it."""
    text = inspect.getdoc(function) or ""
    head, *sections = _SECTIONS.split(text)
    shown = [section for section in sections if section.partition("\n")[0] in SHOWN]
    if not shown:
        return function.__doc__
    line = head.partition("\n")[0]
    given = f"The forecasts held here are `{first}` below, which is not given"
    if not _LINK.search(line):
        given += f"; see :func:`{function.__module__}.{function.__name__}`"
    door = _REFERENCE.sub("", "\n\n".join([line, f"{given}.", *shown])) + "\n"
    # Names that are near to the function are far from its door.
    return _NEAR.sub(rf":func:`~{function.__module__}.\1`", door)
