"""Blocks of a result: chunks that one task computes and writes, with a marker file for each block.

A block is finished if its marker has the hash of its files and of the request (inputs and settings
of the run). A chunk that contains only the fill value has no file; the marker records that the
file is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy.typing as npt
import xarray as xr

from xrecal.storage.paths import sync


@dataclass(frozen=True)
class Block:
    """Chunks of several arrays that one task computes and writes."""

    chunks: dict[str, tuple[int, ...]]
    """Position of the chunk of each array among all chunks of this array."""
    regions: dict[str, tuple[slice, ...]]
    """Slices of each array that its chunk covers."""


def blocks_of(dataset: xr.Dataset) -> list[Block]:
    """Return the blocks of the lazy arrays of a Dataset.

    Arrays that are divided along the same dimensions share blocks. The order of the blocks depends
    only on names and chunks.
    """
    families: dict[tuple[str, ...], list[str]] = {}
    for name, array in dataset.variables.items():
        if array.chunks is not None:
            cut = tuple(str(d) for d, sizes in array.chunksizes.items() if len(sizes) > 1)
            families.setdefault(tuple(sorted(cut)), []).append(str(name))
    slices = {str(d): _slices(sizes) for d, sizes in dataset.chunksizes.items()}
    dims = {str(name): [str(d) for d in v.dims] for name, v in dataset.variables.items()}
    blocks = []
    for cut, names in sorted(families.items()):
        for position in product(*(range(len(slices[d])) for d in cut)):
            at = dict(zip(cut, position, strict=True))
            chunks = {name: tuple(at.get(d, 0) for d in dims[name]) for name in names}
            regions = {
                name: tuple(slices[d][i] for d, i in zip(dims[name], chunks[name], strict=True))
                for name in names
            }
            blocks.append(Block(chunks, regions))
    return blocks


def _slices(sizes: Sequence[int]) -> list[slice]:
    """Return the slices of successive chunks of these sizes."""
    ends = list(accumulate(sizes))
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def write_block(
    values: Mapping[str, npt.NDArray[Any]], block: Block, store: str, marker: str, request: str
) -> None:
    """Write arrays to their regions of a store, then the marker of the block."""
    import zarr

    group = zarr.open_group(store, mode="r+")
    files = []
    for name, value in values.items():
        array: Any = group[name]
        array[block.regions[name]] = value
        files.append(f"{array.path}/{array.metadata.encode_chunk_key(block.chunks[name])}")
    mark(Path(marker), Path(store), files, request)


def mark(marker: Path, store: Path, names: Iterable[str], request: str) -> None:
    """Wait until files of a store are on disk, then write a marker with their hash.

    Parameters
    ----------
    marker : Path
        Path of the marker file to write.
    store : Path
        Folder of the files.
    names : iterable of str
        Names of files in the store; some files may be missing.
    request : str
        Hash of the request of the run. Markers of other requests are not valid.
    """
    files = list(names)
    digest = _digest(store, files, request)
    sync([store / name for name in files if (store / name).exists()], store)
    marker.write_text(json.dumps({"files": files, "digest": digest}))


def is_marked(marker: Path, store: Path, request: str) -> bool:
    """Return whether a marker exists, with the hash of the current files and of this request."""
    try:
        found = json.loads(marker.read_text())
        return bool(found["digest"] == _digest(store, found["files"], request))
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # truncated while it was written
        return False


def _digest(store: Path, names: Iterable[str], request: str) -> str:
    """Compute one hash of a request and of the names and contents of files."""
    digest = blake2b(request.encode(), digest_size=16)
    for name in names:
        digest.update(f"\n{name}\n".encode())
        try:
            with (store / name).open("rb") as stream:
                digest.update(file_digest(stream, lambda: blake2b(digest_size=16)).digest())
        except FileNotFoundError:
            digest.update(b"missing")
    return digest.hexdigest()
