"""What messages advise, in the words of the command line: its options, and what it has none for."""

from __future__ import annotations

import re

POOLING = "to learn from several locations together, use Python: hindcast.recal.fit(..., pool=...)"
"""What stands at the end, in place of advice to pool."""

_POOL = re.compile(
    r"pool neighbours or leads \(pool=\.\.\.\), "
    r"|pool=[^;]*? to learn from the cases of all positions together, (?:or )?"
)
_TYPED = (
    (r"otherwise convert first: (\w+) = .*?\.assign_attrs\(units=('[^']*')\)",
     r"otherwise convert first: write a file of \1 in \2"),
    (r"\bmin_samples=(\d+)", r"--min-samples \1"),
    (r"\bmin_samples\b(?! was)", "--min-samples"),
    (r"\bmember_dim=\.\.\.", "--member-dim DIM"),
    (r"\bdim=\.\.\.", "--dim DIM"),
    (r"\bcondition_on=?(?=\W|$)", "--condition-on"),
)  # fmt: skip


def for_command_line(text: str) -> str:
    """A message with options in place of parameters, and without code that cannot be typed."""
    told, n_pooled = _POOL.subn("", text)
    for pattern, typed in _TYPED:
        told = re.sub(pattern, typed, told)
    return f"{told}; {POOLING}" if n_pooled else told
