"""The methods that are compared, and what is read off the distributions that they issue."""

from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from benchmarks.speed.tables import Row

METHODS = {
    "raw": xrecal.Raw(),
    "EMOS": xrecal.EMOS(),
    "IDR": xrecal.IDR(),
    "Climatology": xrecal.Climatology(),
    "CKME observations": xrecal.CKME(support="observations"),
    "CKME errors": xrecal.CKME(support="errors"),
    "CKME auto": xrecal.CKME(support="auto"),
    "LinearPool": xrecal.LinearPool(),
}
OUTER = 1e-4
"""A normal distribution has no outermost member: its quantiles at this level and one minus it."""


class Limit(NamedTuple):
    """What a figure may at most be, or at least, and what it was."""

    name: str
    limit: float
    seen: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure keeps the limit; one that is NaN does not."""
        return bool(self.seen >= self.limit if self.at_least else self.seen <= self.limit)

    @property
    def row(self) -> Row:
        """The limit as a row of the last table."""
        limit = f"{'>=' if self.at_least else '<='} {self.limit:g}"
        holds = "yes" if self.holds else "no"
        return Row(self.name, {"limit": limit, "seen": self.seen, "holds": holds})


class Found(NamedTuple):
    """What a part measures."""

    title: str
    rows: list[Row]
    limits: list[Limit]


def only(found: xr.Dataset | xr.DataArray) -> xr.DataArray:
    """The one variable of a result."""
    return next(iter(found.data_vars.values())) if isinstance(found, xr.Dataset) else found


def beyond(exceedance, low, high) -> xr.DataArray:
    """P(Y < low) + P(Y > high), by a function that gives P(Y > threshold)."""
    below = xr.apply_ufunc(np.nextafter, low, -np.inf)  # P(Y >= low) = P(Y > below)
    mass = 1 - only(exceedance(below)) + only(exceedance(high))
    return mass.clip(0, 1).drop_vars("threshold", errors="ignore")


def outermost(issued: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Smallest and largest value that each forecast gives a weight."""
    if "member" not in issued.dims:
        found = only(issued.recal.quantile([OUTER, 1 - OUTER]))
        return found.isel(quantile=0, drop=True), found.isel(quantile=1, drop=True)
    members = only(issued)
    weight = issued.get(f"{members.name}_weight", xr.ones_like(members))
    members = members.where(weight > 0)
    return members.min("member"), members.max("member")
