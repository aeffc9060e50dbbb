"""What a run would do, told before it does anything."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import xarray as xr

from xrecal.blocks import Run, blocks_of

from .session import Result


def plan(
    run: Run,
    inputs: list[xr.Dataset],
    result: xr.Dataset,
    locations: Mapping[Hashable, int],
    n_cases: int,
) -> Result:
    """Cases, locations, blocks, and bytes of the largest block, of inputs and a lazy result.

    Nothing is computed. Bytes are those of the arrays in memory, without compression and without
    what computing needs beside them.
    """
    blocks = blocks_of(result)
    finished = sum(run.marker(n).exists() for n in range(len(blocks)))
    found: dict[str, Any] = {
        "status": "planned",
        "output": str(run.target),
        "cases": n_cases,
        "locations": math.prod(locations.values()),
        "blocks": len(blocks),
        "blocks_finished": finished,
        "block_locations": {
            str(d): max(sizes) for d, sizes in inputs[0].chunksizes.items() if d in locations
        },
        "block_bytes_in": sum(map(_largest_block, inputs)),
        "block_bytes_out": _largest_block(result),
        "bytes_in": sum(one.nbytes for one in inputs),
        "bytes_out": result.nbytes,
    }
    product = " x ".join(f"{d} {n}" for d, n in locations.items())
    lines = [
        f"{run.request['command']} -> {run.target}",
        f"  cases      {n_cases}",
        f"  locations  {found['locations']}" + (f" ({product})" if product else ""),
        f"  blocks     {len(blocks)}" + (f", {finished} of them finished" if finished else ""),
        f"  a block    {_shown(found['block_bytes_in'])} in, "
        f"{_shown(found['block_bytes_out'])} out",
        f"  all        {_shown(found['bytes_in'])} in, {_shown(found['bytes_out'])} out",
    ]
    return Result(found, "\n".join(lines))


def _largest_block(dataset: xr.Dataset) -> int:
    """Bytes of the largest chunks of all lazy arrays."""
    return sum(
        v.dtype.itemsize * math.prod(max(sizes) for sizes in v.chunksizes.values())
        for v in dataset.variables.values()
        if v.chunks is not None
    )


def _shown(n_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
