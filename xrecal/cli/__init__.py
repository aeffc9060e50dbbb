"""The command ``xrecal``: fit, apply, score and compare on files, block by block."""

from __future__ import annotations

import sys
import traceback
from importlib.util import find_spec
from typing import Any


def main() -> None:
    """Run the command, or exit with the name of the library to install."""
    if find_spec("click") is None:
        sys.exit("xrecal: the command line needs click; use pip install 'xrecal[cli,io]'")
    from .commands import xrecal

    sys.excepthook = _print_fault
    xrecal(prog_name="xrecal")


def _print_fault(*fault: Any) -> None:
    """Print the traceback of a bug in xrecal, with names and labels quoted."""
    from .words import quoted

    sys.stderr.write(quoted("".join(traceback.format_exception(*fault)), "\n"))
