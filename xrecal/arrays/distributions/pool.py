"""Held-out forecasts of several methods to the weights of their mixture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import Cube, Floats5, Matrix, OutMatrix, Vector, inner, kernel
from xrecal.arrays.rows import whole_number
from xrecal.typing import FloatArray

STEPS = 20
"""Components added to a mixture, one after the other, with replacement."""

RESAMPLES = 500
"""Bootstrap samples of the cases over which the weights are averaged.

With 50 the score of a pool of few cases varies by 1 % with the stream of random numbers.
"""

SMALLEST = 0.005
"""A weight below this fraction of the largest is none: its component need not be computed."""

BELIEF = 160.0
"""Cases that the belief in the raw forecast is worth, where no component forecasts better."""

DOUBT = 2.0
"""Standard errors by which a component forecasts better, at which half of the belief is left."""

ROUNDING = 1e-9
"""A gain below this fraction of the CRPS is none."""

BLOCKS = 10
"""Parts that cases in the order of time are cut into, drawn together by the bootstrap."""

PASSES = (1.0, 0.25)
"""How much a case counts that is forecast without its fold, and from earlier cases alone.

The second shows drift, but learns from half of the cases on average, which favours what needs few.
"""


def pool_weights(
    quantiles: FloatArray,
    observations: FloatArray,
    raw: FloatArray | None = None,
    *,
    steps: int = STEPS,
    blocks: int = BLOCKS,
    belief: float | FloatArray = BELIEF,
    doubt: float = DOUBT,
    passes: tuple[float, ...] = PASSES,
) -> FloatArray:
    r"""Weights of a linear pool with a small held-out CRPS.

    Parameters
    ----------
    quantiles : array of float, shape (L, P, C, n, Q)
        Held-out forecasts of n cases, in the order of time, by C components: quantiles at the
        levels (i - ½) / Q, in any unit. P times over, from different ways of holding out, of
        which the first that counts tells how sure it is that a component is better than ``raw``. A
        component that is NaN in half of the cases or more gets no weight; cases where another one
        is NaN are left out.
    observations : array of float, shape (L, n)
        What verified; NaN where unknown.
    raw : array of float, shape (L, n, Q), optional
        Quantiles of the forecasts as issued. They make the weights safe with few cases: to the
        CRPS of the n cases is added that of ``belief`` cases in which the raw forecast is right,
        times the smallest mean CRPS of a component over that of the raw forecast (1 at most), and
        times :math:`1 / (1 + (z / doubt)^2)` if that component is better by z standard errors.
    steps : int
        Components added to the mixture of each bootstrap sample.
    blocks : int
        Parts that the cases are cut into for the bootstrap.
    belief : float or array of float, shape (L,)
        Cases that the belief in the raw forecast is worth where no component is better.
    doubt : float
        Standard errors by which a component is better at which half of the belief is left.
    passes : tuple of float
        How much a case counts in each of the P ways of holding out; there may be more than P.

    Returns
    -------
    array of float64, shape (L, C)
        Weights that sum to one, each 0 or at least 0.005 times the largest; NaN without a case.

    Raises
    ------
    ValueError
        If ``steps`` or ``blocks`` is no whole number from 1.

    Notes
    -----
    The CRPS of a mixture is a quadratic form of its weights, :math:`v^T S v` with
    :math:`S_{cd} = \frac12 (E|X_c - y| + E|X_d - y| - E|X_c - X_d|)` averaged over cases, so one
    pass over the cases, O(C² n Q), serves all mixtures. Components are added greedily [1]_ to
    each of 500 bootstrap samples of blocks of cases, and the weights averaged: the best mixture of
    few cases would fit their noise. Observations drawn from the raw forecast R add
    :math:`\frac12 (E|X_c - R| + E|X_d - R| - E|X_c - X_d|)` to S.

    References
    ----------
    .. [1] Caruana et al. (2004), Ensemble selection from libraries of models.
       https://doi.org/10.1145/1015330.1015432

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, levels = rng.normal(size=(1, 60)), np.linspace(-1.0, 1.0, 20)
    >>> sharp = truth[..., np.newaxis] + levels
    >>> wide = np.broadcast_to(3.0 * levels, sharp.shape)
    >>> pool_weights(np.stack([sharp, wide], 1)[:, np.newaxis], truth).round(1)
    array([[1., 0.]])
    """
    n_locations, n_components = quantiles.shape[0], quantiles.shape[2]
    weights = np.full((n_locations, n_components), np.nan)
    _fill_weights(
        np.ascontiguousarray(quantiles, np.float64),
        np.ascontiguousarray(observations, np.float64),
        np.ascontiguousarray(quantiles[:, 0, 0] if raw is None else raw, np.float64),
        np.full(n_locations, 0.0 if raw is None else belief, np.float64),
        _Rules(
            float(doubt),
            whole_number("steps", steps, 1),
            whole_number("blocks", blocks, 1),
            np.array(passes[: quantiles.shape[1]], np.float64),
        ),
        weights,
    )
    return weights


def belief_left(raw: FloatArray, observations: FloatArray) -> FloatArray:
    """Share (L,) of the belief in forecasts (L, n, Q) that is left where climatology refutes them.

    All where their CRPS is no more than that of climatology without the case, none where it is
    twice as much. A switch would be thrown by the noise of few cases; and to fade as skill does
    takes the belief from forecasts that are the best there are, where little can be known.
    """
    raw, observations = np.asarray(raw, np.float64), np.asarray(observations, np.float64)
    n_quantiles = raw.shape[-1]
    known = np.isfinite(observations) & np.isfinite(raw[..., 0])
    n, y = known.sum(-1), np.where(known, observations, np.nan)
    spread = (raw * (2 * np.arange(n_quantiles) - n_quantiles + 1)).sum(-1) / n_quantiles**2
    miss = np.abs(raw - y[..., np.newaxis]).mean(-1) - spread
    # Distances of all pairs of observations, which are in order; missing ones come last.
    place = 2 * np.arange(y.shape[-1]) - n[:, np.newaxis] + 1
    apart = 2 * np.nansum(np.sort(y, axis=-1) * place, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # without a second case, or all the same
        ratio = (np.nansum(miss, -1) / n) / (apart / (2 * (n - 1.0) ** 2))
    return np.clip(2.0 - np.where(np.isnan(ratio), 2.0, ratio), 0.0, 1.0)


class _Rules(NamedTuple):
    """How weights are chosen, see :func:`pool_weights`."""

    doubt: float
    steps: int
    blocks: int
    passes: Vector


@kernel
def _fill_weights(
    quantiles: Floats5,
    observations: Matrix,
    raw: Cube,
    beliefs: Vector,
    rules: _Rules,
    out: OutMatrix,
) -> None:
    """Weights (L, C) of quantiles (L, P, C, n, Q), averaged over bootstrap samples of the cases."""
    doubt, steps, blocks, passes = rules
    n_locations, n_passes, n_components, n = quantiles.shape[:4]
    for cell in range(n_locations):
        usable = _usable(quantiles[cell], observations[cell])
        belief = beliefs[cell]
        scores = np.zeros((n_passes * blocks, n_components, n_components))
        believed = np.zeros((n_passes * blocks, n_components, n_components))
        of_raw, used, first = np.zeros(n_passes * blocks), 0, (0, 0)
        for p in range(n_passes):
            counted = 0
            for i in range(n):
                counted += _is_complete(quantiles[cell, p], observations[cell], i, usable)
            rank = 0
            for i in range(n):
                if _is_complete(quantiles[cell, p], observations[cell], i, usable):
                    block, y = used + rank * min(blocks, counted) // counted, observations[cell, i]
                    add_scores(quantiles[cell, p], y, i, passes[p], scores[block])
                    if belief > 0 and not np.isnan(raw[cell, i, 0]):
                        part = passes[p] / counted
                        add_beliefs(quantiles[cell, p], raw[cell, i], i, part, believed[block])
                        of_raw[block] += passes[p] * quantile_crps(raw[cell, i], y)
                    rank += 1
            used += min(blocks, counted)
            # Standard errors come from one pass: the others forecast the same cases again.
            if first[1] == 0 and passes[p] > 0:
                first = used - min(blocks, counted), used
        if used == 0:
            continue
        if belief > 0:
            _add(scores, belief * _trust(scores, of_raw, usable, first, doubt), believed)
        for c in range(n_components):
            out[cell, c] = 0.0
        # A linear congruential generator, as NumPy's takes long to compile; high bits, as low ones
        # repeat early. Whole blocks of cases are drawn, so that serial dependence stays.
        state = np.uint64(20261120)
        for _ in range(RESAMPLES):
            total = np.zeros((n_components, n_components))
            for _ in range(used):
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                block = int((state >> np.uint64(33)) % np.uint64(used))
                for c in range(n_components):
                    for d in range(n_components):
                        if usable[c] and usable[d]:
                            total[c, d] += scores[block, c, d]
            _greedy(total, usable, steps, out[cell])
        _drop_smallest(out[cell])


@inner
def _add(scores: Any, share: float, others: Any) -> None:
    """Add a share of other scores (B, C, C)."""
    for block in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            for d in range(scores.shape[2]):
                scores[block, c, d] += share * others[block, c, d]


@inner
def _trust(scores: Any, of_raw: Any, usable: Any, first: tuple[int, int], doubt: float) -> float:
    """Share of the belief in the raw forecast that its CRPS leaves it.

    Sums of the CRPS in blocks of cases: ``scores`` (B, C, C) of mixtures, ``of_raw`` (B,).

    The standard error comes from the blocks ``first``, from one to before another.
    """
    raw, best, smallest = 0.0, 0, np.inf
    for each in of_raw:
        raw += each
    for c in range(usable.size):
        total = 0.0
        for block in range(of_raw.size):
            total += scores[block, c, c]
        if usable[c] and total < smallest:
            best, smallest = c, total
    if not raw > 0:
        return 0.0
    gain, square = 0.0, 0.0
    for block in range(first[0], first[1]):
        better = of_raw[block] - scores[block, best, best]
        gain += better
        square += better**2
    n = first[1] - first[0]
    ratio: float = min(smallest / raw, 1.0)
    if n < 2 or gain <= ROUNDING * raw:
        return ratio
    # The variance of a sum of blocks, from what they differ by.
    noise = doubt**2 * max(square - gain**2 / n, 0.0) * n / (n - 1)
    whole = noise + gain**2  # zero where squares are too small for a float64
    return ratio * noise / whole if whole > 0 else ratio


@inner
def _usable(quantiles: Any, observations: Any) -> Any:
    """Whether each component (P, C, n, Q) forecasts most of the cases that any forecasts."""
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
    """Whether all usable components (C, n, Q) forecast case i, and it was observed."""
    complete = not np.isnan(observations[i])
    for c in range(quantiles.shape[0]):
        complete = complete and (not np.isnan(quantiles[c, i, 0]) or not usable[c])
    return complete


@inner
def _greedy(scores: Any, usable: Any, steps: int, weights: Any) -> None:
    """Add to the weights (C,) those of the mixture that greedy steps build from one sample."""
    n = weights.size
    product = np.zeros(n)  # of the scores with the counts so far
    square = 0.0
    for _ in range(steps):
        best, smallest = 0, np.inf
        # The CRPS of a mixture is a quadratic form of its counts: one component more adds its own
        # entry, and twice those that it shares with what is there.
        for c in range(n):
            loss = square + 2 * product[c] + scores[c, c]
            if usable[c] and loss < smallest:
                best, smallest = c, loss
        square = smallest
        for c in range(n):
            product[c] += scores[c, best]
        weights[best] += 1.0 / (steps * RESAMPLES)


@inner
def _drop_smallest(weights: Any) -> None:
    """Set weights that are too small to matter to zero, and divide the others by their sum."""
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
    _add_quadratic(quantiles, i, miss, share, scores)


@inner
def add_beliefs(quantiles: Any, raw: Any, i: int, share: float, beliefs: Any) -> None:
    """Add S of case i, times ``share``, with observations drawn from the raw forecast (Q,)."""
    miss = np.zeros(quantiles.shape[0])
    for c in range(miss.size):
        miss[c] = _mean_distance(quantiles[c, i], raw)
    _add_quadratic(quantiles, i, miss, share, beliefs)


@inner
def _add_quadratic(quantiles: Any, i: int, miss: Any, share: float, scores: Any) -> None:
    """Add S of case i, times ``share``, given mean distances (C,) from what verifies."""
    for c in range(miss.size):
        for d in range(c + 1):
            apart = _mean_distance(quantiles[c, i], quantiles[d, i])
            s = share * 0.5 * (miss[c] + miss[d] - apart)
            scores[c, d] += s
            if d < c:
                scores[d, c] += s


@inner
def quantile_crps(x: Any, y: float) -> float:
    """CRPS of one forecast by its quantiles (Q,)."""
    miss = 0.0
    for k in range(x.size):
        miss += abs(x[k] - y) / x.size
    return miss - 0.5 * _mean_distance(x, x)  # type: ignore[no-any-return]


@inner
def _mean_distance(x: Any, z: Any) -> float:
    """``E|X - Z| = int F (1 - G) + G (1 - F)`` of ascending quantiles (Q,)."""
    q = x.size
    total, i, j = 0.0, 0, 0
    last = min(x[0], z[0])
    while i < q or j < q:
        from_x = j == q or (i < q and x[i] <= z[j])
        point = x[i] if from_x else z[j]
        f, g = i / q, j / q
        total += (f * (1.0 - g) + g * (1.0 - f)) * (point - last)
        last = point
        if from_x:
            i += 1
        else:
            j += 1
    return total
