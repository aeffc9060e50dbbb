"""One run of a command: where it computes, what it prints, and the code that it exits with.

Messages come in the words of the command line: options in place of parameters of functions.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib.util import find_spec
from time import perf_counter
from typing import Any, NamedTuple

import click

from .blocks import RunError

REFUSED, UNREACHABLE, FAILED, INTERRUPTED = 3, 4, 5, 130
"""Exit codes beside 0 (done), 1 (a fault of xrecal) and 2 (a wrong command line)."""

CONNECT_SECONDS = 8
"""Seconds to wait for a scheduler."""

POOLING = "to learn from several locations together, use Python: hindcast.recal.fit(..., pool=...)"
"""End of a message, in place of its advice to pool, which the command line cannot take."""

_POOL = re.compile(
    r"pool neighbours or leads \(pool=\.\.\.\), "
    r"|pool=[^;]*? to learn from the cases of all positions together, (?:or )?"
)
_IN_PYTHON = (
    (r"otherwise convert first: (\w+) = .*?\.assign_attrs\(units=('[^']*')\)",
     r"otherwise convert first: write a file of \1 in \2"),
    (r"\bmin_samples=(\d+)", r"--min-samples \1"),
    (r"\bmin_samples\b(?! was)", "--min-samples"),
    (r"\bmember_dim=\.\.\.", "--member-dim DIM"),
    (r"\bdim=\.\.\.", "--dim DIM"),
    (r"\bcondition_on=?(?=\W|$)", "--condition-on"),
)  # fmt: skip


class UnreachableError(ConnectionError):
    """No scheduler answers."""


class Result(NamedTuple):
    """Result of a command: for machines, and for people."""

    data: dict[str, Any]
    text: str


class Session:
    """Dask on this machine or on a cluster, with its progress bar on standard error."""

    def __init__(self, scheduler: str | None, quiet: bool) -> None:
        self.quiet = quiet
        self.client = None if scheduler is None else connect(scheduler)

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Progress of all that is computed within; on a cluster of :meth:`compute` alone."""
        if self.quiet or self.client is not None:
            yield
            return
        from dask.diagnostics.progress import ProgressBar

        with ProgressBar(dt=0.5, out=sys.stderr):
            yield

    def compute(self, collections: list[Any]) -> list[Any]:
        """Compute Dask collections together."""
        if self.client is None:
            from dask.base import compute

            with self.bar():
                return list(compute(*collections))
        from distributed import progress

        futures = self.client.compute(collections)
        if futures and not self.quiet:
            with redirect_stdout(sys.stderr):
                progress(futures, notebook=False)
                print()
        return list(self.client.gather(futures))

    def close(self) -> None:
        """Leave the cluster."""
        if self.client is not None:
            self.client.close()


def connect(address: str) -> Any:
    """A client of a scheduler of ``dask.distributed``; UnreachableError if none answers in time."""
    if find_spec("distributed") is None:
        raise ImportError("--scheduler needs distributed; use pip install distributed")
    import socket

    from distributed import Client
    from distributed.comm.addressing import get_address_host_port

    try:
        with socket.create_connection(get_address_host_port(address), CONNECT_SECONDS):
            pass
        return Client(address, timeout=f"{CONNECT_SECONDS}s")
    except (OSError, ValueError, TypeError) as error:
        raise UnreachableError(
            f"no scheduler can be reached at {address!r} ({error}); give the address that "
            "dask scheduler prints, such as tcp://127.0.0.1:8786"
        ) from error


def run(
    command: str,
    work: Callable[[Session], Result],
    *,
    scheduler: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Do the work of a command, print its result, and exit with the code of what went wrong."""
    start = perf_counter()
    try:
        with _warnings_as_lines(), ExitStack() as stack:
            session = Session(scheduler, quiet)
            stack.callback(session.close)
            data, text = work(session)
    except UnreachableError as error:
        code, status, message = UNREACHABLE, "unreachable", str(error)
    except RunError as error:
        code, status, message = FAILED, "failed", str(error)
    except KeyboardInterrupt:
        code, status = INTERRUPTED, "interrupted"
        message = "interrupted; what is finished is kept, repeat the command with --resume"
    except (ValueError, TypeError, KeyError, OSError, ImportError) as error:
        code, status = REFUSED, "refused"
        message = for_command_line(str(error.args[0] if isinstance(error, KeyError) else error))
    else:
        data = {"command": command, **data, "seconds": round(perf_counter() - start, 3)}
        click.echo(json.dumps(data, allow_nan=False) if as_json else text)
        return
    if as_json:
        failed = {"command": command, "status": status, "error": message, "exit_code": code}
        click.echo(json.dumps(failed))
    click.echo(f"xrecal {command}: {message}", err=True)
    sys.exit(code)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Warnings as one line each on standard error."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        click.echo(f"warning: {for_command_line(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def for_command_line(text: str) -> str:
    """A message with options in place of parameters, and without code that cannot be typed."""
    message, n_pooled = _POOL.subn("", text)
    for pattern, typed in _IN_PYTHON:
        message = re.sub(pattern, typed, message)
    return f"{message}; {POOLING}" if n_pooled else message
