"""Texts of errors and warnings, with marks at the parts that the user may type.

The texts use the syntax of Python. The command line writes the marked parts as its own options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Typed(NamedTuple):
    """Part of a text that the user may type: a parameter, with a value or without."""

    name: str
    value: Any = None
    """Value of the parameter; None if the user types only the name; ``...`` if the user may type
    any value."""
    python: str | None = None
    """Code that the user types in Python, if it differs from ``name=value``."""

    def __str__(self) -> str:
        if self.python is not None:
            return self.python
        if self.value is None:
            return self.name
        return f"{self.name}={'...' if self.value is ... else repr(self.value)}"


class Advice(str):
    """Text of an error or a warning, in the syntax of Python, that remembers its parts.

    Parameters
    ----------
    *parts : str, Typed or Advice
        Parts of the text, in order.

    Examples
    --------
    >>> from xrecal.arrays.advice import Advice, Typed
    >>> text = Advice("name it: ", Typed("dim", ...))
    >>> print(text)
    name it: dim=...
    >>> text.worded(lambda part: f"--{part.name}")
    'name it: --dim'
    """

    parts: tuple[str | Typed, ...]

    def __new__(cls, *parts: str | Typed) -> Advice:
        """Join the parts to a text, and keep the parts."""
        text = super().__new__(cls, "".join(map(str, parts)))
        nested = (one.parts if isinstance(one, Advice) else (one,) for one in parts)
        text.parts = tuple(part for several in nested for part in several)
        return text

    def worded(self, write: Callable[[Typed], str]) -> str:
        """Return the text; ``write`` returns the text of each part that a user may type."""
        return "".join(write(one) if isinstance(one, Typed) else one for one in self.parts)


def text_of(error: Exception) -> str:
    """Return the text of an error, or the :class:`Advice` that the error was raised with."""
    text = error.args[0] if error.args else ""
    return text if isinstance(text, Advice) else str(error)
