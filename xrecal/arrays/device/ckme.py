"""The embedding fitted at many locations at once; see :mod:`xrecal.arrays.ckme.ckme`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from xrecal.arrays.ckme.ckme import DEFAULT
from xrecal.arrays.ckme.embedding import Calibration, FittedCKME, Settings, calibration_of
from xrecal.arrays.ckme.fitting import (
    Place,
    Results,
    Task,
    are_identical,
    bandwidth_of,
    candidates_of,
    check_settings,
    fit_location,
    fit_supports,
    no_results,
    note_cases,
)
from xrecal.arrays.ckme.folds import (
    Folds,
    arrange_folds,
    assign_folds,
    gap_axis,
    holds_several,
)
from xrecal.arrays.ckme.search import Search, sets_of_folds
from xrecal.arrays.ckme.solvers import is_low_rank
from xrecal.arrays.dispatch import namespace, only_on_host, to_host
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.kernels.kernel import Features
from xrecal.arrays.splitting import Span
from xrecal.typing import FloatArray, IntArray

from .case_groups import Group, groups_of, select, usable
from .centre import find_bounds
from .covariates import no_features
from .held_out import Judge
from .location import locate
from .namespace import take
from .search import Answers, answer_together

__all__ = ["fit_ckme"]


def fit_ckme(
    cases: Forecasts,
    observations: Any,
    settings: Settings = DEFAULT,
    *,
    features: Features | None = None,
    days: FloatArray | None = None,
    half_life: float | str = math.inf,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Any] | None = None,
    vectors: Any | None = None,
) -> FittedCKME:
    """See :func:`xrecal.arrays.fit_ckme`.

    Ensembles alone, without distances that are known already. Locations with the same missing
    cases are worked on together, others one group after another.
    """
    check_settings(settings, blocks)
    refuse_others(cases, squared, vectors)
    if features is None:
        features = no_features(observations, *observations.shape)
    calibration = calibration_of(cases, observations, features, groups, blocks, step)
    used, invalid = (to_host(part) for part in usable(cases, observations, features))
    calibration = calibration._replace(days=days, used=used)

    def search(
        calibration: Calibration, settings: Settings, half_life: FloatArray, task: Task
    ) -> Results:
        return search_locations(calibration, settings, half_life, task, invalid)

    fitted, xp = fit_supports(calibration, settings, half_life, search), namespace(observations)
    return FittedCKME(*map(xp.asarray, fitted))


def refuse_others(cases: Forecasts, *given: Any) -> None:
    """Raise TypeError for what has no implementation on a device."""
    if cases.scale is not None:
        raise TypeError(only_on_host("the distance of normal distributions"))
    if any(part is not None for part in given):
        raise TypeError(only_on_host("a fit from distances that are known already, or of vectors"))


def search_locations(
    calibration: Calibration, settings: Settings, half_life: FloatArray, task: Task, invalid: Any
) -> Results:
    """Search locations with the same usable cases together, one group of them after another."""
    centred, circular = settings.supports != ("observations",), calibration.features.circular
    bounds = find_bounds(calibration.observations, settings.bounds if centred else None)
    low, high, violated = map(to_host, bounds)
    results = no_results(calibration, settings, task, (low, high, violated))
    note_cases(results, slice(None), calibration.used.sum(-1), invalid, settings)
    candidates = candidates_of(settings, conditioned=circular.size > 0, each=False)
    for group in groups_of(
        calibration.used, half_life, calibration.days, max(settings.min_samples, 2)
    ):
        n = group.slots.size
        low_rank = is_low_rank(settings.solver, settings.kernel, n)
        folds = _folds(calibration, group, settings.gap, task.forward)
        for part in group.parts(_bytes_each(calibration, settings, folds, n)):
            cases = select(
                calibration.cases, calibration.observations, calibration.features, part,
                centred=centred, shapes=settings.shapes,
            )  # fmt: skip
            where = locate(
                cases, circular, part.root,
                laplace=settings.kernel == "laplace", low_rank=low_rank,
            )  # fmt: skip
            xp = namespace(cases.target)
            own = take(xp, bounds[0], part.places, 0), take(xp, bounds[1], part.places, 0)
            judge = Judge(where, own, candidates.supports, settings.projection, settings.loss)
            median, precision = to_host(where.median).tolist(), to_host(where.precision)
            identical = list(map(are_identical, median, to_host(where.cases.mean)))
            search_of = partial(
                Search,
                candidates,
                low_rank=low_rank,
                n=n,
                by_group=calibration.blocks == 0 and holds_several(folds),
            )
            searches = [
                fit_location(
                    results,
                    Place(number, group.slots, median[i], precision[i], identical[i]),
                    search_of(low=float(low[number])),
                    settings,
                    task,
                )
                for i, number in enumerate(part.places.tolist())
            ]
            bandwidth = np.array([bandwidth_of(settings, each) for each in median])
            sets = sets_of_folds(folds, (), candidates, low_rank=low_rank)
            answer_together(searches, Answers(where, bandwidth, sets, candidates, judge))
    return results


def _bytes_each(calibration: Calibration, settings: Settings, folds: Folds, n: int) -> int:
    """About what a location takes: kernels or factors, and a few arrays of the largest fold."""
    held = int(folds.n_held.max(initial=1))
    members = int(calibration.cases.loc.shape[-1])
    width = min(n, 400) if is_low_rank(settings.solver, settings.kernel, n) else n
    kernels = 2 * len(settings.kernels) + 4
    return 8 * n * (kernels * width + 12 * held + 8 * members)


def _folds(calibration: Calibration, group: Group, gap: Span, forward: bool) -> Folds:
    """Folds of the cases of a group."""
    groups, blocks, in_time, used = calibration[3:7]
    fold = assign_folds(groups, used[group.places[:1]], blocks, in_time)[0][group.slots]
    position, length = gap_axis(gap, in_time, calibration.days)
    results: Folds = arrange_folds(
        np.ascontiguousarray(fold), position[group.slots], length, forward
    )
    return results
