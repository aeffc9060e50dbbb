"""Decorators that make Python methods of accessors and models from functions of the package."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from xrecal.chunks.warnings import users_call
from xrecal.inputs.forms import Labelled

from .call_errors import explain, explained, unexplained

P = ParamSpec("P")
R = TypeVar("R")

SHOWN = ("Parameters", "Returns", "Raises", "Examples")
"""Sections of a function's docstring that :func:`door` copies to the docstring of the method."""

_SECTIONS = re.compile(r"\n\n(?=[A-Z]\w+\n-{3,}\n)")
_LINK = re.compile(r":(?:func|meth):`")
_NEAR = re.compile(r":func:`(\w+)`")
_REFERENCE = re.compile(r"\s*\[\d+\]_")


class Accessor:
    """Base of accessors: objects that hold forecasts or observations, and have Python methods."""

    _typed_as: ClassVar[str]
    """Text between the name of the forecasts and the name of the Python method in a call, such as
    "recal" in ``forecast.recal.fit()``."""

    def __init__(self, obj: Labelled) -> None:
        self._obj: Labelled = obj

    def _doors(self) -> str:
        return ", ".join(name for name in dir(type(self)) if not name.startswith("_"))


def door(function: Callable[Concatenate[Labelled, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a Python method of an :class:`Accessor` from a function.

    The Python method calls the function with the accessor's forecasts as the first argument, so its
    signature lacks the first parameter. For wrong calls it raises the errors of
    :func:`~xrecal.methods.call_errors.explained`.
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
    called.__module__ = __name__  # its examples then run with the function alone
    called.__doc__ = _docstring(function, first.name)
    return called


def _docstring(function: Callable[..., Any], first: str) -> str | None:
    """Return the docstring of a Python method: first line and sections from its function."""
    line, sections = shown_sections(function)
    if not sections:
        return function.__doc__
    held = "observations" if first == "observations" else "forecasts"
    given = f"The accessor passes its {held} as the parameter `{first}`, so do not pass it yourself"
    if not _LINK.search(line):
        given += f"; see :func:`{function.__module__}.{function.__name__}`"
    return "\n\n".join([line, f"{given}.", *sections.values()]) + "\n"


def shown_sections(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the first line of a function's docstring, and its sections in :data:`SHOWN`.

    The function writes full names into links to functions of the same module, and removes
    references to sources.
    """
    head, *sections = _SECTIONS.split(_from_afar(function))
    named = {section.partition("\n")[0]: section for section in sections}
    return head.partition("\n")[0], {name: named[name] for name in SHOWN if name in named}


def _from_afar(function: Callable[..., Any]) -> str:
    text = _REFERENCE.sub("", inspect.getdoc(function) or "")
    return _NEAR.sub(rf":func:`~{function.__module__}.\1`", text)


def verb(function: Callable[Concatenate[Any, P], R], name: str) -> Callable[Concatenate[Any, P], R]:
    """Make the Python method ``name`` of a model from a function.

    The Python method calls the function with the model as the first argument, and has the signature
    and the docstring of the function. For wrong calls it raises the errors of
    :func:`~xrecal.methods.call_errors.explained`.
    """

    @wraps(function)
    def method(self: Any, /, *args: P.args, **given: P.kwargs) -> R:
        return function(self, *args, **given)

    signature = inspect.signature(function)
    first, *others = signature.parameters.values()
    own = signature.replace(parameters=[first.replace(name="self"), *others])
    vars(method)["__signature__"] = own
    method.__name__, method.__qualname__ = name, f"Recalibrator.{name}"
    del method.__wrapped__  # its first parameter has another name
    return explained(f"model.{name}")(method)
