"""Files that are written aside, read back, and moved into place: never a part of one."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; what was there stays unless all of the new one is on disk.

    Raises
    ------
    OSError
        If it cannot be written, as on a full disk, or reads otherwise than it was written.
    """
    place = Path(os.path.realpath(path))  # a link stays one
    draft = place.with_name(f".{uuid.uuid4().hex}")
    try:
        draft.write_bytes(content)
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())  # which the disk may only now refuse
            if stream.read() != content:
                raise OSError(errno.EIO, "what was written reads otherwise")
        draft.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        draft.unlink(missing_ok=True)
