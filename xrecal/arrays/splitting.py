"""Splits of cases into training and test cases, so that a fit never knows the cases of its test."""

from __future__ import annotations

import datetime
import operator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.arrays.advice import Advice, Typed
from xrecal.typing import FloatArray, IntArray

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Span: TypeAlias = int | np.timedelta64 | datetime.timedelta
"""Length of a series of cases: a number of cases, or a length of time (such as
pandas.Timedelta)."""

# Advice on how to get more training cases, for each kind of split.
_MORE_TRAINING = {
    "year": "a smaller gap",
    "block": "a smaller gap or more blocks",
    "retrospective": "a smaller gap or fewer blocks",
    "rolling": "a smaller gap or a longer window",
}

ROUNDING = 1e-6
"""Dates in days that differ by less than this, about a tenth of a second, count as equal. Rounding
errors of dates are smaller."""


class Split(NamedTuple):
    """Masks of training cases and of test cases; no case is both."""

    train: BoolArray
    """(n,) True for training cases"""
    test: BoolArray
    """(n,) True for test cases"""


class Step(NamedTuple):
    """One step of a model that keeps learning; the model learns cases, and then predicts cases."""

    fits: bool
    """True if the model is fitted to the cases in ``learn``; otherwise these cases update it."""
    learn: IntArray
    """Positions of the cases to learn; empty if there are no new cases, or before the first fit."""
    test: IntArray
    """Positions of the cases to predict."""


class Rolling(NamedTuple):
    """Schedule of updates and new fits of a model that keeps learning; see :func:`splits`."""

    every: Span | None
    """Time between two updates."""
    refit: Span | None = None
    """Time between two fits, counted from the first test. When this time has passed, the next step
    begins with a new fit. By default there is only one fit."""
    window: Span | None = None
    """Number of most recent cases, or length of time, that a fit learns from; by default all of the
    past"""
    blocks: int = 5
    """Number of equal parts of the record; without a window, tests begin after the first part"""


class Measure(NamedTuple):
    """Length of a series of cases, and positions of the cases, in the same unit: cases or days."""

    position: FloatArray
    """(n,) position of each case among all cases, or its date in days; ascending"""
    length: float
    """Length in cases or days"""


def splits(
    n: int,
    by: str,
    *,
    year: IntArray | None = None,
    days: FloatArray | None = None,
    gap: Span = 0,
    blocks: int = 5,
    window: Span | None = None,
    every: Span | None = None,
) -> list[Split]:
    """Split cases, which are in order of time, into training cases and test cases.

    ``"year"``
        Each year is tested once; the model for its test learns from all other years.
    ``"block"``
        The cases are divided into ``blocks`` contiguous parts of equal size. Each part is tested
        once; the model for its test learns from all other parts.
    ``"retrospective"``
        The cases are divided into parts as for ``"block"``. Each part except the first is tested
        once; the model for its test learns from all cases before the part.
    ``"rolling"``
        As in operation, a new model is fitted at intervals of ``every``. Each model learns from the
        most recent cases, as many as ``window`` allows, and is tested until the next fit.

    With ``"year"`` and ``"block"``, models also learn from cases later than their test. If the
    climate or the forecast model drifts, such tests show a higher skill than forecasts will have.
    With ``"retrospective"`` and ``"rolling"``, models learn only from the past.

    Parameters
    ----------
    n : int
        Number of cases.
    by : {"year", "block", "retrospective", "rolling"}
        Kind of split.
    year : array of int, shape (n,), optional
        Year of each case, required with ``by="year"``. The cases of a year need not be contiguous.
    days : array of float, shape (n,), optional
        Date of each case, in days since any day, in ascending order; equal dates are allowed. Dates
        are required if an argument is a length of time.
    gap : int or timedelta, default 0
        Cases at most this far from a test case are not training cases. For example, a gap of 3
        leaves out three cases on each side of the test, or only the three cases before the test if
        the split uses only the past. Give at least the lead time plus the time over which weather
        stays similar. Then the model knows no observation that resembles an observation of its
        test.
    blocks : int, default 5
        Number of parts, at least 2; sizes of parts differ by at most one case. Without a window,
        rolling tests begin after the first part.
    window : int or timedelta, optional
        Number of cases, or length of time, before the first test case. A rolling model learns from
        this window. The window includes the gap. Tests begin when the first window is full. By
        default the model learns from all of the past.
    every : int or timedelta, optional
        Time between two fits of a rolling model, counted from the first fit; required with
        ``by="rolling"``.

    Returns
    -------
    list of Split
        Splits, in the order of the times of their tests. Each case is in at most one test. Some
        cases are in no test, such as the first case if the split uses only the past. The masks of a
        split need 2 n bytes.

    Raises
    ------
    ValueError
        If ``by`` is unknown; if an argument is missing, does not belong to ``by`` or is out of
        range; if an argument is a timedelta but ``days`` is None; or if a split leaves no training
        cases.

    References
    ----------
    .. [1] Bergmeir & Benítez (2012), On the use of cross-validation for time series predictor
       evaluation. https://doi.org/10.1016/j.ins.2011.12.028

    Examples
    --------
    >>> [np.flatnonzero(split.test).tolist() for split in splits(6, "block", blocks=3)]
    [[0, 1], [2, 3], [4, 5]]
    """
    n = operator.index(n)
    if by not in _MORE_TRAINING:
        raise ValueError(f"by is {by!r}; give one of {list(_MORE_TRAINING)}")
    apart = measure("gap", gap, n, days, least=0)
    reach = None
    if by == "rolling":
        reach = None if window is None else measure("window", window, n, days)
        part = _refits(n, reach, every, days, blocks)
    elif window is not None or every is not None:
        name = "every" if window is None else "window"
        raise ValueError(
            Advice(
                f"{name} belongs to ", Typed("by", "rolling"), f", but by is {by!r}; leave it out"
            )
        )
    elif by == "year":
        part = _years(n, year)
    else:
        part = _blocks(n, blocks) - (by == "retrospective")
    only_past = by in ("retrospective", "rolling")
    parts = []
    for label in range(part.max() + 1):
        test = part == label
        if only_past:
            train = _before(test, apart, reach)
        else:
            train = distance_to(np.flatnonzero(test), apart.position) > apart.length + ROUNDING
        if not train.any():
            more = _MORE_TRAINING["retrospective" if only_past and reach is None else by]
            tested = np.flatnonzero(test)
            raise ValueError(
                f"no case is left to train on for the test of cases {tested[0]} to {tested[-1]} "
                f"(by={by!r}, gap={gap!r}); give {more}"
            )
        parts.append(Split(train, test))
    return parts


def replay(
    known: IntArray, rolling: Rolling, *, days: FloatArray | None = None, least: int = 1
) -> list[Step]:
    """Return the steps of a model that is updated when cases become known, and sometimes refitted.

    Parameters
    ----------
    known : array of int, shape (n,) or (n, k)
        Time at which the observation of each case becomes known, as the position of the first case
        issued after this time. Cases are in order of time. The position is greater than the
        position of the case itself; it is n or more if the observation never becomes known. If a
        case has k parts, such as leads, each part has a position of its own.
    rolling : Rolling
        Schedule of updates and fits. A fit learns from the window; the updates that follow learn
        from cases that become known after the fit.
    days : array of float, shape (n,), optional
        As for :func:`splits`.
    least : int
        Least number of cases for a fit; a fit with fewer cases is postponed to the next step.

    Returns
    -------
    list of Step
        Steps in order of time.

    Raises
    ------
    ValueError
        As for :func:`splits`.
    """
    n = len(known)
    every, refit, window, blocks = rolling
    reach = None if window is None else measure("window", window, n, days)
    part = _refits(n, reach, every, days, blocks)
    again = np.where(part < 0, -1, 0)
    if refit is not None:
        again = _refits(n, reach, refit, days, blocks, name="refit")
    each = known.reshape(n, -1)
    steps: list[Step] = []
    fitted, begins, before = -1, 0, 0
    for label in range(part.max() + 1):
        test = np.flatnonzero(part == label)
        first = int(test[0])
        fresh = ((each > before) & (each <= first)).any(1)
        seen = (each <= first).any(1)
        from_case = 0
        if reach is not None:
            inside = reach.position[first] - reach.position <= reach.length + ROUNDING
            from_case = int(inside.argmax())
            seen &= inside
        fits = bool(again[first] > fitted and seen.sum() >= least)
        if fits:
            fitted, begins = int(again[first]), from_case
        learn = np.flatnonzero(seen if fits else fresh)
        learn = learn[learn >= begins] if fitted >= 0 else learn[:0]
        steps.append(Step(fits, learn, test))
        before = first
    return steps


def _years(n: int, year: IntArray | None) -> IntArray:
    """Return the index of the year of each case (n,), from 0."""
    if year is None:
        raise ValueError(
            Advice(
                Typed("by", "year"),
                " needs the year of each case, but no dates are known; use ",
                Typed("by", "block"),
            )
        )
    years, part = np.unique(_along(n, "year", year), return_inverse=True)
    if years.size < 2:
        raise ValueError(
            Advice(
                Typed("by", "year"),
                f" needs two years at least, but all cases are from {years.tolist()}; use ",
                Typed("by", "block"),
            )
        )
    return part


def _blocks(n: int, blocks: int) -> IntArray:
    """Return the index of the part of each case (n,), from 0.

    The ``blocks`` parts are contiguous and of equal size.
    """
    whole = _whole(blocks)
    if whole is None or whole < 2:
        raise ValueError(f"blocks is {blocks!r}; give a whole number of at least 2")
    if n < whole:
        raise ValueError(f"blocks is {blocks}, but there are {n} cases; give {n} at most")
    return np.arange(n) * whole // n


def _refits(
    n: int,
    reach: Measure | None,
    every: Span | None,
    days: FloatArray | None,
    blocks: int,
    name: str = "every",
) -> IntArray:
    """Return the index of the fit that predicts each case (n,), from 0; -1 before the first fit."""
    if every is None:
        raise ValueError(
            Advice(
                Typed("by", "rolling"),
                " needs ",
                Typed("every"),
                ", the time between two fits; give ",
                Typed("every", 30),
                ", say",
            )
        )
    step = measure(name, every, n, days)
    if reach is None:
        start = int(np.searchsorted(_blocks(n, blocks), 1))
    else:
        full = reach.position - reach.position[:1] >= reach.length - ROUNDING
        if not full.any():
            raise ValueError(f"the window is never full in {n} cases; give a shorter window")
        start = int(full.argmax())
    since = step.position - step.position[start]
    fit = np.floor((since + ROUNDING) / step.length)
    fit[:start] = -1
    # Long breaks between cases (such as one season a year) skip numbers, so count only fits with
    # cases.
    return np.cumsum(np.diff(fit, prepend=-1) > 0) - 1


def distance_to(held: IntArray, position: FloatArray) -> FloatArray:
    """Return the distance (n,) of each case to the nearest of the cases ``held``.

    The positions (n,) of all cases are in ascending order.
    """
    case = np.arange(position.size)
    # Compare each case with the held-out cases before and after it: the nearer one decides.
    behind = np.searchsorted(held, case)
    before, behind = np.maximum(behind - 1, 0), np.minimum(behind, held.size - 1)
    nearest: FloatArray = np.minimum(
        abs(position - position[held[before]]), abs(position[held[behind]] - position)
    )
    return nearest


def _before(test: BoolArray, apart: Measure, reach: Measure | None) -> BoolArray:
    """Mark training cases: cases in the window, earlier than the test by more than the gap."""
    first = int(test.argmax())
    train: BoolArray = np.arange(test.size) < first
    train &= apart.position[first] - apart.position > apart.length + ROUNDING
    if reach is not None:
        train &= reach.position[first] - reach.position <= reach.length + ROUNDING
    return train


def measure(name: str, span: Span, n: int, days: FloatArray | None, *, least: int = 1) -> Measure:
    """Convert a length to cases or days; return it with the positions of cases in the same unit."""
    if isinstance(span, np.timedelta64 | datetime.timedelta):
        length = _in_days(name, span)
        if not (length > 0 or (length == 0 and least == 0)):  # also refuses NaT
            above = "above zero" if least else "that is not negative"
            raise ValueError(f"{name} is {span!r}; give a length of time {above}")
        if days is None:
            raise ValueError(
                f"{name} is a length of time, but the dates of the cases are not known; "
                "give a number of cases"
            )
        position = _along(n, "days", days).astype(np.float64)
        if not (np.isfinite(position).all() and (np.diff(position) >= 0).all()):
            raise ValueError("days must be finite and not descend; put the cases in order of time")
        return Measure(position, length)
    whole = _whole(span)
    if whole is None or whole < least:
        raise ValueError(
            f"{name} is {span!r}; give a whole number of cases, at least {least}, or a timedelta"
        )
    return Measure(np.arange(n, dtype=np.float64), float(whole))


def _in_days(name: str, span: np.timedelta64 | datetime.timedelta) -> float:
    if isinstance(span, datetime.timedelta):
        return span / datetime.timedelta(days=1)
    if np.datetime_data(span.dtype)[0] in ("Y", "M", "generic"):
        raise ValueError(f"{name} is {span!r}, which has no fixed length; give it in days")
    return float(span / np.timedelta64(1, "D"))


def _whole(number: Any) -> int | None:
    try:
        return operator.index(number)
    except TypeError:
        return None


def _along(n: int, name: str, values: Any) -> npt.NDArray[Any]:
    along = np.asarray(values)
    if along.shape != (n,):
        raise ValueError(f"{name} has shape {along.shape}, but there are {n} cases; give ({n},)")
    return along
