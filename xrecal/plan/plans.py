"""Plans: tasks, memory and time of work as a table, and the error if memory is too small."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import xarray as xr
from dask.utils import format_bytes

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.texts import quoted

from .costs import Resources

Chunks: TypeAlias = Mapping[Hashable, int]
"""Sizes of chunks by dimension; -1 means a whole dimension."""


Kind: TypeAlias = Literal["fit", "shared fit", "cross-validation", "apply"]
"""Kind of work."""


class MemoryPlanError(ValueError):
    """Error for a plan whose tasks need more memory than a task may use."""


@dataclass(frozen=True)
class TaskPlan:
    """The tasks of one variable. All bytes are those of the largest task."""

    variable: Hashable | None
    work: Kind
    cases: int
    """Number of calibration cases of a location, including cases pooled from other locations."""
    members: int
    forecasts: int
    """Number of new or held-out forecasts of a location; 0 for a fit."""
    splits: int
    """Number of splits of a cross-validation, each with a fit or an update; 0 for other work."""
    locations: int
    """Number of locations, each with a fit of its own; for a shared fit, the number of cases."""
    tasks: int
    locations_per_task: int
    input_bytes: int
    output_bytes: int
    workspace_bytes: int
    """Approximate bytes of copies and matrices, in addition to input and output."""
    seconds_per_location: float | None
    """Estimated seconds of one core; None without a probe."""
    cases_tried: int
    """Number of cases of the synthetic location that was timed; 0 without a probe."""
    chunks: Chunks
    """Suggested chunks of the hindcast or forecast; -1 means a whole dimension."""
    sizes: Mapping[Hashable, int]
    """Sizes of the dimensions along which tasks may be divided."""
    bytes_of_smallest: int
    """Bytes of a task with a single location; chunks cannot make a smaller task."""

    def chunks_within(self, limit: int) -> dict[Hashable, int]:
        """Return the suggested chunks, or smaller ones if tasks need more than ``limit`` bytes."""
        taken = {d: n if self.chunks[d] == -1 else self.chunks[d] for d, n in self.sizes.items()}
        most = min(math.prod(taken.values()), limit // max(self.bytes_of_smallest, 1))
        smaller = split(max(most, 1), taken)
        return {**self.chunks, **{d: -1 if k == self.sizes[d] else k for d, k in smaller.items()}}

    @property
    def task_bytes(self) -> int:
        """Bytes that the largest task needs."""
        return self.input_bytes + self.output_bytes + self.workspace_bytes

    @property
    def seconds(self) -> float | None:
        """Seconds of one core for all locations; None without a probe."""
        each = self.seconds_per_location
        return None if each is None else each * self.locations


@dataclass(frozen=True)
class Plan:
    """Tasks, memory and time of a fit, a cross-validation or a product such as quantiles.

    A plan prints as a table.

    Attributes
    ----------
    variables : tuple of TaskPlan
        The tasks of each variable.
    resources : Resources
        Memory in bytes that one task may use, and number of tasks that run at a time.
    notes : tuple of str
        Remarks on inputs and models that make the work slow, and on work that is not in the plan.

    Examples
    --------
    >>> plan = xrecal.plan(hindcast, probe=False)
    >>> plan.tasks, plan.fits, plan.seconds
    (1, True, None)
    >>> plan.largest.variable, plan.largest.chunks["location"]
    ('forecast', 1)
    >>> plan.task_bytes < 2**30
    True
    """

    variables: tuple[TaskPlan, ...]
    resources: Resources
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> int:
        """Number of tasks of all variables."""
        return sum(part.tasks for part in self.variables)

    @property
    def largest(self) -> TaskPlan:
        """Tasks of the variable that needs the most memory per task."""
        return max(self.variables, key=lambda part: part.task_bytes)

    @property
    def task_bytes(self) -> int:
        """Bytes that the largest task needs."""
        return self.largest.task_bytes

    @property
    def fits(self) -> bool:
        """True if memory is enough for every task, or if the available memory is unknown."""
        memory = self.resources.memory
        return memory is None or self.task_bytes <= memory

    @property
    def seconds(self) -> float | None:
        """Estimated wall-clock seconds of all tasks, which run in parallel as far as possible.

        None without a probe.
        """
        total = 0.0
        for part in self.variables:
            if part.seconds_per_location is None:
                return None
            rounds = -(-part.tasks // self.resources.at_once)
            slowest = part.seconds_per_location * part.locations_per_task
            total += min(rounds * slowest, part.seconds_per_location * part.locations)
        return total

    def to_dataset(self) -> xr.Dataset:
        """Return the numbers as a Dataset over ``variable``.

        Examples
        --------
        >>> xrecal.plan(hindcast, probe=False).to_dataset()["cases"].values
        array([50])
        """
        data: dict[str, tuple[str, list[Any], dict[str, str]]] = {}
        for name in (*(field.name for field in fields(TaskPlan)), "task_bytes"):
            values = [getattr(part, name) for part in self.variables]
            if name == "chunks":
                values = [str(dict(chunks)) for chunks in values]
            elif name == "seconds_per_location":
                values = [math.nan if seconds is None else seconds for seconds in values]
            data[name] = "variable", values, {"units": "byte"} if "bytes" in name else {}
        del data["variable"], data["sizes"]
        data["seconds_per_location"][2]["units"] = "s"
        return xr.Dataset(data, {"variable": [str(part.variable) for part in self.variables]})

    def table(self, typed: Callable[[TaskPlan, Chunks], str] | None = None) -> str:
        """Return the plan as text; the function ``typed`` may write chunks in another form.

        Examples
        --------
        >>> print(xrecal.plan(hindcast, probe=False).table().splitlines()[2])
          each location  50 cases of 8 members
        """
        lines = [f"<xrecal plan: {self.variables[0].work}>"]
        for part in self.variables:
            chunks = typed(part, part.chunks) if typed else f".chunk({dict(part.chunks)})"
            lines += _lines(part, chunks)
        lines += [*_total(self), *(f"  note           {n}" for n in self.notes)]
        return "\n".join(map(quoted, lines))

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__


def refusal(plan: Plan, limit: int | None = None) -> Advice | None:
    """Return a message about too little memory, with a remedy; None if memory is enough.

    ``limit`` is the number of bytes that a task may use; the default is the limit in the plan. If
    both are unknown, the result is None.
    """
    limit = plan.resources.memory if limit is None else limit
    if limit is None or plan.task_bytes <= limit:
        return None
    part = plan.largest
    needs = f"each task needs {_size(part.task_bytes)}, but may use only {_size(limit)}"
    if part.bytes_of_smallest > limit:
        needs += f", and one location alone needs {_size(part.bytes_of_smallest)}"
        use: str | Typed = "workers with more memory or fewer threads, fewer cases"
    else:
        chunks = part.chunks_within(limit)
        name = "forecast" if part.work == "apply" else "hindcast"
        sizes = {d: n if chunks[d] == -1 else chunks[d] for d, n in part.sizes.items()}
        use = Typed("chunks", sizes, f"{name}.chunk({dict(chunks)})")
    return Advice(f"{needs}; use ", use, ", or ", Typed("force", True), " to try nevertheless")


def check_plan(plan: Plan, limit: int | None = None, *, force: bool = False) -> None:
    """Raise an error if tasks of a plan need more memory than they may use.

    Parameters
    ----------
    plan : Plan
        From :func:`xrecal.plan` or :meth:`xrecal.Recalibrator.plan`.
    limit : int, optional
        Bytes that one task may use: the memory of a worker divided by the number of its threads.
        The default is the limit that the plan has found.
    force : bool
        If True, the function never raises the error.

    Raises
    ------
    MemoryPlanError
        If a task needs more memory than it may use. The message names a remedy.

    Examples
    --------
    >>> xrecal.check_plan(xrecal.plan(hindcast, probe=False))
    """
    message = None if force else refusal(plan, limit)
    if message is not None:
        raise MemoryPlanError(message)


def split(most: int, sizes: Mapping[Hashable, int]) -> dict[Hashable, int]:
    """Return the sizes of chunks that have at most ``most`` locations.

    Chunks are whole along the last dimensions, as far as ``most`` allows this. Chunks divide the
    first dimensions.
    """
    chunks: dict[Hashable, int] = {}
    for d, n in reversed(list(sizes.items())):
        pieces = -(-n // max(min(most, n), 1))
        chunks[d] = -(-n // max(pieces, 1))
        most = max(most // max(chunks[d], 1), 1)
    return {d: chunks[d] for d in sizes}


def _size(n_bytes: int) -> str:
    """Return a number of bytes as text."""
    return format_bytes(n_bytes).replace(".00 ", " ")


def _duration(seconds: float) -> str:
    """Return a duration as text, to two digits."""
    units = (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 0.001))
    unit, length = next((u for u in units if seconds >= u[1]), units[-1])
    count = seconds / length
    return f"{count:.0f} {unit}" if count >= 10 else f"{count:.2g} {unit}"


def _lines(part: TaskPlan, suggested: str) -> list[str]:
    """Return the lines of the table for one variable."""
    what = f"{part.cases} cases of {part.members} members"
    if part.work == "apply":
        what = f"{part.forecasts} forecasts of {part.members} members, from {part.cases} cases"
    if part.work == "cross-validation":
        what = (
            f"{part.forecasts} forecasts of {part.members} members held out in {part.splits} "
            f"splits, from {part.cases} cases at most"
        )
    locations = f"{part.locations}, at most {part.locations_per_task} a task"
    shared = part.work == "shared fit"
    rows = {
        "variable": "unnamed" if part.variable is None else str(part.variable),
        "all places" if shared else "each location": what,
        "cases" if shared else "locations": locations,
        "tasks": f"{part.tasks} a pass" if shared else str(part.tasks),
        "memory a task": (
            f"{_size(part.task_bytes)} (input {_size(part.input_bytes)}, output "
            f"{_size(part.output_bytes)}, workspace {_size(part.workspace_bytes)})"
        ),
    }
    if part.seconds is not None and part.seconds_per_location is not None:
        rows["time, one core"] = (
            f"about {_duration(part.seconds)} ({_duration(part.seconds_per_location)} a location; "
            f"estimated from {part.cases_tried} synthetic cases)"
        )
    rows["suggested"] = suggested
    return [f"  {label:<15}{text}" for label, text in rows.items()]


def _total(plan: Plan) -> list[str]:
    """Return the lines of the table for all variables together: time and memory."""
    memory, at_once = plan.resources.memory, plan.resources.at_once
    lines = []
    if plan.seconds is not None:
        lines.append(f"  time           about {_duration(plan.seconds)} with {at_once} at a time")
    if memory is not None:
        verdict = "enough" if plan.fits else "too little: take the suggested chunks"
        room = f"{_size(memory)} of memory a task with {at_once} at a time"
        lines.append(f"  available      {room}: {verdict}")
    return lines
