"""Safe writes of files: the module writes a temporary file, reads it, and then renames it."""

from __future__ import annotations

import errno
import os
import uuid
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; replace an old file only when the new file is complete on disk.

    Raises
    ------
    OSError
        If the file cannot be written, as on a full disk, or if its content differs from the content
        written.
    """
    place = Path(os.path.realpath(path))  # a link stays a link
    draft = place.with_name(f".{uuid.uuid4().hex}")
    try:
        draft.write_bytes(content)
        with draft.open("rb+") as stream:
            os.fsync(stream.fileno())  # a full disk may raise the error only here
            if stream.read() != content:
                raise OSError(errno.EIO, "the contents read back differ from those written")
        draft.replace(place)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        draft.unlink(missing_ok=True)
