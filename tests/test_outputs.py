"""Outputs of every method on fixed forecasts stay what they are."""

import json
from math import isclose, isnan

import pytest

from .outputs.groups import stored_groups
from .outputs.sums import STORED, found

EXPECTED = json.loads(STORED.read_text()) if STORED.exists() else {}
HINT = "If that is meant, rewrite what is stored by python -m tests.outputs"


def agree(one: list, other: list) -> bool:
    """Whether two summaries are alike, numbers nearly so."""
    if one[:3] != other[:3] or len(one) != len(other):
        return False
    single = one[1:2] == ["float32"]
    relative, absolute = (1e-3, 1e-5) if single else (1e-6, 1e-8)
    pairs = [(float(a), float(b)) for a, b in zip(one[3:], other[3:], strict=True)]
    return all(
        isclose(a, b, rel_tol=relative, abs_tol=absolute) or (isnan(a) and isnan(b))
        for a, b in pairs
    )


def test_all_groups_are_stored():
    assert list(EXPECTED) == list(stored_groups()), HINT


@pytest.mark.parametrize("group", stored_groups())
def test_outputs_are_the_stored_ones(group):
    expected, now = EXPECTED[group], found(group)
    told = [f"- {name}: {expected[name]}" for name in expected if name not in now]
    told += [f"+ {name}: {now[name]}" for name in now if name not in expected]
    for name in now:
        if name in expected and not agree(now[name], expected[name]):
            told.append(f"{name}: is {now[name]}, was {expected[name]}")
    if told:
        listed = "\n".join(told)
        pytest.fail(f"outputs of {group} have changed:\n{listed}\n{HINT}", pytrace=False)
