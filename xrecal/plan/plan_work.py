"""Work cut into tasks: the largest one, and chunks that would suit it better."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import xarray as xr

from .plans import TaskPlan, split
from .resources import Resources

BEST_BYTES = 128 * 2**20
"""Input and output of a task that chunks are suggested for, at most."""
BEST_SECONDS = 300.0
"""Duration of such a task, at most, so that little is lost with a worker."""
ROUNDS = 4
"""Tasks for each that can run at a time, at least, so that none waits long for the last one."""


@dataclass(frozen=True)
class Work:
    """Work on one variable, before it is known in how many tasks."""

    variable: Hashable | None
    kind: Literal["fit", "apply"]
    cases: int
    members: int
    forecasts: int
    tasks: xr.DataArray
    """Lazy, with the chunks of the result."""
    fits: tuple[Hashable, ...]
    """Dimensions with a fit of their own."""
    whole: tuple[Hashable, ...]
    """Dimensions that no task can do without."""
    given: Sequence[xr.DataArray]
    made: Sequence[tuple[xr.DataArray, int]]
    """Results, and how many values they have for each of theirs."""
    workspace: Callable[[int], int]
    """Bytes for a number of locations."""
    seconds: float | None
    cases_tried: int

    @property
    def cut(self) -> dict[Hashable, int]:
        """Dimensions that tasks may be cut along, and their sizes."""
        return {d: self.tasks.sizes[d] for d in self.fits if d not in self.whole}

    def locations(self, block: Mapping[Hashable, int]) -> int:
        """Number of locations of a task."""
        return math.prod(block.get(d, self.tasks.sizes[d]) for d in self.fits)

    def bytes_of(self, block: Mapping[Hashable, int]) -> tuple[int, int, int]:
        """Input, output and workspace of a task with so many labels along some dimensions."""
        taken = sum(_bytes(array, block) for array in self.given)
        made = sum(_bytes(array, block) * each for array, each in self.made)
        return taken, made, self.workspace(self.locations(block))


def task_plan(work: Work, resources: Resources) -> TaskPlan:
    """The work in tasks as its chunks are, and better ones."""
    chunks = work.tasks.chunksizes
    block = {d: max(sizes, default=0) for d, sizes in chunks.items()}
    taken, made, workspace = work.bytes_of(block)
    return TaskPlan(
        variable=work.variable,
        work=work.kind,
        cases=work.cases,
        members=work.members,
        forecasts=work.forecasts,
        locations=work.locations({}),
        tasks=math.prod(len(sizes) for sizes in chunks.values()),
        locations_per_task=work.locations(block),
        input_bytes=taken,
        output_bytes=made,
        workspace_bytes=workspace,
        seconds_per_location=work.seconds,
        cases_tried=work.cases_tried,
        chunks=_suggested(work, block, resources),
        sizes=work.cut,
        bytes_of_smallest=sum(work.bytes_of({**block, **dict.fromkeys(work.cut, 1)})),
    )


def _suggested(
    work: Work, block: Mapping[Hashable, int], resources: Resources
) -> dict[Hashable, int]:
    """Chunks of the largest tasks that are small and short enough, and numerous enough."""
    cut = work.cut
    one = {**block, **dict.fromkeys(cut, 1)}
    n, fits_each = math.prod(cut.values()), work.locations(one)
    taken, made, _ = work.bytes_of(one)
    most = min(n, BEST_BYTES // max(taken + made, 1), n // (ROUNDS * resources.at_once))
    if work.seconds:
        most = min(most, int(BEST_SECONDS / (work.seconds * max(fits_each, 1))))
    most = max(most, 1)
    memory = math.inf if resources.memory is None else resources.memory
    found = split(most, cut)
    while most > 1 and sum(work.bytes_of({**block, **found})) > memory:
        most //= 2
        found = split(most, cut)
    return dict.fromkeys(work.whole, -1) | {d: -1 if k == cut[d] else k for d, k in found.items()}


def _bytes(array: xr.DataArray, block: Mapping[Hashable, int]) -> int:
    """Bytes of a part of an array, whole along the dimensions that are not named."""
    return array.dtype.itemsize * math.prod(block.get(d, n) for d, n in array.sizes.items())
