"""Weights of a linear pool from held-out forecasts, and averages of quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Floats5, Matrix, OutCube, OutMatrix, inner, kernel
from xrecal.typing import FloatArray

POWER = 15.0
"""The prior weights are proportional to the CRPS to this power, in the denominator. So they are
similar for similar CRPS, and almost zero for a component that is 20 % worse. From 10 to 20 the
scores hardly change."""

PULL = 0.1
"""Strength of the prior, in units of the smallest CRPS. From 0.03 to 0.3 the scores hardly
change."""

SMALLEST = 0.005
"""Weights below this fraction of the largest become zero, so that their components need no run."""

DOUBT = 5.0
"""Number of cases at which the mass of a component is halved if no other component is better."""

TOLERANCE, MOST_STEPS = 1e-9, 100_000
"""Two numbers that end the search for weights: the difference of slopes, in units of the pull, and
the largest number of steps."""


def pool_weights(quantiles: FloatArray, observations: FloatArray) -> FloatArray:
    r"""Compute weights of a linear pool with a small held-out CRPS.

    Parameters
    ----------
    quantiles : array of float, shape (L, P, C, n, Q)
        Held-out forecasts of n cases by C components: quantiles at the levels (i - ½) / Q, in any
        unit. P is the number of ways of holding out cases; all ways have the same influence. A
        component that is NaN in half of the cases or more gets no weight. The function leaves out
        cases in which another component is NaN.
    observations : array of float, shape (L, n)
        Observations; NaN where unknown.

    Returns
    -------
    array of float64, shape (L, C)
        Weights that sum to one, each 0 or at least 0.005 times the largest; NaN without a case.

    Notes
    -----
    The CRPS of a mixture is a quadratic form of its weights, :math:`v^T S v` with :math:`S_{cd} =
    \frac12 (E|X_c - y| + E|X_d - y| - E|X_c - X_d|)` averaged over cases, so one pass over the
    cases, O(C² n Q), serves all mixtures. With few cases, the best mixture would fit their noise,
    so the weights minimise

    .. math:: v^T S v + 0.1 \min_c S_{cc} \, |v - p|^2, \qquad p_c \propto S_{cc}^{-15}.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, levels = rng.normal(size=(1, 60)), np.linspace(-1.0, 1.0, 20)
    >>> sharp = truth[..., np.newaxis] + levels
    >>> wide = np.broadcast_to(3.0 * levels, sharp.shape)
    >>> pool_weights(np.stack([sharp, wide], 1)[:, np.newaxis], truth).round(1)
    array([[1., 0.]])
    """
    return weights_of_scores(pool_scores(quantiles, observations))


def pool_scores(quantiles: FloatArray, observations: FloatArray) -> FloatArray:
    """Compute matrices S (L, C, C) of :func:`pool_weights`, NaN for components without a weight."""
    n_components = quantiles.shape[2]
    scores = np.full((quantiles.shape[0], n_components, n_components), np.nan)
    _fill_scores(
        np.ascontiguousarray(quantiles, np.float64),
        np.ascontiguousarray(observations, np.float64),
        scores,
    )
    return scores


def mean_weights(weights: FloatArray) -> FloatArray:
    """Return joint weights (1, C) of many places: the mean weights, with very small ones set to 0.

    ``weights`` (L, C) come from :func:`pool_weights`; a place with NaN weights is ignored.
    """
    known = weights[~np.isnan(weights).any(-1)]
    if not len(known):
        return np.full((1, weights.shape[-1]), np.nan)
    mean = known.mean(0, keepdims=True)
    mean = np.where(mean < SMALLEST * mean.max(), 0.0, mean)
    return np.asarray(mean / mean.sum())


def relative_scores(scores: FloatArray) -> FloatArray:
    """Scores (L, C, C) in units of the smallest CRPS of a component, from scores (L, C, C)."""
    own = scores.diagonal(axis1=1, axis2=2)
    best = np.where(own > 0, own, np.inf).min(-1, initial=np.inf)
    return np.asarray(scores / np.where(np.isinf(best), np.nan, best)[:, np.newaxis, np.newaxis])


def relative_crps(scores: FloatArray) -> FloatArray:
    """CRPS (L, C) of each component in units of the smallest, from scores (L, C, C)."""
    return np.asarray(relative_scores(scores).diagonal(axis1=1, axis2=2))


def evidence_against(crps: FloatArray, one: int, n_cases: FloatArray) -> float:
    r"""Return the trust, from 0 to 1, in fitted weights against a weight of 1 for one component.

    One minus the trust is the mass that this component takes. Trust grows with the number of cases.
    It is about a half at ``DOUBT`` cases if no other component has a smaller mean CRPS over the
    places, and at fewer cases if another component has.

    Parameters
    ----------
    crps : array of float, shape (L, C)
        CRPS of held-out forecasts at each place; see :func:`relative_crps`. NaN if a component has
        no CRPS.
    one : int
        Number of the component.
    n_cases : array of float, shape (L,)

    Notes
    -----
    The trust is :math:`n / (n + b D)` for the median number n of cases, with :math:`D` for
    ``DOUBT``. Here :math:`b = (\min_c S_c / S_1)^{15}`, from the mean CRPS and the power of the
    prior of :func:`pool_weights`.
    """
    there = ~np.isnan(crps[:, one]) & ~np.isnan(n_cases)
    known = crps[there]
    if not len(known):
        return 1.0
    mean = np.where(np.isnan(known).any(0), np.inf, known.sum(0) / len(known))
    belief = (mean.min() / mean[one]) ** POWER
    n = float(np.median(n_cases[there]))
    return n / max(n + DOUBT * float(belief), 1.0)


def weights_of_scores(
    scores: FloatArray, pull: float = PULL, towards: FloatArray | None = None
) -> FloatArray:
    """Compute weights (L, C) of :func:`pool_weights` from its matrices S, scores (L, C, C).

    The prior has strength ``pull``; its weights are ``towards`` (L, C) if given.
    """
    weights = np.full(scores.shape[:2], np.nan)
    usable = (~np.isnan(scores).all(-1)).astype(np.float64)
    drawn = np.zeros(weights.shape) if towards is None else np.nan_to_num(towards * usable)
    _fill_weights(np.nan_to_num(scores), usable, pull, drawn, weights)
    return weights


@kernel
def _fill_scores(quantiles: Floats5, observations: Matrix, out: OutCube) -> None:
    """Fill scores (L, C, C) of quantiles (L, P, C, n, Q)."""
    n_locations, n_passes, n_components, n = quantiles.shape[:4]
    for cell in range(n_locations):
        usable = _usable(quantiles[cell], observations[cell])
        counts, passes = np.zeros(n_passes), 0
        for p in range(n_passes):
            for i in range(n):
                counts[p] += _is_complete(quantiles[cell, p], observations[cell], i, usable)
            passes += counts[p] > 0
        if passes == 0 or not usable.any():
            continue
        scores = np.zeros((n_components, n_components))
        for p in range(n_passes):
            for i in range(n):
                if _is_complete(quantiles[cell, p], observations[cell], i, usable):
                    share = 1.0 / (counts[p] * passes)
                    add_scores(quantiles[cell, p], observations[cell, i], i, share, scores)
        for c in range(n_components):
            for d in range(n_components):
                if usable[c] and usable[d]:
                    out[cell, c, d] = scores[c, d]


@kernel
def _fill_weights(
    scores: Cube, usable: Matrix, pull: float, towards: Matrix, out: OutMatrix
) -> None:
    """Fill weights (L, C) from scores (L, C, C) of the usable components (L, C).

    The prior has weights ``towards`` (L, C). If these are zero, it has weights by the CRPS of each
    component.
    """
    for cell in range(scores.shape[0]):
        best = np.inf
        for c in range(scores.shape[1]):
            if usable[cell, c]:
                best = min(best, scores[cell, c, c])
        if np.isinf(best):
            continue
        total = 0.0
        for c in range(scores.shape[1]):
            total += towards[cell, c]
        if total > 0:
            for c in range(scores.shape[1]):
                out[cell, c] = towards[cell, c] / total
        else:
            _fill_prior(scores[cell], usable[cell], best, out[cell])
        if best > 0:
            _settle(scores[cell], usable[cell], pull * best, out[cell])
        _drop_smallest(out[cell])


@inner
def _fill_prior(scores: Any, usable: Any, best: float, weights: Any) -> None:
    """Fill prior weights (C,) by the CRPS of components.

    Perfect components, if any, get all weight.
    """
    total = 0.0
    for c in range(weights.size):
        alike = 0.0
        if usable[c]:
            alike = 1.0 if scores[c, c] <= best else (max(best, 0.0) / scores[c, c]) ** POWER
        weights[c] = alike
        total += alike
    for c in range(weights.size):
        weights[c] /= total


@inner
def _settle(scores: Any, usable: Any, pull: float, weights: Any) -> None:
    """Move weights (C,) to the minimum of ``v'Sv + pull |v - p|^2``, from their prior p.

    Each step moves mass from the component with the steepest ascent to the component with the
    steepest descent. It moves the amount that gives the lowest value.
    """
    slopes = np.dot(scores, weights)  # half the gradient; the prior adds none at p
    for _ in range(MOST_STEPS):
        to, away = -1, -1
        for c in range(weights.size):
            if usable[c] and (to < 0 or slopes[c] < slopes[to]):
                to = c
            if weights[c] > 0 and (away < 0 or slopes[c] > slopes[away]):
                away = c
        steepness = slopes[away] - slopes[to]
        if not steepness > TOLERANCE * pull:
            break
        curved = scores[to, to] + scores[away, away] - 2 * scores[to, away] + 2 * pull
        step = min(weights[away], steepness / curved)
        weights[to] += step
        weights[away] -= step
        for c in range(weights.size):
            slopes[c] += step * (scores[c, to] - scores[c, away])
        slopes[to] += step * pull
        slopes[away] -= step * pull


@inner
def _usable(quantiles: Any, observations: Any) -> Any:
    """Mark components (P, C, n, Q) that forecast most of the cases that any component forecasts."""
    n_passes, n_components, n = quantiles.shape[:3]
    counts = np.zeros(n_components)
    for p in range(n_passes):
        for c in range(n_components):
            for i in range(n):
                if not (np.isnan(observations[i]) or np.isnan(quantiles[p, c, i, 0])):
                    counts[c] += 1
    usable, most = np.empty(n_components, np.bool_), 0.0
    for c in range(n_components):
        most = max(most, counts[c])
    for c in range(n_components):
        usable[c] = 2 * counts[c] > most
    return usable


@inner
def _is_complete(quantiles: Any, observations: Any, i: int, usable: Any) -> bool:
    """Return whether all usable components (C, n, Q) forecast case i, and it has an observation."""
    complete = not np.isnan(observations[i])
    for c in range(quantiles.shape[0]):
        complete = complete and (not np.isnan(quantiles[c, i, 0]) or not usable[c])
    return complete


@inner
def _drop_smallest(weights: Any) -> None:
    """Set very small weights to zero, and divide the others by their sum."""
    kept, largest = 0.0, 0.0
    for c in range(weights.size):
        largest = max(largest, weights[c])
    for c in range(weights.size):
        if weights[c] < SMALLEST * largest:
            weights[c] = 0.0
        kept += weights[c]
    for c in range(weights.size):
        weights[c] /= kept


@inner
def add_scores(quantiles: Any, y: float, i: int, share: float, scores: Any) -> None:
    """Add the matrix S (C, C) of case i, times ``share``, to the scores."""
    n_components, _, q = quantiles.shape
    miss = np.zeros(n_components)
    for c in range(n_components):
        for k in range(q):
            miss[c] += abs(quantiles[c, i, k] - y) / q
    for c in range(n_components):
        for d in range(c + 1):
            apart = _mean_distance(quantiles[c, i], quantiles[d, i])
            s = share * 0.5 * (miss[c] + miss[d] - apart)
            scores[c, d] += s
            if d < c:
                scores[d, c] += s


@inner
def _mean_distance(x: Any, z: Any) -> float:
    """Compute ``E|X - Z| = int F (1 - G) + G (1 - F)`` of ascending quantiles (Q,)."""
    q = x.size
    total, i, j = 0.0, 0, 0
    last = min(x[0], z[0])
    while i < q or j < q:
        from_x = j == q or (i < q and x[i] <= z[j])
        point = x[i] if from_x else z[j]
        total += (i * (q - j) + j * (q - i)) * (point - last)
        last = point
        if from_x:
            i += 1
        else:
            j += 1
    return total / (q * q)  # type: ignore[no-any-return]


def average_quantiles(quantiles: FloatArray, weights: FloatArray, bounds: FloatArray) -> FloatArray:
    """Compute weighted averages of the quantiles of forecasts; exact zeros stay zeros.

    Parameters
    ----------
    quantiles : array of float, shape (N, C, Q)
        Quantiles of N forecasts by C components, ascending, at the levels (i - ½) / Q.
    weights : array of float, shape (N, C)
        Weights that sum to one. A component without weight may be NaN.
    bounds : array of float, shape (N, 2)
        Lower and upper bound of the variable, infinite without a bound.

    Returns
    -------
    array of float64, shape (N, Q)
        Quantiles at the same levels.

    Notes
    -----
    The probability of a bound is the weighted mean over components: an average of wet and dry
    quantiles would give drizzle. Between bounds, the average is over the conditional quantiles of
    each component inside the bounds. The weight of a component is multiplied by the probability
    that it gives to the inside.
    """
    averages = np.empty((quantiles.shape[0], quantiles.shape[2]))
    _fill_averages(
        *(np.ascontiguousarray(a, np.float64) for a in (quantiles, weights, bounds)), averages
    )
    return averages


@kernel
def _fill_averages(quantiles: Cube, weights: Matrix, bounds: Matrix, out: OutMatrix) -> None:
    """Fill averages (N, Q) of quantiles (N, C, Q) with weights (N, C) between bounds (N, 2)."""
    n, n_components, q = quantiles.shape
    first, last = np.zeros(n_components, np.int64), np.zeros(n_components, np.int64)
    for i in range(n):
        low, high = bounds[i]
        below, above = 0.0, 0.0  # probabilities of the bounds
        for c in range(n_components):
            if weights[i, c] > 0:
                first[c], last[c] = 0, q
                while first[c] < q and quantiles[i, c, first[c]] <= low:
                    first[c] += 1
                while last[c] > first[c] and quantiles[i, c, last[c] - 1] >= high:
                    last[c] -= 1
                below += weights[i, c] * first[c] / q
                above += weights[i, c] * (q - last[c]) / q
        for k in range(q):
            level = (k + 0.5) / q
            if level <= below:
                out[i, k] = low
            elif level >= 1 - above:
                out[i, k] = high
            else:
                between = 1 - below - above
                part = (level - below) / between
                total = 0.0
                for c in range(n_components):
                    inside = last[c] - first[c]
                    if weights[i, c] > 0 and inside > 0:
                        share = weights[i, c] * inside / (q * between)
                        at = first[c] + part * inside - 0.5
                        total += share * _between(quantiles[i, c], at, first[c], last[c])
                out[i, k] = total


@inner
def _between(x: Any, at: float, first: int, last: int) -> float:
    """Interpolate the value at a position among the quantiles ``first`` to ``last - 1``."""
    j = min(max(int(np.floor(at)), first), last - 1)
    following = min(j + 1, last - 1)
    part = min(max(at - j, 0.0), 1.0)
    return x[j] + part * (x[following] - x[j])  # type: ignore[no-any-return]
