"""Which combinations of parameters ``make test`` takes of tests that are marked ``each_value``."""

from typing import Any

import pytest

PLAIN = (str, int, float, bool, type(None))


def leave_repetitions(items: list[pytest.Item]) -> None:
    """Mark as slow what repeats values that other combinations of parameters have.

    Of each test so few combinations stay that every value of every parameter occurs in one.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("each_value"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for combinations in tests.values():
        values = {item: _values(item) for item in combinations}
        missing = set().union(*values.values())
        while missing:
            best = max(combinations, key=lambda item: len(values[item] & missing))
            missing -= values.pop(best)
            combinations.remove(best)
        for item in combinations:
            item.add_marker(pytest.mark.slow)


def _values(item: Any) -> set[tuple[str, object]]:
    """Value of each parameter, or which object it is where it is no plain value."""
    return {
        (name, value if isinstance(value, PLAIN) else ("object", id(value)))
        for name, value in item.callspec.params.items()
    }
