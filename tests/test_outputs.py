"""Outputs of every method on fixed forecasts stay what they are."""

from math import isclose, isnan

import pytest

from .outputs.groups import stored_groups
from .outputs.sums import STORED, Row, row, stored

EXPECTED = stored() if STORED.exists() else {}
HINT = (
    "Sums of all outputs say which: python -m tests.outputs --hash, before and after. If that is "
    "meant, rewrite the table by python -m tests.outputs"
)
FOR_CRPS = {False: 1e-6, True: 1e-3}
"""Relative tolerances, in double and in single precision."""


def differences(now: Row, expected: Row) -> list[str]:
    """Columns of a row that are not as stored, numbers nearly so."""
    tolerance = FOR_CRPS[now.single]
    found = []
    for name, a, b in zip(Row._fields[:-1], now, expected, strict=False):
        near = isinstance(a, float) and (
            isclose(a, b, rel_tol=tolerance, abs_tol=tolerance) or (isnan(a) and isnan(b))
        )
        if not (near or a == b):
            found.append(f"{name} is {a}, was {b}")
    return found


def test_all_groups_are_stored():
    assert list(EXPECTED) == list(stored_groups()), HINT


@pytest.mark.parametrize("group", stored_groups())
def test_outputs_are_the_stored_ones(group):
    if told := differences(row(group), EXPECTED[group]):
        pytest.fail(f"outputs of {group} have changed: {'; '.join(told)}\n{HINT}", pytrace=False)
