"""Command line that runs all pairs and records what becomes of them."""

import csv
import sys
from collections import Counter
from pathlib import Path

from .features import METHODS, cases, feature, pairs
from .refusals import named
from .works import outcome

ALONE, IN_PAIRS = (Path(__file__).with_name(f"{name}.csv") for name in ("alone", "in_pairs"))


def write(path: Path, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Write a table."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def alone() -> None:
    """Record every method with every feature."""
    rows = []
    for case in cases():
        rows.append((case["method"], feature(case), named(outcome(case))))
        print(*rows[-1], sep=" | ", flush=True)
    write(ALONE, ("method", "feature", "outcome"), rows)


def in_pairs() -> None:
    """Record how often every method works with any two features, and what else becomes of it."""
    rows = []
    for method in METHODS:
        counts: Counter[str] = Counter()
        for case in pairs(method):
            found = named(outcome(case))
            counts[found] += 1
            print(method, feature(case), found, sep=" | ", flush=True)
        rows += [(method, name, str(count)) for name, count in sorted(counts.items())]
    write(IN_PAIRS, ("method", "outcome", "pairs"), rows)


if __name__ == "__main__":
    alone() if sys.argv[1:] != ["pairs"] else in_pairs()
