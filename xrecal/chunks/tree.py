"""What chunks give, joined in a tree: no task sees all of them, and none is moved to another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import xarray as xr

from .blockwise import ToldTask, labels_for_messages, looped_sizes, require_one_side, with_axes
from .run import Grouping, Inputs

FAN = 4
"""Results that are joined at a time."""


def joined_chunks(
    function: Callable[..., Any],
    join: Callable[[Any, Any], Any],
    given: Inputs,
    passed: Sequence[Any] = (),
    *,
    step: int = 1,
    what: str = "the work",
) -> Any:
    """Results of a function of each chunk, joined.

    Parameters
    ----------
    function : callable
        Is called with ``passed``, and with groups of arrays as tasks are: see
        :func:`xrecal.chunks.run.run`.
    join : callable
        Of two results one, which is the same in any order.
    given : mapping
        Arrays by group and name, with their core dimensions, which are never cut. Those of Dask are
        read anew for each call, once all of ``passed`` is known: chunks that wait in memory for a
        later pass would be all of them.
    passed : sequence
        Further arguments, perhaps Delayed ones.
    step : int
        Positions along the first dimension that a task takes of arrays in memory.
    what : str
        The work, for messages.

    Returns
    -------
    object
        The result; a ``dask.delayed.Delayed`` of it where an argument is lazy.
    """
    pairs = [pair for group in given.values() for pair in group.values()]
    args = [array if isinstance(array, xr.DataArray) else xr.DataArray(array) for array, _ in pairs]
    core = [own for _, own in pairs]
    call = _OnGroups(function, Grouping.of(given))
    require_one_side(function, args, what)
    sizes = looped_sizes(args, core)
    if all(arg.chunks is None for arg in args):
        task = ToldTask(call, what, ())
        whole = [with_axes(a, sizes, own) for a, own in zip(args, core, strict=True)]
        return reduce(join, (task(*part, *passed) for part in _pieces(whole, sizes, step)))
    return _tree(_chunks(call, args, core, passed, what), _Join(join))


class _OnGroups:
    """A function of groups of arrays, called with these arrays and further arguments."""

    def __init__(self, function: Callable[..., Any], grouping: Grouping) -> None:
        self.function, self.grouping = function, grouping
        self.__name__ = function.__name__

    def __call__(self, *values: Any) -> Any:
        groups = self.grouping(values)
        return self.function(*groups.others, **groups.arrays)


def _tree(blocks: Any, join: Callable[[Sequence[Any]], Any]) -> Any:
    """Delayed result of joining all chunks of an array of objects, some at a time.

    The graph is written as it is: a Delayed for each join would gather the whole graph each time.
    Nor is it optimised by itself, as passes would then be other tasks to each other, and run again.
    """
    from dask.base import tokenize
    from dask.core import flatten
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    name = f"join-{tokenize(blocks.name, join.__dict__)}"
    parts = list(flatten(blocks.__dask_keys__()))  # type: ignore[no-untyped-call]
    tasks: dict[Any, Any] = {}
    while len(parts) > 1 or not tasks:
        groups = [parts[i : i + FAN] for i in range(0, len(parts), FAN)]
        parts = [(name, len(tasks) + i) for i in range(len(groups))]
        tasks |= {key: (join, group) for key, group in zip(parts, groups, strict=True)}
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[blocks])
    return Delayed(parts[0], graph, layer=name)  # type: ignore[no-untyped-call]


def _pieces(
    arrays: Sequence[Any], sizes: dict[Hashable, int], step: int
) -> Iterator[Sequence[Any]]:
    """Arrays in pieces along the first dimension looped over."""
    n = next(iter(sizes.values()), 1)
    for first in range(0, max(n, 1), step):
        yield [a if a.shape[0] == 1 else a[first : first + step] for a in arrays]


def _chunks(
    function: Callable[..., Any],
    args: Sequence[xr.DataArray],
    core: Sequence[Sequence[Hashable]],
    given: Sequence[Any],
    what: str,
) -> Any:
    """Dask array of objects: what the function makes of each chunk."""
    import dask.array
    from dask.base import is_dask_collection

    sizes = looped_sizes(args, core)
    labels = labels_for_messages(args, core)
    inputs: list[Any] = []
    for arg, own in zip(args, core, strict=True):
        data = with_axes(arg, sizes, own)
        lazy = data if is_dask_collection(data) else dask.array.asarray(data)  # type: ignore[no-untyped-call]
        inputs += [lazy, (*sizes, *own)]
    inputs += [part for d, label in labels.items() for part in (label.data, (d,))]
    before = [value for value in given if is_dask_collection(value)]
    if before:
        inputs[::2] = [
            _read_after(data, before) if is_dask_collection(data) else data for data in inputs[::2]
        ]
    task = _ObjectTask(ToldTask(function, what, tuple(labels)), len(sizes))
    return dask.array.blockwise(  # type: ignore[no-untyped-call]
        task,
        tuple(sizes),
        *inputs,
        adjust_chunks=dict.fromkeys(sizes, 1),
        concatenate=True,
        dtype=object,
        meta=np.empty((0,) * len(sizes), dtype=object),
        given=list(given),
    )


def _read_after(data: Any, before: Sequence[Any]) -> Any:
    """An array of Dask that is read anew once others are known, if its graph can be copied.

    Copies of what was taken by positions lead to parts that are not there (dask 2026.8): these are
    read once, and wait in memory between two passes.
    """
    from dask.graph_manipulation import bind

    # Copies are named by this; those of another pass are others.
    seed = " ".join(str(key) for value in before for key in value.__dask_keys__())
    bound = bind(data, before, seed=seed)
    graph = dict(bound.__dask_graph__())
    parts = [p for node in graph.values() for p in (node if isinstance(node, tuple) else (node,))]
    needed = {key for part in parts for key in getattr(part, "dependencies", ())}
    return bound if needed <= graph.keys() else data


class _ObjectTask:
    """A task whose result is one object, as an array of one."""

    def __init__(self, task: ToldTask, ndim: int) -> None:
        self.task, self.ndim, self.__name__ = task, ndim, task.__name__

    def __call__(self, *args: Any, given: Sequence[Any] = ()) -> Any:
        whole = np.empty((1,) * self.ndim, dtype=object)
        n_labels = len(self.task.dims)
        values, labels = args[: len(args) - n_labels], args[len(args) - n_labels :]
        whole[(0,) * self.ndim] = self.task(*values, *given, *labels)
        return whole


class _Join:
    """Joins results, each perhaps as an array of one."""

    __name__ = "join"

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self.join = join

    def __call__(self, parts: Sequence[Any]) -> Any:
        alone = [p.item() if isinstance(p, np.ndarray) and p.dtype == object else p for p in parts]
        return reduce(self.join, alone)
