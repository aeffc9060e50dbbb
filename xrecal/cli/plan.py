"""The plan of a run, told or enforced before it does anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import xarray as xr

from xrecal.chunks.texts import quoted
from xrecal.plan.plans import Chunks, MemoryPlanError, Plan, TaskPlan, refusal

from .blocks import Run, blocks_of
from .session import Result

NUMBERS = (
    "cases",
    "members",
    "forecasts",
    "splits",
    "locations",
    "tasks",
    "locations_per_task",
    "input_bytes",
    "output_bytes",
    "workspace_bytes",
    "task_bytes",
)
"""Of the plan of a variable, as JSON has them."""


def shown(plan: Plan, run: Run, result: xr.Dataset) -> Result:
    """The plan, and how many blocks of the lazy result are finished already."""
    n = len(blocks_of(result))
    finished = run.count_finished(n)
    found: dict[str, Any] = {
        "status": "planned",
        "output": str(run.target),
        "blocks": n,
        "blocks_finished": finished,
        **numbers_of(plan),
    }
    blocks = f"{n} block{'s' * (n != 1)}" + (f", {finished} of them finished" if finished else "")
    head = f"{run.request['command']} -> {quoted(run.target)}: {blocks}"
    return Result(found, f"{head}\n{table_of(plan)}")


def numbers_of(plan: Plan) -> dict[str, Any]:
    """The plan for machines."""
    return {
        "task_bytes": plan.task_bytes,
        "memory_bytes": plan.resources.memory,
        "fits": plan.fits,
        "variables": {
            str(part.variable): {
                **{name: getattr(part, name) for name in NUMBERS},
                "chunks": {str(d): size for d, size in _sizes(part, part.chunks).items()},
            }
            for part in plan.variables
        },
    }


def table_of(plan: Plan) -> str:
    """The plan for people."""
    # What it notes about models that are not in memory does not hold for those in files.
    return replace(plan, notes=()).table(_typed)


def require_memory(plan: Plan, *, force: bool) -> None:
    """As :func:`xrecal.check_plan`, in the words of the command line."""
    message = None if force else refusal(plan, typed=_typed, force="--force")
    if message is not None:
        raise MemoryPlanError(message)


def _typed(part: TaskPlan, chunks: Chunks) -> str:
    sizes = _sizes(part, chunks)
    if not sizes:
        return "nothing to cut"
    return "--chunks " + ",".join(f"{d}={size}" for d, size in sizes.items())


def _sizes(part: TaskPlan, chunks: Chunks) -> dict[Any, int]:
    """Sizes of all dimensions that blocks can be cut along."""
    return {d: n if chunks[d] == -1 else chunks[d] for d, n in part.sizes.items()}
