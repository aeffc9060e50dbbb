"""Test of calibration by comparison with artificial observations, drawn from the forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np

from xrecal.arrays.compiled import Indices, Matrix, OutIndexMatrix, OutVector, inner, kernel
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.rows import WORKSPACE, whole_number
from xrecal.typing import FloatArray, IntArray

from .expectations import cross_expectations, target_bandwidth
from .laplace_kernel import SPAN, TINY, mean_laplace
from .skce import TIES, chunks, forecast_similarity, generator, usable_cases

# How often the function tries to draw observations that differ, to compute a bandwidth.
TRIES = 20


def montecarlo_test(
    forecasts: Forecasts,
    observations: FloatArray,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    location_number: int = 0,
    augmented: bool = False,
) -> float:
    r"""Test whether forecasts are calibrated, with artificial observations from the forecasts.

    Parameters
    ----------
    forecasts, observations, augmented
        As in :func:`case_matrix`. A resample is a set of artificial observations, one for each
        case. If ``augmented`` is True, the function draws each artificial observation from the m
        members and the observation of the case, as in a permutation test.
    n_resamples, seed, location_number
        As in :func:`skce_test`.

    Returns
    -------
    float
        p-value :math:`(1 + \#\{U^* \ge U\}) / (B + 1)`. U is the unbiased estimate of the SKCE,
        :math:`U^*` the estimate with the observations of a resample, and B the number of resamples.
        The p-value is NaN with fewer than two cases.

    Raises
    ------
    ValueError
        As for :func:`case_matrix`.

    Notes
    -----
    A test at the level 5 % rejects calibrated forecasts with a probability of 5 %, for any number
    of independent cases. The reason is that observations of calibrated forecasts have the same
    distributions as the artificial observations. The bandwidth of the kernel on observations must
    not depend on the observations. So the function draws one value from each forecast, and takes
    the median positive distance among these values. If the values are all equal, it draws again.
    After twenty attempts, it takes the median positive distance among the observations.

    For ensembles, the function treats each member as a possible observation, and computes the sums
    over forecasts for this member once. So a resample needs only O(n²) additions. For mixtures of k
    normal distributions, a resample needs O(n² k) mean similarities, at 0.1 µs each. This is slow
    if there are many cases.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> members = Forecasts(rng.normal(size=(50, 9)))
    >>> montecarlo_test(members, rng.normal(3.0, 1.0, 50), n_resamples=99)
    0.01
    """
    n_resamples = whole_number("n_resamples", n_resamples, 1)
    parts, y = usable_cases(forecasts, observations, augmented)
    if y.size < 2:
        return np.nan
    rng = generator(seed, location_number)
    return montecarlo_p_value(parts, y, forecast_similarity(parts)[0], n_resamples, rng)


def montecarlo_p_value(
    parts: Forecasts,
    y: FloatArray,
    similarity: FloatArray,
    n_resamples: int,
    rng: np.random.Generator,
) -> float:
    """Compute the p-value for :func:`normalised` forecasts and finite observations y (n,)."""
    n = y.size
    off = similarity - np.diag(np.diag(similarity))
    drawing = _Drawing(parts, rng)
    theta = _drawn_bandwidth(drawing, y)
    at_points = None if drawing.scale is not None else _errors_at_points(parts, off, theta)
    # Part of U n (n - 1) that depends on y: sum k l(y, y') - 2 sum k E l(Z, y').
    cross = np.einsum("ij,ij->", off, cross_expectations(parts, y, theta))
    pairs = np.empty(1)
    fill_pair_sums(y[np.newaxis], off, theta, pairs)
    least = pairs[0] - 2 * cross - TIES * n**2
    count = 0
    for size in chunks(n_resamples, n):
        values, point = drawing.draw(size)
        pairs = np.empty(size)
        fill_pair_sums(values, off, theta, pairs)
        if at_points is not None:
            pairs -= 2 * at_points[point].sum(-1)
        else:
            mixtures = tuple(np.array(part, order="C") for part in drawing.mixtures)
            subtract_normal_errors(values, off, theta, mixtures, pairs)
        count += int((pairs >= least).sum())
    return (1 + count) / (n_resamples + 1)


class _Drawing:
    """Generator of random observations from normalised forecasts."""

    def __init__(self, parts: Forecasts, rng: np.random.Generator) -> None:
        loc, self.scale, weights = parts
        assert weights is not None  # set by normalised()
        self.rng, self.n = rng, len(weights)
        self.loc = np.broadcast_to(loc, weights.shape)
        self.mixtures = (self.loc, self.scale, weights)
        self.total = np.cumsum(np.ascontiguousarray(weights), axis=-1)
        self.last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)

    def draw(self, size: int) -> tuple[FloatArray, IntArray]:
        """Draw values (size, n), and return them with the positions (size, n) of the drawn members.

        A position is an index into the list of the members of all forecasts, one forecast after
        another.
        """
        level = self.rng.random((size, self.n))
        point = np.empty(level.shape, dtype=np.int64)
        fill_points(level, self.total, self.last, point)
        values = self.loc.ravel()[point]
        if self.scale is not None:
            values = values + self.scale.ravel()[point] * self.rng.standard_normal(level.shape)
        return values, point


def _drawn_bandwidth(drawing: _Drawing, y: FloatArray) -> float:
    for _ in range(TRIES):
        theta = target_bandwidth(drawing.draw(1)[0][0])
        if not np.isnan(theta):
            return theta
    theta = target_bandwidth(y)
    return 1.0 if np.isnan(theta) else theta  # all values are equal, so any bandwidth does


def _errors_at_points(parts: Forecasts, off: FloatArray, theta: float) -> FloatArray:
    """Compute ``sum_i k_ij E l(Z_i, z)`` for each member z of each forecast j.

    Here k is ``off`` (similarities of forecasts, with k_ii = 0), l is the Laplace kernel, and Z_i
    is drawn from forecast i. The result has one value for each member of the first forecast, then
    of the second, and so on. To limit memory, the function computes the values of some members at a
    time.
    """
    loc, _, weights = parts
    assert weights is not None
    if loc.ndim == 1:
        return np.asarray(off @ cross_expectations(parts, loc, theta)).ravel()
    n, m = loc.shape
    errors = np.empty(n * m)
    order = np.argsort(loc, axis=None)
    step = max(1, WORKSPACE // (16 * n))
    for start in range(0, n * m, step):
        some = order[start : start + step]
        cross = cross_expectations(parts, loc.ravel()[some], theta).T
        errors[some] = np.einsum("pi,pi->p", cross, off[some // m])
    return errors


@kernel
def fill_points(level: Matrix, total: Matrix, last: Indices, out: OutIndexMatrix) -> None:
    """Find the members at random levels (b, n) in [0, 1), from cumulative sums (n, m) of weights.

    The result (b, n) is the position of each member among the members of all forecasts.
    """
    m = total.shape[1]
    for b in range(level.shape[0]):
        for i in range(level.shape[1]):
            low, high = 0, last[i]
            while low < high:
                middle = (low + high) // 2
                if total[i, middle] > level[b, i]:
                    high = middle
                else:
                    low = middle + 1
            out[b, i] = i * m + low


@kernel
def fill_pair_sums(values: Matrix, similarity: Matrix, theta: float, out: OutVector) -> None:
    """Compute ``sum_ij k_ij exp(-|y_i - y_j| / theta)`` for each row y of values (b, n); k_ii = 0.

    Here k is ``similarity`` (n, n). The function goes through y in ascending order. It keeps
    ``exp((y' - base) / theta)`` of the earlier values y', and moves the base up with y to prevent
    overflow.
    """
    n = values.shape[1]
    behind, met = np.empty(n), np.empty(n)
    for b in range(values.shape[0]):
        y = values[b]
        for i in range(n):
            behind[i] = met[i] = 0.0
        order = np.argsort(y)
        base = y[order[0]]
        for r in range(n):
            j = order[r]
            ahead = (y[j] - base) / theta
            if ahead > SPAN:
                _move_base(behind, np.exp(-ahead))
                base, ahead = y[j], 0.0
            rise = np.exp(ahead)
            row, fall = similarity[j], 1.0 / rise
            for i in range(n):
                met[i] += fall * (row[i] * behind[i])
            behind[j] = rise
        total = 0.0
        for i in range(n):
            total += met[i]
        out[b] = 2.0 * total


@inner
def _move_base(behind: Any, factor: float) -> None:
    for i in range(behind.size):
        s = behind[i] * factor
        behind[i] = s if s > TINY else 0.0


@kernel
def subtract_normal_errors(
    values: Matrix,
    similarity: Matrix,
    theta: float,
    mixtures: tuple[Matrix, Matrix, Matrix],
    out: OutVector,
) -> None:
    """Subtract ``2 sum_ij k_ij E l(Z_i, y_j)`` for each row y of values from ``out``.

    Here k is ``similarity``, l is the Laplace kernel, and Z_i is drawn from mixture i. ``mixtures``
    has locations, scales and weights (n, m) of normal distributions.
    """
    loc, scale, weights = mixtures
    n = values.shape[1]
    for b in range(values.shape[0]):
        total = 0.0
        for i in range(n):
            for j in range(n):
                for k in range(loc.shape[1]):
                    factor = similarity[i, j] * weights[i, k]
                    if factor > 0.0:
                        gap = loc[i, k] - values[b, j]
                        total += factor * mean_laplace(gap, scale[i, k], theta)
        out[b] -= 2.0 * total
