"""Methods as typed on the command line: a name, or an expression as in Python."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, NamedTuple

import click

import xrecal

METHODS: dict[str, type] = {
    "ckme": xrecal.CKME,
    "linear-pool": xrecal.LinearPool,
    "online-pool": xrecal.OnlinePool,
    "emos": xrecal.EMOS,
    "idr": xrecal.IDR,
    "pit": xrecal.PITRecalibration,
    "conformal": xrecal.ConformalPrediction,
    "climatology": xrecal.Climatology,
    "raw": xrecal.Raw,
}

_CLASSES = {cls.__name__: cls for cls in METHODS.values()}


class TypedMethod(NamedTuple):
    """Class of a method, with the settings that the user typed, not checked yet."""

    cls: type
    settings: dict[str, Any]

    def method(self, more: Iterable[tuple[str, str]] = ()) -> Any:
        """Make the method; ``more`` has further settings that the user typed.

        Raises
        ------
        ValueError
            If the method has no setting of a given name, or a value is not valid.
        """
        given = {key: _made(value) for key, value in self.settings.items()}
        for key in given:
            self._require([f.name for f in fields(self.cls)], key, "--method")
        known = [f.name for f in fields(self.cls) if f.name not in ("condition_on", "methods")]
        for key, text in more:
            self._require(known, key, "--option")
            given[key] = _value(text)
        return self.cls(**given)

    def _require(self, known: list[str], key: str, option: str) -> None:
        if key in known:
            return
        name = next(name for name, cls in METHODS.items() if cls is self.cls)
        meant = get_close_matches(key, known, n=1)
        hint = f"; did you mean {meant[0]!r}?" if meant else ""
        hint = "; use --condition-on" if key == "condition_on" else hint
        what = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{option}: the method {name} has no setting {key!r}, {what}{hint}")


class MethodType(click.Choice[str]):
    """Type of options whose value is a method, such as ``emos`` or ``CKME(ridge=0.1)``."""

    name = "method"

    def __init__(self) -> None:
        super().__init__(list(METHODS))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert typed text to a :class:`TypedMethod`."""
        if isinstance(value, TypedMethod):
            return value
        text = value.strip()
        meant = get_close_matches(text.lower(), METHODS, n=1)
        if text not in (*METHODS, *_CLASSES) and "(" not in text and meant:
            self.fail(f"{text!r} is not a method; did you mean {meant[0]!r}?", param, ctx)
        if "(" not in text and text not in _CLASSES:
            return TypedMethod(METHODS[super().convert(text, param, ctx)], {})
        try:
            return _read(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError) as error:
            self.fail(
                f"{text!r} is not a method: {error}; type a name such as ckme, or a name with "
                "settings, as in \"CKME(support='errors', ridge=0.1)\"",
                param,
                ctx,
            )


def _read(node: ast.expr) -> Any:
    """Read plain values, and methods as :class:`TypedMethod`, without running code."""
    name = node.func if isinstance(node, ast.Call) else node
    if isinstance(name, ast.Name):
        if name.id not in _CLASSES:
            raise ValueError(f"there is no method {name.id}; the methods are {', '.join(_CLASSES)}")
        keywords = node.keywords if isinstance(node, ast.Call) else []
        if (isinstance(node, ast.Call) and node.args) or any(k.arg is None for k in keywords):
            raise ValueError("give settings by their names")
        return TypedMethod(_CLASSES[name.id], {str(k.arg): _read(k.value) for k in keywords})
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(_read(one) for one in node.elts)
    return ast.literal_eval(node)


def _made(value: Any) -> Any:
    """Return a value in which each :class:`TypedMethod` is replaced by its method."""
    if isinstance(value, TypedMethod):
        return value.method()
    return tuple(_made(one) for one in value) if type(value) is tuple else value


def _value(text: str) -> Any:
    """Read numbers, true, false, null, none and lists as values, and all else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return {"none": None, "true": True, "false": False}.get(text.lower(), text)
    return tuple(value) if isinstance(value, list) else value
