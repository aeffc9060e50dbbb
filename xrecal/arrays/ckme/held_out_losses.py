"""Forecasts of held-out cases from signed weights, with losses and quantiles of these forecasts.

Signed weights are the weights of training cases before a projection makes them probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import (
    Cube,
    Indices,
    Matrix,
    OutCube,
    OutVector,
    Vector,
    inner,
    kernel,
)
from xrecal.typing import FloatArray, IntArray

from .centre import Limits, Targets, fill_members, rank_errors
from .embedding import LOSS_NAMES
from .folds import Folds, by_rank, same_training_cases, trained_on_few
from .lowrank import ROUGH, heaviest
from .problem import Problem
from .simplex import PROJECTIONS, shift_of
from .solvers import Exact, Solver, left_out_weights

Place = np.uint64
"""Unsigned type of an index, so that compiled code does not check for negative indices."""


@kernel
def mean_losses(recorded: Cube, supports: Indices) -> Any:
    """Return the mean loss (S,) of each support over held-out cases; infinite without losses."""
    means = np.full(recorded.shape[0], np.inf)
    for s in supports:
        total, count = 0.0, 0
        for i in range(recorded.shape[1]):
            if not np.isnan(recorded[s, i, 0]):
                total += recorded[s, i, 0]
                count += 1
        if count > 0:
            means[s] = total / count
    return means


class Verified(NamedTuple):
    """Observations of one location, and all other numbers that the losses of forecasts need."""

    target: Vector
    """(n,) observations"""
    root: Vector
    """(n,) square roots of the case weights"""
    low: float
    """Lower bound of the variable"""
    high: float
    """Upper bound of the variable"""
    theta: Matrix
    """Scale of the Laplace loss (1, 1), or for the energy loss the observed vectors (n_slots, d) of
    all cases, usable or not"""
    supports: Indices
    """Positions of the supports to judge, in the arrays of :class:`.Targets`"""


class Recorder(NamedTuple):
    """Compiled functions that write losses and quantiles of held-out cases to an array.

    The array has the shape (S, n, width), for S supports and n cases.
    """

    fold: Callable[..., None]
    """Function for the held-out cases of one fold, from their signed weights"""
    folds: Callable[..., None]
    """Function for the held-out cases of all folds that have at least as many training cases as
    other cases"""


def _of_one_fold(projection: str, record: Any) -> Any:
    """Compile ``record_fold`` for one projection; the function ``record`` computes losses."""
    project, on_support = PROJECTIONS[projection], projection == "energy"

    @kernel
    def record_fold(
        signed: Matrix, folds: Folds, f: int, targets: Targets, verified: Verified, out: OutCube
    ) -> None:
        """Turn signed weights (n_held, k) into forecasts, and write their losses to ``out``.

        ``out`` has the shape (S, n, width), for S supports and n cases. The columns of the signed
        weights are the training cases, in the order of the fold. A projection that depends on the
        support runs once for each support.
        """
        target, root, supports = verified.target, verified.root, verified.supports
        train, k = folds.cases[f, folds.n_out[f] :], signed.shape[1]
        beta, row, room = np.empty(k), np.empty(k), np.empty(k)
        points, error, shift, least = np.empty(k), np.empty(k), 0.0, 0.0
        limits = Limits(verified.low, verified.high, targets.inner[f, 0], targets.inner[f, 1])
        own, share, mass = _shares(signed, root, train)
        for c in range(folds.n_held[f]):
            case = folds.cases[f, c]
            _scale_back(signed[c], 1.0 / root[case], mass[c], own, share, beta)
            if not on_support:
                shift, least = shift_of(beta, least, room)
            for s in supports:
                centre, spread = targets.centre[f, s, case], targets.spread[f, s, case]
                weights, errors, used = beta, targets.error[f, s][:k], k
                if targets.ranked.size > 0:
                    _take(beta, targets.ranked[f, s], row)
                    weights = row
                if not on_support and shift != 0.0:
                    used = _above(weights, shift, errors, row, error)
                    weights, errors = row, error
                fill_members(centre, spread, errors[:used], limits, points[:used])
                if on_support:
                    project(weights, points, room)
                    weights = room
                if used > 0:
                    of = verified.theta, target[case], out[s, case]
                    record(weights[:used], points[:used], *of)

    return record_fold


@inner
def _shares(signed: Any, root: Any, train: Any) -> Any:
    """Return two arrays (k,) for the k training cases, and one for the held-out cases (n_held,).

    The first array holds the square roots of the case weights. The second array holds the weights
    of the training cases in climatology, in proportion to the case weights. For the third array,
    the function multiplies each row of ``signed`` by the roots and adds up the products. Up to a
    factor, this gives the sum of the signed weights of a held-out case.
    """
    own, share, total = np.empty(train.size), np.empty(train.size), 0.0
    for i in range(train.size):
        own[i] = root[train[i]]
        total += own[i] ** 2
    for i in range(train.size):
        share[i] = own[i] ** 2 / total
    return own, share, np.dot(signed, own)


@inner
def _scale_back(signed: Any, heavier: float, mass: float, own: Any, share: Any, beta: Any) -> None:
    """Undo the scaling of weights (k,) of the training cases, and add climatology.

    The solver used the matrix R K R, with the kernel matrix K and the roots R of the case weights.
    So the function must multiply each weight by the root of its training case (``own``), and divide
    it by the root of the held-out case. It divides by multiplying with ``heavier``, the inverse of
    this root. Climatology gets one minus the sum of these weights.
    """
    missing = 1.0 - mass * heavier
    for i in range(beta.size):
        beta[i] = signed[i] * (own[i] * heavier) + missing * share[i]


@inner
def _take(values: Any, at: Any, out: Any) -> None:
    """Write the values at the positions ``at`` (k,) to ``out`` (k,)."""
    for i in range(out.size):
        out[i] = values[Place(at[i])]


@inner
def _above(beta: Any, shift: float, errors: Any, weights: Any, error: Any) -> int:
    """Subtract a shift from the weights ``beta`` (k,), and return the number of positive results.

    The function writes the positive results to ``weights``, and their errors to ``error``.
    ``weights`` and ``beta`` may be the same array.
    """
    used = 0
    for i in range(beta.size):  # no branch here: a processor could not predict it
        weight = beta[i] - shift
        weights[used], error[used] = weight, errors[i]
        used += weight > 0.0
    return used


def _of_all_folds(record_fold: Any) -> Any:
    """Compile ``record_folds``, which calls ``record_fold`` for one fold after another."""

    @kernel
    def record_folds(
        eigen: tuple[Vector, Matrix],
        ridge: float,
        folds: Folds,
        targets: Targets,
        verified: Verified,
        out: OutCube,
    ) -> None:
        """Call ``record_fold`` for each fold with at least as many training cases as other cases.

        The signed weights come from the eigendecomposition of the kernel matrix.
        """
        values, vectors = eigen
        for f in range(folds.n_out.size):
            n_out = folds.n_out[f]
            train = folds.cases[f, n_out:]
            if train.size < n_out:
                continue
            shift = ridge * train.size * heaviest(verified.root, train)
            signed = left_out_weights(
                values, vectors, folds.cases[f], n_out, folds.n_held[f], shift
            )
            record_fold(signed, folds, f, targets, verified, out)

    return record_folds


@kernel
def crps_loss(weights: Vector, points: Vector, theta: Matrix, y: float, out: OutVector) -> None:
    """Write the CRPS ``int (F(z) - 1{z >= y})^2 dz`` of a CDF F into the first entry of ``out``."""
    below, i, last = 0.0, 0, weights.size - 1
    total = max(points[0] - y, 0.0) + max(y - points[last], 0.0)
    while i < last and points[i + 1] <= y:
        below += weights[i]
        total += below * below * (points[i + 1] - points[i])
        i += 1
    start = max(points[i], y)  # nothing if y is beyond the last point
    if i < last:
        total += (below + weights[i]) ** 2 * (start - points[i])
    for j in range(i, last):
        below += weights[j]
        total += (1.0 - below) ** 2 * (points[j + 1] - start)
        start = points[j + 1]
    out[0] = total


@kernel
def laplace_loss(weights: Vector, points: Vector, theta: Matrix, y: float, out: OutVector) -> None:
    """Write ``l(y, y) - 2 sum w_i l(z_i, y) + w'Lw`` with ``l(u, v) = exp(-|u - v| / theta)``.

    Here w are the weights, z the points, and L the matrix of all ``l(z_i, z_j)``. Points ascend, so
    ``sum_{j<i} w_j l(z_j, z_i)`` follows from the same sum for i - 1, and the function need not
    build L.
    """
    scale, quadratic, left, match = theta[0, 0], 0.0, 0.0, 0.0
    for i in range(weights.size):
        if i > 0:
            left = np.exp((points[i - 1] - points[i]) / scale) * (left + weights[i - 1])
        quadratic += weights[i] * (weights[i] + 2 * left)
        match += weights[i] * np.exp(-abs(points[i] - y) / scale)
    out[0] = 1.0 - 2 * match + quadratic


@kernel
def crps_and_quantiles(
    weights: Vector, points: Vector, theta: Matrix, y: float, out: OutVector
) -> None:
    """Write the CRPS and then q quantiles, at the levels ``(i - 1/2) / q``, into ``out``."""
    crps_loss(weights, points, theta, y, out)
    q = out.size - 1
    below, level = 0.0, 0
    for i in range(weights.size):
        below += weights[i]
        while level < q and below * q >= level + 0.5:
            level += 1
            out[level] = points[i]
    for k in range(level + 1, q + 1):  # for weights that sum to slightly less than one
        out[k] = points[weights.size - 1]


@kernel
def energy_loss(weights: Vector, points: Vector, theta: Matrix, y: float, out: OutVector) -> None:
    """Write the energy score ``sum w_i |z_i - y| - 1/2 sum w_i w_j |z_i - z_j|`` of vectors.

    The observed vectors are the rows of ``theta``; ``points`` and ``y`` are row numbers of these
    vectors.
    """
    chosen, used = np.empty(weights.size, dtype=np.int64), 0
    for i in range(weights.size):
        if weights[i] > 0.0:
            chosen[used] = i
            used += 1
    observed, total = theta[int(y)], 0.0
    for a in range(used):
        i = chosen[a]
        here, pairs = theta[int(points[i])], 0.0
        for b in range(a):
            pairs += weights[chosen[b]] * _apart(here, theta[int(points[chosen[b]])])
        total += weights[i] * (_apart(here, observed) - pairs)
    out[0] = total


@inner
def _apart(a: Any, b: Any) -> Any:
    """Return the Euclidean distance of two vectors."""
    total = 0.0
    for k in range(a.size):
        total += (a[k] - b[k]) ** 2
    return np.sqrt(total)


LOSSES = dict(zip(LOSS_NAMES, (crps_loss, laplace_loss, energy_loss), strict=True))
"""Compiled losses of the cross-validation, by their names."""


def _recorder(projection: str, record: Any) -> Recorder:
    """Compile the recorder for one projection; the function ``record`` computes losses."""
    fold = _of_one_fold(projection, record)
    return Recorder(fold, _of_all_folds(fold))


RECORDERS = {
    (projection, record): _recorder(projection, record)
    for projection, record in product(PROJECTIONS, (*LOSSES.values(), crps_and_quantiles))
}
"""Recorders, by the name of the projection and the function that computes losses."""


TO_TRY, TO_COMPARE, UNTRIED, LATER = range(4)
"""Indices of four sets of folds. The search tries ridges with the first set, and compares the
nearly best settings with the second. The third set holds out the cases that the second set holds
out and the first set does not. The fourth set trains on earlier cases alone."""


class Judge:
    """Judge kernels, supports and ridges by their losses for held-out cases of one location."""

    def __init__(
        self, problem: Problem, folds: Sequence[Folds], supports: IntArray, n_quantiles: int
    ) -> None:
        self._problem, self._folds, self._supports = problem, folds, supports
        self._few = [trained_on_few(some) for some in folds]
        self._first = [
            next(i for i, one in enumerate(folds) if same_training_cases(one, some))
            for some in folds
        ]
        # Compile only the code that the settings need.
        projection, loss = problem.settings.projection, problem.settings.loss
        loss = "crps" if n_quantiles else loss
        self._rough = self._recorder = RECORDERS[projection, LOSSES[loss]]
        if n_quantiles:
            self._recorder = RECORDERS[projection, crps_and_quantiles]
        self._theta = np.zeros((1, 1)) if loss == "crps" else problem.location.theta
        self._width = 1 + n_quantiles
        self._targets: dict[tuple[int, bool], Targets] = {}
        self._arranged: dict[tuple[int, bool], tuple[Folds, Targets]] = {}

    def record(
        self,
        solver: Solver,
        exponent: float,
        supports: IntArray,
        folds: int,
        slack: float,
        tried: FloatArray | None = None,
    ) -> FloatArray:
        """Return losses and quantiles (S, n, width) of held-out cases with one ridge.

        The last axis holds the loss, followed by the quantiles if the search records quantiles.
        ``supports`` are the positions of the supports to judge; entries of other supports are NaN.
        ``slack`` is the tolerance of a low-rank solver for its mean residual, in units of the
        ridge. ``tried`` (S, n, width) is an earlier result for the set of folds ``TO_TRY``, with
        the same ridge and slack. With ``tried``, the method forecasts only the cases of the set
        ``UNTRIED``.
        """
        where, ridge = self._problem.location, 10.0**exponent
        if tried is not None:
            folds = UNTRIED
        of_folds, targets = self._with_targets(solver.strength, folds)
        bounds = self._problem.low, self._problem.high
        verified = Verified(where.target, where.root, *bounds, self._theta, supports)
        # With low rank, the search records the best settings again with a smaller tolerance.
        rough = slack == ROUGH and where.low_rank
        record, width = (self._rough, 1) if rough else (self._recorder, self._width)
        recorded = np.full((self._supports.size, where.target.size, width), np.nan)
        if tried is not None:
            recorded[:] = tried
        left: Sequence[int] = range(of_folds.n_out.size)
        if isinstance(solver, Exact):
            left = self._few[folds]
            if len(left) < of_folds.n_out.size:
                record.folds(solver.eigen, ridge, of_folds, targets, verified, recorded)
        for f in left:
            signed = solver.signed(of_folds, f, ridge, slack)
            record.fold(signed, of_folds, f, targets, verified, recorded)
        return recorded

    def losses(
        self,
        solver: Solver,
        exponent: float,
        supports: IntArray,
        folds: int,
        slack: float,
        tried: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean losses (S,) with one ridge, and the result of :meth:`record`.

        The loss of a support that is not in ``supports`` is infinite.
        """
        recorded = self.record(solver, exponent, supports, folds, slack, tried)
        return mean_losses(recorded, supports), recorded

    def by_fold(self, loss: FloatArray, folds: int) -> FloatArray:
        """Return the mean loss of each fold that holds out cases, from the losses (n,) of cases."""
        cases, n_held, _ = self._folds[folds]
        held = [one[:n] for one, n in zip(cases, n_held, strict=True) if n > 0]
        return np.array([loss[one].mean() for one in held])

    def _with_targets(self, strength: float, folds: int) -> tuple[Folds, Targets]:
        """Return a set of folds, and the errors of training cases around the centres of each fold.

        If there is only one support, the folds list training cases by ascending error, so that
        compiled code reads errors and weights in the same order.
        """
        at = folds, strength > 0
        if at not in self._arranged:
            of, first = self._folds[folds], (self._first[folds], strength > 0)
            if first not in self._targets:
                sample = self._problem.sample.conditioned(strength)
                known = self._problem.calibration.centres
                self._targets[first] = rank_errors(of, self._supports, sample, known)
            targets = self._targets[first]
            if self._supports.size == 1:
                of = by_rank(of, targets.ranked[:, 0])
                targets = targets._replace(ranked=np.empty((0, 0, 0), np.int64))
            self._arranged[at] = of, targets
        return self._arranged[at]
