"""Choice of settings at many locations at once, from all kernels, supports and ridges.

A support is a kind of members: past observations, or a centre plus past errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.ckme.centre import OBSERVATIONS, usable_supports
from xrecal.arrays.ckme.embedding import Calibration, Choices, Settings
from xrecal.arrays.ckme.folds import Folds, folds_in_time, gap_axis, holds_out_several
from xrecal.arrays.ckme.problem import bandwidth_of
from xrecal.arrays.ckme.ridge_rules import GRID, vertex
from xrecal.arrays.ckme.search import candidates_of
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.status import RIDGE_EDGE
from xrecal.typing import FloatArray, IntArray

from .cases import Cases, blocks, cases_of
from .centre import Bounds, centres_of, errors_of, fit_centres, inside, members_of
from .simplex import simplex_rows
from .stacked import linear, take

__all__ = ["choose", "smallest_losses"]

ARRAYS = 10
"""Number of arrays that exist at the same time, each as large as the weights of one fold."""


class Fold(NamedTuple):
    """One fold of each of L locations, on the host.

    In a fold, each case is held out, left out because it lies in the gap, or a training case.
    """

    out: IntArray
    """(L, g) positions of held-out cases, followed by positions of cases in the gap"""
    n_out: IntArray
    """(L,) number of cases in each row of ``out``; further entries of the row have no meaning"""
    n_held: IntArray
    """(L,) number of held-out cases"""
    train: npt.NDArray[np.bool_]
    """(L, n) True for training cases"""


class Tried(NamedTuple):
    """Mean losses of a location with G kernels, S supports and R ridges."""

    loss: FloatArray
    """(G, S, R) mean losses, infinite for settings that cannot be used"""
    by_fold: FloatArray
    """(G, S, F, R) mean losses in each of F folds"""
    silent: bool
    """True if all forecasts are equal and the kernel uses no covariates"""
    by_group: bool
    """True if folds are groups of several cases. Then the chosen ridge must be clearly better than
    the largest ridge; see :func:`_is_doubtful`"""


class Grid:
    """Grid of all kernels, supports and ridges that the settings allow."""

    def __init__(self, given: Calibration, settings: Settings) -> None:
        self.kernels, self.supports = candidates_of(
            settings, conditioned=given.features.circular.size > 0
        )
        self.exponents = GRID if settings.ridge is None else np.log10([settings.ridge])
        self.is_alone = len(self.kernels) * self.supports.size * self.exponents.size == 1


def choose(
    given: Calibration, settings: Settings, half_life: FloatArray, bounds: Bounds
) -> Choices:
    """Choose settings at each location, for half-lives (L,) of case weights."""
    grid = Grid(given, settings)
    choices = [Choices(int(grid.supports[0]))] * half_life.size
    n_cases = to_host(given.used).sum(-1)
    for place, tried in trials(given, settings, half_life, bounds, forward=False):
        own = {"half_life": half_life[place]}
        if settings.ridge is None:
            own["cases"] = float(n_cases[place])
        choices[place] = decide(tried, grid, settings)._replace(**own)
    return Choices.joined(choices, len(grid.kernels) * grid.supports.size * GRID.size)


def smallest_losses(
    given: Calibration, settings: Settings, half_life: FloatArray, bounds: Bounds
) -> FloatArray:
    """Return the smallest loss (L,) over all settings, with fits to earlier cases alone.

    The loss is infinite at locations with too few cases.
    """
    losses = np.full(half_life.size, math.inf)
    for place, tried in trials(given, settings, half_life, bounds, forward=True):
        losses[place] = tried.loss.min()
    return losses


def decide(tried: Tried, grid: Grid, settings: Settings) -> Choices:
    """Choose the support, kernel and ridge with the smallest loss at a location.

    If several ridges have the smallest loss, the function chooses the largest of them. It follows
    the rules of :class:`xrecal.arrays.ckme.search.Search`.
    """
    loss, exponents, largest = tried.loss.copy(), grid.exponents, grid.exponents.size - 1
    if tried.silent:  # equal forecasts: no ridge has an effect
        loss[:, :, :-1] = math.inf
    downwards = np.moveaxis(loss, 0, 1)[:, :, ::-1]
    s, g, r = map(int, np.unravel_index(downwards.argmin(), downwards.shape))
    r = largest - r
    past, beside = grid.supports == OBSERVATIONS, 0
    if past[s] and np.isfinite(loss[:, ~past]).any():
        beside = int(grid.supports[~past][loss[:, ~past].min((0, 2)).argmin()])
    exponent, status, smallest = float(exponents[r]), 0, loss[g, s, r]
    if settings.ridge is None and not tried.silent:
        if tried.by_group and r < largest and _is_doubtful(tried.by_fold[g, s], r):
            exponent, smallest = float(exponents[-1]), loss[g, s, -1]
        elif r in (0, largest):
            status = RIDGE_EDGE if past[s] or r == 0 else 0
        else:
            exponent = vertex(dict(zip(exponents.tolist(), loss[g, s], strict=True)), exponent)
    searched = np.isfinite(smallest) and not (grid.is_alone or (tried.silent and loss.size == 1))
    ridge = 10.0**exponent if settings.ridge is None else settings.ridge
    return Choices(
        support=int(grid.supports[s]),
        widening=grid.kernels[g][0],
        strength=grid.kernels[g][1],
        ridge=ridge,
        loss=smallest if searched else math.nan,
        beside=beside,
        status=status,
        losses=np.broadcast_to(tried.loss, (*tried.loss.shape[:2], GRID.size)).ravel(),
    )


def _is_doubtful(by_fold: FloatArray, r: int) -> bool:
    """Return True if it is doubtful that ridge ``r`` is better than the largest ridge.

    It is doubtful if the mean gain over the F folds is below its standard error. ``by_fold`` (F, R)
    holds the losses; see :meth:`xrecal.arrays.ckme.search.Search.doubt`.
    """
    gain = by_fold[:, -1] - by_fold[:, r]
    gain = gain[np.isfinite(gain)]
    return gain.size < 2 or bool(gain.mean() < np.std(gain, ddof=1) / math.sqrt(gain.size))


def trials(
    given: Calibration,
    settings: Settings,
    half_life: FloatArray,
    bounds: Bounds,
    *,
    forward: bool,
) -> Iterator[tuple[int, Tried]]:
    """Yield the position and the mean losses of each location that has enough cases.

    The losses are those of all kernels, supports and ridges.
    """
    grid, n_slots = Grid(given, settings), given.step.size
    fold_by = given.groups, given.blocks
    axis = gap_axis(settings.gap, given.step, given.days)
    plain = all(strength == 0 for _, strength in grid.kernels)
    for block in blocks(half_life.size, 8 * n_slots**2 * (6 + 2 * grid.exponents.size)):
        cases, _ = cases_of(given, settings, half_life[block], block)
        folds = [
            folds_in_time(fold_by, slot[:n], axis, given.step, forward=forward)
            for slot, n in zip(cases.slot, cases.n_used.tolist(), strict=True)
        ]
        known = bounds.take(block)
        total, held = losses_of(cases, settings, grid, side_by_side(folds, n_slots), known)
        silent = np.isinf(to_host(cases.median)) & plain
        for i in np.flatnonzero(cases.n_used >= max(settings.min_samples, 2)).tolist():
            with np.errstate(invalid="ignore"):
                mean = total[:, :, :, i].sum(2) / held[:, i].sum()
                by_fold = total[:, :, :, i] / held[:, i, np.newaxis]
            loss, usable = (
                np.full(mean.shape, math.inf),
                usable_supports(grid.supports, known.low[i]),
            )
            loss[:, usable] = np.nan_to_num(mean[:, usable], nan=math.inf)
            agreeing = given.blocks == 0 and holds_out_several(folds[i])
            yield block.start + i, Tried(loss, by_fold, bool(silent[i]), agreeing)


def side_by_side(folds: list[Folds], n: int) -> Iterator[Fold]:
    """Yield the first folds of all locations together, then the second folds, and so on."""
    for f in range(max((one.n_out.size for one in folds), default=0)):
        role = np.full((len(folds), n), -1)  # 2: held out, 1: in the gap, 0: training
        for place, (cases, n_held, n_out) in enumerate(folds):
            if f < n_out.size:
                role[place, cases[f]] = np.repeat(
                    [2, 1, 0], np.diff([0, n_held[f], n_out[f], cases.shape[1]])
                )
        n_out = (role > 0).sum(-1)
        out = np.argsort(-role, axis=-1, kind="stable")[:, : n_out.max(initial=0)]
        yield Fold(out, n_out, (role == 2).sum(-1), role == 0)


def losses_of(
    cases: Cases, settings: Settings, grid: Grid, folds: Iterator[Fold], bounds: Bounds
) -> tuple[FloatArray, FloatArray]:
    """Return sums (G, S, F, L, R) of losses of held-out cases, and the counts (F, L) of cases.

    The axes count kernels, supports, folds, locations and ridges.
    """
    xp, host = namespace(cases.target), cases.on_host
    none = np.zeros(cases.n_used.size)
    scale = np.array([bandwidth_of(settings, median) for median in host.median.tolist()])
    eigen = [
        linear(xp, "eigh", cases.gram(xp.asarray(scale * widening), xp.asarray(none + strength)))
        for widening, strength in grid.kernels
    ]
    total, held = [], []
    for fold in folds:
        held.append(fold.n_held)
        for (_, strength), one in zip(grid.kernels, eigen, strict=True):
            counted = np.full(none.size, strength > 0)
            by_support: list[list[Any]] = [[] for _ in grid.supports]
            for ridges in ridges_at_once(10.0**grid.exponents, fold):
                weights = _forecasts(cases, host.root, one, fold, ridges)
                for of_support, code in zip(by_support, grid.supports.tolist(), strict=True):
                    codes = np.full(none.size, code)
                    of_support.append(_sums_of_crps(cases, codes, counted, fold, weights, bounds))
            total += [xp.concatenate(of_support, axis=-1) for of_support in by_support]
    shape = len(held), len(grid.kernels), grid.supports.size, none.size, grid.exponents.size
    sums = to_host(xp.stack(total)) if total else np.zeros(0)
    return np.moveaxis(sums.reshape(shape), 0, 2), np.reshape(held, (len(held), none.size))


def ridges_at_once(ridges: FloatArray, fold: Fold) -> Iterator[FloatArray]:
    """Yield a few ridges at a time, so that their arrays fit into ``WORKSPACE`` bytes."""
    n_locations, n_out = fold.out.shape
    each = 8 * ARRAYS * n_locations * n_out * fold.train.shape[1]
    return (ridges[some] for some in blocks(ridges.size, each))


def _forecasts(
    cases: Cases, root: FloatArray, eigen: tuple[Any, Any], fold: Fold, ridges: FloatArray
) -> Any:
    """Return the weights (L, R, h, n) of training cases for h held-out cases, with each ridge.

    K is the kernel matrix, and ``eigen`` its eigendecomposition, the same for all ridges and folds.
    With the matrix ``C = (K + shift I)^-1``, the function first computes ``-C_gg^-1 C_gt``, where g
    are the cases in ``fold.out``, and t the training cases. The shift is the product of the ridge,
    the number of training cases and their largest weight. I is the identity matrix. Then the
    function undoes the scaling of K by the roots of case weights. To make the sum one, it adds a
    multiple of the case weights. At last, it projects the result onto weights >= 0 with sum one.
    """
    xp, (values, vectors) = namespace(cases.target), eigen
    g, h = fold.out.shape[1], int(fold.n_held.max(initial=0))
    own = root * fold.train
    heaviest = (own**2).max(-1, initial=0.0)
    shift = ridges * (fold.train.sum(-1) * heaviest + ~fold.train.any(-1))[:, np.newaxis]
    inverse = 1.0 / (xp.clip(values, 0.0, None)[:, None, :] + xp.asarray(shift)[:, :, None])
    there = xp.asarray(np.arange(g) < fold.n_out[:, np.newaxis])
    shrunk = xp.where(there[:, :, None], take(xp, vectors, fold.out), 0.0)[:, None, :, :]
    rows = xp.matmul(shrunk * inverse[:, :, None, :], xp.moveaxis(vectors, -1, -2)[:, None, :, :])
    at = xp.broadcast_to(xp.asarray(fold.out)[:, None, None, :], (*rows.shape[:3], g))
    among = xp.take_along_axis(rows, at, axis=-1)
    both = (there[:, :, None] & there[:, None, :])[:, None, :, :]
    among = xp.where(both, among, xp.eye(g))
    flat = xp.reshape(among, (-1, g, g))
    among = xp.reshape(linear(xp, "inv", flat), among.shape)
    train = xp.asarray(fold.train)[:, None, None, :]
    signed = xp.where(train, -xp.matmul(among[:, :, :h, :], rows), 0.0)
    held = np.take_along_axis(root, fold.out[:, :h], axis=1)
    held = np.where(np.arange(h) < fold.n_held[:, np.newaxis], held, 1.0)
    beta = signed * xp.asarray(own)[:, None, None, :] / xp.asarray(held)[:, None, :, None]
    share = own**2 / np.maximum((own**2).sum(-1, keepdims=True), 1e-300)
    missing = 1.0 - xp.sum(beta, axis=-1, keepdims=True)
    return simplex_rows(beta + missing * xp.asarray(share)[:, None, None, :], train)


def _sums_of_crps(
    cases: Cases,
    code: IntArray,
    counted: npt.NDArray[np.bool_],
    fold: Fold,
    weights: Any,
    bounds: Bounds,
) -> Any:
    """Sum up the CRPS over held-out cases of a fold, for each location and ridge, (L, R)."""
    xp, host, h = namespace(cases.target), cases.on_host, int(weights.shape[2])
    coefficients = xp.asarray(fit_centres(code, host, fold.train, counted, bounds))
    error = errors_of(cases, code, coefficients, bounds)
    train = xp.asarray(fold.train)
    # Other cases come last, at the largest error. Their weight is 0, so they change nothing.
    most = xp.max(xp.where(train, error, -float("inf")), axis=-1, keepdims=True)
    order = xp.argsort(xp.where(train, error, float("inf")), axis=-1)
    error = xp.take_along_axis(xp.where(train, error, most), order, axis=-1)
    centre, spread = centres_of(code, coefficients, cases.mean, cases.variance, cases.features)
    held = fold.out[:, :h]
    own = take(xp, centre, held), take(xp, spread, held)
    points = members_of(*own, error, bounds, inside(host, fold.train, bounds))[:, None, :, :]
    ranked = xp.broadcast_to(order[:, None, None, :], weights.shape)
    loss = crps(
        xp.take_along_axis(weights, ranked, axis=-1),
        points,
        take(xp, cases.target, held)[:, None, :],
    )
    counts = xp.asarray(np.arange(h) < fold.n_held[:, np.newaxis])[:, None, :]
    return xp.sum(xp.where(counts, loss, 0.0), axis=-1)


def crps(weights: Any, points: Any, y: Any) -> Any:
    """Compute the CRPS ``int (F - 1{z >= y})^2 dz`` for observations y (...).

    F is the CDF of ascending points (..., k) with weights (..., k).
    """
    xp = namespace(weights)
    below = xp.cumsum(weights, axis=-1)[..., :-1]
    low, high = points[..., :-1], points[..., 1:]
    verified = y[..., None]
    under = xp.minimum(xp.maximum(verified - low, xp.zeros_like(low)), high - low)
    inner = below * below * under + (1.0 - below) ** 2 * (high - low - under)
    beyond = xp.maximum(points[..., 0] - y, y - points[..., -1])
    return xp.sum(inner, axis=-1) + xp.where(beyond > 0.0, beyond, 0.0)
