"""One example of the law: a world, ways, the inputs that each rewrites, and a call."""

import operator
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st

from .calls import (
    ON_STEPS,
    WITHOUT_METHOD,
    Found,
    Inputs,
    Pieces,
    RefusedError,
    compare,
    expected_of,
    result_of,
)
from .worlds import WORLDS, NotHereError, World, world
from .writings import WAYS, Way


@dataclass(frozen=True)
class Rewriting:
    """A way, which inputs it rewrites, and whether all alike."""

    way: str
    roles: tuple[str, ...]
    seed: int
    alike: bool

    def rng(self, role: str) -> np.random.Generator:
        own = 0 if self.alike else zlib.crc32(role.encode())
        return np.random.default_rng([self.seed, own])


@dataclass(frozen=True)
class Example:
    world: str
    call: str
    method: str
    rewritings: tuple[Rewriting, ...]


def of_a_part(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Inputs of which a part is selected: always the new forecasts, and what the fit needs whole.

    A single place of observations would verify all places of a hindcast.
    """
    roles = tuple(dict.fromkeys([*roles, "forecast"]))
    return roles if "hindcast" in roles else tuple(r for r in roles if r != "observations")


@st.composite
def rewritings(draw, ways: list[str]) -> Rewriting:
    name = draw(st.sampled_from(ways))
    way = WAYS[name]
    roles = way.roles
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(roles), min_size=1, unique=True))
        roles = tuple(role for role in way.roles if role in chosen)
    if way.selects:
        roles = of_a_part(roles)
    alike = way.selects or draw(st.booleans())
    return Rewriting(name, roles, draw(st.integers(0, 999)), alike)


METHODS = ["emos"] * 6 + ["season", "soil", "ckme", "pool"]


BY_WAY = operator.attrgetter("way")
"""No way twice: months that are counted from one twice are other months."""


@cache
def ways_of(name: str) -> list[str]:
    """Ways that apply to an input of a world."""
    here = world(name)

    def applies(way: Way) -> bool:
        for role in way.roles:
            with suppress(NotHereError):
                way.rewrite(here.pieces[role], np.random.default_rng(0), here)
                return True
        return False

    return [way for way in WAYS if applies(WAYS[way])]


@st.composite
def examples(draw, calls: list[str]) -> Example:
    """Examples of some calls in Python."""
    call, name = draw(st.sampled_from(calls)), draw(st.sampled_from(WORLDS))
    ways = draw(st.lists(rewritings(ways_of(name)), min_size=1, max_size=4, unique_by=BY_WAY))
    method = "emos" if call in WITHOUT_METHOD else draw(st.sampled_from(METHODS))
    return Example(name, call, method, tuple(ways))


@st.composite
def examples_in_files(draw, worlds: list[str]) -> Example:
    """Examples of a hindcast, new forecasts and observations in files."""
    name = draw(st.sampled_from(worlds))
    written = {"hindcast", "forecast", "observations"}
    ways = [
        way
        for way in ways_of(name)
        if way not in NOT_IN_FILES and written & {*WAYS[way].roles} and not WAYS[way].selects
    ]
    drawn = draw(st.lists(rewritings(ways), min_size=1, max_size=3, unique_by=BY_WAY))
    return Example(name, "files", "emos", tuple(drawn))


def rewritten(example: Example, here: World) -> tuple[Pieces, list[Way], set[str]]:
    """Inputs in their writing, the ways that apply, and the inputs that they rewrote."""
    pieces = dict(here.pieces)
    applied: list[Way] = []
    touched: set[str] = set()
    for one in example.rewritings:
        way = WAYS[one.way]
        if way.hides_places and any(w.moves_places for w in applied):
            continue
        if way.moves_places and any(w.hides_places for w in applied):
            continue
        changed = {}
        for role in one.roles:
            try:
                changed[role] = way.rewrite(pieces[role], one.rng(role), here)
            except NotHereError:
                continue
        if way.selects and "forecast" not in changed:
            continue
        if changed:
            pieces |= changed
            touched |= set(changed)
            applied.append(way)
    return pieces, applied, touched


STEPS = ("ckme", "pool")
"""Methods whose forecasts have steps, and whose choices come from all places."""

RTOL_OF_METHODS = {"emos": 0.0, "season": 0.0, "soil": 0.0, "ckme": 1e-9, "pool": 1e-9}

REFUSALS: Counter[tuple[str, bool]] = Counter()
"""How often examples with each way were refused, and taken."""

MESSAGES: dict[str, set[str]] = {}


def is_about_other_cases(example: Example, pieces: Pieces) -> bool:
    """Whether a part was selected on which the call, or what is learned, depends as a whole."""
    whole = world(example.world).pieces
    fewer = {
        (role, dim)
        for role in ("hindcast", "forecast")
        for dim, positions in pieces[role].positions.items()
        if positions.size < whole[role].positions[dim].size
    }
    if (
        example.call in ("summary", "update", "scores of events")
        and {("forecast", "init"), ("forecast", "time")} & fewer
    ):
        return True
    if example.call == "cross_validate by year" and ("hindcast", "lead") in fewer:
        return True  # dates are valid times where one lead has them, and years those of dates
    return example.method in STEPS and "hindcast" in {role for role, _ in fewer}


def check(example: Example) -> str | None:
    """Assert the law on an example; the message where it is refused."""
    pieces, applied, _ = rewritten(example, world(example.world))
    if is_about_other_cases(example, pieces):
        return None
    jumps = example.call == "pit" or (example.call in ON_STEPS and any(w.rtol for w in applied))
    if example.method in STEPS and jumps:
        return None
    expected = expected_of(example.world, example.call, example.method)
    without_months = any(way.name == "with valid time in place of leads" for way in applied)
    if example.call == "monitor" and world(example.world).lead_kind == "months" and without_months:
        return None  # nothing says that a month has to end before it is known
    rtol = max([RTOL_OF_METHODS[example.method], *(way.rtol for way in applied)])
    if example.method in STEPS and rtol > RTOL_OF_METHODS[example.method]:
        rtol *= 100  # a score of steps follows each weight

    def call() -> tuple[Found, list[str]]:
        return result_of(Inputs(pieces, example.method), example.call)

    return _judged(call, applied, expected, pieces, rtol)


NOT_IN_FILES = {"leads as objects", "dataset of one variable", "values of another machine",
                "chunks of dask", "another layout in memory", "netcdf and back",
                "zarr and back"}  # fmt: skip
"""Ways that say nothing about files."""


def check_files(
    example: Example,
    here: World,
    call: Callable[[str, Pieces, str], Found],
    expected: Callable[[str], Found],
    kind: str,
) -> str | None:
    """The same of a command, on files of a kind."""
    pieces, applied, _ = rewritten(example, here)
    fewer = any(
        positions.size < here.pieces[role].positions[dim].size
        for role in ("hindcast", "forecast")
        for dim, positions in pieces[role].positions.items()
    )
    if fewer:
        return None
    rtol = max([1e-9, *(way.rtol for way in applied)])

    def run() -> tuple[Found, list[str]]:
        return call(example.world, pieces, kind), []

    try:
        return _judged(run, applied, expected(example.world), pieces, rtol)
    except NotHereError:
        return None


def _judged(
    call: Callable[[], tuple[Found, list[str]]],
    applied: list[Way],
    expected: Found,
    pieces: Pieces,
    rtol: float,
) -> str | None:
    try:
        found, told = call()
    except RefusedError as refused:
        for way in applied:
            REFUSALS[way.name, True] += 1
            if len(applied) == 1:
                MESSAGES.setdefault(way.name, set()).add(str(refused))
        return str(refused)
    for way in applied:
        REFUSALS[way.name, False] += 1
    compare(found, expected, pieces, rtol, told)
    return None


def table_of_refusals() -> str:
    """By way, how many examples were refused."""
    lines = [f"{'way':60s} taken refused"]
    for name in WAYS:
        taken, refused = REFUSALS[name, False], REFUSALS[name, True]
        lines.append(f"{name:60s} {taken:5d} {refused:7d}")
    return "\n".join(lines)
