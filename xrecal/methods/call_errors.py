"""Calls that a signature does not take: what is wrong, what was found, what to type instead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from xrecal.chunks.warnings import one_call

from . import CKME, EMOS, IDR, Climatology, ConformalPrediction, LinearPool, PITRecalibration, Raw
from .base import Shown, changed, did_you_mean, kinds_with, nearest, settings_of

P = ParamSpec("P")
R = TypeVar("R")

OF_HINDCASTS = ("fit", "cross_validate", "ridge_curve")
"""Doors that take past forecasts."""

KINDS = (CKME, EMOS, LinearPool, IDR, PITRecalibration, ConformalPrediction, Climatology, Raw)
"""Methods of this package."""

NEEDED = {
    "reference": "another forecast of the same cases, such as the raw one",
    "threshold": "a value of the variable, or several",
}
"""What is wanted, where no docstring tells it."""


def explain_calls(cls: type, accessor: str | None = None) -> None:
    """Let all methods of a class, such as ``.recal``, explain calls that they do not take.

    Without the name of an accessor they are those of a fitted model.

    Their signatures and docstrings stay.
    """
    for base in cls.__mro__[:-1]:
        for name, door in list(vars(base).items()):
            if inspect.isfunction(door) and not name.startswith("_"):
                held = "hindcast" if name in OF_HINDCASTS else "forecast"
                owner = "model" if accessor is None else f"{held}.{accessor}"
                setattr(base, name, explained(door, f"{owner}.{name}"))


def explained(function: Callable[P, R], call: str, module: str | None = None) -> Callable[P, R]:
    """The function, whose ``TypeError`` for arguments that it does not take says what to type.

    ``call`` is what stands before the parentheses where it is called, ``module`` where the result
    will be found, by other processes. Warnings of :func:`~xrecal.chunks.warnings.warn_once` are
    told once a call.
    Costs a few microseconds.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> R:
        try:
            signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(_told(function, call, args, given, str(error))) from None
        with one_call():
            return function(*args, **given)

    called.__module__ = module or function.__module__
    return called


def explains(call: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of methods; see :func:`explained`."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        return explained(function, call)

    return decorated


def _told(
    function: Callable[..., Any],
    call: str,
    args: Sequence[Any],
    given: Mapping[str, Any],
    error: str,
) -> str:
    """What is wrong with a call."""
    parameters = inspect.signature(function).parameters
    shown = [p for p in parameters.values() if p.name != "self"]
    named = [p.name for p in shown if p.kind is p.KEYWORD_ONLY]
    ordered = [p.name for p in shown if p.kind is not p.KEYWORD_ONLY]
    unknown = {name: value for name, value in given.items() if name not in parameters}
    n_args = len(args) - ("self" in parameters)
    settings = next((name for name in ("method", "methods") if name in parameters), None)
    if unknown and settings is not None:
        place = ordered.index(settings)
        method = args[place - n_args] if place < n_args else given.get(settings)
        told = _told_settings(call, unknown, method, parameters)
        if told is not None:
            return told
    if unknown:
        name = next(iter(unknown))
        return (
            f"{call} has no parameter {name!r}{did_you_mean(name, [*ordered, *named])} It takes "
            f"{', '.join([*ordered, *named]) or 'nothing'}"
        )
    if n_args > len(ordered):
        by_order = f"{', '.join(ordered)} in this order" if ordered else "nothing by order"
        others = f", and by name {', '.join(named)}" if named else ""
        return f"{call} takes {by_order}{others}; got {n_args} by order"
    needed = [p.name for p in shown if p.default is p.empty]
    lacking = [name for name in needed if name not in (*ordered[:n_args], *given)]
    if not lacking:
        return f"{call}: {error}"
    arguments = ", ".join(f"{name}=..." if name in lacking else name for name in needed)
    name = lacking[0]
    return f"{call} needs {name}{_described(function, name)}: write {call}({arguments})"


def _described(function: Callable[..., Any], name: str) -> str:
    """What a parameter must be, by the docstring."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^(?:\w+, )*{name}(?:, \w+)* : (.*)$", text, re.MULTILINE)
    told = NEEDED.get(name) if found is None else found[1]
    return "" if told is None else f" ({told})"


def _told_settings(
    call: str, unknown: Mapping[str, Any], method: object, parameters: Mapping[str, Any]
) -> str | None:
    """That settings belong into the method; None if what is not known looks like none."""
    name = next(iter(unknown))
    kind = method if isinstance(method, type) else type(method)
    given = issubclass(kind, Shown)
    kind = kind if given else CKME
    own = settings_of(kind)
    owners = [kind] if name in own else kinds_with(name)
    if owners:
        owner, of = owners[0], " and ".join(one.__name__ for one in owners)
        known = {k: value for k, value in unknown.items() if k in settings_of(owner)}
        told = f"{call} has no parameter {name!r}: it is a setting of {of}"
        if given and owner is not kind:
            told += f", not of {kind.__name__}, whose settings are {', '.join(own) or 'none'}"
    else:
        near = nearest(name, [*own, *parameters])
        if near not in own:
            return None
        owner, known = kind, {near: unknown[name]}
        told = f"{call} has no parameter {name!r}; {kind.__name__} has a setting {near!r}"
    kept = changed(method) if isinstance(method, Shown) and kind is owner else {}
    settings = ", ".join(f"{k}={_short(value)}" for k, value in (kept | known).items())
    return f"{told}: write {written(call, f'xrecal.{owner.__name__}({settings})')}"


def require_settings(method: object, call: str) -> None:
    """Raise TypeError unless it is a method with its settings; a name or a class is none."""
    if not isinstance(method, type) and hasattr(method, "fit_locations"):
        return
    kinds = {kind.__name__: kind for kind in KINDS}
    name = method.__name__ if isinstance(method, type) else str(method)
    plain = name.lower().removeprefix("xrecal.").removesuffix("()")
    ours = {known.lower(): known for known in kinds}.get(plain)
    if ours is None and isinstance(method, type) and hasattr(method, "fit_locations"):
        settings, listed = f"{name}()", ""
    else:
        settings = f"xrecal.{ours or CKME.__name__}()"
        listed = "" if ours else f". Methods are {', '.join(kinds)}"
    found = repr(method) if isinstance(method, (str, type)) else _short(method)
    found = f"a {type(method).__name__}" if found == "..." else found
    raise TypeError(
        f"method must be settings such as {settings}, got {found}; "
        f"write {written(call, settings)}{listed}"
    )


def written(call: str, method: str) -> str:
    """A call with a method, as it would be typed."""
    if call == "xrecal.compare":
        return f"{call}(hindcast, observations, [{method}])"
    return f"{call}({'' if '.recal.' in call else 'hindcast, '}observations, {method})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 and "\n" not in text else "..."
