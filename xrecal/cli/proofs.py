"""Proofs that files are as they were written: their names, sizes and hashes in another file.

A block of a result is finished if it has such a proof. A chunk of nothing but the fill value is no
file, and its proof says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from xrecal.storage.paths import sync


def prove(names: Iterable[str], store: Path, proof: Path, request: str) -> None:
    """Wait until files of a store are on disk, then write their proof.

    Parameters
    ----------
    names : iterable of str
        Of files in the store, which may lack them.
    store : Path
        Folder of the files.
    proof : Path
        File to write.
    request : str
        Of the run that has written them: what an earlier one for another request is still writing,
        on a worker of a cluster, proves nothing to this one.
    """
    files = {name: _of(store / name) for name in names}
    sync([store / name for name, there in files.items() if there], store)
    proof.write_text(json.dumps({"request": _digest(request), "files": files}))


def is_proven(store: Path, proof: Path, request: str) -> bool:
    """Whether there is a proof for this request, and the files are as it says."""
    try:
        proven = json.loads(proof.read_text())
        return bool(proven["request"] == _digest(request)) and all(
            _of(store / name) == was for name, was in proven["files"].items()
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # cut off as it was written
        return False


def _of(path: Path) -> list[Any] | None:
    """Size and hash of a file; None if there is none."""
    try:
        with path.open("rb") as stream:
            digest = file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()
            return [stream.tell(), digest]
    except FileNotFoundError:
        return None


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
