"""Command line that runs all pairs and records what becomes of them."""

import csv
from pathlib import Path

from .features import cases, feature
from .refusals import named
from .works import outcome

STORED = Path(__file__).with_name("found.csv")


def main() -> None:
    """Record every method with every feature."""
    rows = [("method", "feature", "outcome")]
    for case in cases():
        rows.append((case["method"], feature(case), named(outcome(case))))
        print(*rows[-1], sep=" | ", flush=True)
    with STORED.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
