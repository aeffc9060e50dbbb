"""Report of the files of the package that a call runs through, and of the changes of file.

The fewer, the easier to read: ``python -m tests.traces``, a part of ``make lint``. Each call is the
second of its kind, and compiled functions do not count.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import xrecal

PACKAGE = Path(xrecal.__path__[0])


class Trace(NamedTuple):
    """Python functions of the package that run during a call."""

    files: list[str]
    """Files in which any function runs."""
    n_functions: int
    n_changes: int
    """Calls of a function from a function of another file of the package."""


def trace(call: Callable[[], object]) -> Trace:
    """Run a call and note the functions of the package that run."""
    prefix = f"{PACKAGE}/"
    stack, functions, n_changes = [""], set(), 0

    def note(frame, event, _):
        nonlocal n_changes
        name = frame.f_code.co_filename
        if not name.startswith(prefix):
            return
        if event == "call":
            functions.add(frame.f_code)
            n_changes += stack[-1] not in ("", name)
            stack.append(name)
        elif event == "return" and len(stack) > 1:
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    files = sorted({code.co_filename.removeprefix(prefix) for code in functions})
    return Trace(files, len(functions), n_changes)


def calls() -> dict[str, Callable[[], object]]:
    """Calls of users, on forecasts of one place in memory."""
    data = xrecal.datasets.lorenz96(n_inits=60, n_members=8, n_locations=4, lead_days=[5])
    data = data.isel(lead=0, location=0, drop=True)
    observed = data.observation
    past, last, new = data.forecast[:49], data.forecast[49:50], data.forecast[50:]
    model = past.recal.fit(observed, xrecal.LinearPool())
    online = past.recal.fit(observed, xrecal.OnlinePool())
    return {
        "EMOS fit": lambda: past.recal.fit(observed, xrecal.EMOS()),
        "CKME fit": lambda: past.recal.fit(observed, xrecal.CKME()),
        "LinearPool fit": lambda: past.recal.fit(observed, xrecal.LinearPool()),
        "LinearPool apply": lambda: new.recal.apply(model),
        "OnlinePool update": lambda: online.update(last, observed),
        "issued crps": lambda: new.recal.crps(observed),
    }


def main() -> None:
    """Print the number of files, functions and changes of file of each call, then the files."""
    warnings.simplefilter("ignore")
    found = {}
    for name, call in calls().items():
        call()
        found[name] = trace(call)
    for name, one in found.items():
        print(f"{name:20} {len(one.files):3} files {one.n_functions:4} functions "
              f"{one.n_changes:6} changes of file")  # fmt: skip
    if "--files" in sys.argv:
        for name, one in found.items():
            print(f"\n{name}:", *one.files, sep="\n  ")


if __name__ == "__main__":
    main()
