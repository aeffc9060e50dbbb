"""Locks for writing: a lock file next to a path names the process that writes to the path.

The writer keeps its lock file open, and the operating system locks this file until the writer
ends. So another process on the same machine knows whether the writer is alive. On another
machine, or on a file system without such locks, a process cannot know this, and raises an error.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from xrecal.chunks.texts import quoted


@dataclass(frozen=True)
class Holder:
    """Process that holds a lock."""

    host: str
    pid: int
    since: str
    """Time at which the process acquired the lock."""
    guarded: bool
    """True if the operating system, too, locks the file until the process ends."""


def lock_of(path: Path) -> Path:
    """Return the path of the lock file for ``path``."""
    return path.with_name(f"{path.name}.lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a path for writing until the end of the ``with`` block.

    If a dead process of this machine has left a lock, this process takes over the lock and warns.

    Raises
    ------
    FileExistsError
        If another process writes to the path, or may be writing to it.
    """
    lock = lock_of(path)
    gone = _remove_left(lock, path)
    try:
        stream = lock.open("x")
    except FileExistsError:
        raise FileExistsError(f"another run has just begun to write {path}; wait") from None
    with stream:
        try:
            _write(stream)
            if gone is not None:
                warnings.warn(
                    quoted(
                        f"took over {lock} of process {gone.pid} on {gone.host}, which began at "
                        f"{gone.since} and is gone"
                    ),
                    stacklevel=3,
                )
            yield
        finally:
            is_own = _is_at(stream, lock)
            if os.name != "posix":  # other systems cannot remove an open file
                stream.close()
            if is_own:
                lock.unlink()


def require_held(path: Path) -> None:
    """Raise FileExistsError unless this process holds the lock of a path."""
    lock = lock_of(path)
    try:
        holder = _holder(lock.read_text())
    except FileNotFoundError:
        holder = None
    if holder is None or (holder.host, holder.pid) != (platform.node(), os.getpid()):
        raise FileExistsError(
            f"{lock} no longer belongs to this run, so another run may be writing {path}; wait for "
            "that run, or stop it, and repeat the command"
        )


def _remove_left(lock: Path, path: Path) -> Holder | None:
    """Remove the lock of a dead process of this machine, and return that process.

    Only one process can remove the lock file: all others find the file locked or removed.

    Raises
    ------
    FileExistsError
        If that process may be alive, or the lock file names no process.
    """
    try:
        stream = lock.open()
    except FileNotFoundError:
        return None
    with stream:
        is_free = _guard(stream, wait=False)
        holder = _holder(stream.read())
        if holder is None and is_free:  # the process was killed at this moment
            raise FileExistsError(
                f"{lock} does not name its run; if no other run writes there, remove it: rm {lock}"
            )
        if holder is None or not _is_at(stream, lock):
            raise FileExistsError(f"another run has just begun to write {path}; wait")
        is_here = holder.host == platform.node()
        if not (is_free and is_here and holder.guarded):
            where = "this machine" if is_here else f"the host {holder.host}"
            raise FileExistsError(
                f"process {holder.pid} on {where} has been writing {path} since {holder.since}; "
                f"wait for it or, if it has ended, remove its lock: rm {lock}"
            )
        lock.unlink()
    return holder


def _write(stream: TextIO) -> None:
    """Lock an open file, write host and number of this process, and wait until they are on disk."""
    is_guarded = _guard(stream, wait=True)  # another process may hold the lock for a moment
    now = datetime.now(UTC).isoformat(timespec="seconds")
    me = Holder(platform.node(), os.getpid(), now, is_guarded)
    stream.write(json.dumps(asdict(me)))
    stream.flush()
    os.fsync(stream.fileno())


def _guard(stream: TextIO, *, wait: bool) -> bool:
    """Lock an open file until it is closed; return whether the operating system has locked it."""
    try:
        import fcntl  # missing on Windows

        fcntl.flock(stream, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _is_at(stream: TextIO, lock: Path) -> bool:
    """Return whether an open file is the file at the path ``lock``."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), lock.stat())
    except FileNotFoundError:
        return False


def _holder(text: str) -> Holder | None:
    """Return the process that the text of a lock file names, or None if it names no process."""
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return None
