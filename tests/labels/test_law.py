"""Whatever the world calls and orders things, numbers stay or the call says what to type."""

import pytest
from hypothesis import given, settings

from .calls import CALLS
from .draws import check, examples, table_of_refusals

QUICK = [call for call in CALLS if call != "stored"]


@settings(max_examples=60)
@given(examples(QUICK))
def test_other_writings_give_the_same_numbers_or_are_refused(example):
    check(example)


@pytest.mark.slow
@settings(max_examples=1000)
@given(examples())
def test_a_thousand_other_writings(example):
    check(example)


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    print(table_of_refusals())
