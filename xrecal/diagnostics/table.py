"""Datasets that print as a table, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Table(NamedTuple):
    """Head, if there is one, rows and a line below."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    foot: str

    def text(self) -> str:
        """Columns of equal width; the first to the left, numbers to the right."""
        every = [self.head, *self.rows] if self.head else self.rows
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0])]
                + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            ).rstrip()
            for row in every
        ]
        return "\n".join([*lines, self.foot])

    def html(self) -> str:
        """The same table in a notebook."""
        right = ' style="text-align: right"'

        def line(row: Sequence[str], tag: str) -> str:
            first = f'<{tag} style="text-align: left">{escape(row[0])}</{tag}>'
            rest = (f"<{tag}{right}>{escape(cell)}</{tag}>" for cell in row[1:])
            return f"<tr>{first}{''.join(rest)}</tr>"

        head = f"<thead>{line(self.head, 'th')}</thead>" if self.head else ""
        body = "".join(line(row, "td") for row in self.rows)
        return f"<table>{head}<tbody>{body}</tbody></table><p>{escape(self.foot)}</p>"


def shown_p(p: float) -> str:
    """A p-value with two digits."""
    return "<0.001" if p < 0.001 else f"{p:.2g}"
