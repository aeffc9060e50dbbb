"""Past errors, and the members that they make around the centre of a new forecast.

A case that verified on a bound, such as a dry day, makes a member on that bound, whatever its
error; all others make members between the bounds, no closer to them than any observation was. So
the probability of the bound is that of the cases on it: added to a wetter forecast, errors of dry
days would make drizzle, and to a drier one, those of wet days would make dry days.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import kernel


@kernel
def error_of(y: float, centre: float, spread: float, low: float, high: float) -> float:
    """Error of an observation in units of the spread; infinite for one on a bound."""
    if y <= low:
        return -np.inf
    return np.inf if y >= high else (y - centre) / spread


@kernel
def inside(observations: Any, low: float, high: float) -> Any:
    """Smallest and largest observation between the bounds; infinite towards a side without one."""
    first, last = np.inf, -np.inf
    for y in observations:
        if low < y < high:
            first, last = min(first, y), max(last, y)
    if first > last:
        return low, high
    return first if low > -np.inf else low, last if high < np.inf else high


@kernel
def fill_members(
    centre: float,
    spread: float,
    error: Any,
    low: float,
    high: float,
    first: float,
    last: float,
    points: Any,
) -> None:
    """Members (k,) from ascending errors: on a bound, or between ``first`` and ``last``."""
    start, stop = 0, error.size
    while start < stop and error[start] == -np.inf:
        points[start] = low
        start += 1
    while stop > start and error[stop - 1] == np.inf:
        stop -= 1
        points[stop] = high
    for i in range(start, stop):
        points[i] = min(max(centre + spread * error[i], first), last)
