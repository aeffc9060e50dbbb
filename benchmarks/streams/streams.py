"""Forecasts in the order in which they were issued, and which of them had verified by then."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from benchmarks.skill.sets import Set
from benchmarks.skill.sources import single_sets
from xrecal.fit.cases import cases_of
from xrecal.fit.fit_hindcast import pair_hindcast, prepare
from xrecal.fit.state import arrays_of_cases
from xrecal.inputs.pairing import pair_variables
from xrecal.methods.base import Cases

SOURCES = (
    "toulouse", "prices DE", "prices PJM", "flusight", "hannover", "frankfurt", "prices EPEX",
    "innsbruck", "glofas",
)  # fmt: skip
"""Of the sets of the skill benchmark, those that come day by day or week by week."""

HINDCAST = 0.4  # share of the cases that are there on the first day
WARM_UP = 180  # cases at the end of the hindcast that weights are learned from before the first day


class Stream(NamedTuple):
    """Cases (L, n) in order of time."""

    name: str
    source: str
    issued: xr.DataArray | xr.Dataset
    """The same cases with labels, and what verified"""
    observations: xr.DataArray
    cases: Cases
    lag: float
    """Days from when a forecast is issued to when it has verified"""
    levels: tuple[float, ...] | None = None
    """Of quantiles, where they were issued"""

    @property
    def dim(self):
        """The dimension of the cases."""
        return "time" if "time" in self.issued.dims else "init"

    @property
    def days(self):
        """Dates (n,) on which the forecasts were issued, in days."""
        return self.cases.axis.days

    @property
    def known(self):
        """How many cases (n,) had verified when each was issued."""
        return np.searchsorted(self.days + self.lag, self.days + 1e-6, side="right")

    @property
    def first(self) -> int:
        """Number of the case that is issued on the first day."""
        return int(HINDCAST * self.days.size)

    @property
    def warm_up(self) -> int:
        """Number of the case from which on experts forecast; at most half of the hindcast later."""
        return self.first - min(WARM_UP, self.first // 2)


def streams(source: str) -> Iterator[Stream]:
    """All streams of a source."""
    for one in single_sets(source):
        if one.covariates is None:
            yield as_stream(one, source)


def as_stream(one: Set, source: str) -> Stream:
    """Both parts of a set, one after the other."""
    dim = one.case_dim
    issued = xr.concat([one.hindcast, one.forecast], dim)
    method = xrecal.EMOS(condition_on="season")
    ((form, observed),) = pair_variables(issued, one.observations, None, name="hindcast").values()
    prepared = prepare(pair_hindcast(form, observed, method, dim), method, None, 20)
    arrays = arrays_of_cases(prepared.pairs, prepared.covariates)
    groups = {group: {k: v.values for k, v in of.items()} for group, of in arrays.items()}
    parts = groups["forecasts"]
    groups["forecasts"] = {k: v.reshape((-1, *v.shape[-2:])) for k, v in parts.items()}
    shape = next(iter(groups["forecasts"].values())).shape[:2]
    for group in ("observed", "covariates"):
        groups[group] = {k: np.broadcast_to(v, shape) for k, v in groups[group].items()}
    cases, _ = cases_of(**groups, axis=prepared.axis, periods=prepared.periods)
    return Stream(
        one.name, source, issued, one.observations, cases, lag_of(one, source), one.levels
    )


def lag_of(one: Set, source: str) -> float:
    """Days from issue to verification; weekly admissions are counted a week later."""
    number = next((float(w) for w in reversed(one.name.split()) if w.isdigit()), 0.0)
    return {
        "innsbruck": 8.0 if "3-day" in one.name else 2.0,
        "frankfurt": 2.0,  # 06 to 30 h after midnight
        "toulouse": 2.0,  # 30 h
        "hannover": number / 24,
        "glofas": number,
        "flusight": 7 * (number + 1),
    }.get(source, 1.0)  # prices of a day are made the day before
