"""Combinations of parameters where all would be too many."""

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any


def pairwise(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Few combinations of one value of each axis in which any two values meet.

    What depends on one parameter, or on two together, shows in them as in all.
    """
    values = [list(axis) for axis in axes]
    rows = {row: set(combinations(enumerate(row), 2)) for row in product(*map(_numbers, values))}
    missing, chosen = set().union(*rows.values()), []
    while missing:
        best = max(rows, key=lambda row: len(rows[row] & missing))
        missing -= rows[best]
        chosen.append(best)
    return [tuple(axis[i] for axis, i in zip(values, row, strict=True)) for row in sorted(chosen)]


def _numbers(axis: list[Any]) -> range:
    return range(len(axis))
