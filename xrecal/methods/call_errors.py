"""Messages for calls that do not match a signature: they name the mistake and the correct call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from xrecal.chunks.warnings import users_call

from . import CKME, METHODS
from .base import Method
from .settings import Settings, changed, did_you_mean, kinds_with, nearest, settings_of

P = ParamSpec("P")
R = TypeVar("R")

NEEDED = {
    "reference": "another forecast of the same cases, such as the raw one",
    "threshold": "a value of the variable, or several",
}
"""Descriptions of parameters, for functions whose docstrings do not describe them."""

_BEHIND: WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = WeakKeyDictionary()
"""The original function of each function that :func:`explained` has made."""


def explained(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that adds the correct call to the ``TypeError`` of a wrong call.

    ``call`` is the text that users type before the parentheses, such as ``xrecal.compare``. If this
    text begins with ``xrecal.``, pickle finds the decorated function under this name. During a call
    of the decorated function, :func:`~xrecal.chunks.warnings.warn_once` issues each warning at most
    once.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        n_held = int("self" in parameters)
        typed = inspect.Signature(list(parameters.values())[n_held:])

        @wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            with users_call():
                try:
                    return function(*args, **given)
                except TypeError:
                    explain(function, typed, call, args[n_held:], given)
                    raise

        if call.startswith("xrecal."):
            called.__module__, _, called.__name__ = call.rpartition(".")
            called.__qualname__ = called.__name__
        _BEHIND[called] = function
        return called

    return decorate


def unexplained(function: Callable[P, R]) -> Callable[P, R]:
    """Return the original of a function that :func:`explained` has made, or the function itself."""
    plain: Callable[P, R] = _BEHIND.get(function, function)
    return plain


def explain(
    function: Callable[..., Any],
    typed: inspect.Signature,
    call: str,
    args: Sequence[Any],
    given: Mapping[str, Any],
) -> None:
    """Raise a ``TypeError`` with the correct call if the arguments do not match a signature.

    ``typed`` is the signature, with only the parameters that users pass when they type ``call``.
    """
    try:
        typed.bind(*args, **given)
    except TypeError as error:
        text = _explanation(function, typed, call, args, given) or f"{call}: {error}"
        raise TypeError(text) from None


def _explanation(
    function: Callable[..., Any],
    typed: inspect.Signature,
    call: str,
    args: Sequence[Any],
    given: Mapping[str, Any],
) -> str | None:
    """Return a text about the error of a call; None if the call passes an argument twice."""
    parameters = typed.parameters
    named = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    ordered = [name for name in parameters if name not in named]
    unknown = {name: value for name, value in given.items() if name not in parameters}
    settings = next((name for name in ("method", "methods") if name in parameters), None)
    if unknown and settings is not None:
        place = ordered.index(settings)
        method = args[place] if place < len(args) else given.get(settings)
        text = _misplaced_settings(call, unknown, method, parameters)
        if text is not None:
            return text
    if unknown:
        name = next(iter(unknown))
        return (
            f"{call} has no parameter {name!r}{did_you_mean(name, [*ordered, *named])} It takes "
            f"{', '.join([*ordered, *named]) or 'nothing'}"
        )
    if len(args) > len(ordered):
        by_order = f"{', '.join(ordered)} in this order" if ordered else "nothing by position"
        others = f", and by name {', '.join(named)}" if named else ""
        return f"{call} takes {by_order}{others}; got {len(args)} by position"
    needed = [p.name for p in parameters.values() if p.default is p.empty]
    lacking = [name for name in needed if name not in (*ordered[: len(args)], *given)]
    if not lacking:
        return None
    arguments = ", ".join(f"{name}=..." if name in lacking else name for name in needed)
    name = lacking[0]
    return f"{call} needs {name}{_described(function, name)}: write {call}({arguments})"


def _described(function: Callable[..., Any], name: str) -> str:
    """Return a parameter's type in the docstring, in parentheses; empty if there is no type."""
    text = inspect.getdoc(function) or ""
    line = re.search(rf"^(?:\w+, )*{name}(?:, \w+)* : (.*)$", text, re.MULTILINE)
    description = NEEDED.get(name) if line is None else line[1]
    return "" if description is None else f" ({description})"


def _misplaced_settings(
    call: str, unknown: Mapping[str, Any], method: object, parameters: Mapping[str, Any]
) -> str | None:
    """Return a message for a call that passes settings of a method as parameters.

    The result is None if the first unknown parameter does not resemble a setting.
    """
    name = next(iter(unknown))
    kind = method if isinstance(method, type) else type(method)
    given = issubclass(kind, Settings)
    kind = kind if given else CKME
    own = settings_of(kind)
    owners = [kind] if name in own else kinds_with(name)
    if owners:
        owner, of = owners[0], " and ".join(one.__name__ for one in owners)
        placed = {k: value for k, value in unknown.items() if k in settings_of(owner)}
        text = f"{call} has no parameter {name!r}: it is a setting of {of}"
        if given and owner is not kind:
            text += f", not of {kind.__name__}, whose settings are {', '.join(own) or 'none'}"
    else:
        near = nearest(name, [*own, *parameters])
        if near not in own:
            return None
        owner, placed = kind, {near: unknown[name]}
        text = f"{call} has no parameter {name!r}; {kind.__name__} has a setting {near!r}"
    kept = changed(method) if isinstance(method, Settings) and kind is owner else {}
    settings = ", ".join(f"{k}={_short(value)}" for k, value in (kept | placed).items())
    return f"{text}: write {written(call, f'xrecal.{owner.__name__}({settings})')}"


def refuse_settings(method: object, call: str) -> NoReturn:
    """Raise a TypeError with the correct call, because ``method`` is not a method with settings."""
    kinds = {kind.__name__: kind for kind in METHODS}
    name = method.__name__ if isinstance(method, type) else str(method)
    plain = name.lower().removeprefix("xrecal.").removesuffix("()")
    ours = {kind.lower(): kind for kind in kinds}.get(plain)
    if ours is None and isinstance(method, type) and issubclass(method, Method):
        settings, listed = f"{name}()", ""
    else:
        settings = f"xrecal.{ours or CKME.__name__}()"
        listed = "" if ours else f". Methods are {', '.join(kinds)}"
    got = repr(method) if isinstance(method, (str, type)) else _short(method)
    got = f"a {type(method).__name__}" if got == "..." else got
    raise TypeError(
        f"method must be settings such as {settings}, got {got}; "
        f"write {written(call, settings)}{listed}"
    )


def written(call: str, method: str) -> str:
    """Return the text of a call with a method, as users would type this call."""
    if call == "xrecal.compare":
        return f"{call}(hindcast, observations, [{method}])"
    return f"{call}({'' if '.recal.' in call else 'hindcast, '}observations, {method})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 and "\n" not in text else "..."
