"""Each method with each feature, and with any two: as recorded, and each refusal is meant."""

import csv

import pytest

from .__main__ import STORED
from .features import METHODS, cases, feature, pairs
from .refusals import NEEDLESS, REFUSALS, WORKS, named
from .works import outcome

QUICK = [method for method in METHODS if method != "OnlinePool"]
SLOW = pytest.mark.slow


def recorded():
    with STORED.open() as file:
        return [tuple(row.values()) for row in csv.DictReader(file)]


@pytest.mark.parametrize("method", [*QUICK, pytest.param("OnlinePool", marks=SLOW)])
def test_every_feature_as_recorded(method):
    found = [
        (case["method"], feature(case), named(outcome(case)))
        for case in cases()
        if case["method"] == method
    ]
    assert found == [row for row in recorded() if row[0] == method]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_any_two_features_work_or_are_refused_as_meant(method):
    found = {named(outcome(case)) for case in pairs(method)}
    assert found <= {WORKS, NEEDLESS, *REFUSALS}


def test_each_refusal_is_meant():
    rows = recorded()
    assert {row[2] for row in rows} <= {WORKS, NEEDLESS, *REFUSALS}
    assert {row[0] for row in rows} == {*METHODS}


def test_unknown_words_are_no_refusal():
    assert named("division by zero") == "division by zero"
