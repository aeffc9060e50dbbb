"""The program ``xrecal``, and what signals do to it: Ctrl-C, and SIGTERM and SIGHUP as well.

It stands beside the package and takes nothing from it, so that a signal is heeded from the
beginning: importing the package takes a second, and from a slow disk many.
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
"""Exit code of computing or writing that failed."""

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def main() -> None:
    """Run the command."""
    _heed(end_at_once)
    from xrecal.cli import main as command

    try:
        command()
    except SystemExit as end:
        if isinstance(end.code, int) and (end.code > 128 or end.code == FAILED):
            _leave(end.code)  # HDF5 may crash as it closes a file that a full disk has cut off
        raise


def end_at_once(number: int, _: FrameType | None = None) -> None:
    """Answer a signal where there is nothing to clean up, or no time to."""
    code, message = exit_code(number), "interrupted"
    if "--json" in sys.argv:
        failed = {"command": sys.argv[1], "status": message, "error": message, "exit_code": code}
        os.write(1, f"{json.dumps(failed)}\n".encode())
    os.write(2, f"xrecal: {message}\n".encode())
    _leave(code)


def exit_code(number: int) -> int:
    """Exit code of a program that a signal has ended: 130 after Ctrl-C."""
    return 128 + number


@contextmanager
def interruptible(arrived: list[int]) -> Iterator[None]:
    """Within, the first signal raises KeyboardInterrupt, and the second ends the program at once.

    Parameters
    ----------
    arrived : list of int
        Receives the number of the first signal: libraries turn KeyboardInterrupt into other errors.
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
    """Give signals to a handler, but those that are ignored, as under nohup; handlers before."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    heeded = {n: one for n, one in before.items() if one is not signal.SIG_IGN}
    for number in heeded:
        signal.signal(number, handler)
    return heeded


def _leave(code: int) -> None:
    """Exit without waiting for tasks that are running, which may take long."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
