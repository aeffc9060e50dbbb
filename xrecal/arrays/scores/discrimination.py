"""Discrimination: how well forecasts separate cases with different outcomes.

The ROC curve, its area and the economic value are for probabilities of events. The generalised
discrimination score is for whole forecasts and any observations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.compiled import Cube, Matrix, OutMatrix, inner, kernel
from xrecal.arrays.rows import as_rows, check_probability, double_blocks, location_blocks
from xrecal.typing import FloatArray, IntArray

LEVEL_ROUNDING = 1e-9
"""A probability still reaches a level if it is below the level by at most this number, because sums
of weights are rounded."""

EVEN = 1e-12
"""A probability that differs from ½ by at most this number counts as ½, because sums of weights are
rounded."""


class RocArea(NamedTuple):
    """Area under ROC curves, as arrays (...)."""

    area: FloatArray
    """In [0, 1]: 1 is perfect, ½ no discrimination"""
    influence: FloatArray
    """(..., n) influence of each case, for tests: the standard error of the mean influence is the
    standard error of the area"""
    n_events: IntArray
    """Number of complete cases with the event"""


def roc_area(probabilities: FloatArray, events: FloatArray) -> RocArea:
    r"""Compute the area under the curve of hit rates against false alarm rates (ROC).

    Parameters
    ----------
    probabilities : array of float, shape (..., n)
        Forecasts of an event, or numbers that increase with its probability. NaN marks a missing
        case.
    events : array of float, shape (..., n)
        1 if the event happened, else 0; NaN marks a missing case.

    Returns
    -------
    RocArea
        Arrays (...) and (..., n). Area and influence are NaN if the event happens in none or all of
        the cases. The influence of missing cases is NaN, too.

    Raises
    ------
    ValueError
        If shapes differ or an event is neither 0 nor 1.

    Notes
    -----
    Each pair consists of a case with the event and a case without it. A pair is right if the case
    with the event has the higher probability. The area is the share of right pairs; a pair with
    equal probabilities counts half [1]_. The area equals the trapezoidal area under the curve
    through all probabilities. The influence of a case is :math:`(V_i - A) / r`. Here A is the area.
    There are two kinds of cases: with and without the event. :math:`V_i` is the share of right
    pairs among the pairs that contain case i [2]_. The share r is the fraction of all cases that
    are of the same kind as case i. For independent cases, the variance of the mean influence equals
    the variance of DeLong et al., up to a relative error of order 1/n. For autocorrelated cases in
    order of time, :func:`~xrecal.arrays.standard_error` of the influence is the standard error of
    the area. The cost is O(n log n) per location. If the last axis holds cases of several places,
    the area also contains the differences between the climates of these places.

    References
    ----------
    .. [1] Mason & Graham (2002), Areas beneath the relative operating characteristics (ROC) and
       relative operating levels (ROL) curves. https://doi.org/10.1256/003590002320603584
    .. [2] DeLong, DeLong & Clarke-Pearson (1988), Comparing the areas under two or more correlated
       receiver operating characteristic curves. https://doi.org/10.2307/2531595

    Examples
    --------
    >>> found = roc_area(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> float(found.area), int(found.n_events)
    (0.75, 2)
    """
    (p, happened), shape = as_rows(probabilities=probabilities, events=events)
    _check_events(happened)
    area, influence = np.empty(len(p)), np.empty(p.shape)
    n_events = np.empty(len(p), np.int64)
    for block in location_blocks(len(p), 160 * p.shape[1]):
        area[block], influence[block], n_events[block] = _area(p[block], happened[block])
    by_case = influence.reshape(*shape, p.shape[1])
    return RocArea(area.reshape(shape), by_case, n_events.reshape(shape))


def _area(p: FloatArray, happened: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Compute area (L,), influence (L, n) and number of events (L,) of cases (L, n)."""
    known = ~(np.isnan(p) | np.isnan(happened))
    yes, no = known & (happened == 1), known & (happened == 0)
    n_yes, n_no = yes.sum(-1), no.sum(-1)
    of_all, of_yes, of_no = (mid_ranks(p, part) for part in (known, yes, no))
    usable = (n_yes > 0) & (n_no > 0)
    m_yes, m_no = (np.where(usable, m, np.nan)[:, np.newaxis] for m in (n_yes, n_no))
    # Share of right pairs of each case with cases of the other kind; ties count half.
    below, above = (of_all - of_yes) / m_no, 1.0 - (of_all - of_no) / m_yes
    area = np.where(yes, below, 0.0).sum(-1) / m_yes[:, 0]
    n = known.sum(-1)[:, np.newaxis]
    shares = np.where(yes, n / m_yes, n / m_no)
    influence = shares * (np.where(yes, below, above) - area[:, np.newaxis])
    return area, np.where(known, influence, np.nan), n_yes


def mid_ranks(values: FloatArray, among: npt.NDArray[np.bool_]) -> FloatArray:
    """Return ranks (L, n), counted from 1, of values that ``among`` marks; other values get 0.

    Equal values get the mean of their ranks.
    """
    n = values.shape[-1]
    order = np.argsort(np.where(among, values, np.nan), axis=-1, kind="stable")
    ranked = np.take_along_axis(values, order, -1)
    starts = np.ones(values.shape, bool)
    starts[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    ends = np.ones(values.shape, bool)
    ends[:, :-1] = starts[:, 1:]
    count = among.sum(-1, keepdims=True)
    place = np.arange(n)
    ends |= place == count - 1
    first = np.maximum.accumulate(np.where(starts, place, 0), -1)
    last = np.minimum.accumulate(np.where(ends, place, n - 1)[:, ::-1], -1)[:, ::-1]
    ranks = np.zeros(values.shape)
    np.put_along_axis(ranks, order, np.where(place < count, (first + last) / 2 + 1, 0.0), -1)
    return ranks


def roc_curve(
    probabilities: FloatArray, events: FloatArray, levels: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Compute hit rates and false alarm rates of users who act if a probability reaches a level.

    Parameters
    ----------
    probabilities, events : array of float, shape (..., n)
        As for :func:`roc_area`.
    levels : array_like, shape (k,)
        Users act if the probability is at least the level.

    Returns
    -------
    hit_rate, false_alarm_rate : array of float64, shape (..., k)
        The hit rate is the share of cases in which users act, among the cases with the event. The
        false alarm rate is the same share among the cases without the event. The rates are in [0,
        1] and do not increase with the level. The hit rate is NaN if no case has the event. The
        false alarm rate is NaN if all cases have the event.

    Raises
    ------
    ValueError
        As for :func:`roc_area`.

    Notes
    -----
    A probability that is below a level by at most 1e-9 still reaches the level. The cost is O(n log
    n + k log n) per location.

    References
    ----------
    .. [1] Mason (1982), A model for assessment of weather forecasts. Australian Meteorological
       Magazine 30, 291-303.

    Examples
    --------
    >>> p, events = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> hit_rate, false_alarm_rate = roc_curve(p, events, [0.0, 0.5])
    >>> hit_rate, false_alarm_rate
    (array([1. , 0.5]), array([1., 0.]))
    """
    (p, happened), shape = as_rows(probabilities=probabilities, events=events)
    _check_events(happened)
    wanted = np.asarray(levels, np.float64)
    rates = np.empty((2, len(p), wanted.size))
    for block in location_blocks(len(p), 64 * p.shape[1] + 16 * wanted.size):
        for value, out in zip((1, 0), rates, strict=True):
            out[block] = _acting(p[block], happened[block] == value, wanted)
    return rates[0].reshape(*shape, -1), rates[1].reshape(*shape, -1)


def _acting(p: FloatArray, among: npt.NDArray[np.bool_], levels: FloatArray) -> FloatArray:
    """Return the share (L, k) of cases whose probability reaches a level.

    The share is over the cases that ``among`` (L, n) marks.
    """
    known = among & ~np.isnan(p)
    ascending = np.sort(np.where(known, p, np.nan), axis=-1)
    count = known.sum(-1)
    shares = np.full((len(p), levels.size), np.nan)
    for row in np.flatnonzero(count):
        below = np.searchsorted(ascending[row, : count[row]], levels - LEVEL_ROUNDING)
        shares[row] = 1.0 - below / count[row]
    return shares


def economic_value(
    probabilities: FloatArray, events: FloatArray, cost_loss: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    r"""Compute the relative economic value of probabilities to users who can protect themselves.

    Parameters
    ----------
    probabilities, events : array of float, shape (..., n)
        Forecast probabilities in [0, 1]; events are 1 if the event happened, else 0. NaN marks a
        missing case.
    cost_loss : array_like, shape (k,)
        Cost of protection divided by the avoided loss, in (0, 1).

    Returns
    -------
    value, potential_value : array of float64, shape (..., k)
        Relative economic values, at most 1. The value is 1 for a perfect forecast, and 0 for the
        better of two rules: always protect, or never protect. It is negative if the forecast is
        worse than the better rule. ``value`` is for users who act if the probability is at least
        the ratio ``cost_loss``. ``potential_value`` is for users who act if the probability is at
        least the level that is best for these cases; ``potential_value`` is never negative. Both
        are NaN if the event happens in none or all of the cases.

    Raises
    ------
    ValueError
        If shapes differ, if an event is neither 0 nor 1, if a probability is outside [0, 1], or if
        a ratio is outside (0, 1).

    Notes
    -----
    With the base rate s, hit rate H and false alarm rate F of :func:`roc_curve`, and the ratio
    :math:`\alpha` [1]_:

    .. math:: V = \frac{\min(\alpha, s) - F \alpha (1 - s) + H s (1 - \alpha) - s}
              {\min(\alpha, s) - s \alpha}

    The potential value is the maximum of V over all levels of probability. A recalibration could
    raise the value to almost the potential value; the small difference is due to chance. The cost
    is O(n log n + k n) per location.

    References
    ----------
    .. [1] Richardson (2000), Skill and relative economic value of the ECMWF ensemble prediction
       system. https://doi.org/10.1002/qj.49712656313

    Examples
    --------
    >>> p, events = np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> value, potential = economic_value(p, events, [0.3, 0.5])
    >>> value.round(2), potential.round(2)
    (array([0.5, 0.5]), array([0.5, 0.5]))
    """
    (p, happened), shape = as_rows(probabilities=probabilities, events=events)
    _check_events(happened)
    check_probability("probabilities", p)
    ratios = np.asarray(cost_loss, np.float64)
    if ratios.ndim != 1 or not ((ratios > 0) & (ratios < 1)).all():
        raise ValueError(f"cost_loss must hold ratios between 0 and 1, got {cost_loss!r:.60}")
    values = np.empty((2, len(p), ratios.size))
    for block in location_blocks(len(p), 128 * p.shape[1] + 16 * ratios.size):
        values[:, block] = _values(p[block], happened[block], ratios)
    return values[0].reshape(*shape, -1), values[1].reshape(*shape, -1)


def _values(p: FloatArray, happened: FloatArray, ratios: FloatArray) -> FloatArray:
    """Compute value and potential value (2, L, k) of cases (L, n)."""
    known = ~(np.isnan(p) | np.isnan(happened))
    order = np.argsort(np.where(known, -p, np.nan), axis=-1, kind="stable")
    ranked, event = (np.take_along_axis(a, order, -1) for a in (p, happened))
    known = np.take_along_axis(known, order, -1)
    n = known.sum(-1)
    usable = (n > 0) & ((known & (event == 1)).any(-1)) & ((known & (event == 0)).any(-1))
    per_case = np.where(usable, n, np.nan)[:, np.newaxis]
    hits = np.cumsum(np.where(known, event, 0.0), -1) / per_case
    alarms = np.cumsum(np.where(known, 1.0 - event, 0.0), -1) / per_case
    # Users act in all cases with the same probability, or in none of them.
    ends = known.copy()
    ends[:, :-1] &= ~known[:, 1:] | (ranked[:, 1:] != ranked[:, :-1])
    base = hits[:, -1:] if p.shape[-1] else np.full((len(p), 1), np.nan)
    values = np.full((2, len(p), ratios.size), np.nan)
    for k, ratio in enumerate(ratios):
        saved = hits * (1.0 - ratio) - alarms * ratio  # in losses per case, compared to never
        acting = known & (ranked >= ratio - LEVEL_ROUNDING)
        chosen = np.where(acting, np.diff(saved, axis=-1, prepend=0.0), 0.0).sum(-1)
        best = np.where(ends, saved, 0.0).max(-1, initial=0.0)
        usual, perfect = np.minimum(ratio, base[:, 0]), base[:, 0] * ratio
        for out, gain in zip(values, (chosen, best), strict=True):
            out[:, k] = (usual - base[:, 0] + gain) / (usual - perfect)
    return values


class Discrimination(NamedTuple):
    """Generalised discrimination score, as arrays (...)."""

    score: FloatArray
    """In [0, 1]: 1 is perfect, ½ no discrimination"""
    influence: FloatArray
    """(..., n) influence of each case, for tests: the standard error of the mean influence is the
    standard error of the score"""


def generalised_discrimination(
    observations: FloatArray, members: FloatArray, weights: FloatArray | None = None
) -> Discrimination:
    r"""Compute the share of pairs of cases that the forecasts put in the right order (2AFC).

    Parameters
    ----------
    observations : array of float, shape (..., n)
        Observations, in any unit. NaN or infinity marks a missing observation.
    members : array of float, shape (..., n, m)
        Members of the ensembles; NaN marks a missing member. Ensembles without members do not
        count.
    weights : array of float, shape of ``members``, optional
        Weights >= 0, which the function normalises; equal by default.

    Returns
    -------
    Discrimination
        Float64 arrays of shape (...) and (..., n). Both are NaN if there are no two cases with
        different observations. The influence of left-out cases is NaN, too.

    Raises
    ------
    ValueError
        If shapes do not fit or a weight is negative.

    Notes
    -----
    For two cases i and j with different observations, the forecasts predict which observation is
    larger. They predict that the observation of j is larger if a random member of j exceeds a
    random member of i with a probability above ½; equal members count half [2]_. The score is the
    share of pairs with a right prediction; a pair with a probability of ½ counts half. The score
    ignores pairs with equal observations. If observations are events, 0 or 1, and forecasts are
    single numbers, the score is the area under the ROC curve [1]_. A monotone transform of all
    forecasts does not change the score, so neither a bias nor a common error of the spread changes
    it.

    The influence of a case is the projection of a U statistic. Take the number of right pairs of
    the case, minus the number expected from the score. The influence is twice this difference,
    divided by the mean number of pairs of a case. The :func:`~xrecal.arrays.standard_error` of the
    influence, with cases in order of time, allows for autocorrelation. The cost is O(n² m) per
    location.

    References
    ----------
    .. [1] Mason & Weigel (2009), A generic forecast verification framework for administrative
       purposes. https://doi.org/10.1175/2008MWR2553.1
    .. [2] Weigel & Mason (2011), The generalized discrimination score for ensemble forecasts.
       https://doi.org/10.1175/MWR-D-10-05069.1

    Examples
    --------
    >>> members = np.array([[1.0, 2.0], [2.0, 3.0], [1.5, 1.5]])
    >>> found = generalised_discrimination(np.array([1.0, 2.0, 3.0]), members)
    >>> float(found.score.round(2))
    0.5
    """
    observations, members = np.asarray(observations), np.asarray(members)
    if members.shape[:-1] != observations.shape or observations.ndim == 0:
        raise ValueError(
            f"members have shape {members.shape}, but observations have {observations.shape}; "
            "give members (..., n, m) for n cases"
        )
    if weights is not None and (np.asarray(weights) < 0).any():
        raise ValueError("weights must not be negative")
    x, mass = _by_value(members, weights)
    *shape, n = observations.shape
    rows = math.prod(shape)
    right, pairs = np.empty((rows, n)), np.empty((rows, n))
    y, x, mass = (a.reshape(rows, *a.shape[len(shape) :]) for a in (observations, x, mass))
    for block, parts in double_blocks(y, x, mass):
        _fill_pairs(*parts, right[block], pairs[block])
    score, influence = _share_of_pairs(right, pairs)
    return Discrimination(score.reshape(shape), influence.reshape(*shape, n))


def _by_value(members: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return members (..., m) in ascending order, and masses that sum to one or are NaN.

    Missing members and members without weight become infinite, with mass 0.
    """
    given = np.ones(1) if weights is None else np.asarray(weights, np.float64)
    try:
        mass = np.where(np.isnan(members), 0.0, np.broadcast_to(given, members.shape))
    except ValueError:
        raise ValueError(
            f"weights have shape {given.shape}, members have {members.shape}; give each a weight"
        ) from None
    x = np.where(mass > 0, members, np.inf)
    order = np.argsort(x, axis=-1)
    total = mass.sum(-1, keepdims=True)
    mass = np.take_along_axis(mass, order, -1) / np.where(total > 0, total, np.nan)
    return np.take_along_axis(x, order, -1), mass


def _share_of_pairs(right: FloatArray, pairs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share (L,) of right pairs of cases (L, n), and the influence of each case."""
    total = np.nansum(pairs, -1)
    total = np.where(total > 0, total, np.nan)
    score = np.nansum(right, -1) / total
    n = (~np.isnan(pairs)).sum(-1)
    return score, 2.0 * (right - score[:, np.newaxis] * pairs) * (n / total)[:, np.newaxis]


@kernel
def _fill_pairs(
    observations: Matrix, members: Cube, masses: Cube, right: OutMatrix, pairs: OutMatrix
) -> None:
    """Write the number of pairs (L, n) of each case, and the number of right pairs among them."""
    n = observations.shape[1]
    for cell in range(observations.shape[0]):
        y, x, mass = observations[cell], members[cell], masses[cell]
        for i in range(n):
            none = 0.0 if np.isfinite(y[i]) and mass[i].sum() > 0.5 else np.nan
            right[cell, i] = none
            pairs[cell, i] = none
        for i in range(n):
            for j in range(i):
                if np.isnan(right[cell, i] + right[cell, j]) or y[i] == y[j]:
                    continue
                lead = _odds(x[i], mass[i], x[j], mass[j]) - 0.5
                told = 0.5
                if abs(lead) > EVEN:
                    told = 1.0 if (lead > 0) == (y[i] > y[j]) else 0.0
                right[cell, i] += told
                right[cell, j] += told
                pairs[cell, i] += 1.0
                pairs[cell, j] += 1.0


@inner
def _odds(x, own, z, other):  # type: ignore[no-untyped-def]
    """Return P(a member of x (m,) exceeds a member of z (m,)), plus half of P(both are equal)."""
    odds, below, i, k, m = 0.0, 0.0, 0, 0, x.size
    while i < m:
        value, mass, tied = x[i], 0.0, 0.0
        while i < m and x[i] == value:
            mass += own[i]
            i += 1
        while k < m and z[k] < value:
            below += other[k]
            k += 1
        while k < m and z[k] == value:
            tied += other[k]
            k += 1
        odds += mass * (below + 0.5 * tied)
        below += tied
    return odds


def _check_events(events: FloatArray) -> None:
    other = ~(np.isnan(events) | (events == 0) | (events == 1))
    if other.any():
        raise ValueError(f"events must be 0, 1 or NaN, found {events[other][0]:g}")
