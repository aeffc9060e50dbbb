"""Costs of work: available memory, memory of a task, and time of one location."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.distributions.forms import equal_mass_levels
from xrecal.chunks.blockwise import one_blas_thread
from xrecal.chunks.malloc import KEPT_BYTES
from xrecal.fit.kinds import SAMPLE
from xrecal.inputs.covariates import AHEAD
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import TRAITS, Kind
from xrecal.methods import Method
from xrecal.methods.base import N_HELD_OUT, Cases
from xrecal.methods.covariates import Covariates
from xrecal.typing import FloatArray

MATRICES = 6
"""Number of float64 matrices that a fit holds for one location; see :func:`_matrices`."""
PROCESS = 300_000_000
"""Bytes of a process that has loaded and compiled all code, but has no data."""
PAUSE = 0.8
"""Share of its memory limit at which a Dask worker starts no more tasks."""

FIRST = 100
"""Number of cases in the first timing trial; each further trial doubles it, up to all cases."""
MOST_GROWTH = 10.0
"""Factor. If twice the cases take longer by more than this factor, the trial has compiled code."""
LONG_ENOUGH = 1.0
"""If a trial takes this many seconds or more, no larger trial follows it."""
FEW_FORECASTS, SEVERAL_LOCATIONS = 100, 8
"""Number of forecasts that a trial times together. If one location is too fast to time, the last
trial has ``SEVERAL_LOCATIONS`` locations."""


@dataclass(frozen=True)
class Resources:
    """Memory in bytes that one task may use (None if unknown), and number of parallel tasks."""

    memory: int | None
    at_once: int


def find_resources() -> Resources:
    """Return the resources of the Dask client of this process, or else of this machine."""
    if "distributed" in sys.modules:
        from distributed import default_client

        with suppress(ValueError):  # without a client
            client = default_client()  # type: ignore[no-untyped-call]
            if workers := client.scheduler_info()["workers"].values():
                limits = [
                    int(PAUSE * w["memory_limit"] - PROCESS) // w["nthreads"] - KEPT_BYTES
                    for w in workers
                    if w["memory_limit"]
                ]
                memory = max(min(limits), 1) if limits else None
                return Resources(memory, sum(client.nthreads().values()))
    from dask import config
    from dask.system import CPU_COUNT

    at_once = config.get("num_workers", None) or CPU_COUNT
    if config.get("scheduler", None) in ("synchronous", "single-threaded", "sync"):
        at_once = 1
    free = available_memory()
    return Resources(None if free is None else free // at_once, at_once)


def available_memory() -> int | None:
    """Return the bytes that are still available to this process; None if unknown.

    The function does not need psutil, which is installed only with distributed.
    """
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():  # not Linux: all memory of the machine, if Python knows it
        if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
            return None
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    group, used = (Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current"))
    if group.exists() and used.exists() and group.read_text().strip().isdigit():
        free = min(free, max(int(group.read_text()) - int(used.read_text()), 0))
    return free


def fit_workspace(method: Method, n_cases: int, n_members: int, n_locations: int) -> int:
    """Return the workspace of a fit of some locations: approximate bytes besides input and output.

    The workspace contains float64 copies of the cases of some locations at a time, and the matrices
    of one location at a time. If the method learns weights of components, the workspace also
    contains held-out forecasts.
    """
    from xrecal.arrays.ckme.solvers import KEPT
    from xrecal.arrays.rows import WORKSPACE

    each = 8 * 4 * n_cases * n_members
    method = method.mostly
    each += 2 * 8 * method.n_weighed * n_cases * N_HELD_OUT
    matrices = _matrices(method, n_cases)
    # With several kernels, solvers are kept until the best one is known.
    kept = min(KEPT, 2 * matrices) if method.covariates else 0
    return max(each, min(n_locations * each, WORKSPACE)) * 2 + matrices + kept


def apply_workspace(
    method: Method, n_cases: int, n_forecasts: int, n_members: int, n_locations: int
) -> int:
    """Return the workspace of a product such as quantiles: bytes besides input and output.

    The number of bytes is approximate. The workspace contains the weights of members at some
    locations at a time, copies of cases and forecasts, and the matrices of one location at a time.
    If each forecast has members of its own, the workspace also contains these members.
    """
    from xrecal.arrays.rows import WORKSPACE

    slots = method.slots(n_cases)[0].size * (1 if method.shares_members else 2)
    weights = min(8 * slots * n_forecasts, max(4 * WORKSPACE, 8 * slots))
    weights = max(weights, min(n_locations * weights, WORKSPACE))
    copies = 8 * 3 * max(n_cases, n_forecasts) * n_members
    copies = max(copies, min(n_locations * copies, WORKSPACE))
    return 3 * weights + copies + _matrices(method, n_cases)


def _matrices(method: Method, n_cases: int) -> int:
    """Return the bytes of the matrices of one location: cases by cases, or cases by landmarks."""
    return MATRICES * 8 * n_cases * method.columns(n_cases)


@dataclass(frozen=True)
class Setup:
    """Facts that determine the time of the work at one location, such as method and sizes."""

    method: Method
    kind: Kind
    n_cases: int
    n_members: int
    axis: CaseAxis
    periods: Mapping[str, float | None]
    min_samples: int
    dtype: npt.DTypeLike
    n_together: int = 1
    """Number of places that choose together; the fit searches settings at a sample of these."""


class Probe(NamedTuple):
    """Estimated seconds of one core at one location."""

    fit: float
    rebuild: float
    """Seconds to prepare a task's first forecast from the fitted state."""
    each: float
    """Seconds of each further forecast."""
    n_tried: int
    """Number of cases of the largest trial."""


def probe_of(setup: Setup) -> Probe:
    """Measure the time of fits and forecasts of more and more synthetic cases, and extrapolate.

    The function never reads values of the user's data. Synthetic forecasts have skill and a bias.
    The choices of a method depend on values, so a fit to real values may take more or less time.
    """
    with one_blas_thread():
        n = min(setup.n_cases, FIRST)
        _trial(setup, n, 1)  # compiles
        trials = [(n, _trial(setup, n, 1))]  # now compiled
        while n < setup.n_cases and trials[-1][1][0] < LONG_ENOUGH:
            n = min(2 * n, setup.n_cases)
            seconds = _trial(setup, n, 1)
            if seconds[0] > MOST_GROWTH * trials[-1][1][0]:  # more cases may need other functions
                seconds = _trial(setup, n, 1)  # now compiled
            trials.append((n, seconds))
        if n == setup.n_cases and trials[-1][1][0] < LONG_ENOUGH / SEVERAL_LOCATIONS:
            trials = [(n, _trial(setup, n, SEVERAL_LOCATIONS))]
    fit, rebuild, each = _extrapolated(trials, setup.n_cases).tolist()
    return Probe(fit, rebuild, each, n)


def _extrapolated(trials: list[tuple[int, FloatArray]], n: int) -> FloatArray:
    """Return the seconds of n cases, extrapolated by a power of n from the last two trials.

    The function limits the exponent to values from 1 to 3. If there is only one trial, the exponent
    is 3, as for decompositions of matrices.
    """
    last, seconds = trials[-1]
    if last == n or len(trials) == 1:
        return seconds * (n / last) ** 3
    before, shorter = trials[-2]
    growth = np.log(np.maximum(seconds, 1e-9) / np.maximum(shorter, 1e-9))
    power: FloatArray = np.clip(growth / math.log(last / before), 1.0, 3.0)
    return seconds * (n / last) ** power


def _trial(setup: Setup, n: int, n_locations: int) -> FloatArray:
    """Return seconds (3,) of a location: its fit, its first forecast, and each further forecast."""
    cases = _synthetic_cases(setup, n, n_locations)
    few = min(n, FEW_FORECASTS)
    least, choices, searched = min(setup.min_samples, n), None, 0.0
    times = [perf_counter()]
    if setup.n_together > 1 and setup.method.choice_sizes:
        choices = setup.method.choose_locations(cases, least)
        searched = (perf_counter() - times[0]) * min(1.0, SAMPLE / setup.n_together)
        times = [perf_counter()]
    fitted = setup.method.fit_locations(cases, least, choices)
    times.append(perf_counter())
    for k in (1, few):
        new = cases.as_new(np.arange(k))
        distribution = setup.method.predict_locations(new, cases, fitted)
        distribution.quantile(equal_mass_levels(3))  # a circle allows only past observations
        times.append(perf_counter())
    fit, one, all_of_them = np.diff(times)
    each = max(all_of_them - one, 0.0) / max(few - 1, 1)
    return np.array([searched + fit, one, each]) / n_locations


def _synthetic_cases(setup: Setup, n: int, n_locations: int) -> Cases:
    """Return random cases with skilful, biased forecasts, at some locations."""
    from xrecal.arrays.distributions.forms import Forecasts, sort_members

    rng = np.random.default_rng(0)
    variables = setup.method.variables
    n_variables = 1 if variables is None else len(variables.names)
    shape = n_locations, n, n_variables * setup.n_members
    signal = rng.normal(size=shape[:2])
    loc = 1 + signal[..., np.newaxis] + 0.5 * rng.normal(size=shape)
    forecasts = Forecasts(
        loc.astype(setup.dtype),
        np.full(shape, 0.5, setup.dtype) if TRAITS[setup.kind].has_scale else None,
        None if setup.kind == "ensemble" else np.ones(shape, setup.dtype),
    )
    covariates = np.zeros((*shape[:2], len(setup.periods)))
    for column, (name, period) in enumerate(setup.periods.items()):
        drawn = rng.random(shape[:2]) * period if period else rng.normal(size=shape[:2])
        covariates[..., column] = 0.0 if name == AHEAD else drawn
    observations, *partners = (
        (signal + 0.7 * rng.normal(size=signal.shape)).astype(setup.dtype)
        for _ in range(n_variables)
    )
    return Cases(
        sort_members(forecasts) if variables is None else forecasts,
        observations,
        Covariates(covariates, tuple(setup.periods), tuple(setup.periods.values())),
        setup.axis.take(slice(n)),
        partners=tuple(partners),
    )
