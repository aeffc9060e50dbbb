"""Join the results of chunks in a tree, so that no task needs all results at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from .blockwise import is_lazy, require_one_side
from .run import Call, Inputs, arrays_of, labelled, looped_sizes, of_each_chunk, with_axes

FAN = 4
"""Number of results that a task joins."""


def joined_chunks(
    function: Callable[..., Any],
    join: Callable[[Any, Any], Any],
    given: Inputs,
    passed: Sequence[Any] = (),
    *,
    step: int = 1,
    what: str = "the work",
    read_again: bool = True,
) -> Any:
    """Call a function on each chunk, and join the results.

    Parameters
    ----------
    function : callable
        Function that takes the objects in ``passed``, and groups of arrays like a task; see
        :func:`xrecal.chunks.run.run`.
    join : callable
        Function that joins two results, in any order.
    given : mapping
        Arrays by group and name, with their core dimensions, which Dask must not cut.
    passed : sequence
        Further arguments of the function, which may be Delayed.
    step : int
        Number of positions along the first dimension in each call, for arrays in memory.
    what : str
        Name of the work, for messages.
    read_again : bool
        If True, Dask reads (or computes) the arrays again for this call, once ``passed`` is known.
        If False, the chunks of the arrays wait in memory between two passes.

    Returns
    -------
    object
        The joined result, as a ``dask.delayed.Delayed`` if an array is lazy.
    """
    given_arrays, core = arrays_of(given)
    arrays = [*map(labelled, given_arrays)]
    require_one_side(function, arrays, what)
    call = Call.of(function, what, given, {})
    sizes = looped_sizes(arrays, core)
    if not any(map(is_lazy, arrays)):
        whole = [with_axes(array, sizes, own) for array, own in zip(arrays, core, strict=True)]
        pieces = _pieces(whole, sizes, step)
        return _joined((call(*piece, passed=passed).item() for piece in pieces), join)
    from dask.base import is_dask_collection

    before = [value for value in passed if is_dask_collection(value)]
    if before and read_again:
        arrays = [a.copy(data=_read_after(a.data, before)) if is_lazy(a) else a for a in arrays]
    blocks = of_each_chunk(call, arrays, core, over=sizes, new={}, dtype=object, passed=passed)
    return _tree(blocks, _Join(join))


def _joined(results: Iterable[Any], join: Callable[[Any, Any], Any]) -> Any:
    """Join results without Dask, in the same order as :func:`_tree`, so that rounding is equal."""
    levels: list[list[Any]] = []
    for result in results:
        level = 0
        while True:
            if level == len(levels):
                levels.append([])
            levels[level].append(result)
            if len(levels[level]) < FAN:
                break
            result, levels[level] = reduce(join, levels[level]), []
            level += 1
    left: list[Any] = []
    for own in levels:
        left = [reduce(join, own + left)] if own + left else []
    return left[0]


def _tree(blocks: Any, join: Callable[[Sequence[Any]], Any]) -> Any:
    """Join the chunks of an array of objects into one Delayed; each task joins a few chunks.

    The function writes the graph directly, because a Delayed for each join would gather the whole
    graph each time. It does not optimise the graph, because an optimised task would have
    different names in two graphs, so Dask would run the task twice.
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
    """Yield arrays in pieces along the first looped dimension."""
    n = next(iter(sizes.values()), 1)
    for first in range(0, max(n, 1), step):
        yield [a if a.shape[0] == 1 else a[first : first + step] for a in arrays]


def inputs_after(given: Inputs, before: Sequence[Any]) -> Inputs:
    """Return arrays that Dask reads again after ``before``, so that they do not stay in memory."""
    from dask.base import is_dask_collection

    lazy = [value for value in before if is_dask_collection(value)]
    if not lazy:
        return given

    def after(array: Any) -> Any:
        return array.copy(data=_read_after(array.data, lazy)) if is_lazy(array) else array

    return {
        group: {name: (after(array), core) for name, (array, core) in of.items()}
        for group, of in given.items()
    }


def _read_after(data: Any, before: Sequence[Any]) -> Any:
    """Return a Dask array that is read again once the results ``before`` are known.

    This requires a copy of the graph. If the array is a selection by position, dask 2026.8 makes a
    wrong copy, which lacks parts of the graph. So Dask reads such an array only once, and keeps it
    in memory between two passes.
    """
    from dask.graph_manipulation import bind

    # This names the copies, so that those of another pass are different.
    seed = " ".join(str(key) for value in before for key in value.__dask_keys__())
    bound = bind(data, before, seed=seed)
    graph = dict(bound.__dask_graph__())
    parts = [p for node in graph.values() for p in (node if isinstance(node, tuple) else (node,))]
    needed = {key for part in parts for key in getattr(part, "dependencies", ())}
    return bound if needed <= graph.keys() else data


class _Join:
    """Function that joins results, each given in an array with one entry."""

    __name__ = "join"

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self.join = join

    def __call__(self, parts: Sequence[Any]) -> Any:
        alone = [p.item() if isinstance(p, np.ndarray) and p.dtype == object else p for p in parts]
        return reduce(self.join, alone)
