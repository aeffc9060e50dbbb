"""The rows of all sets as a table and a file, by set and by source."""

import csv
from collections.abc import Iterable, Iterator

import numpy as np

from benchmarks import record

from .scoring import JUDGED, LABELS

RESULTS = record.FOLDER / "skill.csv"
BEFORE = RESULTS.with_name("skill_before.csv")
"""Ratios of an earlier pool of many components, on the same splits."""

Row = dict[str, str | float]
RATIOS = {"pool": "LinearPool/best", "before": "pool before", "CKME": "CKME/best"}
FEW = 100  # cases, up to which sets are told apart
LIMIT, WORST = 0.98, 1.015
"""Of the median of the sources' medians, and of any set: CRPS of the pool over the best baseline"""

CALIBRATION = ("PIT p", "SKCE p", "Brier of bound", "WIS")
COLUMNS = (
    "set", "source", "cases", "scored", *LABELS,
    "LinearPool/best", "CKME/best", "pool before", "fit s",
    *(f"{name} {what}" for name in JUDGED for what in CALIBRATION),
    "weights",
)  # fmt: skip


def join_before(rows: Iterable[Row]) -> None:
    """Give each row the ratio of the earlier pool; none where its set was not measured."""
    with BEFORE.open(newline="") as file:
        known = {(row["source"], row["set"]): float(row["ratio"]) for row in csv.DictReader(file)}
    for row in rows:
        row["pool before"] = known.get((str(row["source"]), str(row["set"])), np.nan)


def store(rows: Iterable[Row]) -> None:
    """Write the table to a file; what a set does not have stays empty."""
    record.store(
        RESULTS, COLUMNS, ([_cell(row.get(name, np.nan)) for name in COLUMNS] for row in rows)
    )


def _cell(value: str | float) -> str | float:
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.5g}"


def by_set(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of the table of all sets."""
    rows = list(rows)
    width = max(len(str(row["set"])) for row in rows)
    numbers = ("pool/best", "before", "CKME/best", "fit s", "PIT p", "SKCE p", "bound", "WIS")
    yield (
        f"{'CRPS':<{width}}{'train':>7}{'test':>6}"
        + "".join(f"{name:>15}" for name in LABELS)
        + "".join(f"{name:>10}" for name in numbers)
    )
    parts = (f"LinearPool {what}" for what in CALIBRATION)
    told = ("LinearPool/best", "pool before", "CKME/best", "fit s", *parts)
    for row in rows:
        yield (
            f"{row['set']:<{width}}{row['cases']:>7}{row['scored']:>6}"
            + "".join(f"{_text(row.get(name, np.nan), 4):>15}" for name in LABELS)
            + "".join(f"{_text(row[name], 3):>10}" for name in told)
        )


def by_source(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of medians and worst sets of each source, and of all of them."""
    rows = list(rows)
    heads = [f"{name} {what}" for what in ("median", "worst") for name in RATIOS]
    yield f"{'over the best baseline':<24}{'sets':>5}" + "".join(f"{head:>15}" for head in heads)
    for source, own in _grouped(rows).items():
        yield _line(source, len(own), [_median(own, c) for c in RATIOS.values()], own)
    parts = {
        "all sources": rows,
        f"more than {FEW} cases": [row for row in rows if float(row["cases"]) > FEW],
        f"{FEW} cases or fewer": [row for row in rows if float(row["cases"]) <= FEW],
    }
    for label, own in parts.items():
        if own:
            middle = [median_of_sources(own, column) for column in RATIOS.values()]
            yield _line(label, len(own), middle, own)


def median_of_sources(rows: Iterable[Row], column: str) -> float:
    """Median of the medians of the sources, each of which counts once however many its sets."""
    return float(np.median([_median(own, column) for own in _grouped(rows).values()]))


def rejected(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of how many sets each test of calibration rejects."""
    rows = list(rows)
    for name in JUDGED:
        counts = [
            sum(float(row[f"{name} {p}"]) < 0.05 for row in rows) for p in ("PIT p", "SKCE p")
        ]
        yield f"{name}: PIT rejected at 5 % in {counts[0]}, SKCE in {counts[1]} of {len(rows)} sets"


def verdict(rows: Iterable[Row]) -> str:
    """Whether the pool is as good as it is to be."""
    rows = list(rows)
    middle = median_of_sources(rows, RATIOS["pool"])
    worst = max(float(row[RATIOS["pool"]]) for row in rows)
    holds = middle <= LIMIT and worst <= WORST
    return (
        f"budget {'holds' if holds else 'MISSED'}: LinearPool over the best baseline: median of "
        f"the sources {middle:.3f} (<= {LIMIT}), worst set {worst:.3f} (<= {WORST})"
    )


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["source"]), []).append(row)
    return found


def _median(rows: Iterable[Row], column: str) -> float:
    return float(np.median([float(row[column]) for row in rows]))


def _line(label: str, n_sets: int, middle: Iterable[float], own: Iterable[Row]) -> str:
    worst = [max(float(row[column]) for row in own) for column in RATIOS.values()]
    cells = "".join(f"{_text(number, 3):>15}" for number in (*middle, *worst))
    return f"{label:<24}{n_sets:>5}{cells}"


def _text(value: str | float, digits: int) -> str:
    return "-" if np.isnan(float(value)) else f"{float(value):.{digits}f}"
