"""All sets by source: what comes from one forecast system and place counts as one."""

from collections.abc import Callable, Iterator

from . import few_cases, sets, streams
from .sets import Set, alone

SOURCES: dict[str, Callable[[], Iterator[Set]]] = {
    "innsbruck": sets.innsbruck,
    "frankfurt": sets.frankfurt,
    "toulouse": sets.toulouse,
    "glofas": sets.glofas,
    "mjo": sets.mjo,
    "prices DE": streams.prices_de,
    "prices PJM": streams.prices_pjm,
    "prices EPEX": streams.prices_epex,
    "hannover": streams.hannover,
    "flusight": streams.flusight,
    "hefs": streams.hefs,
    "uwme": streams.uwme,
    "decadal": sets.decadal,
    "decadal years": few_cases.decadal_years,
    "europe": few_cases.europe,
    "large ensemble": few_cases.large_ensemble,
    "pacific": few_cases.pacific,
    "iberian winters": few_cases.iberian_winters,
    "seasonal rain": few_cases.seasonal_rain,
    "airports": few_cases.airports,
    "iberia": sets.iberia,
    "mediterranean": sets.mediterranean,
}
"""Sets by source."""


def single_sets(source: str) -> Iterator[Set]:
    """Each row of the table as a set of its own."""
    for one in SOURCES[source]():
        yield from alone(one)
