"""Each method with each feature, and with any two: as recorded, and each refusal is meant."""

import csv
from collections import Counter

import pytest

from .__main__ import ALONE, IN_PAIRS
from .features import METHODS, cases, feature, pairs
from .refusals import NEEDLESS, REFUSALS, WORKS, named
from .works import outcome

QUICK = [method for method in METHODS if method != "OnlinePool"]
SLOW = pytest.mark.slow


def recorded(path):
    with path.open() as file:
        return [tuple(row.values()) for row in csv.DictReader(file)]


@pytest.mark.parametrize("method", [*QUICK, pytest.param("OnlinePool", marks=SLOW)])
def test_every_feature_as_recorded(method):
    found = [
        (case["method"], feature(case), named(outcome(case)))
        for case in cases()
        if case["method"] == method
    ]
    assert found == [row for row in recorded(ALONE) if row[0] == method]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_any_two_features_as_recorded(method):
    counts = Counter(named(outcome(case)) for case in pairs(method))
    expected = {name: int(n) for of, name, n in recorded(IN_PAIRS) if of == method}
    assert counts == expected


@pytest.mark.parametrize("path", [ALONE, IN_PAIRS], ids=lambda path: path.stem)
def test_each_refusal_is_meant(path):
    rows = recorded(path)
    outcomes = {row[2] if path == ALONE else row[1] for row in rows}
    assert outcomes <= {WORKS, NEEDLESS, *REFUSALS}
    assert {row[0] for row in rows} == {*METHODS}


def test_unknown_words_are_no_refusal():
    assert named("division by zero") == "division by zero"
