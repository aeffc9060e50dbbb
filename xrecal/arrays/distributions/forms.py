"""The two forms in which a forecast reaches the array layer: points with weights, or normals."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

VALID, INVALID_FORECAST = 1, 2  # verdicts on a forecast; 0 is one without members

# How far a sum of weights may be from one: float32 weights and printed ones pass.
SUM_TOLERANCE = 1e-3


class Distances(Protocol):
    """Squared distances that are computed when they are asked for."""

    def __getitem__(self, chosen: tuple[IntArray, ...]) -> FloatArray:
        """Those of some rows and columns, chosen by :func:`numpy.ix_`."""


Squared: TypeAlias = FloatArray | Distances
"""A matrix of squared distances, there already or not."""


class Forecasts(NamedTuple):
    """Forecasts over locations and cases, arrays of shape (L, n, m).

    Without ``scale`` they are ensembles: members ``loc`` with ``weights`` (equal if None). With
    it they are mixtures of m normal distributions. NaN marks a missing member or component.
    """

    loc: FloatArray
    scale: FloatArray | None = None
    weights: FloatArray | None = None

    def check(self, name: str, ndim: int) -> tuple[int, ...]:
        """Shape of the forecasts; raises ValueError unless all parts share it."""
        shape = self.loc.shape
        if len(shape) != ndim:
            raise ValueError(f"{name} need {ndim} axes (location, case, member), got {shape}")
        for part, array in {"scale": self.scale, "weights": self.weights}.items():
            if array is not None and array.shape != shape:
                raise ValueError(f"{part} of {name} has shape {array.shape}, but loc has {shape}")
        return shape

    def take(self, block: slice) -> Forecasts:
        """Forecasts of some locations."""
        return Forecasts(*(None if part is None else part[block] for part in self))  # type: ignore[arg-type]


def verdicts(forecasts: Forecasts) -> IntArray:
    """Verdict on each forecast (L, n): 0 without members, ``VALID``, or ``INVALID_FORECAST``.

    Invalid is an infinite value, a negative weight or a negative scale in a member that counts.
    """
    loc, scale, weights = forecasts
    counts, bad = ~np.isnan(loc), np.isinf(loc)
    if scale is not None:
        counts = counts & ~np.isnan(scale)
        bad = bad | np.isinf(scale) | (scale < 0)
    if weights is not None:
        counts = counts & ~np.isnan(weights) & (weights != 0)
        bad = bad | np.isinf(weights) | (weights < 0)
    invalid = (counts & bad).any(axis=-1)
    return np.where(invalid, INVALID_FORECAST, np.where(counts.any(axis=-1), VALID, 0))


def unsound(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Whether each forecast (L, n) has weights or scales that no distribution has.

    That is a negative or infinite one in a member that is there, or weights whose sum, those of
    missing members included, is not one. Forecasts without members are not judged.
    """
    loc, scale, weights = forecasts
    there, bad = ~np.isnan(loc), np.zeros(loc.shape, dtype=bool)
    if weights is not None:
        there = there & ~np.isnan(weights)
        bad |= (weights < 0) | np.isinf(weights)
        there = there & (weights != 0)
    if scale is not None:
        there = there & ~np.isnan(scale)
        bad |= np.isinf(scale) | (scale < 0)
    found = np.asarray((there & bad).any(axis=-1))
    if weights is not None:
        with np.errstate(invalid="ignore"):  # infinite weights of both signs
            total = np.nansum(weights, axis=-1, dtype=np.float64)
            found |= there.any(axis=-1) & ~(np.abs(total - 1.0) <= SUM_TOLERANCE)
    return found


def without_invalid(forecasts: Forecasts) -> Forecasts:
    """Forecasts (..., m) that are NaN where they are invalid.

    ``loc`` may have fewer axes than ``weights``, for members that many forecasts share.
    """
    loc, scale, weights = forecasts
    shared = weights is not None and weights.ndim > loc.ndim
    bad = verdicts(Forecasts(loc[..., np.newaxis, :] if shared else loc, scale, weights))
    bad = (bad == INVALID_FORECAST)[..., np.newaxis]
    if not bad.any():
        return forecasts
    if weights is None:
        return Forecasts(np.where(bad, np.nan, loc), scale)
    return Forecasts(loc, scale, np.where(bad, np.nan, weights))


def usable_observations(
    cases: Forecasts, observations: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Observations that can be learned from.

    Parameters
    ----------
    cases : Forecasts
        Arrays (L, n, m).
    observations : array of float, shape (L, n)
        What verified.

    Returns
    -------
    usable : array, shape (L, n), type of ``observations``
        Observations, NaN where they or the forecast are missing or invalid.
    invalid : array of bool, shape (L,)
        Whether a location holds an invalid value: an infinite one, a negative weight or scale.
    """
    verdict = verdicts(cases)
    infinite = np.isinf(observations)
    usable = np.copy(observations)
    usable[(verdict != VALID) | infinite] = np.nan
    return usable, ((verdict == INVALID_FORECAST) | infinite).any(axis=-1)


def sort_members(forecasts: Forecasts) -> Forecasts:
    """Ensembles with ascending members, NaN last; mixtures as they are."""
    loc, scale, weights = forecasts
    if scale is not None:
        return forecasts
    if weights is None:
        return Forecasts(np.sort(loc, axis=-1))
    order = np.argsort(loc, axis=-1)
    return Forecasts(
        np.take_along_axis(loc, order, axis=-1), None, np.take_along_axis(weights, order, axis=-1)
    )


SHARE = 0.05
"""Share of the observations that equal an end of their range exactly if it is a bound."""

FEWEST = 5
"""How many these must be: one of 20 observations is at each end of any variable."""


def find_bounds(
    observations: FloatArray, bounds: str | tuple[float | None, float | None] | None = "auto"
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Bounds at each location.

    Parameters
    ----------
    observations : array of float, shape (L, n)
        NaN where unknown.
    bounds : "auto", (lower, upper) or None
        "auto": an end of the observed range is a bound if at least 5 % of the observations, and
        five of them, equal it, and more than twice as many as equal the value next to it (rounded
        values tie everywhere). Numbers are bounds at every location where no observation lies
        beyond them, None in place of one means that there is none there.

    Returns
    -------
    lower, upper : array of float64, shape (L,)
        In the unit of the observations, -inf and inf without a bound.
    violated : array of bool, shape (L,)
        Whether observations lie beyond given bounds, which are then left out.

    Examples
    --------
    >>> rain = np.append(np.zeros(10), np.linspace(0.5, 9.0, 30))[np.newaxis]
    >>> lower, upper, violated = find_bounds(rain)
    >>> lower, upper
    (array([0.]), array([inf]))
    """
    n_locations = observations.shape[0]
    lower, upper = np.full(n_locations, -np.inf), np.full(n_locations, np.inf)
    violated = np.zeros(n_locations, dtype=np.bool_)
    if bounds is None:
        return lower, upper, violated
    known = np.isfinite(observations)
    least = np.where(known, observations, np.inf).min(-1, initial=np.inf)
    most = np.where(known, observations, -np.inf).max(-1, initial=-np.inf)
    if not isinstance(bounds, str):
        start = -np.inf if bounds[0] is None else float(bounds[0])
        end = np.inf if bounds[1] is None else float(bounds[1])
        violated = (least < start) | (most > end)
        return np.where(violated, -np.inf, start), np.where(violated, np.inf, end), violated
    below, above = _is_bound(observations, least), _is_bound(-observations, -most)
    lower[below], upper[above] = least[below], most[above]
    return lower, upper, violated


def _is_bound(observations: FloatArray, least: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the least observation (L,) of each location is a lower bound."""
    known = np.isfinite(observations)
    above = known & (observations > least[:, np.newaxis])
    following = np.where(above, observations, np.inf).min(-1, initial=np.inf)
    at_least = (observations == least[:, np.newaxis]).sum(-1)
    at_following = (observations == following[:, np.newaxis]).sum(-1)
    enough = np.maximum(SHARE * known.sum(-1), FEWEST)
    return np.asarray(above.any(-1) & (at_least >= enough) & (at_least > 2 * at_following))
