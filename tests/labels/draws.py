"""One example of the law: a world, ways, the inputs that each rewrites, and a call."""

import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from .calls import CALLS, ON_STEPS, Inputs, Refused, compare, expected_of, result_of
from .worlds import WORLDS, Piece, world
from .writings import WAYS, NotHereError, Way


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


@st.composite
def examples(draw, calls: list[str] | None = None) -> Example:
    call = draw(st.sampled_from(calls or list(CALLS)))
    method = draw(st.sampled_from(METHODS))
    n = draw(st.integers(1, 4))
    ways = list(WAYS)
    return Example(
        draw(st.sampled_from(WORLDS)), call, method,
        tuple(draw(rewritings(ways)) for _ in range(n)),
    )  # fmt: skip


def rewritten(example: Example) -> tuple[dict[str, Piece], list[Way], set[str]]:
    """Inputs in their writing, the ways that apply, and the inputs that they rewrote."""
    here = world(example.world)
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


def is_about_other_cases(example: Example, pieces: dict[str, Piece]) -> bool:
    """Whether a part was selected on which the call, or what is learned, depends as a whole."""
    whole = world(example.world).pieces
    fewer = {
        (role, dim)
        for role in ("hindcast", "forecast")
        for dim, positions in pieces[role].positions.items()
        if positions.size < whole[role].positions[dim].size
    }
    if (
        example.call in ("summary", "update")
        and {("forecast", "init"), ("forecast", "time")} & fewer
    ):
        return True
    return example.method in STEPS and "hindcast" in {role for role, _ in fewer}


def check(example: Example) -> str | None:
    """Assert the law on an example; the message where it is refused."""
    pieces, applied, _ = rewritten(example)
    if is_about_other_cases(example, pieces):
        return None
    rtol = max([RTOL_OF_METHODS[example.method], *(way.rtol for way in applied)])
    if example.method in STEPS and example.call in ON_STEPS and any(w.rtol for w in applied):
        return None
    expected = expected_of(example.world, example.call, example.method)
    try:
        found, told = result_of(Inputs(pieces, example.method), example.call)
    except Refused as refused:
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
