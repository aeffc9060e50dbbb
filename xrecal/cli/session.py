"""A run of a command: connection to a scheduler, printed result and exit code."""

from __future__ import annotations

import errno
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from signal import SIGINT
from time import perf_counter
from traceback import walk_tb
from typing import Any, NamedTuple

import click

import xrecal
from xrecal_command import exit_code, interruptible

from .cluster import Cluster, UnreachableError, connected
from .words import in_options, quoted

REFUSED, UNREACHABLE, FAILED = 3, 4, 5
"""Exit codes for refused inputs, an unreachable scheduler, and a failed computation or write. Other
exit codes are 0 (done), 1 (a bug in xrecal), 2 (a wrong command line), and the codes after
signals."""

ALARMED, NOTHING_NEW = 10, 11
"""Exit codes after finished work, if there are alarms (``cycle``, ``monitor``) or nothing is new
(``cycle``)."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors for a full disk, an exhausted quota, and a file that is too large."""

_REMEDY = "; make room, or raise the limit (ulimit -f), and repeat the command"


class Result(NamedTuple):
    """Result of a command, as data and as text."""

    data: dict[str, Any]
    text: str
    code: int = 0
    """Exit code: 0, ``ALARMED`` or ``NOTHING_NEW``."""


@dataclass(frozen=True)
class Session:
    """Settings with which a command computes, on this machine or on a cluster."""

    cluster: Cluster | None
    quiet: bool

    def compute(self, collections: list[Any]) -> list[Any]:
        """Compute Dask collections together."""
        if self.cluster is not None:
            return self.cluster.compute(collections, quiet=self.quiet)
        from dask.base import compute

        return list(compute(*collections))


def run(
    command: str,
    work: Callable[[Session], Result],
    *,
    scheduler: str | None,
    timeout: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Do the work of a command, print its result, and exit with its code."""
    start = perf_counter()
    signals: list[int] = []
    try:
        with _warnings_as_lines(), interruptible(signals), ExitStack() as stack:
            cluster = stack.enter_context(connected(scheduler, timeout)) if scheduler else None
            quiet = quiet or not is_terminal()
            shown = not quiet and cluster is None  # a cluster has its own bar
            stack.enter_context(xrecal.progress(f"xrecal {command}", shown=shown))
            data, text, code = work(Session(cluster, quiet))
    except (Exception, KeyboardInterrupt) as error:
        failure = _failure(error, signals)
        if failure is None:
            raise
    else:
        data = {"command": command, **data, "seconds": round(perf_counter() - start, 3)}
        data |= {"exit_code": code} if code else {}
        code = _print(_json(data) if as_json else text, command) or code
        if code:
            sys.exit(code)
        return
    code, status, message = failure
    if as_json:
        failed = {"command": command, "status": status, "error": message, "exit_code": code}
        code = _print(_json(failed), command) or code
    _print_aside(f"xrecal {command}: {message}")
    sys.exit(code)


def _json(data: dict[str, Any]) -> str:
    """Return JSON in ASCII; escape also the character DEL, which terminals do not show."""
    return json.dumps(data, allow_nan=False).replace("\x7f", "\\u007f")


def _print(text: str, command: str) -> int:
    """Print a result; return 0, or ``FAILED`` if the disk of standard output is full."""
    try:
        click.echo(quoted(text, "\n"))
    except OSError as error:
        if error.errno not in FULL:  # click handles a closed pipe
            raise
        _print_aside(f"xrecal {command}: the result cannot be printed: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discard buffered output
        return FAILED
    return 0


def _print_aside(text: str) -> None:
    """Print a line to standard error; print nothing if standard error is closed."""
    with suppress(OSError):
        click.echo(quoted(text), err=True)


def is_terminal() -> bool:
    """Return whether standard error is a terminal; only a terminal shows progress bars."""
    return sys.stderr.isatty()


def _failure(error: BaseException, signals: list[int]) -> tuple[int, str, str] | None:
    """Return exit code, status and message for the error of a command; None for a bug in xrecal.

    After a signal, any error counts as a consequence of the signal.
    """
    if signals or isinstance(error, KeyboardInterrupt):
        return exit_code(signals[0] if signals else SIGINT), "interrupted", _interrupted()
    if isinstance(error, UnreachableError) or isinstance(error.__cause__, UnreachableError):
        return UNREACHABLE, "unreachable", in_options(error)
    if isinstance(error, xrecal.TaskError) or _is_full(error):
        return FAILED, "failed", f"{in_options(error)}{_REMEDY if _is_full(error) else ''}"
    if isinstance(error, (ValueError, TypeError, KeyError, OSError, ImportError)):
        return REFUSED, "refused", in_options(error)
    if _is_of_reading(error):
        return REFUSED, "refused", f"an input cannot be read ({error}): it is damaged; give another"
    return None


def _is_of_reading(error: BaseException) -> bool:
    """Return whether an error, of any class, arose while xarray read a file."""
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    return any(f.f_globals.get("__name__", "").startswith("xarray.backends") for f in frames)


def _interrupted() -> str:
    """Return the message after a signal, with advice on how to continue."""
    command = click.get_current_context().command
    if any(option.name == "resume" for option in command.params):
        return "interrupted; finished work is kept, repeat the command with --resume"
    if command.name == "cycle":
        return "interrupted; finished work is kept, repeat the command"
    return "interrupted; repeat the command"


def _is_full(error: BaseException | None) -> bool:
    """Return whether an error comes from a full disk."""
    while error is not None:
        if getattr(error, "errno", None) in FULL:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each warning in a ``with`` block as one line to standard error."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        _print_aside(f"warning: {in_options(message)}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
