"""Command line that runs all pairs and records what becomes of them."""

import csv
import sys
from pathlib import Path

from .features import cases, feature
from .works import outcome

STORED = Path(__file__).parents[2] / "docs" / "together.csv"

if __name__ == "__main__":
    only = {*sys.argv[1:]}
    found = []
    for case in cases():
        if not only or case["method"] in only:
            found.append((case["method"], feature(case), outcome(case)))
            print(*found[-1], sep=" | ", flush=True)
    if not only:
        with STORED.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("method", "feature", "works"), *found])
