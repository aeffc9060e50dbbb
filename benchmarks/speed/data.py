"""The data of the budgets: a synthetic season, and real stations beside it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from benchmarks.skill.sources import SOURCES
from xrecal.arrays import median_bandwidth, similarity, squared_energy_distance

PAPER = xrecal.CKME(support="observations")
"""What the budgets are of: one support."""

AMPLITUDE = 10.0  # of the seasonal cycle, where the mean spread is 1
LEAST_SPAN = 400  # days, so that few cases know a season too
STATIONS = {
    "innsbruck": ("Innsbruck temperature", "Innsbruck rain", "Innsbruck 3-day rain"),
    "frankfurt": ("Frankfurt rain",),
}
TOLERANCE = 1e-3


class Data(NamedTuple):
    """Cases to learn from and forecasts to score, ``x`` (n, m) and ``y`` (n,) of each."""

    name: str
    x: np.ndarray
    y: np.ndarray
    x_new: np.ndarray
    y_new: np.ndarray


def day_numbers(n: int) -> np.ndarray:
    """Days of the cases: each one, or every so many of a year."""
    return np.arange(n) * -(-LEAST_SPAN // min(n, LEAST_SPAN))


def make_ensembles(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Sinusoidal ensemble mean, gamma-distributed spread, (n, m)."""
    return _ensembles(np.random.default_rng(seed), n, m)[0]


def make_data(n: int, m: int, seed: int = 0) -> Data:
    """Observations scatter more than the members, around another mean; as many new forecasts."""
    parts = []
    for part in range(2):
        rng = np.random.default_rng([seed, part])
        x, mean, spread = _ensembles(rng, n, m)
        parts += [x, mean + 1 + 1.5 * spread * rng.normal(size=n)]
    return Data("budget data", *parts)


def _ensembles(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, ...]:
    mean = AMPLITUDE * np.sin(2 * np.pi * day_numbers(n) / 365.25)
    spread = rng.gamma(2.0, 0.5, n)
    return mean[:, np.newaxis] + spread[:, np.newaxis] * rng.normal(size=(n, m)), mean, spread


def make_hindcast(
    n: int, m: int, n_locations: int, *, new: bool = False
) -> tuple[xr.DataArray, xr.DataArray]:
    """Daily forecasts (time, location, member) and observations (time, location), float32.

    New: those to score, which come years after those to learn from.
    """
    parts = [make_data(n, m, seed) for seed in range(n_locations)]
    start = np.datetime64("2050-01-01" if new else "2000-01-01", "ns")
    hindcast = xr.DataArray(
        np.stack([part.x_new if new else part.x for part in parts], axis=1).astype(np.float32),
        dims=("time", "location", "member"),
        coords={"time": start + day_numbers(n) * np.timedelta64(1, "D")},
        attrs={"units": "K"},
    )
    observed = np.stack([part.y_new if new else part.y for part in parts], axis=1)
    return hindcast, hindcast.isel(member=0).copy(data=observed.astype(np.float32))


def stations(names: tuple[str, ...] | None = None) -> Iterator[Data]:
    """Real stations, without the cases that lack a value; none where there are no data."""
    for source, known in STATIONS.items():
        if names is not None and not set(names) & set(known):
            continue
        try:
            sets = list(SOURCES[source]())
        except SystemExit:  # the data are not beside this checkout
            return
        for one in sets:
            if names is None or one.name in names:
                yield Data(one.name, *_complete(one.hindcast, one), *_complete(one.forecast, one))


def _complete(forecast: xr.DataArray, one) -> tuple[np.ndarray, np.ndarray]:
    x = forecast.transpose("time", "member").values.astype(float)
    y = one.observations.sel(time=forecast["time"]).values.astype(float)
    known = ~(np.isnan(x).any(1) | np.isnan(y))
    return x[known], y[known]


def gram_of(x: np.ndarray) -> np.ndarray:
    """Kernel matrix (n, n) with the median bandwidth."""
    squared = squared_energy_distance(x)
    return similarity(squared, median_bandwidth(squared))


def rank_of(gram: np.ndarray, tolerance: float = TOLERANCE) -> int:
    """Columns of a pivoted Cholesky factor L until the mean of diag(K - L Lᵀ) is small enough."""
    left, rows = np.diag(gram).copy(), np.empty_like(gram)
    for rank in range(len(gram)):
        if left.mean() <= tolerance:
            return rank
        case = left.argmax()
        row = (gram[case] - rows[:rank, case] @ rows[:rank]) / np.sqrt(left[case])
        rows[rank] = row
        left = np.maximum(left - row**2, 0.0)
    return len(gram)
