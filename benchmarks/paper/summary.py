"""Means over splits, from the rows of the scores."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .data import ORDER
from .models import MODELS

PRINTED = Path(__file__).parent / "printed.csv"
"""Values of the paper's tables, with the label of the table."""

LEVEL = 0.05  # of the tests
Key = tuple[str, str, str]  # set, model, method


class Ratio(NamedTuple):
    """Mean and standard deviation over splits of a score relative to that of the base model."""

    mean: float
    sd: float
    splits: int


def by_key(rows: Iterable[Mapping[str, str]], column: str) -> dict[Key, dict[str, float]]:
    """Values of a column by set, model and method, and in each by split; empty ones left out."""
    found: dict[Key, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row[column]:
            found[row["set"], row["model"], row["method"]][row["split"]] = float(row[column])
    return dict(found)


def ratios(
    rows: Iterable[Mapping[str, str]], column: str = "crps", reference: str = "none"
) -> dict[Key, Ratio]:
    """Each split's value over that of a reference method, where both are there."""
    values = by_key(rows, column)
    found = {}
    for (name, model, method), mine in values.items():
        base = values.get((name, model, reference), {})
        both = sorted(set(mine) & set(base), key=int)
        if both:
            each = np.array([mine[s] / base[s] for s in both])
            found[name, model, method] = Ratio(float(each.mean()), float(each.std()), len(both))
    return found


def acceptance(rows: Iterable[Mapping[str, str]], column: str) -> dict[Key, tuple[float, int]]:
    """Share of splits whose p-value is at least 5 %, and the number of splits."""
    return {
        key: (float(np.mean([p >= LEVEL for p in values.values()])), len(values))
        for key, values in by_key(rows, column).items()
    }


def means(rows: Iterable[Mapping[str, str]], column: str) -> dict[Key, float]:
    """Mean over splits."""
    return {key: float(np.mean(list(v.values()))) for key, v in by_key(rows, column).items()}


def printed(path: Path = PRINTED) -> dict[Key, Ratio]:
    """What the paper prints, with 20 splits (5 of protein)."""
    with path.open(newline="") as file:
        return {
            (row["set"], row["model"], row["method"]): Ratio(
                float(row["ratio"]), float(row["sd"]), 5 if row["set"] == "protein" else 20
            )
            for row in csv.DictReader(file)
        }


def pairs(keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Models and sets, in the order of the paper."""
    sets = [*ORDER]
    found = {(model, name) for name, model, _ in keys}
    order = {model: i for i, model in enumerate(MODELS)}
    rank = {name: i for i, name in enumerate(sets)}
    return sorted(found, key=lambda p: (order.get(p[0], 99), rank.get(p[1], 99), p[1]))


def test_sizes(rows: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """Number of test cases of each set."""
    return {row["set"]: int(row["n_test"]) for row in rows}


def markdown(header: Iterable[str], lines: Iterable[Iterable[str]], *, numbers: bool = True) -> str:
    """A table; all but the first column to the right if they are numbers."""
    header = list(header)
    text = [
        header,
        [":--", *["--:" if numbers else ":--"] * (len(header) - 1)],
        *(list(line) for line in lines),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in text)
