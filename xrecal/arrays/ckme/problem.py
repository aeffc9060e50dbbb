"""Cases of one location, and quantities for the choice of its settings and for its fit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from xrecal.arrays.distributions.forms import find_bounds
from xrecal.arrays.rows import digest
from xrecal.arrays.status import BOUNDS, CONSTANT, IDENTICAL, INVALID, TOO_FEW
from xrecal.typing import FloatArray, IntArray

from .centre import OBSERVATIONS, Sample, fit_centre
from .embedding import Calibration, Choices, FittedCKME, Settings, case_weights
from .folds import Folds, folds_in_time, gap_axis
from .location import Location, locations
from .lowrank import LowRank
from .solvers import Solvers, is_low_rank, landmark_slots

IDENTICAL_MEANS = 1e-12
"""Largest relative difference of two means that count as equal."""


def are_identical(median: float, mean: FloatArray) -> bool:
    """Return whether all forecasts are equal, from their median distance and their means (n,).

    The function also compares the means, because the shapes of forecasts can be equal although
    their means differ.
    """
    size = IDENTICAL_MEANS * np.abs(mean).max(initial=0.0)
    return math.isinf(median) and float(np.ptp(mean)) <= size


@dataclass(frozen=True)
class Problem:
    """One location, with all inputs for the choice of its settings and for its fit."""

    number: int
    """Position of the location among all locations"""
    location: Location
    """Usable cases"""
    calibration: Calibration
    settings: Settings
    low: float
    """Lower bound of the variable"""
    high: float
    """Upper bound of the variable"""
    flags: int
    """Bits of the status that depend on the data alone"""

    @property
    def n(self) -> int:
        """Return the number of usable cases."""
        return self.location.slot.size

    @property
    def is_enough(self) -> bool:
        """Return whether there are enough cases for a fit."""
        return self.n >= max(self.settings.min_samples, 2)

    @cached_property
    def median(self) -> float:
        """Return the median distance of the forecasts, from a cache that several methods share."""
        where, known = self.location, self.calibration.medians
        if known is None or where.squared is not None:
            return where.median
        forecasts = digest((self.settings.shapes, where.laplace, where.low_rank, *where.forecasts))
        if forecasts not in known:
            known[forecasts] = where.median
        return known[forecasts]

    @cached_property
    def solvers(self) -> Solvers:
        """Return the solvers of the location, one for each kernel."""
        return Solvers(self.location, bandwidth_of(self.settings, self.median))

    def folds(self, groups: IntArray, blocks: int, *, forward: bool) -> Folds:
        """Return folds of the cases; with ``forward``, folds train on earlier cases alone."""
        step = self.calibration.step
        axis = gap_axis(self.settings.gap, step, self.calibration.days)
        return folds_in_time((groups, blocks), self.location.slot, axis, step, forward=forward)

    @property
    def sample(self) -> Sample:
        """Return means, variances, covariates and observations of all usable cases."""
        where = self.location
        parts = where.mean, where.variance, where.features, where.target
        return Sample(*parts, self.low, self.high, where.predictors)

    def fit(self, choices: Choices, *, usable: bool = True) -> FittedCKME:
        """Return the fit with these choices.

        Pass ``usable=False`` if the support does not suit the location: the fit then gets neither
        landmarks nor a centre.
        """
        where, settings = self.location, self.settings
        if not self.is_enough or math.isnan(choices.ridge):
            known = {"n_cases": self.n, "status": self.flags | TOO_FEW, "support": choices.support}
            return without_fit(self.calibration, settings)._replace(**known)
        choices = choices._replace(ridge=choices.ridge_for(self.n))
        fitted = fit_choices(
            choices, self.sample, settings, self.median, where.precision, self.flags
        )
        landmark = np.full(_room(self.calibration, settings), -1)
        if usable and where.low_rank:
            solver = self.solvers[choices.widening, choices.strength]
            assert isinstance(solver, LowRank)
            found = solver.landmarks_for(choices.ridge)
            landmark[: len(found)] = where.slot[list(found)]
        if not usable and fitted.status & IDENTICAL == 0:
            fitted.centre[:] = math.nan
        return fitted._replace(landmark=landmark)


def fit_choices(
    chosen: Choices,
    sample: Sample,
    settings: Settings,
    median: float,
    precision: FloatArray,
    flags: int,
) -> FittedCKME:
    """Return the fit of one location with these choices, without landmarks.

    ``median`` is the median distance, ``precision`` (k,) are the weights of the features, and
    ``flags`` are bits of the status. If all forecasts are equal, the support is past observations,
    because centres help only if forecasts differ.
    """
    identical, constant = are_identical(median, sample.mean), bool((precision == 0).any())
    centre, of_beside = np.full((2, 4 + 2 * sample.features.shape[1]), math.nan)
    sample = sample.conditioned(chosen.strength)
    code = OBSERVATIONS if identical else chosen.support
    fit_centre(code, sample, centre)
    if chosen.beside:
        fit_centre(chosen.beside, sample, of_beside)
    fitted = {
        "bandwidth": bandwidth_of(settings, median) * chosen.widening,
        "ridge": chosen.ridge,
        "strength": chosen.strength,
        "precision": precision,
        "support": code,
        "centre": centre,
        "lower": sample.low,
        "upper": sample.high,
        "half_life": chosen.half_life,
        "loss": chosen.loss,
        "n_cases": sample.mean.size,
        "status": flags | chosen.status | IDENTICAL * identical | CONSTANT * constant,
        "landmark": -1,
        "beside": 0 if identical else chosen.beside,
        "beside_centre": of_beside,
    }
    return FittedCKME(**{name: np.asarray(value) for name, value in fitted.items()})


def bandwidth_of(settings: Settings, median: float) -> float:
    """Return the bandwidth of the settings, or the median distance if the settings have none.

    The bandwidth is infinite if all forecasts are equal.
    """
    return median if settings.bandwidth is None or math.isinf(median) else settings.bandwidth


def problems(
    calibration: Calibration, settings: Settings, half_life: FloatArray
) -> Iterator[Problem]:
    """Yield the problem of each location in turn; ``half_life`` (L,) has one value for each."""
    observations, n_slots = calibration.observations, calibration.observations.shape[1]
    centred = settings.supports != ("observations",)
    low, high, violated = find_bounds(observations, settings.bounds if centred else None)
    weight = case_weights(calibration.days, half_life, n_slots)
    given = calibration.cases, observations, calibration.features, weight
    squared, vectors = calibration.squared, calibration.vectors
    for number, where in enumerate(locations(*given, centred=centred, shapes=settings.shapes)):
        one = replace(
            where,
            laplace=settings.kernel == "laplace",
            low_rank=is_low_rank(settings.solver, settings.kernel, where.slot.size),
            squared=None if squared is None else squared[number],
            vectors=None if vectors is None else vectors[number],
        )
        one = with_twin(one, (number, settings.shapes), calibration.compared)
        flags = BOUNDS * bool(violated[number]) | INVALID * where.is_invalid
        bounds = float(low[number]), float(high[number])
        yield Problem(number, one, calibration, settings, *bounds, flags)


def with_twin(
    one: Location, number: tuple[int, bool], compared: dict[Hashable, Location] | None
) -> Location:
    """Return the location with the distances that another method has computed for its cases.

    If no method has computed them, return the location unchanged, and store it in ``compared``.
    """
    if compared is None or one.squared is not None:
        return one
    key = *number, one.laplace, one.low_rank, one.slot.tobytes()
    twin = compared.setdefault(key, one)
    alike = np.array_equal(twin.forecasts.loc, one.forecasts.loc)
    return replace(one, twin=twin) if alike and twin is not one else one


def without_fit(calibration: Calibration, settings: Settings) -> FittedCKME:
    """Return an empty fit of one location, with the types and shapes of other fits."""
    return FittedCKME.nothing(calibration.features.circular.size, _room(calibration, settings))


def _room(calibration: Calibration, settings: Settings) -> int:
    """Return the number of entries that a fit of one location has for landmarks."""
    n = calibration.observations.shape[1]
    return landmark_slots(settings.solver, settings.kernel, n, shapes=settings.shapes)
