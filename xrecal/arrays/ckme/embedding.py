"""The conditional kernel mean embedding (CKME): its settings, choices, fit and cases."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays import SMALLEST_RIDGE
from xrecal.arrays.dispatch import namespace
from xrecal.arrays.distributions.forms import Forecasts, Squared
from xrecal.arrays.kernels.kernel import Features, check_kernel, no_features
from xrecal.arrays.rows import is_whole
from xrecal.arrays.splitting import Span
from xrecal.typing import FloatArray, IntArray

from .centre import SUPPORTS, Centres
from .simplex import PROJECTIONS
from .solvers import SOLVERS

LOSS_NAMES = ("crps", "laplace", "energy")
"""Names of the losses that cross-validation can use."""


class Settings(NamedTuple):
    """Settings of the fit, which are the same at all locations."""

    kernel: str = "gaussian"
    bandwidth: float | None = None
    ridge: float | None = None
    loss: str = "crps"
    projection: str = "euclidean"
    gap: Span = 0
    bounds: str | tuple[float | str | None, float | str | None] | None = "auto"
    supports: tuple[str, ...] = ("observations",)
    kernels: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    """For each candidate kernel, factor of the bandwidth, and strength of the covariates; the
    strength is 0 if the kernel does not use covariates"""
    min_samples: int = 20
    solver: str = "auto"
    shapes: bool = False
    """True if the kernel compares forecasts minus their means"""


TABLES = ("losses",)
"""Fields of :class:`Choices` with a number for each kernel, support and ridge of a location. All
other fields have one number per location."""


class Choices(NamedTuple):
    """Result of cross-validation: arrays for L locations, or numbers for one location.

    Choices hold no forecasts and no observations, so a fit to other cases can use them, too.
    """

    support: Any = 0
    """(L,) code of the support: its position in :data:`xrecal.arrays.ckme.centre.SUPPORTS`"""
    widening: Any = math.nan
    """(L,) bandwidth in units of the median distance, or of the given bandwidth"""
    strength: Any = math.nan
    """(L,) factor of the squared distance of covariates in the kernel, 0 without covariates"""
    ridge: Any = math.nan
    """(L,) ridge lambda, unitless; NaN if there were too few cases for a choice"""
    half_life: Any = math.nan
    """(L,) half-life in days; infinite if all cases have the same weight"""
    loss: Any = math.nan
    """(L,) mean held-out loss with the best ridge of the grid; NaN without a search"""
    beside: Any = 0
    """(L,) code of the best support of errors, if past observations are better still; else 0"""
    status: Any = 0
    """(L,) bits of :mod:`xrecal.arrays.status` that a search sets"""
    cases: Any = math.nan
    """(L,) number of cases from which the search chose the ridge. A fit to another number of cases
    changes the ridge so that the product of ridge and number of cases stays the same. NaN if the
    ridge does not depend on the number of cases."""
    losses: Any = ()
    """(L, G S R) held-out loss of each of G kernels, S supports and R ridges of the grid, in the
    order of an array (G, S, R). NaN for combinations that the search did not try."""

    @classmethod
    def joined(cls, locations: Iterable[Choices], width: int = 0) -> Choices:
        """Join the choices of several locations.

        The table ``losses`` gets ``width`` columns, which are NaN for a location without a table.
        """
        every = list(locations)
        columns: list[npt.NDArray[Any]] = []
        for name, default in cls._field_defaults.items():
            of_each = [getattr(one, name) for one in every]
            if name in TABLES:
                none = np.full(width, math.nan)
                rows = [own if np.size(own) == width else none for own in of_each]
                columns.append(np.array(rows, np.float64).reshape(len(every), width))
            else:
                kind = np.int8 if isinstance(default, int) else np.float64
                columns.append(np.array(of_each).astype(kind))
        return cls(*columns)

    def at(self, location: int) -> Choices:
        """Return the choices of one location, without its table of losses."""
        named = zip(self._fields, self, strict=True)
        return Choices(**{n: a[location].item() for n, a in named if n not in TABLES})

    def ridge_for(self, n: int) -> float:
        """Return the ridge of one location for a fit to n cases."""
        known = self.cases > 0
        return float(self.ridge * self.cases / n if known and self.cases != n else self.ridge)


class FittedCKME(NamedTuple):
    """Fit at L locations. The fit and its cases together determine the weights of all forecasts."""

    bandwidth: FloatArray
    """(L,) bandwidth in the unit of D² (Gaussian kernel) or D (Laplace kernel), where D is the
    energy distance of two forecasts. With an infinite bandwidth, all forecasts are climatology."""
    ridge: FloatArray
    """(L,) ridge lambda, unitless; NaN if there were too few cases."""
    strength: FloatArray
    """(L,) factor of the squared distance of covariates in the kernel, 0 without covariates."""
    precision: FloatArray
    """(L, k) weights of the features in the squared distance of covariates."""
    support: IntArray
    """(L,) code of the support: its position in :data:`xrecal.arrays.ckme.centre.SUPPORTS`."""
    centre: FloatArray
    """(L, 4 + 2 k) coefficients of the centre; see :mod:`xrecal.arrays.ckme.centre`."""
    lower: FloatArray
    """(L,) lower bound of the variable, minus infinity without a bound."""
    upper: FloatArray
    """(L,) upper bound of the variable, infinite without a bound."""
    half_life: FloatArray
    """(L,) half-life in days; infinite if all cases have the same weight."""
    loss: FloatArray
    """(L,) mean held-out loss with the best ridge of the grid; NaN without a search."""
    n_cases: IntArray
    """(L,) number of cases used."""
    status: IntArray
    """(L,) bits of :mod:`xrecal.arrays.status`, 0 for ok."""
    landmark: IntArray
    """(L, r) landmarks of a low-rank solver, as positions among all cases; -1 in unused entries."""
    beside: IntArray
    """(L,) code of the best support of errors, if past observations are better still; else 0."""
    beside_centre: FloatArray
    """(L, 4 + 2 k) coefficients of the centre for ``beside``; unused if ``beside`` is 0."""

    @classmethod
    def nothing(cls, n_features: int, n_landmarks: int) -> FittedCKME:
        """Return an empty fit of a location with too few cases: NaN in all arrays of floats."""
        missing = dict.fromkeys(("bandwidth", "ridge"), np.full(1, np.nan))
        plain = (part[0] for part in complete_fit(missing, n_features))
        one = cls(*(part * np.nan if part.dtype.kind == "f" else part for part in plain))
        return one._replace(landmark=np.full(n_landmarks, -1, np.int32))

    @classmethod
    def joined(cls, locations: Iterable[FittedCKME], like: FittedCKME) -> FittedCKME:
        """Join the fits of several locations into arrays with the types of the fit ``like``."""
        every = list(locations)
        parts = ([one[i] for one in every] for i in range(len(like)))
        return cls(
            *(
                np.array(part, a.dtype).reshape(len(every), *a.shape)
                for part, a in zip(parts, like, strict=True)
            )
        )

    def of_errors(self) -> FittedCKME:
        """Return the fit with errors as the support, even where past observations are the best.

        A location keeps its support if ``beside`` is 0. All other parameters stay the same, because
        the signed weights do not depend on the support.
        """
        xp = namespace(self.ridge)
        there = self.beside != 0
        return self._replace(
            support=xp.where(there, self.beside, self.support),
            centre=xp.where(there[:, None], self.beside_centre, self.centre),
        )


def complete_fit(fitted: Mapping[str, npt.NDArray[Any]], n_features: int) -> FittedCKME:
    """Return a fit with the parameters in ``fitted``, and with defaults for all others."""
    ridge = fitted["ridge"]
    xp, n = namespace(ridge), ridge.size
    plain = xp.zeros((n, 4 + 2 * n_features))
    plain[:, 2] = 1.0  # centre 0 and spread 1: errors are the observations themselves
    default: dict[str, npt.NDArray[Any]] = {
        "strength": xp.zeros(n),
        "precision": xp.zeros((n, n_features)),
        "support": xp.zeros(n, dtype=np.int8),
        "centre": plain,
        "lower": xp.full(n, -np.inf),
        "upper": xp.full(n, np.inf),
        "half_life": xp.full(n, np.inf),
        "loss": xp.full(n, np.nan),
        "n_cases": xp.zeros(n, dtype=np.int32),
        "status": xp.zeros(n, dtype=np.int8),
        "landmark": xp.full((n, 1), -1, dtype=np.int32),
        "beside": xp.zeros(n, dtype=np.int8),
        "beside_centre": plain,
    }
    chosen = {name: fitted[name] for name in FittedCKME._fields if name in fitted}
    return FittedCKME(**{**default, **chosen})


class Calibration(NamedTuple):
    """Calibration cases at L locations, with dates, folds and further inputs."""

    cases: Forecasts
    """(L, n, m)"""
    observations: FloatArray
    """(L, n)"""
    features: Features
    """(L, n, k)"""
    groups: IntArray
    """(n,) group of each case; all cases of a group are in the same fold"""
    blocks: int
    """Number of folds; 0 makes each group a fold"""
    step: IntArray
    """(n,) step in time"""
    used: npt.NDArray[np.bool_]
    """(L, n) True for cases with an observation. The first and the last of these cases are the ends
    of the calibration period"""
    days: FloatArray | None = None
    """(n,) dates in days"""
    squared: Sequence[Squared] | None = None
    """(L, n, n) squared energy distances between the cases, if already computed"""
    vectors: Sequence[FloatArray] | None = None
    """(L, n, d) observed vectors, if ``observations`` holds their row numbers"""
    centres: Centres | None = None
    """Cache of fitted centres, which several methods share"""
    compared: dict[Hashable, Any] | None = None
    """Cache of locations with the distances of their cases, which several methods share"""
    medians: dict[bytes, float] | None = None
    """Cache of median distances of forecasts, which several methods share"""


def calibration_of(
    cases: Forecasts,
    observations: FloatArray,
    *,
    features: Features | None = None,
    days: FloatArray | None = None,
    groups: IntArray | None = None,
    blocks: int = 5,
    step: IntArray | None = None,
    squared: Sequence[Squared] | None = None,
    vectors: Sequence[FloatArray] | None = None,
    centres: Centres | None = None,
    compared: dict[Hashable, Any] | None = None,
    medians: dict[bytes, float] | None = None,
) -> Calibration:
    """Return the calibration cases with checked shapes, and defaults for missing inputs."""
    n_locations, n = cases.check("cases", 3)[:2]
    check_observations(observations, (n_locations, n))
    step = np.arange(n) if step is None else np.asarray(step)
    groups = step if groups is None else np.asarray(groups)
    for name, array in {"step": step, "groups": groups}.items():
        if array.shape != (n,):
            raise ValueError(f"{name} has shape {array.shape}, but there are {n} cases")
    if not np.issubdtype(step.dtype, np.integer):
        raise ValueError(f"step must hold whole numbers, got {step.dtype}; days are not steps")
    xp = namespace(observations)
    features = no_features(n_locations, n, xp) if features is None else features
    used = xp.isfinite(observations)
    given = groups, blocks, step, used, days, squared, vectors, centres, compared, medians
    return Calibration(cases, observations, features, *given)


def case_weights(days: FloatArray | None, half_life: FloatArray, n: int) -> FloatArray:
    """Return the logarithm to base 2 of the weight of each case, (L, n), up to a constant."""
    if np.isinf(half_life).all():
        return np.broadcast_to(0.0, (half_life.size, n))
    if days is None:
        raise ValueError("a half-life needs days, the dates of the cases")
    age = np.max(days) - np.asarray(days, np.float64)
    return -age / half_life[:, np.newaxis]


def lives_of(half_life: FloatArray) -> FloatArray:
    """Return the half-lives (L,) of a fit, infinite at locations with an empty fit."""
    return np.where(np.isnan(half_life), np.inf, half_life)


def check_settings(settings: Settings, blocks: int) -> None:
    """Raise ValueError if settings are unknown or contradict each other."""
    check_kernel(settings.kernel)
    check_choice("loss", settings.loss, LOSS_NAMES)
    check_choice("projection", settings.projection, PROJECTIONS)
    check_choice("solver", settings.solver, SOLVERS)
    for support in settings.supports:
        check_choice("supports", support, SUPPORTS)
    if settings.shapes and "observations" in settings.supports:
        raise ValueError(
            "with shapes=True the kernel compares forecasts without their means, "
            "so past observations cannot be members; leave 'observations' out of the supports"
        )
    in_time = isinstance(settings.gap, np.timedelta64 | datetime.timedelta)  # checked with the days
    whole = is_whole(blocks) and (in_time or is_whole(settings.gap))
    if not whole or blocks < 0 or blocks == 1 or (not in_time and settings.gap < 0):  # type: ignore[operator]
        raise ValueError(
            "blocks must be 0 (each group is a fold) or a whole number from 2, and gap must be "
            f"a timedelta or a whole number from 0, got {blocks=}, gap={settings.gap}"
        )
    for name in ("bandwidth", "ridge"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, or None to choose it, got {value}")
    if settings.ridge is not None and settings.ridge < SMALLEST_RIDGE:
        raise ValueError(f"ridge must be at least {SMALLEST_RIDGE:g}, got {settings.ridge}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError unless ``value`` is one of the choices for the setting ``name``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_observations(observations: FloatArray, shape: tuple[int, int]) -> None:
    """Raise ValueError unless there is an observation for each case."""
    if observations.shape != shape:
        raise ValueError(
            f"observations have shape {observations.shape}, but the cases need {shape}"
        )


def check_forecasts(
    forecasts: Forecasts, cases: Forecasts, observations: Any, fitted: FittedCKME
) -> tuple[int, int, int]:
    """Return the numbers of locations, cases and forecasts; raise ValueError if shapes differ."""
    n_locations, n = cases.check("cases", 3)[:2]
    n_new = forecasts.check("forecasts", 3)[1]
    if forecasts.loc.shape[0] != n_locations:
        raise ValueError(
            f"forecasts have {forecasts.loc.shape[0]} locations, but cases have {n_locations}"
        )
    if (forecasts.scale is None) != (cases.scale is None):
        raise ValueError("forecasts and cases must both be ensembles or both be Gaussian")
    check_observations(observations, (n_locations, n))
    for name, array in fitted._asdict().items():
        if array.shape[0] != n_locations:
            raise ValueError(
                f"{name} has shape {array.shape}, but there are {n_locations} locations"
            )
    return n_locations, n, n_new
