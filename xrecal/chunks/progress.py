"""Progress of long work: a bar on a terminal and in notebooks, elsewhere a line at intervals.

:func:`reported` starts the display, and also counts the tasks of Dask. :func:`counted` counts the
steps of a loop. If a step has a loop of its own, the steps of this loop are shares of the outer
step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from threading import Event, Lock, Thread, get_ident
from time import monotonic
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

QUIET = 3.0
"""Seconds of work before the first output."""

OFTEN, SELDOM = 0.5, 10.0
"""Least seconds between two updates of the bar, and between two lines if there is no bar."""

MORE = 0.25
"""Least time between two lines of long work, as a share of the time since the work began."""

WIDTH = 30

clock = monotonic


class Progress:
    """Progress of work that consists of steps; only the thread that opened it counts steps."""

    def __init__(self, what: str, *, shown: bool) -> None:
        self.what, self.shown = what, shown and sys.stderr is not None
        self.owner, self.start = get_ident(), clock()
        self.printed: float | None = None
        """Time of the last line or bar."""
        self.levels: list[list[int]] = []
        """For each loop, outermost first: number of finished steps, and number of all steps."""
        self._told = 0.0
        """Largest share so far; the display never falls below it when another loop starts at 0."""
        self._lock = Lock()

    def share(self) -> str:
        """Return the finished share of the work as text in percent; empty without steps.

        The share never decreases.
        """
        share, levels = 0.0, self.levels[::-1]
        for done, total in levels:
            share = min(1.0, (done + share) / max(total, 1))
        self._told = max(self._told, share)
        return f"{self._told:.0%}" if levels or self._told else ""

    def update(self, *, end: str = "") -> None:
        """Print a bar or a line if one is due; print ``end`` only if there was earlier output."""
        with self._lock:
            now, has_bar = clock(), _has_bar()
            if not self.shown or now - self.start < QUIET or (end and self.printed is None):
                return
            wait = OFTEN if has_bar else max(SELDOM, MORE * (now - self.start))
            if self.printed is not None and now - self.printed < wait and not (end and has_bar):
                return
            self.printed = now
            share, seconds = end or self.share(), f"{now - self.start:.0f} s"
            text = f"{self.what}: {share} after {seconds}".replace(":  after", ":")
            if has_bar:
                filled = "#" * (WIDTH * int(share[:-1]) // 100 if "%" in share else 0)
                text = f"\r{self.what} [{filled:<{WIDTH}}] {share:>4} {seconds:>6}"
            with suppress(OSError):  # a closed standard error has no reader
                line = end or not has_bar
                print(text, end="\n" if line else "", file=sys.stderr, flush=True)


_open: list[Progress] = []
"""Progress of the current work, if there is any."""


def _has_bar() -> bool:
    """Return whether standard error can show a bar: on a terminal, or in a notebook."""
    return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")


def _own() -> Progress | None:
    """Return the progress that this thread has opened and shows, or None."""
    own = _open[-1] if _open else None
    return own if own is not None and own.shown and own.owner == get_ident() else None


@contextmanager
def reported(what: str = "xrecal", *, shown: bool = True) -> Iterator[None]:
    """Show the progress of fits, scores and Dask computations in a ``with`` block, as one bar.

    Parameters
    ----------
    what : str
        Name of the work, which appears before the bar.
    shown : bool
        False hides the progress of all work in the block.

    Notes
    -----
    After 3 s of work, a bar appears on standard error if this is a terminal or a notebook. If not,
    a line appears every 10 s at first, and more rarely later. The progress does not include the
    work of a Dask cluster.

    Examples
    --------
    >>> with xrecal.progress("calibrated"):
    ...     calibrated = forecast.recal.apply(model).compute()
    >>> with xrecal.progress(shown=False):
    ...     model = hindcast.recal.fit(observations)
    """
    if _open:
        yield
        return
    progress = Progress(what, shown=shown)
    _open.append(progress)
    try:
        with ExitStack() as stack:
            if shown:
                stack.enter_context(_of_dask(progress))
                stack.enter_context(_printed_at_intervals(progress))
            yield
        progress.update(end="100%")
    except BaseException:
        progress.update(end="ended")
        raise
    finally:
        _open.remove(progress)


def reporting(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that shows the progress of functions with a parameter ``progress``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> R:
            with reported(what, shown=bool(given.get("progress", True))):
                return function(*args, **given)

        return called

    return decorate


def counted(steps: Collection[T]) -> Iterator[T]:
    """Yield the steps of a loop, and count them as progress."""
    progress = _own()
    if progress is None or len(steps) < 2:
        yield from steps
        return
    with _level(progress, len(steps)) as level:
        for one in steps:
            yield one
            level[0] += 1
            progress.update()


@contextmanager
def stage(number: int, total: int) -> Iterator[None]:
    """Count a ``with`` block as step ``number`` of ``total`` steps; the first number is 0."""
    progress = _own()
    if progress is None:
        yield
        return
    with _level(progress, total) as level:
        level[0] = number
        yield


def parts(n: int) -> Iterator[slice]:
    """Yield n places in parts, and count the places as progress.

    Parts grow as long as each takes less than half a second.
    """
    progress = _own()
    if progress is None or n < 2:
        yield slice(0, n)
        return
    size = max(1, n // 32)
    with _level(progress, n) as level:
        while level[0] < n:
            start = clock()
            yield slice(level[0], min(n, level[0] + size))
            level[0] = min(n, level[0] + size)
            size = size if clock() - start > OFTEN else 2 * size
            progress.update()


@contextmanager
def _level(progress: Progress, total: int) -> Iterator[list[int]]:
    level = [0, total]
    progress.levels.append(level)
    try:
        yield level
    finally:
        progress.levels.pop()


@contextmanager
def _printed_at_intervals(progress: Progress) -> Iterator[None]:
    """Print the progress at intervals while a step takes long."""
    ended = Event()

    def keep_printing() -> None:
        while not ended.wait(OFTEN):
            progress.update()

    thread = Thread(target=keep_printing, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _of_dask(progress: Progress) -> Iterator[None]:
    """Count the tasks that Dask computes in a ``with`` block."""
    from dask.callbacks import Callback

    started: list[list[int]] = []

    def is_own() -> bool:
        return get_ident() == progress.owner

    def start(_: Any, state: Mapping[str, Any]) -> None:
        if is_own():
            started.append([0, sum(len(state[name]) for name in ("ready", "waiting", "running"))])
            progress.levels.append(started[-1])

    def after(*_: Any) -> None:
        if is_own():
            started[-1][0] += 1
            progress.update()

    def finish(*_: Any) -> None:
        if is_own() and started:
            started.pop()
            progress.levels.pop()

    callback = Callback(start_state=start, posttask=after, finish=finish)  # type: ignore[no-untyped-call]
    with callback:
        yield
