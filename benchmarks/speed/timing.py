"""Times that can be compared: the shortest of several runs, taken in turn."""

import time
from collections.abc import Callable, Mapping


def time_of(function: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turn(
    functions: Mapping[str, Callable[[], object]], repeats: int, *, warm: bool = True
) -> list[float]:
    """Shortest time of each function, one after another in every round.

    What else the machine does then falls on all of them alike. Warm: a first round, in which
    things are compiled and loaded, does not count.
    """
    best = dict.fromkeys(functions, float("inf"))
    for round_number in range(-1 if warm else 0, repeats):
        for name, function in functions.items():
            taken = time_of(function)
            if round_number >= 0:
                best[name] = min(best[name], taken)
    return list(best.values())


def shortest(function: Callable[[], object], repeats: int, *, warm: bool = True) -> float:
    """Shortest time of one function."""
    return in_turn({"": function}, repeats, warm=warm)[0]
