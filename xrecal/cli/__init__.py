"""The program ``xrecal``: fit, recalibrate, score and compare forecasts in files."""

from __future__ import annotations

import sys
import traceback
from importlib.util import find_spec
from typing import Any


def main() -> None:
    """Run the program; if click is missing, exit with a message on how to install it."""
    if find_spec("click") is None:
        sys.exit("xrecal: the command line needs click; use pip install 'xrecal[cli,io]'")
    from .commands import xrecal

    sys.excepthook = _print_fault
    xrecal(prog_name="xrecal")


def _print_fault(*fault: Any) -> None:
    """Print the traceback of a bug in xrecal, with special characters escaped."""
    from .words import quoted

    sys.stderr.write(quoted("".join(traceback.format_exception(*fault)), "\n"))
