"""Searches that go on together: each gets its own answers, those that are behind first."""

from typing import NamedTuple

from xrecal.arrays.device.search import answer_together


class Number(NamedTuple):
    stage: tuple[int, int, int]
    exponent: float


class Sign(NamedTuple):
    stage: tuple[int, int, int]
    exponent: float


def test_each_search_gets_its_own_answers_and_none_goes_ahead():
    ends, asked = {}, []

    def search(name, n_first):
        total = 0.0
        for i in range(n_first):
            total += yield Number((0, 0, 0), 10.0 * name + i)
        yield Sign((0, 1, 0), 10.0 * name)
        total += yield Number((1, 0, 0), 10.0 * name)
        ends[name] = total

    def answers(at, requests):
        asked.append((type(requests[0]).__name__, requests[0].stage[0], at.tolist()))
        return [request.exponent for request in requests]

    answer_together([search(0, 1), search(1, 3), search(2, 1)], answers)
    assert ends == {0: 0.0, 1: 10.0 + 11.0 + 12.0 + 10.0, 2: 40.0}
    assert asked == [
        ("Number", 0, [0, 1, 2]),
        ("Number", 0, [1]),
        ("Number", 0, [1]),
        ("Sign", 0, [0, 1, 2]),
        ("Number", 1, [0, 1, 2]),
    ]


def test_requests_of_two_kinds_at_one_stage_are_answered_apart():
    kinds = []

    def search(kind):
        yield kind((0, 0, 0), 1.0)

    def answers(at, requests):
        kinds.append({type(request) for request in requests})
        return [None] * at.size

    answer_together([search(Number), search(Sign), search(Number)], answers)
    assert kinds == [{Number}, {Sign}]
