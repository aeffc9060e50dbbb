"""Rows of results in CSV files, added one by one, so that a run can go on where it stopped.

Each tells the commit of the code that made it.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.record import commit

RESULTS = Path(__file__).parent / "results"


def read_rows(path: Path) -> list[dict[str, str]]:
    """All rows of a file; none if it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add_row(path: Path, row: Mapping[str, object], columns: Iterable[str]) -> None:
    """Append a row, and the commit of the code; numbers with six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [*columns, "commit"]
    unknown = set(row) - set(columns)
    if unknown:
        raise ValueError(f"{path.name} has no columns {sorted(unknown)}; it has {columns}")
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({name: _text(value) for name, value in {**row, "commit": commit()}.items()})


def keys_of(path: Path, names: Iterable[str]) -> set[tuple[str, ...]]:
    """What rows there are already, by the values of some columns."""
    names = list(names)
    return {tuple(row[name] for name in names) for row in read_rows(path)}


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
