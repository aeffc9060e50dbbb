"""The conditional kernel mean embedding: calibration cases to what their weights depend on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts, Squared, find_bounds
from xrecal.arrays.kernels.kernel import Features
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray, IntArray

from .centre import Sample, Targets, fit_centre, rank_errors
from .embedding import Calibration, FittedCKME, Settings, calibration_of, case_weights
from .fitting import (
    LATER_PARTS,
    Place,
    Results,
    Task,
    are_identical,
    bandwidth_of,
    candidates_of,
    check_settings,
    fit_location,
    fit_supports,
    half_lives,
    no_results,
    note_cases,
    of_support,
)
from .folds import Folds, arrange_folds, assign_folds, gap_axis, holds_several
from .held_out_losses import (
    LOSSES,
    RECORDERS,
    Recorder,
    Verified,
    crps_and_quantiles,
    crps_loss,
    mean_losses,
)
from .location import Cases, Location, OrderedCases, locate, ordered_cases
from .requests import (
    COMPARING,
    TO_TRY,
    Centre,
    HeldOut,
    Landmarks,
    Losses,
    Reaches,
    Request,
    Steps,
    T,
)
from .search import Candidates, Search, sets_of_folds
from .solvers import ROUGH, Exact, LowRank, Solver, Solvers, is_low_rank

DEFAULT = Settings()

UNSCALED = np.zeros((1, 1))
"""Scale of a loss that has none."""


def fit_ckme(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings = DEFAULT,
    *,
    features: Features | None = None,
    days: FloatArray | None = None,
    half_life: float | str = math.inf,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Squared] | None = None,
    vectors: FloatArray | None = None,
) -> FittedCKME:
    r"""Choose all that the embedding needs at every location.

    Parameters
    ----------
    cases : Forecasts
        Calibration forecasts at L locations: arrays (L, n, m).
    observations : array of float, shape (L, n)
        What verified, in the unit of the forecasts; NaN where unknown.
    settings : Settings
        Kernel and its candidates, ridge, supports, bounds, loss, projection, gap (steps in time,
        or length of time, left out of training on both sides of those held out), least number of
        cases.
    features : Features, optional
        Covariates of the cases, (L, n, k).
    days : array of float, shape (n,), optional
        Dates of the cases in days; needed with a half-life, and with a gap that is a length of
        time.
    half_life : float or "cv"
        In days: a case so much older counts half. "cv" chooses among parts of the period of the
        cases by how well the past forecasts what follows; blocks with cases from both sides
        would hide a drift.
    groups : array of int, shape (n,), optional
        What folds are made of: calendar years, or an order of the cases. Step by default.
    blocks : int
        Number of folds, cut from the cases ordered by ``groups``; 0 makes each value of
        ``groups`` a fold. Groups of two cases and more in the mean must then agree: the largest
        ridge is taken where the gain on it is less than one standard error over the groups.
    step : array of int, shape (n,), optional
        Step in time of each case, never descending; each is one by default. Cases of one step
        are held out together.
    squared : array of float64, shape (L, n, n), optional
        Squared energy distances of the cases, where they are known already; or for each location
        what computes those that :func:`numpy.ix_` asks for.
    vectors : array of float64, shape (L, n, d), optional
        Observed vectors, for the loss "energy": ``observations`` are then their numbers.

    Returns
    -------
    FittedCKME

    Raises
    ------
    ValueError
        If a setting is unknown or shapes differ.

    Notes
    -----
    Exactly: per location and candidate of the kernel one eigendecomposition, O(n³), and 13 ridges
    of O(n³) matrix products (20 for the winner); five n × n matrices of float64 at a time, and up
    to 64 MiB of decompositions that are kept. With low rank: a few ridges of O(n r²) for each
    candidate, (3 n + 5 r) r numbers. Cases with an infinite or otherwise invalid value are left
    out, with a status. Centres of errors are fitted inside the folds. Locations run one after
    another in compiled code without the GIL.

    References
    ----------
    .. [1] Park & Muandet (2020), A measure-theoretic approach to kernel conditional mean
       embeddings. https://arxiv.org/abs/2002.03689

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> fitted = fit_ckme(cases, truth)
    >>> fitted.n_cases, fitted.status
    (array([40], dtype=int32), array([0], dtype=int8))
    """
    check_settings(settings, blocks)
    if (settings.loss == "energy") != (vectors is not None):
        raise ValueError(
            "the loss 'energy' is that of vectors, which have no other; use fit_vector_ckme"
        )
    given = calibration_of(cases, observations, features, groups, blocks, step)
    calibration = given._replace(days=days, squared=squared, vectors=vectors)
    return fit_supports(calibration, settings, half_life, search_locations)


def fit_ckme_family(
    cases: Forecasts,
    observations: FloatArray,
    settings: Settings,
    *,
    n_quantiles: int,
    features: Features | None = None,
    days: FloatArray | None = None,
    half_life: float | str = math.inf,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Squared] | None = None,
) -> tuple[list[FittedCKME], FloatArray]:
    """Fit each support as :func:`fit_ckme` would, and record quantiles of held-out forecasts.

    The kernel matrices and their factors, which take most of the time, serve all supports. Ridges
    are those of the grid.

    Returns
    -------
    fitted : list of FittedCKME
        In the order of ``settings.supports``.
    quantiles : array of float64, shape (L, 2, S, n, n_quantiles)
        At the levels (i - ½) / n_quantiles, of each case forecast without its fold, and of each
        forecast from earlier cases alone; with the ridge and kernel that are best over the folds.
        NaN for cases that were not held out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40))
    >>> cases = Forecasts(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 5)))
    >>> fitted, quantiles = fit_ckme_family(cases, truth, Settings(), n_quantiles=20)
    >>> len(fitted), quantiles.shape
    (1, (1, 2, 1, 40, 20))
    """
    check_settings(settings, blocks)
    given = calibration_of(cases, observations, features, groups, blocks, step)
    calibration = given._replace(days=days, squared=squared)
    lives = half_lives(calibration, settings, half_life, search_locations)
    task = Task(grid_only=True, n_quantiles=n_quantiles)
    results = search_locations(calibration, settings, lives, task)
    fitted = [
        of_support(results, np.full(lives.size, s), settings, lives)
        for s in range(len(settings.supports))
    ]
    return fitted, results.quantiles


def search_locations(
    calibration: Calibration, settings: Settings, half_life: FloatArray, task: Task
) -> Results:
    """Search one location after another with compiled code."""
    observations, features, step = calibration.observations, calibration.features, calibration.step
    centred, laplace = settings.supports != ("observations",), settings.kernel == "laplace"
    candidates = candidates_of(
        settings, conditioned=features.circular.size > 0, each=task.n_quantiles > 0
    )
    code = _compiled_code(settings, task)
    bounds = find_bounds(observations, settings.bounds if centred else None)
    results = no_results(calibration, settings, task, bounds)
    weight = case_weights(calibration.days, half_life, observations.shape[1])
    position, gap = gap_axis(settings.gap, step, calibration.days)
    cases = Cases(calibration.cases, observations, features, weight, step)
    for block in location_blocks(half_life.size, 24 * math.prod(calibration.cases.loc.shape[1:])):
        ordered, invalid = ordered_cases(cases.take(block), centred=centred, shapes=settings.shapes)
        enough = note_cases(results, block, ordered.n_used, invalid, settings)
        fold = _folds(ordered, calibration.groups, calibration.blocks, step)
        later = _folds(ordered, step, LATER_PARTS, step) if task.n_quantiles else fold
        for cell in np.flatnonzero(enough).tolist():
            number, n = block.start + cell, int(ordered.n_used[cell])
            low_rank = is_low_rank(settings.solver, settings.kernel, n)
            one = locate(
                ordered, cell, laplace=laplace, low_rank=low_rank,
                squared=None if calibration.squared is None else calibration.squared[number],
                vectors=None if calibration.vectors is None else calibration.vectors[number],
            )  # fmt: skip
            in_time = position[ordered.slot[cell, :n]]
            folds = arrange_folds(fold[cell, :n], in_time, gap, task.forward)
            others = (
                [arrange_folds(later[cell, :n], in_time, gap, True)] if task.n_quantiles else []
            )
            answers = Answers(
                one,
                Solvers(one, bandwidth_of(settings, one.median), candidates.kernels),
                sets_of_folds(folds, others, candidates, low_rank=low_rank),
                candidates,
                code,
                (float(results.low[number]), float(results.high[number])),
            )
            identical = are_identical(one.median, one.mean)
            place = Place(number, ordered.slot[cell, :n], one.median, one.precision, identical)
            low = float(results.low[number])
            by_group = calibration.blocks == 0 and holds_several(folds)
            search = Search(candidates, low=low, low_rank=low_rank, n=n, by_group=by_group)
            answered(fit_location(results, place, search, settings, task), answers)
    return results


def answered(steps: Steps[T], answer: Callable[[Request], Any]) -> T:
    """Result of the steps of one location."""
    try:
        request = next(steps)
        while True:
            request = steps.send(answer(request))
    except StopIteration as end:
        result: T = end.value
        return result


class Code(NamedTuple):
    """Compiled code that a fit needs; what it does not is not compiled."""

    rough: Recorder
    """Records a loss"""
    recorder: Recorder
    """Records a loss and perhaps quantiles"""
    width: int
    """Number of values recorded"""
    scaled: bool
    """True if the loss has a scale, or is that of vectors"""


def _compiled_code(settings: Settings, task: Task) -> Code:
    """Code for what the settings ask for."""
    loss = LOSSES["crps" if task.n_quantiles else settings.loss]
    rough = RECORDERS[settings.projection, loss]
    return Code(
        rough,
        RECORDERS[settings.projection, crps_and_quantiles] if task.n_quantiles else rough,
        1 + task.n_quantiles,
        loss is not crps_loss,
    )


class Answers:
    """Answers what the search of one location asks, by compiled code."""

    def __init__(
        self,
        location: Location,
        solvers: Solvers,
        folds: tuple[Folds, ...],
        candidates: Candidates,
        code: Code,
        bounds: tuple[float, float],
    ) -> None:
        self._location, self._solvers, self._folds = location, solvers, folds
        self._candidates, self._code, self._bounds = candidates, code, bounds
        self._targets: dict[tuple[int, bool], Targets] = {}
        self._turn: tuple[int, int] | None = None
        self._solver: Solver | None = None

    def __call__(self, request: Request) -> Any:
        """The answer that a request describes."""
        if isinstance(request, Centre):
            return self._centre(request)
        if isinstance(request, Losses):
            return self.losses(request)
        solver, ridge = self._solver_for(request), 10.0**request.exponent
        assert isinstance(solver, LowRank)
        if isinstance(request, Reaches):
            return solver.reaches(ridge, ROUGH)
        return solver.landmarks_for(ridge)

    def _solver_for(self, request: Losses | Reaches | Landmarks) -> Solver:
        """Solver with a kernel, taken anew where others may have to make room for it."""
        turn = request.stage[:2]
        if self._solver is None or turn != self._turn or turn[0] == COMPARING:
            self._turn, self._solver = turn, self._solvers[request.kernel]
        return self._solver

    def losses(self, request: Losses) -> HeldOut:
        """Mean losses of forecasts of held-out cases, and what was recorded of these."""
        where, code, folds = self._location, self._code, self._folds[request.folds]
        solver, ridge = self._solver_for(request), 10.0**request.exponent
        targets = self._targets_of(request.kernel, request.folds)
        theta = where.theta if code.scaled else UNSCALED
        verified = Verified(where.target, where.root, *self._bounds, theta, request.supports)
        shape = self._candidates.supports.size, where.target.size, code.width
        recorded = np.full(shape, np.nan)
        # Of low rank what is best is recorded again, more closely.
        rough = request.slack == ROUGH and where.columns is not None
        record = code.rough if rough else code.recorder
        left: Sequence[int] = range(folds.n_out.size)
        if isinstance(solver, Exact):
            left = solver.solved_directly(folds)
            if len(left) < folds.n_out.size:
                record.folds(solver.eigen, ridge, folds, targets, verified, recorded)
        for f in left:
            signed = solver.signed(folds, f, ridge, request.slack)
            record.fold(signed, folds, f, targets, verified, recorded)
        losses = mean_losses(recorded, request.supports)
        return HeldOut(
            losses,
            recorded if code.width > 1 else None,
            _of_folds(recorded[..., 0], folds) if request.by_fold else None,
        )

    def _targets_of(self, g: int, number: int) -> Targets:
        """Errors around centres in a set of folds."""
        folds, conditioned = self._folds[number], self._candidates.kernels[g][1] > 0
        first = TO_TRY if folds is self._folds[TO_TRY] else number
        if (first, conditioned) not in self._targets:
            self._targets[first, conditioned] = rank_errors(
                folds, self._candidates.supports, self._sample(conditioned)
            )
        return self._targets[first, conditioned]

    def _sample(self, conditioned: bool) -> Sample:
        """All cases; covariates that do not count in a kernel do not enter centres either."""
        where, counted = self._location, None if conditioned else 0
        features = np.ascontiguousarray(where.features[:, :counted])
        return Sample(where.mean, where.variance, features, where.target, *self._bounds)

    def _centre(self, request: Centre) -> FloatArray:
        """Coefficients of the centre of a support; 0 of covariates that do not count."""
        coefficients = np.empty(4 + 2 * self._location.features.shape[1])
        code = self._candidates.supports[request.support]
        fit_centre(int(code), self._sample(request.conditioned), coefficients)
        return coefficients


def _of_folds(loss: FloatArray, folds: Folds) -> FloatArray:
    """Mean losses (F, S) of the cases (S, n) that each fold holds out."""
    held = [cases[:n] for cases, n in zip(folds.cases, folds.n_held, strict=True) if n > 0]
    return np.stack([loss[:, cases].mean(-1) for cases in held])


def _folds(ordered: OrderedCases, groups: IntArray, blocks: int, step: IntArray) -> IntArray:
    """Fold (L, n) of the ordered cases."""
    n = groups.size
    usable = np.arange(n) < ordered.n_used[:, np.newaxis]
    in_time = np.zeros_like(usable)
    np.put_along_axis(in_time, ordered.slot, usable, axis=1)
    return np.take_along_axis(assign_folds(groups, in_time, blocks, step), ordered.slot, axis=1)
