"""Fit of the CKME at many locations at once; see :mod:`xrecal.arrays.ckme.ckme`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from xrecal.arrays.ckme.centre import Sample
from xrecal.arrays.ckme.ckme import DEFAULT, half_lives
from xrecal.arrays.ckme.embedding import (
    Calibration,
    Choices,
    FittedCKME,
    Settings,
    calibration_of,
    check_settings,
    lives_of,
)
from xrecal.arrays.ckme.problem import fit_choices, without_fit
from xrecal.arrays.dispatch import namespace, to_host
from xrecal.arrays.distributions.forms import Forecasts, find_bounds
from xrecal.arrays.status import BOUNDS, INVALID, TOO_FEW

from .cases import blocks, cases_of, refuse_others
from .centre import Bounds
from .choosing import choose, smallest_losses

__all__ = ["choose_ckme", "fit_ckme"]


def choose_ckme(
    cases: Forecasts,
    observations: Any,
    settings: Settings = DEFAULT,
    *,
    half_life: float | str = math.inf,
    **described: Any,
) -> Choices:
    """Choose settings on a device; see :func:`xrecal.arrays.choose_ckme`.

    The result has NumPy arrays on the host.
    """
    given = _given(cases, observations, settings, described)
    return _chosen(given, settings, half_life, _bounds(given, settings)[0])


def fit_ckme(
    cases: Forecasts,
    observations: Any,
    settings: Settings = DEFAULT,
    *,
    half_life: float | str = math.inf,
    choices: Choices | None = None,
    **described: Any,
) -> FittedCKME:
    """Fit the CKME on a device; see :func:`xrecal.arrays.fit_ckme`.

    The fit works only for ensembles, with the Euclidean projection and the CRPS as the loss. It
    always computes the distances itself. It is exact for any number of cases, because it uses no
    landmarks.
    """
    given = _given(cases, observations, settings, described)
    bounds, violated = _bounds(given, settings)
    if choices is None:
        choices = _chosen(given, settings, half_life, bounds)
    like, fits = without_fit(given, settings), []
    lives = lives_of(np.asarray(choices.half_life, np.float64))
    for block in blocks(lives.size, 8 * given.step.size**2 * 4):
        ordered, invalid = cases_of(given, settings, lives[block], block)
        host, flags = ordered.on_host, INVALID * to_host(invalid) | BOUNDS * violated[block]
        enough = host.n_used >= max(settings.min_samples, 2)
        for i, n in enumerate(host.n_used.tolist()):
            at, chosen = block.start + i, choices.at(block.start + i)
            nothing = {"n_cases": n, "status": flags[i] | TOO_FEW, "support": chosen.support}
            fits.append(like._replace(**nothing))
            if enough[i] and not math.isnan(chosen.ridge):
                known = host.mean, host.variance, host.features, host.target
                mean, variance, of, target = (part[i, :n] for part in known)
                limits = bounds.low[at], bounds.high[at]
                sample = Sample(mean, variance, of, target, *limits, host.predictors)
                scale = float(host.median[i]), host.precision[i]
                chosen = chosen._replace(ridge=chosen.ridge_for(n))
                one = fit_choices(chosen, sample, settings, *scale, int(flags[i]))
                fits[-1] = one._replace(landmark=like.landmark)
    xp = namespace(observations)
    return FittedCKME(*map(xp.asarray, FittedCKME.joined(fits, like)))


def _given(
    cases: Forecasts, observations: Any, settings: Settings, described: dict[str, Any]
) -> Calibration:
    """Check settings and shapes, and replace missing arguments by defaults."""
    check_settings(settings, described.get("blocks", 5))
    given = calibration_of(cases, observations, **described)
    refuse_others(given, settings)
    return given._replace(used=to_host(given.used))


def _bounds(given: Calibration, settings: Settings) -> tuple[Bounds, Any]:
    """Return bounds, and a mask (L,) of locations with observations beyond the user's bounds."""
    centred = settings.supports != ("observations",)
    low, high, violated = find_bounds(
        to_host(given.observations), settings.bounds if centred else None
    )
    return Bounds(low, high), violated


def _chosen(
    given: Calibration, settings: Settings, half_life: float | str, bounds: Bounds
) -> Choices:
    """Choose settings at each location, and the half-life if ``half_life`` is a text."""
    losses = partial(smallest_losses, bounds=bounds)
    return choose(given, settings, half_lives(given, settings, half_life, losses), bounds)
