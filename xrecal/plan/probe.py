"""A short trial of a method on synthetic cases, to estimate how long all the work will take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from xrecal.chunks.blockwise import one_blas_thread
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Kind
from xrecal.methods import Method, VectorCKME
from xrecal.methods.base import Cases, Covariates, NewCases, equal_mass_levels

FIRST = 100
"""Cases of the first trial; each further one has twice as many, up to those there are."""
LONG_ENOUGH = 1.0
"""Seconds of a trial after which no larger one follows."""
FEW_FORECASTS, SEVERAL_LOCATIONS = 100, 8


@dataclass(frozen=True)
class Probe:
    """Estimated seconds of one core at one location."""

    fit: float
    rebuild: float
    """To prepare a task's first forecast from the fitted state."""
    each: float
    """Of each further forecast."""
    n_tried: int
    """Cases of the largest trial."""


@dataclass(frozen=True)
class Setup:
    """What decides the time of a location."""

    method: Method
    kind: Kind
    n_cases: int
    n_members: int
    axis: CaseAxis
    periods: tuple[tuple[str, float | None], ...]
    min_samples: int
    dtype: npt.DTypeLike


def probe_of(setup: Setup) -> Probe:
    """Time fits and forecasts of synthetic cases of growing number, and extrapolate.

    The values of the user's data are never read: forecasts have skill and a bias, observations
    serial independence. What a method chooses by the values may take it longer or shorter.
    """
    with one_blas_thread():
        n = min(setup.n_cases, FIRST)
        _trial(setup, n, 1)  # compiles
        trials = [(n, _trial(setup, n, 1))]  # now without compiling
        while n < setup.n_cases and trials[-1][1][0] < LONG_ENOUGH:
            n = min(2 * n, setup.n_cases)
            trials.append((n, _trial(setup, n, 1)))
        if n == setup.n_cases and trials[-1][1][0] < LONG_ENOUGH / SEVERAL_LOCATIONS:
            trials = [(n, _trial(setup, n, SEVERAL_LOCATIONS))]
    fit, rebuild, each = (
        _extrapolated([(n, seconds[i]) for n, seconds in trials], setup.n_cases) for i in range(3)
    )
    return Probe(fit, rebuild, each, n)


def _extrapolated(trials: list[tuple[int, float]], n: int) -> float:
    """Seconds of n cases, by the power of the last two trials, between the first and the third."""
    last, seconds = trials[-1]
    if last == n or len(trials) == 1:
        return seconds * math.pow(n / last, 3.0)
    before, shorter = trials[-2]
    power = math.log(max(seconds, 1e-9) / max(shorter, 1e-9)) / math.log(last / before)
    return seconds * math.pow(n / last, min(max(power, 1.0), 3.0))


def _trial(setup: Setup, n: int, n_locations: int) -> tuple[float, float, float]:
    """Seconds of a location's fit, of its first forecast, and of each further one."""
    cases = _cases(setup, n, n_locations)
    start = perf_counter()
    fitted = setup.method.fit_locations(cases, min(setup.min_samples, n))
    fit = perf_counter() - start
    few = min(n, FEW_FORECASTS)
    one, all_of_them = (_timed(setup, cases, fitted, k) for k in (1, few))
    each = max(all_of_them - one, 0.0) / max(few - 1, 1)
    return fit / n_locations, one / n_locations, each / n_locations


def _timed(setup: Setup, cases: Cases, fitted: object, k: int) -> float:
    """Seconds of quantiles of the first k cases, as forecasts."""
    new: NewCases = cases.as_new(np.arange(k))
    start = perf_counter()
    distribution = setup.method.predict_locations(new, cases, fitted)  # type: ignore[arg-type]
    distribution.quantile(equal_mass_levels(3))  # the only ones on a circle
    return perf_counter() - start


def _cases(setup: Setup, n: int, n_locations: int) -> Cases:
    """Synthetic cases at some locations."""
    from xrecal.arrays.distributions.forms import Forecasts, sort_members

    rng = np.random.default_rng(0)
    partners = len(setup.method.names) - 1 if isinstance(setup.method, VectorCKME) else 0
    shape = n_locations, n, (1 + partners) * setup.n_members
    signal = rng.normal(size=shape[:2])
    loc = 1 + signal[..., np.newaxis] + 0.5 * rng.normal(size=shape)
    normal = setup.kind in ("normal", "censored")
    plain = setup.kind == "ensemble"
    forecasts = Forecasts(
        loc.astype(setup.dtype),
        np.full(shape, 0.5, setup.dtype) if normal else None,
        None if plain else np.ones(shape, setup.dtype),
    )
    values = [
        rng.random((n_locations, n)) * period if period else rng.normal(size=(n_locations, n))
        for _, period in setup.periods
    ]
    covariates = Covariates(
        np.stack(values, axis=-1) if values else np.zeros((n_locations, n, 0)),
        tuple(name for name, _ in setup.periods),
        tuple(period for _, period in setup.periods),
    )
    observations, *others = (
        (signal + 0.7 * rng.normal(size=signal.shape)).astype(setup.dtype)
        for _ in range(1 + partners)
    )
    axis = setup.axis.take(slice(n))
    if isinstance(setup.method, VectorCKME):
        return Cases(forecasts, observations, covariates, axis, partners=tuple(others))
    return Cases(sort_members(forecasts), observations, covariates, axis)
