"""Weights of a linear pool (a mixture of components), learned from held-out forecasts.

A component is one of the methods that the pool mixes. :func:`average_quantiles` averages the
quantiles of components; it does not mix their distributions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import Cube, Floats5, Matrix, OutCube, OutMatrix, inner, kernel
from xrecal.typing import FloatArray

POWER = 15.0
"""The fit pulls the weight of a component towards its prior weight. The prior weight is
proportional to 1 / CRPS, raised to this power. Components with similar CRPS get similar prior
weights. A component whose CRPS is 20 % larger than the smallest CRPS gets almost no prior weight.
Powers from 10 to 20 give nearly the same scores."""

PULL = 0.1
"""How strongly the fit pulls weights towards the prior weights, in units of the smallest CRPS among
the components. Numbers from 0.03 to 0.3 give nearly the same scores."""

SMALLEST = 0.005
"""Weights below this fraction of the largest weight become zero. The pool needs no forecasts of
components with weight zero."""

DOUBT = 5.0
"""With this number of cases, :func:`evidence_against` returns one half if the chosen component has
the smallest CRPS."""

TOLERANCE, MOST_STEPS = 1e-9, 100_000
"""The search for weights minimises a function. The search ends if the slopes of all components with
weight exceed the smallest slope by at most the first number times the strength of the prior
weights, or after the second number of steps."""


def pool_weights(quantiles: FloatArray, observations: FloatArray) -> FloatArray:
    r"""Compute the weights of a linear pool, so that its CRPS on held-out cases is small.

    Parameters
    ----------
    quantiles : array of float, shape (L, P, C, n, Q)
        Held-out forecasts of n cases at L locations by C components: quantiles at the levels (i -
        ½) / Q, i = 1, ..., Q, in any unit. P is the number of ways in which cases were held out
        (kinds of folds); all ways have the same influence. A component gets no weight if it
        forecasts at most half as many cases as the component that forecasts the most cases. The
        function leaves out cases in which one of the remaining components is NaN.
    observations : array of float, shape (L, n)
        Observations in the unit of the quantiles; NaN where unknown.

    Returns
    -------
    array of float64, shape (L, C)
        Weights that sum to one over the components. Each weight is 0, or at least 0.005 times the
        largest weight. The weights are NaN at a location without a usable case.

    Notes
    -----
    The mean CRPS of a mixture with weights v is :math:`v^T S v`, where :math:`S_{cd}` is the mean
    of :math:`\frac12 (E|X_c - y| + E|X_d - y| - E|X_c - X_d|)` over cases. Here y is the
    observation, and :math:`X_c` a random value from the forecast of component c. The function
    computes S once, at a cost of O(C² n Q), and compares mixtures by S alone. With few cases,
    chance decides which mixture has the smallest CRPS. So the weights v minimise the sum of the
    CRPS and a distance from prior weights p:

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
    """Compute the matrices S (L, C, C) of :func:`pool_weights`.

    If a component forecasts too few cases to get a weight, its row and its column are NaN.
    """
    n_components = quantiles.shape[2]
    scores = np.full((quantiles.shape[0], n_components, n_components), np.nan)
    _fill_scores(
        np.ascontiguousarray(quantiles, np.float64),
        np.ascontiguousarray(observations, np.float64),
        scores,
    )
    return scores


def mean_weights(weights: FloatArray) -> FloatArray:
    """Return one set of weights (1, C) for all places: the mean of their weights.

    ``weights`` (L, C) come from :func:`pool_weights`. The function ignores a place with NaN, and
    sets very small mean weights to 0.
    """
    known = weights[~np.isnan(weights).any(-1)]
    if not len(known):
        return np.full((1, weights.shape[-1]), np.nan)
    mean = known.mean(0, keepdims=True)
    mean = np.where(mean < SMALLEST * mean.max(), 0.0, mean)
    return np.asarray(mean / mean.sum())


def relative_scores(scores: FloatArray) -> FloatArray:
    """Divide the matrices S (L, C, C) by the smallest CRPS of a component at each location."""
    own = scores.diagonal(axis1=1, axis2=2)
    best = np.where(own > 0, own, np.inf).min(-1, initial=np.inf)
    return np.asarray(scores / np.where(np.isinf(best), np.nan, best)[:, np.newaxis, np.newaxis])


def relative_crps(scores: FloatArray) -> FloatArray:
    """Return the CRPS (L, C) of each component divided by the smallest CRPS at its location.

    ``scores`` (L, C, C) holds the matrices S of :func:`pool_weights`.
    """
    return np.asarray(relative_scores(scores).diagonal(axis1=1, axis2=2))


def evidence_against(crps: FloatArray, one: int, n_cases: FloatArray) -> float:
    r"""Return the trust, from 0 to 1, in the fitted weights of all components.

    The pool multiplies the fitted weights by the trust, and gives the rest of the weight to one
    chosen component. Trust grows with the number of cases. If no other component has a smaller mean
    CRPS over places, the trust reaches one half with ``DOUBT`` cases. If another component has a
    smaller mean CRPS, the trust reaches one half with fewer cases.

    Parameters
    ----------
    crps : array of float, shape (L, C)
        CRPS of held-out forecasts at each place; see :func:`relative_crps`. NaN if a component has
        no CRPS.
    one : int
        Position of the chosen component.
    n_cases : array of float, shape (L,)
        Number of cases at each place.

    Notes
    -----
    The trust is :math:`n / (n + b D)`, where n is the median number of cases over places and
    :math:`D` is ``DOUBT``. Here :math:`b = (\min_c S_c / S_1)^{15}`, where :math:`S_c` is the mean
    CRPS of component c over places, and :math:`S_1` the mean CRPS of the chosen component. The
    prior weights in :func:`pool_weights` use the same power of 15.
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
    """Compute the weights (L, C) of :func:`pool_weights` from its matrices S (L, C, C).

    ``pull`` is the strength of the prior weights. If ``towards`` (L, C) is given, it holds the
    prior weights.
    """
    weights = np.full(scores.shape[:2], np.nan)
    usable = (~np.isnan(scores).all(-1)).astype(np.float64)
    drawn = np.zeros(weights.shape) if towards is None else np.nan_to_num(towards * usable)
    _fill_weights(np.nan_to_num(scores), usable, pull, drawn, weights)
    return weights


@kernel
def _fill_scores(quantiles: Floats5, observations: Matrix, out: OutCube) -> None:
    """Write the matrices S (L, C, C) of forecasts (L, P, C, n, Q) into ``out``."""
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
    """Write the weights (L, C) of the usable components (L, C) into ``out``.

    ``scores`` holds the matrices S (L, C, C), and ``towards`` (L, C) the prior weights. If all
    prior weights are zero at a location, the function computes prior weights from the CRPS.
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
    """Write prior weights (C,) that follow from the CRPS of the components into ``weights``.

    If some components have a CRPS of 0, only they get weight.
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
    """Move weights v (C,) from prior weights p to the minimum of ``v'Sv + pull |v - p|^2``.

    Each step compares the slopes of this function for the components. Among components with weight,
    it takes weight from the component with the largest slope, and gives it to the component with
    the smallest slope. It moves the amount of weight that minimises the function.
    """
    slopes = np.dot(scores, weights)  # half the gradient; the distance from p adds 0 here
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
    """Return True for each component (C,) that forecasts enough cases to get a weight.

    Such a component forecasts more than half as many cases as the component that forecasts the most
    cases. ``quantiles`` have shape (P, C, n, Q).
    """
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
    """Return True if case i has an observation and quantiles (C, n, Q) of all usable components."""
    complete = not np.isnan(observations[i])
    for c in range(quantiles.shape[0]):
        complete = complete and (not np.isnan(quantiles[c, i, 0]) or not usable[c])
    return complete


@inner
def _drop_smallest(weights: Any) -> None:
    """Set very small weights to zero, and divide the remaining weights by their sum."""
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
    """Multiply the matrix S (C, C) of case i by ``share``, and add the product to ``scores``."""
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
    """Compute ``E|X - Z| = int F (1 - G) + G (1 - F)`` from ascending quantiles (Q,) of X and Z.

    F and G are the CDFs of X and Z.
    """
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
    """Compute weighted averages of the quantiles of several components, within bounds.

    Parameters
    ----------
    quantiles : array of float, shape (N, C, Q)
        Ascending quantiles of N forecasts by C components, at the levels (i - ½) / Q,
        i = 1, ..., Q.
    weights : array of float, shape (N, C)
        Weights that sum to one over the components. The quantiles of a component without weight may
        be NaN.
    bounds : array of float, shape (N, 2)
        Lower and upper bound of the variable; -inf and inf mean no bound.

    Returns
    -------
    array of float64, shape (N, Q)
        Averages of the quantiles, at the same levels.

    Notes
    -----
    The probability of a bound is the weighted mean of the probabilities that the components give to
    this bound. If the function averaged all quantiles instead, a dry and a wet component together
    would forecast drizzle. Between the bounds, the function averages conditional quantiles. The
    conditional quantiles of a component are the quantiles of its values inside the bounds. For this
    average, the function multiplies the weight of each component by its probability of values
    inside the bounds.
    """
    averages = np.empty((quantiles.shape[0], quantiles.shape[2]))
    _fill_averages(
        *(np.ascontiguousarray(a, np.float64) for a in (quantiles, weights, bounds)), averages
    )
    return averages


@kernel
def _fill_averages(quantiles: Cube, weights: Matrix, bounds: Matrix, out: OutMatrix) -> None:
    """Write the averages (N, Q) of quantiles (N, C, Q) with weights (N, C) into ``out``."""
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
    """Interpolate between the quantiles ``first`` to ``last - 1`` at a fractional position."""
    j = min(max(int(np.floor(at)), first), last - 1)
    following = min(j + 1, last - 1)
    part = min(max(at - j, 0.0), 1.0)
    return x[j] + part * (x[following] - x[j])  # type: ignore[no-any-return]
