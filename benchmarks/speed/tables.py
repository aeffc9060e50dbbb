"""What was measured, as tables that grow line by line, and as one file."""

import sys
from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.record import store

FIRST, OTHER = 62, 9  # least widths of columns


class Line(NamedTuple):
    """One budget as it was measured, or without a budget what is told beside it."""

    work: str
    figure: float
    unit: str
    absolute: str
    budget: float | None = None
    at_least: bool = False
    """Whether the budget is the least, not the most, that the figure may be"""

    @property
    def verdict(self) -> str:
        """Whether the budget holds; nothing without a budget."""
        if self.budget is None:
            return ""
        good = self.figure >= self.budget if self.at_least else self.figure <= self.budget
        return "holds" if good else "MISSED"

    @property
    def cells(self) -> dict[str, float | str]:
        """The line as a row of the table of budgets."""
        sign = "≥" if self.at_least else "≤"
        budget = "" if self.budget is None else f"{sign} {self.budget:g} {self.unit}"
        return {
            "measured": self.figure,
            "unit": self.unit,
            "budget": budget,
            "verdict": self.verdict,
            "absolute": self.absolute,
        }


class Row(NamedTuple):
    """One row of any other table."""

    name: str
    cells: Mapping[str, float | str]


class Missing(NamedTuple):
    """What could not be measured, and why."""

    work: str
    reason: str


class Report:
    """Prints rows as they come and keeps them for the file."""

    def __init__(self, *, judged: bool = True) -> None:
        self.judged = judged
        self.lines: list[Line] = []
        self._rows: list[tuple[str, str, str, float | str]] = []
        self._title = ""
        self._heads: tuple[str, ...] = ()

    def tell(self, name: str, text: str) -> None:
        """Print and keep what the tables depend on."""
        print(f"{name}: {text}", flush=True)
        self._rows.append(("", name, "", text))

    def start(self, title: str) -> None:
        """Begin a table."""
        self._title, self._heads = title, ()
        print(f"\n{title}", flush=True)

    def add(self, found: Line | Row | Missing) -> None:
        """Print and keep what was found."""
        if isinstance(found, Missing):
            print(f"{found.work:<{FIRST}}  not measured: {found.reason}", flush=True)
            self._rows.append((self._title, found.work, "not measured", found.reason))
            return
        if isinstance(found, Line):
            self.lines.append(found)
            found = Row(found.work, found.cells | ({} if self.judged else {"verdict": ""}))
        if self._heads != tuple(found.cells):
            self._heads = tuple(found.cells)
            print(" " * FIRST + "".join(_fit(head, head) for head in self._heads))
        print(f"{found.name:<{FIRST}}" + "".join(map(_fit, found.cells, found.cells.values())))
        sys.stdout.flush()
        self._rows += [(self._title, found.name, k, v) for k, v in found.cells.items()]

    def store(self, path) -> None:
        """Write all rows, one value a line: tables differ in their columns."""
        told = ((*labels, v if isinstance(v, str) else f"{v:.5g}") for *labels, v in self._rows)
        store(path, ["table", "row", "column", "value"], told)

    @property
    def verdict(self) -> str:
        """How many budgets hold, and which do not."""
        if not self.judged:
            return f"budget lines measured: {len(self.lines)}; sizes too small to judge by"
        judged = [line for line in self.lines if line.verdict]
        missed = [line.work for line in judged if line.verdict == "MISSED"]
        text = f"budget lines that hold: {len(judged) - len(missed)} of {len(judged)}"
        return f"{text}; MISSED: {'; '.join(missed)}" if missed else text


def _fit(head: str, cell: float | str) -> str:
    """A cell below its head; the last one may run on."""
    text = cell if isinstance(cell, str) else f"{cell:.4g}"
    return f"  {text:>{max(len(head), OTHER)}}"


def seconds(value: float) -> str:
    """Seconds for people."""
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def megabytes(value: float) -> str:
    """Bytes for people."""
    return f"{value / 1e6:.3g} MB"
