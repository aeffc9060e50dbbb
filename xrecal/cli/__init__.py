"""The command ``xrecal``: fit, apply, score and compare on files, block by block."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command; tell what to install where its library is missing."""
    if find_spec("click") is None:
        sys.exit("xrecal: the command line needs click; use pip install 'xrecal[cli,io]'")
    from .commands import xrecal

    xrecal(prog_name="xrecal")
