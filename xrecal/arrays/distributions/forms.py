"""Forms of forecasts, and the distributions that forecasts of each form represent.

:class:`Forecasts` holds the arrays of many forecasts: members with weights, or mixtures of normal
distributions. Each form of a :class:`Distribution` has the same methods. The forms are members
(:class:`Empirical`), normal distributions (:class:`Normal`), and censored normal distributions
(:class:`Censored`). The import of this module is fast, because it loads compiled functions of
:mod:`xrecal.arrays` only on first use.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

import xrecal.arrays as arrays
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray, IntArray

VALID, INVALID_FORECAST = 1, 2  # verdicts; 0: no members


SHARE_AT_BOUND = 0.05
"""An end of the observed range counts as a bound only if at least this share of all observations
equals that end."""


FEWEST_AT_BOUND = 5
"""An end of the observed range counts as a bound only if at least this number of observations equal
that end. The share of 5 % alone is not enough: one observation always equals the end, and one of 20
observations is 5 %."""


class Distances(Protocol):
    """Object that computes squared distances on request."""

    def __getitem__(self, chosen: tuple[IntArray, ...]) -> FloatArray:
        """Return squared distances for rows and columns chosen by :func:`numpy.ix_`."""


Squared: TypeAlias = FloatArray | Distances
"""A matrix of squared distances, or an object that computes squared distances on request."""


class Forecasts(NamedTuple):
    """Forecasts over locations and cases, as arrays of shape (L, n, m).

    If ``scale`` is None, the forecasts are ensembles: ``loc`` holds m members, and ``weights`` the
    weights of the members. If ``scale`` is given, the forecasts are mixtures of m normal
    distributions. If ``weights`` is None, all weights are equal. NaN marks a missing member, or a
    missing component of a mixture.
    """

    loc: FloatArray
    scale: FloatArray | None = None
    weights: FloatArray | None = None

    def check(self, name: str, ndim: int) -> tuple[int, ...]:
        """Return the shape of the forecasts; raise ValueError unless all arrays have this shape."""
        shape = self.loc.shape
        if len(shape) != ndim:
            raise ValueError(f"{name} need {ndim} axes (location, case, member), got {shape}")
        for part, array in {"scale": self.scale, "weights": self.weights}.items():
            if array is not None and array.shape != shape:
                raise ValueError(f"{part} of {name} has shape {array.shape}, but loc has {shape}")
        return shape

    def map(self, function: Callable[[FloatArray], FloatArray]) -> Forecasts:
        """Apply a function to each array of the forecasts."""
        return Forecasts(*(None if part is None else function(part) for part in self))  # type: ignore[arg-type]

    def take(self, at: Any) -> Forecasts:
        """Select forecasts by an index of locations, and optionally of cases."""
        return self.map(lambda part: part[at])


def verdicts(forecasts: Forecasts) -> IntArray:
    """Judge each forecast (L, n): return 0 (no members), ``VALID`` or ``INVALID_FORECAST``.

    A forecast is invalid if a member has an infinite value, a negative weight, or a negative or
    infinite scale. It is also invalid if the sum of its weights is infinite. The function ignores
    members without weight.
    """
    loc, scale, weights = forecasts
    counts, bad = ~np.isnan(loc), np.isinf(loc)
    if scale is not None:
        counts = counts & ~np.isnan(scale)
        bad = bad | np.isinf(scale) | (scale < 0)
    if weights is not None:
        counts = counts & ~np.isnan(weights) & (weights != 0)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.where(counts, weights, 0.0).sum(-1, keepdims=True, dtype=np.float64)
        bad = bad | (weights < 0) | ~np.isfinite(total)
    invalid = (counts & bad).any(axis=-1)
    return np.where(invalid, INVALID_FORECAST, np.where(counts.any(axis=-1), VALID, 0))


def without_invalid(forecasts: Forecasts) -> Forecasts:
    """Set the weights of invalid forecasts (..., m) to NaN.

    If the weights are None, the function sets the members to NaN. If many forecasts share the
    members ``loc``, then ``loc`` has fewer axes than ``weights``.
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
    """Return the observations of usable cases.

    Parameters
    ----------
    cases : Forecasts
        Forecasts of n cases at each of L locations, as arrays (L, n, m).
    observations : array of float, shape (L, n)
        Observations of the cases.

    Returns
    -------
    usable : array, shape (L, n), type of ``observations``
        Observations; NaN where the observation or the forecast is missing or invalid.
    invalid : array of bool, shape (L,)
        True for each location with an invalid forecast or an infinite observation.
    """
    verdict = verdicts(cases)
    infinite = np.isinf(observations)
    usable = np.copy(observations)
    usable[(verdict != VALID) | infinite] = np.nan
    return usable, ((verdict == INVALID_FORECAST) | infinite).any(axis=-1)


def sort_members(forecasts: Forecasts) -> Forecasts:
    """Sort the members of ensembles, with NaN last; return mixtures unchanged."""
    loc, scale, weights = forecasts
    if scale is not None:
        return forecasts
    if weights is None:
        return Forecasts(np.sort(loc, axis=-1))
    order = np.argsort(loc, axis=-1)
    return Forecasts(
        np.take_along_axis(loc, order, axis=-1), None, np.take_along_axis(weights, order, axis=-1)
    )


def moments(forecasts: Forecasts) -> tuple[FloatArray, FloatArray]:
    """Compute mean and variance (L, n) of forecasts (L, n, m).

    Mean and variance are NaN where a forecast is missing or invalid. The function copies some
    locations at a time; the copies take several times the memory of these locations.
    """
    shape = forecasts.loc.shape
    mean, variance = np.empty(shape[:-1]), np.empty(shape[:-1])
    for block in location_blocks(shape[0], 64 * math.prod(shape[1:])):
        mean[block], std = _mean_std(distribution_of(forecasts.take(block)))
        variance[block] = std**2
    return mean, variance


def _mean_std(forecast: Distribution) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of each forecast as NumPy arrays."""
    if isinstance(forecast, Normal):
        from .normal import normal_mean_std

        return normal_mean_std(*forecast.mixture())
    from .weighted import mean_std

    assert isinstance(forecast, Empirical)
    return mean_std(*forecast)


def find_bounds(
    observations: FloatArray,
    bounds: str | tuple[float | str | None, float | str | None] | None = "auto",
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Find the bounds of the variable at each location.

    Parameters
    ----------
    observations : array of float, shape (L, n)
        Observations; NaN where unknown.
    bounds : "auto", (lower, upper) or None
        None means that the variable has no bounds. If "auto", an end of the observed range is a
        bound under two conditions. First, at least 5 % of the observations, and at least five
        observations, equal this end. Second, the number of these observations is more than twice
        the number of observations that equal the next observed value. The second condition excludes
        rounded variables, in which equal observations occur at all values. A pair holds "auto", a
        number or None for each side, where None means no bound. At locations where observations lie
        beyond a number of the pair, the function ignores the numbers of the pair.

    Returns
    -------
    lower, upper : array of float64, shape (L,)
        Bounds, in the unit of the observations; -inf and inf mean no bound.
    violated : array of bool, shape (L,)
        True where observations lie beyond a number in ``bounds``.

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
    finite = np.isfinite(observations)
    least = np.where(finite, observations, np.inf).min(-1, initial=np.inf)
    most = np.where(finite, observations, -np.inf).max(-1, initial=-np.inf)
    first, last = (bounds, bounds) if isinstance(bounds, str) else bounds
    start = -np.inf if first is None or first == "auto" else float(first)
    end = np.inf if last is None or last == "auto" else float(last)
    violated = (least < start) | (most > end)
    lower[~violated], upper[~violated] = start, end
    if first == "auto":
        below = _is_bound(observations, least)
        lower[below] = least[below]
    if last == "auto":
        above = _is_bound(-observations, -most)
        upper[above] = most[above]
    return lower, upper, violated


def _is_bound(observations: FloatArray, least: FloatArray) -> npt.NDArray[np.bool_]:
    """Return True for each location whose least observation (L,) is a lower bound."""
    finite = np.isfinite(observations)
    above = finite & (observations > least[:, np.newaxis])
    following = np.where(above, observations, np.inf).min(-1, initial=np.inf)
    at_least = (observations == least[:, np.newaxis]).sum(-1)
    at_following = (observations == following[:, np.newaxis]).sum(-1)
    enough = np.maximum(SHARE_AT_BOUND * finite.sum(-1), FEWEST_AT_BOUND)
    return np.asarray(above.any(-1) & (at_least >= enough) & (at_least > 2 * at_following))


N_QUANTILES = 200
"""Number of quantiles of equal mass that represent a distribution, if there is no formula for a
quantity."""


def equal_mass_levels(n: int) -> FloatArray:
    """Return the levels of n quantiles that each represent the same share of a distribution."""
    return (np.arange(n) + 0.5) / n


class Distribution(ABC):
    """Predictive distributions of many forecasts.

    Each form of a distribution has its own method for quantiles, and for each quantity that has a
    formula. Each form takes all other methods from this class. These methods replace the
    distribution by 200 quantiles that each represent the same probability (quantiles of equal
    mass).
    """

    @abstractmethod
    def quantile(self, q: FloatArray) -> FloatArray:
        """Return the quantiles at levels (k,), on a new last axis."""

    def as_members(self) -> Empirical:
        """Return 200 quantiles of equal mass as members of each forecast."""
        return Empirical(self.quantile(equal_mass_levels(N_QUANTILES)))

    def mean(self) -> FloatArray:
        """Return the mean of each forecast."""
        return self.as_members().mean()

    def std(self) -> FloatArray:
        """Return the standard deviation of each forecast."""
        return self.as_members().std()

    def skewness(self) -> FloatArray:
        """Return the skewness of each forecast."""
        return self.as_members().skewness()

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Return the probabilities (..., k) of values above thresholds (..., k)."""
        return self.as_members().exceedance(thresholds)

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS of each forecast."""
        return self.as_members().crps(observations)

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """Return the CRPS of each forecast between two thresholds."""
        return self.as_members().threshold_weighted_crps(observations, lower, upper)

    def quantile_weighted_crps(self, observations: FloatArray, weighting: str) -> FloatArray:
        """Return the CRPS of each forecast, with more weight on some of its quantiles."""
        return self.as_members().quantile_weighted_crps(observations, weighting)

    def log_score(self, observations: FloatArray) -> FloatArray:
        """Return the log score of each forecast."""
        return self.as_members().log_score(observations)

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Return PIT values; within a jump of the CDF, ``uniform`` sets the position."""
        return self.as_members().pit(observations, uniform)


def distribution_of(forecasts: Forecasts) -> Distribution:
    """Return the distributions of forecasts (..., n, m), with NaN for invalid forecasts."""
    loc, scale, weights = without_invalid(forecasts)
    if scale is None:
        return Empirical(loc, weights)
    return Normal(loc, np.where(scale < 0, np.nan, scale), weights)


class EmpiricalParts(NamedTuple):
    """Arrays of :class:`Empirical`."""

    members: FloatArray
    weights: FloatArray | None = None


class Empirical(EmpiricalParts, Distribution):
    """Members (..., n) with weights (..., n), or (..., T, n) if T forecasts share the members."""

    def mean(self) -> FloatArray:
        """Return the mean; see :func:`~xrecal.arrays.weighted_mean`."""
        return arrays.weighted_mean(self.members, self.weights)

    def std(self) -> FloatArray:
        """Return the standard deviation; see :func:`~xrecal.arrays.weighted_std`."""
        return arrays.weighted_std(self.members, self.weights)

    def skewness(self) -> FloatArray:
        """Return the skewness; see :func:`~xrecal.arrays.weighted_skewness`."""
        return arrays.weighted_skewness(self.members, self.weights)

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return quantiles; see :func:`~xrecal.arrays.weighted_quantile`."""
        return arrays.weighted_quantile(self.members, q, self.weights)

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Return P(Y > threshold); see :func:`~xrecal.arrays.weighted_exceedance`."""
        return arrays.weighted_exceedance(self.members, thresholds, self.weights)

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS; see :func:`~xrecal.arrays.crps`."""
        return arrays.crps(observations, self.members, self.weights)

    def as_members(self) -> Empirical:
        """Return the members themselves."""
        return self

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """Return the CRPS between thresholds.

        See :func:`~xrecal.arrays.threshold_weighted_crps`.
        """
        return arrays.threshold_weighted_crps(
            observations, self.members, self.weights, lower=lower, upper=upper
        )

    def quantile_weighted_crps(self, observations: FloatArray, weighting: str) -> FloatArray:
        """Return the CRPS with more weight on some quantiles.

        See :func:`~xrecal.arrays.quantile_weighted_crps`.
        """
        return arrays.quantile_weighted_crps(
            observations, self.members, self.weights, weighting=weighting
        )

    def log_score(self, observations: FloatArray) -> FloatArray:
        """Return the log score; see :func:`~xrecal.arrays.log_score`."""
        return arrays.log_score(observations, self.members, self.weights)

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Return PIT values; see :func:`~xrecal.arrays.pit_values`."""
        members, weights = self.members, self.weights
        if weights is not None and weights.ndim > members.ndim:
            members = np.broadcast_to(members[..., np.newaxis, :], weights.shape)
        return _pit(Forecasts(members, None, weights), observations, uniform)


class NormalParts(NamedTuple):
    """Arrays of :class:`Normal`."""

    loc: FloatArray
    scale: FloatArray
    weights: FloatArray | None = None


class Normal(NormalParts, Distribution):
    """Mixtures of k normal distributions (..., k), with equal weights by default."""

    def mixture(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return locations, scales and weights."""
        return self.loc, self.scale, np.ones(1) if self.weights is None else self.weights

    def mean(self) -> FloatArray:
        """Return the mean; see :func:`~xrecal.arrays.normal_mean_std`."""
        return arrays.normal_mean_std(*self.mixture())[0]

    def std(self) -> FloatArray:
        """Return the standard deviation; see :func:`~xrecal.arrays.normal_mean_std`."""
        return arrays.normal_mean_std(*self.mixture())[1]

    def skewness(self) -> FloatArray:
        """Return the skewness; see :func:`~xrecal.arrays.normal_skewness`."""
        return arrays.normal_skewness(*self.mixture())

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return quantiles; see :func:`~xrecal.arrays.normal_quantile`."""
        return arrays.normal_quantile(q, *self.mixture())

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Return P(Y > threshold); see :func:`~xrecal.arrays.normal_exceedance`."""
        return arrays.normal_exceedance(thresholds, *self.mixture())

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS; see :func:`~xrecal.arrays.normal_crps`."""
        return arrays.normal_crps(observations, *self.mixture())

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """Return the CRPS between thresholds; see :func:`~xrecal.arrays.normal_threshold_crps`."""
        return arrays.normal_threshold_crps(observations, *self.mixture(), lower=lower, upper=upper)

    def log_score(self, observations: FloatArray) -> FloatArray:
        """Return the log score; see :func:`~xrecal.arrays.normal_log_score`."""
        return arrays.normal_log_score(observations, *self.mixture())

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Return PIT values; see :func:`~xrecal.arrays.pit_values`."""
        return _pit(Forecasts(self.loc, self.scale, self.weights), observations, uniform)


class CensoredParts(NamedTuple):
    """Arrays of :class:`Censored`."""

    loc: FloatArray
    scale: FloatArray
    lower: FloatArray
    upper: FloatArray


class Censored(CensoredParts, Distribution):
    """Normal distributions (..., 1) whose values beyond a bound become this bound."""

    def _parts(self) -> list[FloatArray]:
        parts = self.loc, self.scale, self.lower, self.upper
        return [np.broadcast_to(part, self.loc.shape)[..., 0] for part in parts]

    def mean(self) -> FloatArray:
        """Return the mean; see :func:`~xrecal.arrays.censored_normal_mean_std`."""
        return arrays.censored_normal_mean_std(*self._parts())[0]

    def std(self) -> FloatArray:
        """Return the standard deviation; see :func:`~xrecal.arrays.censored_normal_mean_std`."""
        return arrays.censored_normal_mean_std(*self._parts())[1]

    def skewness(self) -> FloatArray:
        """Return the skewness; see :func:`~xrecal.arrays.censored_normal_skewness`."""
        return arrays.censored_normal_skewness(*self._parts())

    def quantile(self, q: FloatArray) -> FloatArray:
        """Return quantiles; see :func:`~xrecal.arrays.censored_normal_quantile`."""
        return arrays.censored_normal_quantile(q, *self._parts())

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Return P(Y > threshold); see :func:`~xrecal.arrays.censored_normal_exceedance`."""
        return arrays.censored_normal_exceedance(thresholds, *self._parts())

    def crps(self, observations: FloatArray) -> FloatArray:
        """Return the CRPS; see :func:`~xrecal.arrays.censored_normal_crps`."""
        return arrays.censored_normal_crps(observations, *self._parts())

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """Return the CRPS between thresholds.

        See :func:`~xrecal.arrays.censored_threshold_crps`.
        """
        return arrays.censored_threshold_crps(
            observations, *self._parts(), lower=lower, upper=upper
        )

    def log_score(self, observations: FloatArray) -> FloatArray:
        """Return the log score; see :func:`~xrecal.arrays.censored_normal_log_score`."""
        return arrays.censored_normal_log_score(observations, *self._parts())

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Return PIT values; at a bound, ``uniform`` sets the position in the jump of the CDF."""
        _, _, lower, upper = self._parts()
        latent = Forecasts(self.loc, self.scale)
        below, up_to = (
            _pit(latent, observations, np.full(np.shape(observations), u)) for u in (0.0, 1.0)
        )
        missing = np.isnan(below) | np.isnan(lower) | np.isnan(upper)
        below = np.where(observations > upper, 1.0, np.where(observations <= lower, 0.0, below))
        up_to = np.where(observations < lower, 0.0, np.where(observations >= upper, 1.0, up_to))
        return np.where(missing, np.nan, below + uniform * (up_to - below))


def _pit(forecasts: Forecasts, observations: FloatArray, uniform: FloatArray) -> FloatArray:
    """Return the PIT values (...) of observations (...) in forecasts (..., m)."""
    shape = np.shape(observations)

    def rows(part: FloatArray | None) -> FloatArray | None:
        if part is None:
            return None
        return np.broadcast_to(part, (*shape, part.shape[-1])).reshape(-1, 1, part.shape[-1])

    loc = rows(forecasts.loc)
    assert loc is not None
    flat = Forecasts(loc, rows(forecasts.scale), rows(forecasts.weights))
    y, u = (np.reshape(array, (-1, 1)) for array in (observations, uniform))
    return arrays.pit_values(flat, y, u).reshape(shape)
