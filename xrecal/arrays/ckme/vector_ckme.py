"""CKME for ensembles of vectors: several variables at once, or points on a circle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.arrays.baselines.robust import EDGE, cut
from xrecal.arrays.distributions.circular import on_circle
from xrecal.arrays.distributions.forms import INVALID_FORECAST, VALID, Forecasts, Squared, verdicts
from xrecal.arrays.distributions.vectors import VectorDistances, spread_of_observations
from xrecal.typing import FloatArray

from .ckme import choose_ckme, fit_ckme
from .embedding import Choices, FittedCKME, Settings
from .weights import ckme_weights

Periods = Sequence[float | None]
"""Period of each of d variables; None for a variable that is not circular."""


class Vectors(NamedTuple):
    """Ensembles of vectors over locations and cases; NaN marks a missing value."""

    members: FloatArray
    """(L, n, d, m) members of d variables"""
    weights: FloatArray | None = None
    """(L, n, m) weights of the members; None if all members have equal weights"""

    def take(self, block: slice) -> Vectors:
        """Return the forecasts of some locations."""
        return Vectors(*(None if part is None else part[block] for part in self))  # type: ignore[arg-type]


def fit_vector_ckme(
    cases: Vectors,
    observations: FloatArray,
    periods: Periods,
    settings: Settings,
    **known: Any,
) -> tuple[FittedCKME, FloatArray]:
    r"""Fit a CKME of vectors at every location; choose its settings if ``choices`` is None.

    Parameters
    ----------
    cases : Vectors
        Calibration forecasts at L locations. The fit leaves out a member if its value of any
        variable is missing.
    observations : array of float, shape (L, n, d)
        Observations, each variable in the unit of its forecasts. The fit leaves out a case with a
        NaN.
    periods : sequence of float or None, length d
        Period of each variable; None for a variable that is not circular.
    settings : Settings
        As for :func:`fit_ckme`, with the loss "energy" and past observations as the support.
    **known
        As for :func:`fit_ckme`: features, days, half_life, groups, blocks, step, choices.

    Returns
    -------
    fitted : FittedCKME
        The fit. Its bandwidths are in units of distances between scaled forecasts.
    scale : array of float64, shape (L, d)
        Standard deviation of the members of each variable. For a circular variable the members are
        points in the plane of its circle. The fit divides forecasts by this scale, so that all
        variables have the same influence. If members are more than 8 typical deviations from the
        median, they count as if they were 8 typical deviations away.

    Raises
    ------
    ValueError
        As for :func:`fit_ckme`.

    Notes
    -----
    Distances of forecasts are multivariate energy distances [1]_; cross-validation minimises the
    energy score [2]_ of held-out cases. Both use Euclidean distances of vectors. The fit divides
    forecasts by the spread of forecasts, and observations by the spread of observations. If the fit
    divided both by the spread of observations, forecasts of rain would outweigh all other variables
    at places where it hardly ever rains. A circular variable becomes a point on a circle with its
    period as the circumference. The distances cost O(n² m² d) with the exact solver, and
    O(n r m² d) with r landmarks.

    References
    ----------
    .. [1] Székely & Rizzo (2013), Energy statistics: a class of statistics based on distances.
       https://doi.org/10.1016/j.jspi.2013.03.018
    .. [2] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(1, 40, 2))
    >>> cases = Vectors(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 2, 5)))
    >>> fitted, scale = fit_vector_ckme(cases, truth, (None, None), Settings(loss="energy"))
    >>> fitted.n_cases, scale.shape
    (array([40], dtype=int32), (1, 2))
    """
    numbered, scale = _numbered(cases, observations, periods, settings)
    return fit_ckme(settings=settings, **numbered, **known), scale


def choose_vector_ckme(
    cases: Vectors, observations: FloatArray, periods: Periods, settings: Settings, **known: Any
) -> Choices:
    """Choose kernel, ridge and half-life of a CKME of vectors at every location.

    Parameters
    ----------
    cases, observations, periods, settings
        As for :func:`fit_vector_ckme`.
    **known
        As for :func:`choose_ckme`: features, days, half_life, groups, blocks, step.

    Returns
    -------
    Choices
        Choices to pass to :func:`fit_vector_ckme`, with these cases or others.

    Raises
    ------
    ValueError
        As for :func:`fit_vector_ckme`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, settings = rng.normal(size=(1, 40, 2)), Settings(loss="energy")
    >>> cases = Vectors(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 2, 5)))
    >>> choices = choose_vector_ckme(cases, truth, (None, None), settings)
    >>> fitted, _ = fit_vector_ckme(cases, truth, (None, None), settings, choices=choices)
    >>> bool(fitted.ridge == choices.ridge)
    True
    """
    numbered, _ = _numbered(cases, observations, periods, settings)
    return choose_ckme(settings=settings, **numbered, **known)


def vector_ckme_weights(
    forecasts: Vectors,
    cases: Vectors,
    usable: npt.NDArray[np.bool_],
    fitted: FittedCKME,
    scale: FloatArray,
    periods: Periods,
    **known: Any,
) -> FloatArray:
    """Compute weights of past observations for new forecasts of vectors.

    Parameters
    ----------
    forecasts : Vectors
        T forecasts at each location.
    cases, fitted, scale, periods
        Arguments and results of :func:`fit_vector_ckme`.
    usable : array of bool, shape (L, n)
        Cases with an observation of every variable.
    **known
        As for :func:`ckme_weights`: features, new_features, kernel, projection, days.

    Returns
    -------
    array, shape (L, T, n)
        Probabilities of whole observed vectors, with NaN and 0 as in the weights of
        :func:`ckme_weights`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, none = rng.normal(size=(1, 40, 2)), (None, None)
    >>> cases = Vectors(truth[..., np.newaxis] + 0.5 * rng.normal(size=(1, 40, 2, 5)))
    >>> fitted, scale = fit_vector_ckme(cases, truth, none, Settings(loss="energy"))
    >>> usable = np.ones((1, 40), bool)
    >>> vector_ckme_weights(cases, cases, usable, fitted, scale, none).shape
    (1, 40, 40)
    """
    if forecasts.members.shape[2] != len(periods):
        raise ValueError(
            f"forecasts have {forecasts.members.shape[2]} variables, but the fit has {len(periods)}"
        )
    numbers = np.where(usable, np.arange(float(usable.shape[1])), np.nan)
    _, weights = ckme_weights(
        _flags(forecasts),
        _flags(cases),
        numbers,
        fitted,
        across=_Places(cases, scale, periods, forecasts),
        squared=_Places(cases, scale, periods),
        **known,
    )
    return weights


def _numbered(
    cases: Vectors, observations: FloatArray, periods: Periods, settings: Settings
) -> tuple[dict[str, Any], FloatArray]:
    """Return arguments of :func:`fit_ckme`, and scales (L, d).

    The observations in these arguments are the row numbers of observed vectors.
    """
    _check(cases, observations, periods)
    if settings.supports != ("observations",) or settings.projection != "euclidean":
        raise ValueError(
            "vectors have no errors and no order; pass supports=('observations',) and "
            f"projection='euclidean', got {settings.supports} and {settings.projection!r}"
        )
    flags, usable = _flags(cases), np.isfinite(observations).all(-1)
    usable &= np.isfinite(flags.loc[..., 0])
    scales, vectors = [], []
    for members, observed, used in zip(cases.members, observations, usable, strict=True):
        counted = used[:, np.newaxis] & ~np.isnan(members).any(1)
        of_case = np.swapaxes(np.where(counted[:, np.newaxis], members, np.nan), 1, 2)
        scales.append(_scales(of_case.reshape(-1, len(periods)), periods))
        known = np.where(used[:, np.newaxis], observed, np.nan)
        vectors.append(_embed(known[..., np.newaxis], _scales(known, periods), periods)[..., 0])
    scale = np.reshape(scales, (-1, len(periods)))
    numbered = {
        "cases": flags,
        "observations": np.where(usable, np.arange(float(usable.shape[1])), np.nan),
        "squared": _Places(cases, scale, periods),
        "vectors": vectors,
    }
    return numbered, scale


class _Places(Sequence[Squared]):
    """Distances among the cases of each location, or from its forecasts to its cases.

    The class computes the distances of a location when an index selects this location.
    """

    def __init__(
        self, cases: Vectors, scale: FloatArray, periods: Periods, new: Vectors | None = None
    ) -> None:
        self._cases, self._scale, self._periods, self._new = cases, scale, periods, new

    def __len__(self) -> int:
        return len(self._scale)

    def __getitem__(self, place: Any) -> Any:
        theirs = self._points(self._cases, place)
        if self._new is None:
            return VectorDistances(*theirs)
        return VectorDistances(*self._points(self._new, place), *theirs)

    def _points(self, vectors: Vectors, place: int) -> tuple[FloatArray, FloatArray]:
        """Return the ensembles as points (n, d', m) with d' coordinates, and weights (n, m)."""
        one = vectors.take(slice(place, place + 1))
        bad = ~np.isfinite(_flags(one).loc[0])[..., np.newaxis]
        members = np.where(bad, np.nan, one.members[0].astype(np.float64))
        weights = np.ones((members.shape[0], members.shape[2]))
        if one.weights is not None:
            weights = np.array(one.weights[0], np.float64, order="C")
        return _embed(members, self._scale[place], self._periods), weights


def _check(cases: Vectors, observations: FloatArray, periods: Periods) -> None:
    shape = cases.members.shape
    if len(shape) != 4 or shape[2] != len(periods):
        raise ValueError(
            f"members need shape (location, case, variable, member) with {len(periods)} "
            f"variables, got {shape}"
        )
    if observations.shape != shape[:3]:
        raise ValueError(
            f"observations have shape {observations.shape}, but the cases need {shape[:3]}"
        )


def _flags(vectors: Vectors) -> Forecasts:
    """Return a number for each forecast (L, n, 1), which shows whether the forecast is valid.

    The value is 0 for a valid forecast, NaN for a missing one, and infinity for an invalid one.
    """
    members, weights = vectors
    whole = np.where(np.isnan(members).any(-2), np.nan, np.abs(members).max(-2, initial=0.0))
    verdict = verdicts(Forecasts(whole, None, weights))
    flags = np.select([verdict == VALID, verdict == INVALID_FORECAST], [0.0, np.inf], np.nan)
    return Forecasts(flags[..., np.newaxis].astype(members.dtype))


def _embed(values: FloatArray, scale: FloatArray, periods: Periods) -> FloatArray:
    """Map values (n, d, m) to points (n, d', m); a circular variable gives two coordinates."""
    parts: list[FloatArray] = []
    for k, period in enumerate(periods):
        one = values[:, k]
        parts += [one / scale[k]] if period is None else [*(on_circle(one, period) / scale[k])]
    return np.ascontiguousarray(np.stack(parts, axis=1), np.float64)


def _scales(values: FloatArray, periods: Periods) -> FloatArray:
    """Return the spread (d,) of each variable from values (n, d), with outliers limited."""
    found = []
    for column, period in zip(values.astype(np.float64).T, periods, strict=True):
        known = column[np.isfinite(column)]
        near = cut(known, far=EDGE) if period is None else known
        found.append(spread_of_observations(near, period))
    return np.array(found)
