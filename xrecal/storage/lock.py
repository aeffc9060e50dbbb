"""One writer at a time: a file beside what is written, which says who writes it."""

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
from uuid import uuid4

from xrecal.chunks.texts import quoted


@dataclass(frozen=True)
class Holder:
    """Process that holds a lock."""

    host: str
    pid: int
    pids: int | None
    """Which numbering of processes: that of a container is its own. None where none is told."""
    born: str | None
    """When the process began, as a number is given again to later ones; None if none is told."""
    since: str
    """When it took the lock."""

    def is_same_process(self, other: Holder) -> bool:
        """Whether both are one process."""
        return (self.host, self.pids, self.pid, self.born) == (
            other.host, other.pids, other.pid, other.born
        )  # fmt: skip

    def is_gone(self, here: Holder) -> bool:
        """Whether it is known that the process has ended, which another host cannot know."""
        if (self.host, self.pids) != (here.host, here.pids) or os.name != "posix":
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # somebody else's, which is there
            pass
        return self.born != _born(self.pid)


def lock_of(path: Path) -> Path:
    """The file that says who writes to a path."""
    return path.with_name(f"{path.name}.lock")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Be the only one that writes to a path, until the end of the block.

    The lock of a process of this machine that has ended is taken over, with a warning.

    Raises
    ------
    FileExistsError
        If another process writes there, or may do so.
    """
    lock, me = lock_of(path), _me()
    gone = _acquire(lock, path, me)
    try:
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
        if _read(lock) == me:
            lock.unlink()


def require_held(path: Path) -> None:
    """Raise FileExistsError unless this process holds the lock of a path."""
    holder = _read(lock_of(path))
    if holder is None or not holder.is_same_process(_me()):
        raise FileExistsError(
            f"{lock_of(path)} is no more that of this run, so another may be writing {path}; wait "
            "for it, or stop it, and repeat the command"
        )


def _acquire(lock: Path, path: Path, me: Holder) -> Holder | None:
    """Create the lock, or take over that of a process that is gone, or raise FileExistsError.

    Returns
    -------
    Holder or None
        The process that is gone.
    """
    for _ in range(3):  # another process may be faster, and done again
        holder = _read(lock)
        if holder is None:
            if _create(lock, me):
                return None
        elif holder.is_gone(me):
            if _take_over(lock, holder, me):
                return holder
        else:
            where = "this machine" if holder.host == me.host else f"the host {holder.host}"
            raise FileExistsError(
                f"process {holder.pid} on {where} has been writing {path} since {holder.since}; "
                f"wait for it or, if it is no more, remove its lock: rm {lock}"
            )
    raise FileExistsError(f"another run has just begun to write {path}; wait")


def _create(lock: Path, me: Holder) -> bool:
    """Create a lock where there is none; whether no other process was faster."""
    try:
        stream = lock.open("x")
    except FileExistsError:
        return False
    try:
        with stream:
            _write(stream, me)
    except OSError:  # as on a full disk
        lock.unlink()
        raise
    return True


def _take_over(lock: Path, gone: Holder, me: Holder) -> bool:
    """Replace the lock of a process that is gone; whether no other process was faster.

    Whoever wants to replace it first gets the old file for itself: the next one then reads whose it
    is by now.
    """
    import fcntl  # which others than POSIX lack, but there no process is known to be gone

    draft = lock.with_name(f"{lock.name}.{uuid4().hex}")
    try:
        with lock.open("rb") as old:
            fcntl.flock(old, fcntl.LOCK_EX)
            if _read(lock) != gone:
                return False
            with draft.open("x") as stream:
                _write(stream, me)
            draft.replace(lock)
    except FileNotFoundError:  # the other one is done already
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def _write(stream: TextIO, me: Holder) -> None:
    """Write who holds a lock, and wait until that is on disk."""
    stream.write(json.dumps(asdict(me)))
    stream.flush()
    os.fsync(stream.fileno())


def _read(lock: Path) -> Holder | None:
    """Who holds a lock, None if nobody does; FileExistsError if it does not say so."""
    try:
        return Holder(**json.loads(lock.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:  # of a process that was killed at that very moment
        raise FileExistsError(
            f"{lock} does not say whose it is; if no other run writes there, remove it: rm {lock}"
        ) from error


def _me() -> Holder:
    """What a process says of itself."""
    pid, space = os.getpid(), Path("/proc/self/ns/pid")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    pids = space.stat().st_ino if space.exists() else None
    return Holder(platform.node(), pid, pids, _born(pid), now)


def _born(pid: int) -> str | None:
    """When a process began, where Linux tells it; None of one that has ended, too."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if status[0] in "ZX" else status[19]  # see proc_pid_stat(5)
