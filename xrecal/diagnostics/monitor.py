"""Compute evidence against calibration that is valid after every case."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.rows import is_whole, whole_number
from xrecal.chunks.run import Named, run
from xrecal.chunks.warnings import warn_once
from xrecal.inputs.dates import DAYS_OF_YEAR, case_axis
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.methods.call_errors import explained
from xrecal.products.source import check_seed
from xrecal.typing import IntArray

from .evidence import NO_UNIT, Evidence, described, in_one_chunk, read_evidence
from .lags import verification_lag
from .pit import pit_of_cases

Restart: TypeAlias = Literal["year"] | int | None

FEWEST_A_YEAR = 30
"""Number of cases a year below which the monitor finds almost no error of calibration."""

_TEXTS = {
    "e_value": "evidence against calibration since the last restart",
    "alarm": "whether the evidence has reached its limit since the last restart",
    "change_statistic": "detector of changes of calibration",
    "change": "whether a change of calibration is detected with this case",
    "since": "first case of the latest detected change",
}


@explained("xrecal.diagnostics.monitor")
def monitor(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    alpha: float = 0.01,
    run_length: int = 3650,
    restart: Restart = "year",
    lag: int | None = None,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute evidence against calibration after each case, valid however often you look.

    Parameters
    ----------
    forecast, observations, augmented, seed, member_dim
        See :func:`pit`; one variable. Use ``augmented=True`` for plain ensembles.
    dim : hashable or sequence of hashable, optional
        The calibration dimension (time, init, ...). If not given, xrecal recognises it. You may add
        dimensions of locations: the result is then the mean e-value of these locations, which is
        evidence against the forecasts of the whole region.
    alpha : float
        Number in (0, 1). For calibrated forecasts, the probability of an alarm before the next
        restart is at most ``alpha``, however late this restart is.
    run_length : int
        For calibrated forecasts, the mean number of cases between false detections of a change is
        at least ``run_length``. 3650 cases are ten years of daily forecasts.
    restart : "year", int or None
        Time at which the e-value restarts: at the start of each calendar year, after this number of
        cases, or never (None).
    lag : int, optional
        Number of cases between issue and verification, at least 1. By default, xrecal finds this
        lag from the labels of starts and leads. If forecasts have no leads, the lag is 1: each
        forecast verifies before the next one is issued.

    Returns
    -------
    Dataset
        Variables over cases, in order of time, and over locations. ``e_value`` is at least 0,
        without a unit; ``alarm`` is true if the e-value has reached 1 / ``alpha`` since the last
        restart. ``change`` is true if ``change_statistic`` has reached ``run_length``; the
        statistic then restarts. ``since`` is the label of the case at which the latest detected
        change began (NaT or NaN before the first change; the position of the case if cases have no
        labels). The coordinate ``restarts`` is true at the first case after each restart. The
        result is lazy if an input is lazy. A missing case does not change the evidence.

    Raises
    ------
    ValueError
        See :func:`pit_test`; also if a number is out of its range, if cases have no dates for
        yearly restarts, or if ``dim`` has a dimension of leads.

    Warns
    -----
    UserWarning
        If a year has so few cases that an alarm is almost impossible.

    Notes
    -----
    The e-value is a product of bets that the PIT is not uniform; see
    :func:`xrecal.arrays.calibration_e_values`. See :func:`xrecal.arrays.calibration_changes` for
    the detection of changes. When a forecast at a lead of h steps is issued, the last h - 1 cases
    have not verified yet. So the evidence against such forecasts grows more slowly.

    The probability ``alpha`` of an alarm holds for forecasts that are calibrated exactly. A fitted
    forecast is never exactly calibrated, so evidence against it grows over the years. For this
    reason, the evidence restarts each year by default. Every place and lead has a test of its own.
    With ``alpha=0.01``, one of a hundred tests may raise a false alarm. For a region, take the mean
    of the e-values over places. This mean may be weighted if the weights are fixed beforehand and
    add up to 1. Raise an alarm if this mean reaches 1 / ``alpha`` at a lag of 1, or h / ``alpha``
    at a lag of h. If ``dim`` contains the locations, ``alarm`` already is the alarm of the region,
    at any lag.

    Examples
    --------
    >>> watched = hindcast.recal.monitor(observations, ["init", "location"], restart=None)
    >>> bool(watched["alarm"][-1]), int((~watched["alarm"]).sum())
    (True, 3)
    """
    check_seed(seed)
    if not (np.ndim(alpha) == 0 and 0 < alpha < 1):
        raise ValueError(f"alpha is {alpha!r}; give a probability between 0 and 1, such as 0.01")
    limits = float(alpha), whole_number("run_length", run_length, 1)
    evidence = read_evidence(forecast, observations, dim, member_dim)
    time, core = _time_and_core(evidence)
    stretch = _stretches(evidence, restart)
    issued = evidence.form.broadcast().loc.isel({evidence.form.member_dim: 0}, drop=True)
    lags = verification_lag(issued, time, lag)
    pit = pit_of_cases(evidence, seed, augmented)
    whole = in_one_chunk(pit, *core)
    labels = _labels(pit, time)
    bare = whole.drop_vars([c for c in pit.coords if c not in pit.indexes])
    dtypes: list[Any] = [np.float64, bool, np.float64, bool, labels.dtype]
    results = run(
        _Watch(*limits, stretch, labels),
        {"given": {"pit": (bare, core), "lags": (lags, ())}},
        {
            name: ({time: pit.sizes[time]}, dtype)
            for name, dtype in zip(_TEXTS, dtypes, strict=True)
        },
        what=evidence.work("monitoring"),
    )
    variables = described(list(results.values()), _TEXTS, {})
    for name in ("e_value", "change_statistic"):
        variables[name].attrs |= NO_UNIT
    result = evidence.result(variables, "monitoring", alpha=limits[0], run_length=limits[1])
    text = {"long_name": "whether the e-value restarts at this case"}
    kept = {n: c for n, c in pit.coords.items() if {*c.dims} <= {*result.dims}}
    return result.assign_coords(kept | {"restarts": ((time,), begins(stretch), text)})


def _time_and_core(evidence: Evidence) -> tuple[Hashable, tuple[Hashable, ...]]:
    """Return the dimension of time, and all dimensions that a task needs in one chunk."""
    time, dims = evidence.pairs.dim, evidence.dims
    if time not in dims:
        raise ValueError(
            f"a monitor runs along {time!r}, in order of time, but dim is {list(dims)}; "
            f"leave dim out, or name {time!r} and the locations of a region"
        )
    averaged = [d for d in evidence.form.roles.leads if d in dims]
    if averaged and averaged != [time]:
        raise ValueError(
            f"the leads along {averaged[0]!r} verify at different times, so their evidence cannot "
            "be averaged; leave them out of dim: each lead then has a monitor of its own"
        )
    return time, (*[d for d in dims if d != time], time)


def _stretches(evidence: Evidence, restart: Restart) -> IntArray:
    """Return a whole number for each case (n,), the same for all cases between two restarts.

    Warn if each year has too few cases for an alarm.
    """
    dim = evidence.pairs.dim
    n = {d: size for part in evidence.form.parts.values() for d, size in part.sizes.items()}[dim]
    if restart is None:
        return np.zeros(n, np.int64)
    if restart != "year":
        if is_whole(restart) and restart >= 1:
            return np.arange(n) // int(restart)
        raise ValueError(
            f"restart is {restart!r}; give 'year', a positive number of cases, or None for never"
        )
    observed = evidence.pairs.observations
    # Take years from the labels, which forecasts of all leads share, for one selected lead too.
    labels = observed.drop_vars([c for c in observed.coords if c not in observed.xindexes])
    axis = case_axis(labels, dim)
    years, days = axis.year, axis.days
    if years is None or days is None:
        raise ValueError(
            f"restart='year' needs dates along {dim!r}; add them, or give the number of cases "
            "after which the monitor restarts, such as restart=365, or restart=None for never"
        )
    counts = np.unique(years, return_counts=True)[1]
    most = int(counts.max(initial=0))
    if counts.size == 2:  # both years may be incomplete, as in January
        most = max(most, int(DAYS_OF_YEAR / np.median(np.diff(np.unique(days)))))
    if counts.size > 1 and most < FEWEST_A_YEAR:
        warn_once(
            f"the monitor restarts each year, but a year has at most {most} cases, too few to find "
            "errors; use restart=None, or restart after a number of cases"
        )
    return np.asarray(years, np.int64)


def _labels(pit: xr.DataArray, time: Hashable) -> npt.NDArray[Any]:
    """Return the labels of the cases, or their positions, and after them one missing value."""
    index = pit.indexes.get(time)
    labels = np.arange(pit.sizes[time]) if index is None else index.to_numpy()
    none = np.array([None])
    if labels.dtype.kind in "mM":
        none = np.array(["NaT"], labels.dtype)
    elif labels.dtype.kind in "iuf":
        none = np.array([np.nan])
    return np.concatenate([labels, none])


@dataclass(frozen=True)
class _Watch:
    """Task that monitors PIT values, (L, n) or (L, *places, n), at lags (L,)."""

    alpha: float
    run_length: int
    stretch: IntArray
    labels: npt.NDArray[Any]

    def __call__(self, given: Named) -> Named:
        """Return e-values, alarms, statistics, changes and first cases of changes, each (L, n)."""
        from xrecal.arrays import calibration_changes, calibration_e_values

        pit, lags = given["pit"], given["lags"]
        places = pit.reshape(len(pit), -1, pit.shape[-1])
        e_values = calibration_e_values(places, lags, self.stretch)
        statistic, since = calibration_changes(places, self.run_length, lags)
        case = np.arange(pit.shape[-1])
        begun = np.maximum.accumulate(np.where(begins(self.stretch), case, 0))
        reached = np.maximum.accumulate(np.where(e_values >= 1 / self.alpha, case, -1), axis=-1)
        changed = statistic >= self.run_length
        found = e_values, reached >= begun, statistic, changed, self.labels[since]
        return dict(zip(_TEXTS, found, strict=True))


def begins(stretch: IntArray) -> npt.NDArray[np.bool_]:
    """Return True for each case (n,) that begins a period between restarts."""
    return np.asarray(np.diff(stretch, prepend=stretch[:1] - 1) != 0)
