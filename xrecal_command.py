"""The program ``xrecal``, and its answers to signals: Ctrl-C, SIGTERM and SIGHUP.

This module sets the handlers of signals before it imports the package. So the program answers a
signal even during the import, which takes a second, or many seconds from a slow disk.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

FAILED = 5
"""Exit code if computing or writing fails."""

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def main() -> None:
    """Set the handlers of signals, then run the command."""
    _heed(end_at_once)
    from xrecal.cli import main as command

    try:
        command()
    except SystemExit as end:
        if isinstance(end.code, int) and (end.code > 128 or end.code == FAILED):
            _leave(end.code)  # HDF5 may crash as it closes a file that a full disk has cut off
        raise


def end_at_once(number: int, _: FrameType | None = None) -> None:
    """End the program at a signal, with a message but without cleaning up."""
    code, message = exit_code(number), "interrupted"
    if "--json" in sys.argv:
        failed = {"command": sys.argv[1], "status": message, "error": message, "exit_code": code}
        os.write(1, f"{json.dumps(failed)}\n".encode())
    os.write(2, f"xrecal: {message}\n".encode())
    _leave(code)


def exit_code(number: int) -> int:
    """Return the exit code of a program that a signal has ended, such as 130 after Ctrl-C."""
    return 128 + number


@contextmanager
def interruptible(arrived: list[int]) -> Iterator[None]:
    """Context in which the first signal raises KeyboardInterrupt and the second ends the program.

    Parameters
    ----------
    arrived : list of int
        List to which the first signal adds its number. The caller needs the number because
        libraries may turn KeyboardInterrupt into other errors.
    """

    def interrupt(number: int, _: FrameType | None) -> None:
        arrived.append(number)
        _heed(end_at_once)
        raise KeyboardInterrupt

    before = _heed(interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heed(handler: Handler) -> dict[int, Any]:
    """Set the handler of signals, except ignored ones (under nohup); return the old handlers."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    heeded = {n: one for n, one in before.items() if one is not signal.SIG_IGN}
    for number in heeded:
        signal.signal(number, handler)
    return heeded


def _leave(code: int) -> None:
    """Exit without waiting for running tasks, which may take long."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
