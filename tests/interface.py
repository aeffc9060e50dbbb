"""The public interface as text: a line for each name that a user types, with its parameters.

    python -m tests.interface

rewrites ``tests/interface.txt``. Names stand as a user types them, wherever they are defined.
Annotations are left out, as they may be spelled in several ways.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import click
import numpy as np
import xarray as xr

import xrecal
import xrecal.arrays
import xrecal.cli
import xrecal.datasets
import xrecal.diagnostics
import xrecal.hubs
import xrecal.plot

STORED = Path(__file__).with_suffix(".txt")
WITH_METHODS = ("Cycle", "Plan", "Recalibrator", "Run")
"""Classes whose methods users call. Of settings they only name the fields."""


class Shown(NamedTuple):
    """A default value, as it is written in a signature."""

    text: str

    def __repr__(self) -> str:
        return self.text


def shown(default: Any) -> Any:
    """A default whose representation says what it is, and not where it is defined."""
    if isinstance(default, np.ndarray):
        return Shown(f"array({default.tolist()})")
    if isinstance(default, np.generic):
        return Shown(repr(default.item()))
    if inspect.isroutine(default) or inspect.isclass(default):
        return Shown(default.__qualname__)
    return default


def signature(call: Callable[..., Any]) -> str:
    """Parameters of a call with kinds and defaults, without annotations."""
    found = inspect.signature(call)
    parameters = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else shown(p.default))
        for p in found.parameters.values()
        if p.name not in ("self", "cls")
    ]
    return str(inspect.Signature(parameters))


def of_exception(name: str, error: type[BaseException]) -> str:
    """An exception with its own parameters and what else catches it."""
    own = signature(error) if inspect.isfunction(error.__init__) else ""
    caught = [base.__name__ for base in error.__mro__[1:] if base not in (BaseException, object)]
    return f"{name}{own} is {', '.join(caught)}"


def of_object(name: str, value: Any) -> Iterator[str]:
    """Public methods and properties of an object, which may lack its fields."""
    for attribute in dir(type(value)):
        if attribute.startswith("_") and attribute != "__getitem__":
            continue
        found = inspect.getattr_static(type(value), attribute)
        if isinstance(found, (property, cached_property)) or not callable(found):
            yield f"{name}.{attribute}"
        else:
            yield f"{name}.{attribute}{signature(getattr(value, attribute))}"


def public_names(module: ModuleType) -> list[str]:
    """What a module says is public, or else its own functions."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and not name.startswith("_")
        and value.__module__.partition(".")[0] == "xrecal"
    ]


def of_module(module: ModuleType) -> Iterator[str]:
    """Public functions and classes of a module."""
    for short in public_names(module):
        value, name = getattr(module, short), f"{module.__name__}.{short}"
        if isinstance(value, ModuleType):
            yield name
        elif inspect.isclass(value) and issubclass(value, BaseException):
            yield of_exception(name, value)
        else:
            yield name + signature(value)
        if module is xrecal and short in WITH_METHODS:
            yield from of_object(name, object.__new__(value))


def commands() -> click.Group:
    """The command line that ``xrecal`` runs."""
    with mock.patch.object(click.Command, "main", autospec=True) as run:
        xrecal.cli.main()
    group = run.call_args.args[0]
    assert isinstance(group, click.Group)
    return group


def of_command(name: str, command: click.Command) -> Iterator[str]:
    """A command with its arguments in order, and each option with choices and default."""
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    named = [str(p.metavar or p.name).upper() for p in arguments]
    yield " ".join([f"$ {name}", *(f"<{one}>" for one in named)])
    for option in command.params:
        if not isinstance(option, click.Option):
            continue
        text = f"$ {name} {'/'.join([*option.opts, *option.secondary_opts])}"
        if isinstance(option.type, click.Choice):
            text += f" {{{','.join(map(str, option.type.choices))}}}"
        if option.multiple:
            text += " ..."
        if not option.is_flag and isinstance(option.default, (str, int, float)):
            text += f" = {option.default!r}"
        yield text
    if isinstance(command, click.Group):
        for part, below in command.commands.items():
            yield from of_command(f"{name} {part}", below)


def interface() -> list[str]:
    """All lines, in order."""
    lines = {"xrecal.plot", "xrecal.arrays"}
    for module in (
        xrecal,
        xrecal.arrays,
        xrecal.datasets,
        xrecal.diagnostics,
        xrecal.hubs,
        xrecal.plot,
    ):
        lines.update(of_module(module))
    empty = xr.DataArray(np.zeros((1, 1)), dims=["time", "member"], name="forecast")
    for kind, forecast in (("DataArray", empty), ("Dataset", empty.to_dataset())):
        lines.update(of_object(f"{kind}.recal", forecast.recal))
        lines.update(of_object(f"{kind}.recal.plot", forecast.recal.plot))
    lines.update(of_command("xrecal", commands()))
    return sorted(lines)


if __name__ == "__main__":
    STORED.write_text("".join(f"{line}\n" for line in interface()))
    print(f"{len(interface())} lines in {STORED}")
