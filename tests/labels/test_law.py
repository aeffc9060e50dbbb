"""Whatever the world calls and orders things, numbers stay or the call says what to type."""

import pytest
from hypothesis import given, settings

from .calls import CALLS
from .draws import Example, Rewriting, check, examples, table_of_refusals, ways_of
from .worlds import WORLDS
from .writings import WAYS

QUICK = [call for call in CALLS if call != "stored"]


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    print(table_of_refusals())


@settings(max_examples=60)
@given(examples(QUICK))
def test_other_writings_give_the_same_numbers_or_are_refused(example):
    check(example)


@pytest.mark.slow
@settings(max_examples=1000)
@given(examples(list(CALLS)))
def test_a_thousand_other_writings(example):
    check(example)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_written_alike_throughout_is_taken(way):
    """One way alone, in all inputs."""
    name = next(name for name in WORLDS if way in ways_of(name))
    refused = [
        check(Example(name, call, "emos", (Rewriting(way, WAYS[way].roles, seed, True),)))
        for call, seed in [("crps", 0), ("exceedance", 1)]
    ]
    assert WAYS[way].refused or refused == [None, None], refused
