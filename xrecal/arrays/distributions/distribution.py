"""What a forecast says about the observation: one object for each form, with the same methods."""

from __future__ import annotations

import math
from typing import NamedTuple, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

import xrecal.arrays as arrays
from xrecal.arrays.rows import location_blocks
from xrecal.typing import FloatArray

from . import censored, normal, normal_thresholds
from .forms import Forecasts, without_invalid


class Distribution(Protocol):
    """Predictive distributions of many forecasts."""

    def mean(self) -> FloatArray:
        """Mean of each forecast."""

    def std(self) -> FloatArray:
        """Standard deviation of each forecast."""

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles at levels (k,), on a new last axis."""

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """Probability of more than thresholds (..., k), on their last axis."""

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS of each forecast."""

    def fair_crps(self, observations: FloatArray) -> FloatArray:
        """Fair CRPS of each plain ensemble; ValueError for other forms."""

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """CRPS of each forecast between two thresholds."""

    def quantile_weighted_crps(self, observations: FloatArray, weighting: str) -> FloatArray:
        """CRPS of each ensemble with more weight on some quantiles; ValueError without members."""

    def n_members(self) -> FloatArray:
        """Number of equally likely members of each plain ensemble; ValueError for other forms."""

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Probability integral transform, placed within jumps by numbers in (0, 1)."""


class Empirical(NamedTuple):
    """Members (..., n) with weights (..., n), or (..., T, n) for T forecasts that share them."""

    members: FloatArray
    weights: FloatArray | None = None

    def mean(self) -> FloatArray:
        """Mean; see :func:`~xrecal.arrays.weighted_mean`."""
        found: FloatArray = arrays.weighted_mean(self.members, self.weights)
        return found

    def std(self) -> FloatArray:
        """Standard deviation; see :func:`~xrecal.arrays.weighted_std`."""
        found: FloatArray = arrays.weighted_std(self.members, self.weights)
        return found

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; see :func:`~xrecal.arrays.weighted_quantile`."""
        found: FloatArray = arrays.weighted_quantile(self.members, q, self.weights)
        return found

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """P(Y > t); see :func:`~xrecal.arrays.weighted_exceedance`."""
        found: FloatArray = arrays.weighted_exceedance(self.members, thresholds, self.weights)
        return found

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS; see :func:`~xrecal.arrays.crps`."""
        found: FloatArray = arrays.crps(observations, self.members, self.weights)
        return found

    def fair_crps(self, observations: FloatArray) -> FloatArray:
        """Fair CRPS; see :func:`~xrecal.arrays.fair_crps`."""
        if self.weights is not None:
            _not_plain("weights")
        found: FloatArray = arrays.fair_crps(observations, self.members)
        return found

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """CRPS between thresholds; see :func:`~xrecal.arrays.threshold_weighted_crps`."""
        found: FloatArray = arrays.threshold_weighted_crps(
            observations, *self, lower=lower, upper=upper
        )
        return found

    def quantile_weighted_crps(self, observations: FloatArray, weighting: str) -> FloatArray:
        """CRPS with weighted quantiles; see :func:`~xrecal.arrays.quantile_weighted_crps`."""
        found: FloatArray = arrays.quantile_weighted_crps(observations, *self, weighting=weighting)
        return found

    def n_members(self) -> FloatArray:
        """Number of members that are not missing."""
        if self.weights is not None:
            _not_plain("weights")
        return np.asarray((~np.isnan(self.members)).sum(-1), np.float64)

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Probability integral transform; see :func:`~xrecal.arrays.pit_values`."""
        members, weights = self
        if weights is not None and weights.ndim > members.ndim:
            members = np.broadcast_to(members[..., np.newaxis, :], weights.shape)
        return _pit(Forecasts(members, None, weights), observations, uniform)


class Normal(NamedTuple):
    """Mixtures of normal distributions (..., k), components of equal weight unless given."""

    loc: FloatArray
    scale: FloatArray
    weights: FloatArray | None = None

    def _mixture(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.loc, self.scale, np.ones(1) if self.weights is None else self.weights

    def mean(self) -> FloatArray:
        """Mean; see :func:`~xrecal.arrays.normal_mean_std`."""
        return normal.normal_mean_std(*self._mixture())[0]

    def std(self) -> FloatArray:
        """Standard deviation; see :func:`~xrecal.arrays.normal_mean_std`."""
        return normal.normal_mean_std(*self._mixture())[1]

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; see :func:`~xrecal.arrays.normal_quantile`."""
        return normal.normal_quantile(q, *self._mixture())

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """P(Y > t); see :func:`~xrecal.arrays.normal_exceedance`."""
        return normal.normal_exceedance(thresholds, *self._mixture())

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS; see :func:`~xrecal.arrays.normal_crps`."""
        return normal.normal_crps(observations, *self._mixture())

    def fair_crps(self, observations: FloatArray) -> FloatArray:
        """Not defined: there are no members."""
        _not_plain("normal distributions")

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """CRPS between thresholds; see :func:`~xrecal.arrays.normal_threshold_crps`."""
        return normal_thresholds.normal_threshold_crps(
            observations, *self._mixture(), lower=lower, upper=upper
        )

    def quantile_weighted_crps(self, observations: FloatArray, weighting: str) -> FloatArray:
        """No closed form."""
        _no_members("normal distributions")

    def n_members(self) -> FloatArray:
        """Not defined: there are no members."""
        _not_plain("normal distributions")

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Probability integral transform; see :func:`~xrecal.arrays.pit_values`."""
        return _pit(Forecasts(*self), observations, uniform)


class Censored(NamedTuple):
    """Normal distributions (..., 1) with all mass beyond a bound on it."""

    loc: FloatArray
    scale: FloatArray
    lower: FloatArray
    upper: FloatArray

    def _parts(self) -> list[FloatArray]:
        return [np.broadcast_to(part, self.loc.shape)[..., 0] for part in self]

    def mean(self) -> FloatArray:
        """Mean; see :func:`~xrecal.arrays.censored_normal_mean_std`."""
        return censored.censored_normal_mean_std(*self._parts())[0]

    def std(self) -> FloatArray:
        """Standard deviation; see :func:`~xrecal.arrays.censored_normal_mean_std`."""
        return censored.censored_normal_mean_std(*self._parts())[1]

    def quantile(self, q: FloatArray) -> FloatArray:
        """Quantiles; see :func:`~xrecal.arrays.censored_normal_quantile`."""
        return censored.censored_normal_quantile(q, *self._parts())

    def exceedance(self, thresholds: FloatArray) -> FloatArray:
        """P(Y > t); see :func:`~xrecal.arrays.censored_normal_exceedance`."""
        return censored.censored_normal_exceedance(thresholds, *self._parts())

    def crps(self, observations: FloatArray) -> FloatArray:
        """CRPS; see :func:`~xrecal.arrays.censored_normal_crps`."""
        return censored.censored_normal_crps(observations, *self._parts())

    def fair_crps(self, observations: FloatArray) -> FloatArray:
        """Not defined: there are no members."""
        _not_plain("censored normal distributions")

    def threshold_weighted_crps(
        self, observations: FloatArray, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray:
        """CRPS between thresholds; see :func:`~xrecal.arrays.censored_threshold_crps`."""
        return normal_thresholds.censored_threshold_crps(
            observations, *self._parts(), lower=lower, upper=upper
        )

    def quantile_weighted_crps(self, observations: FloatArray, weighting: str) -> FloatArray:
        """No closed form."""
        _no_members("censored normal distributions")

    def n_members(self) -> FloatArray:
        """Not defined: there are no members."""
        _not_plain("censored normal distributions")

    def pit(self, observations: FloatArray, uniform: FloatArray) -> FloatArray:
        """Probability integral transform of a normal distribution whose CDF jumps at the bounds."""
        _, _, lower, upper = self._parts()
        latent = Forecasts(self.loc, self.scale)
        below, up_to = (
            _pit(latent, observations, np.full(np.shape(observations), u)) for u in (0.0, 1.0)
        )
        missing = np.isnan(below) | np.isnan(lower) | np.isnan(upper)
        below = np.where(observations > upper, 1.0, np.where(observations <= lower, 0.0, below))
        up_to = np.where(observations < lower, 0.0, np.where(observations >= upper, 1.0, up_to))
        return np.where(missing, np.nan, below + uniform * (up_to - below))


def _not_plain(found: str) -> NoReturn:
    raise ValueError(
        f"fair scores are defined for plain ensembles of equally likely members, found {found}; "
        "use crps, or scores without fair"
    )


def _no_members(found: str) -> NoReturn:
    raise ValueError(
        f"the quantile-weighted CRPS needs members, found {found}; make quantiles first: "
        "forecast.recal.quantile(np.arange(0.005, 1, 0.01))"
    )


def _pit(forecasts: Forecasts, observations: FloatArray, uniform: FloatArray) -> FloatArray:
    """Probability integral transform (...) of forecasts (..., m)."""
    shape = np.shape(observations)

    def rows(part: FloatArray | None) -> FloatArray | None:
        if part is None:
            return None
        return np.broadcast_to(part, (*shape, part.shape[-1])).reshape(-1, 1, part.shape[-1])

    loc = rows(forecasts.loc)
    assert loc is not None
    flat = Forecasts(loc, rows(forecasts.scale), rows(forecasts.weights))
    y, u = (np.reshape(array, (-1, 1)) for array in (observations, uniform))
    found: FloatArray = arrays.pit_values(flat, y, u).reshape(shape)
    return found


def distribution_of(forecasts: Forecasts) -> Distribution:
    """Distributions of forecasts (..., n, m); NaN where missing or invalid."""
    loc, scale, weights = without_invalid(forecasts)
    if scale is None:
        return Empirical(loc, weights)
    return Normal(loc, np.where(scale < 0, np.nan, scale), weights)


def moments(forecasts: Forecasts) -> tuple[FloatArray, FloatArray]:
    """Mean and variance (L, n) of forecasts (L, n, m); NaN where missing or invalid.

    Copies, several times the forecasts, exist for a block of locations at a time.
    """
    shape = forecasts.loc.shape
    mean, variance = np.empty(shape[:-1]), np.empty(shape[:-1])
    for block in location_blocks(shape[0], 64 * math.prod(shape[1:])):
        forecast = distribution_of(forecasts.take(block))
        mean[block], variance[block] = forecast.mean(), forecast.std() ** 2
    return mean, variance
