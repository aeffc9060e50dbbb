"""Safe display of foreign texts, such as names, units and labels, in messages."""

from __future__ import annotations

from xrecal.arrays.advice import Advice, Typed


def quoted(text: object, keep: str = "") -> str:
    r"""Escape characters of a text that change what a terminal shows.

    These are control characters, line ends and marks of the direction of writing. Characters in
    ``keep`` stay.

    Examples
    --------
    >>> from xrecal.chunks.texts import quoted
    >>> print(quoted("K" + chr(27) + "[2J"))
    K\x1b[2J
    """
    if isinstance(text, Advice):
        return Advice(*(p if isinstance(p, Typed) else quoted(p, keep) for p in text.parts))
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in shown)


class Lines(str):
    """A text of several lines that :func:`quote` does not change, because it is quoted already."""

    __slots__ = ()


def quote(error: BaseException | None) -> None:
    """Quote the texts of an error, and the texts of its causes."""
    while error is not None:
        error.args = tuple(quoted(one) if type(one) in (str, Advice) else one for one in error.args)
        error = error.__cause__ or error.__context__
