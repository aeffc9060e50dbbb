"""Tables of the pages, whose rows are checked one by one."""

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def table(page: str, heading: str) -> dict[str, list[str]]:
    """Rows of the first table below a heading of a page, by their first cell."""
    _, found, text = (ROOT / page).read_text().partition(f"\n## {heading}\n")
    assert found, f"{page} has no heading {heading!r}"
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("|"):
            lines.append(line)
        elif lines or line.startswith("## "):
            break
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]
    assert rows, f"{page} has no table below {heading!r}"
    return {cells[0].strip("| "): cells[1:] for cells in rows}


class Checks:
    """Checks of the rows of a table, each registered by the first cell of its row."""

    def __init__(self, page: str, heading: str) -> None:
        self.rows = table(page, heading)
        self.by_row: dict[str, Callable] = {}

    def row(self, cell: str) -> Callable:
        """Register the check of a row."""

        def register(check: Callable) -> Callable:
            assert cell not in self.by_row
            self.by_row[cell] = check
            return check

        return register

    @property
    def unbound(self) -> set[str]:
        """Rows that nothing checks, and checks of rows that are gone."""
        return set(self.rows) ^ set(self.by_row)
