"""Blocks of locations whose work fits into a small memory."""

from __future__ import annotations

from collections.abc import Iterator

# Copies of cases exist for a block of locations at a time, of about this size in bytes.
WORKSPACE = 64_000_000


def location_blocks(n_locations: int, bytes_each: int) -> Iterator[slice]:
    """Slices of locations whose arrays fit the workspace, at least one location each."""
    step = max(1, WORKSPACE // max(bytes_each, 1))
    for start in range(0, n_locations, step):
        yield slice(start, start + step)
