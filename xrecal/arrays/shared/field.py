"""Properties of places, as a field (smooth function of features) plus an unexplained part."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from xrecal.arrays.kernels.kernel import MEDIAN_CASES, feature_weights, subset
from xrecal.typing import FloatArray

from .landmarks import Landmarks, choose_landmarks

MAX_RANK = 200
TOLERANCE = 1e-4
FINENESS = (0.25, 1.0, 4.0, 16.0)
"""Factors to try for the weights of features. With factor 1, the weight of a feature is one divided
by the median squared difference of this feature between places."""
SIGNALS = (0.1, 1.0, 10.0)
NUGGETS = (1e-4, 0.01, 0.03, 0.1, 0.3, 1.0)
"""``NUGGETS`` are variances to try for the part that no feature explains, and ``SIGNALS`` are
variances to try for the field. Both are in units of the variance of the values."""
FLAT = 1e3
"""Prior variance of the constant that is added to the field, in units of the variance of the
values. It is so large that it does not influence the result."""
OUTLYING = 5.0
"""Limit of the deviations of values from their median, in robust standard deviations. Without the
limit, a place whose values are in another unit would bend the field around this place."""


class FieldSettings(NamedTuple):
    """Factor of the weights of features, and variances of the field and of the unexplained part."""

    fineness: float
    signal: float
    nugget: float
    """Variance of the unexplained part, in the squared unit of the values"""


class Field(NamedTuple):
    """A field: a smooth function of the features of a place, plus a constant."""

    middle: FloatArray
    """(k,) median of each feature; the field subtracts this median from the feature"""
    precision: FloatArray
    """(k,) weight of the squared difference of each feature"""
    landmarks: Landmarks
    factors: FloatArray
    """(r,) coefficients of the field, one for each landmark; :meth:`.Landmarks.embed` gives the
    values of a place by which they are multiplied"""
    constant: float
    settings: FieldSettings

    def at(self, features: FloatArray) -> FloatArray:
        """Return values (P,) at places with features (P, k).

        At a place with an unknown feature, the value is the constant of the field.
        """
        placed = _placed(features, self.middle, self.precision)
        known = np.isfinite(placed).all(1)
        values = np.full(len(placed), self.constant)
        values[known] += self.factors @ self.landmarks.embed(placed[known])
        return values

    def unlike(self, features: FloatArray) -> FloatArray:
        """Return the novelty (P,) of places, from 0 to 1.

        The novelty is 0 for a known place, 1 for a place unlike all known places, and NaN for a
        place with an unknown feature.
        """
        placed = _placed(features, self.middle, self.precision)
        known = np.isfinite(placed).all(1)
        apart = np.full(len(placed), np.nan)
        apart[known] = 1.0 - (self.landmarks.embed(placed[known]) ** 2).sum(0)
        return np.asarray(np.clip(apart, 0.0, 1.0))


def fit_field(
    features: FloatArray,
    values: FloatArray,
    variances: FloatArray,
    settings: FieldSettings | None = None,
) -> Field:
    r"""Fit a smooth function of features to values with errors.

    Parameters
    ----------
    features : array of float, shape (P, k)
        Features of the places, in any units. The fit ignores a place with a feature that is not
        finite, and a constant feature.
    values : array of float, shape (P,)
        Values of the property, in a unit u.
    variances : array of float, shape (P,)
        Variances of the errors of these values, in u squared; infinite for an unknown value.
    settings : FieldSettings, optional
        Settings of an earlier field; by default the settings with the largest marginal likelihood.

    Returns
    -------
    Field
        The posterior mean of :math:`c + f(x)` if the values are :math:`c + f(x) + \tau \epsilon +
        \sqrt{v} \epsilon'`. Here f is a Gaussian process with a covariance from landmarks, v are
        the variances of the errors, and :math:`\tau^2` is the variance of the part that no feature
        explains.

    Notes
    -----
    The time is O(P r²) for each of 72 settings to try. The number r of landmarks is at most 200.

    References
    ----------
    .. [1] Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, sections 2.2 and
       5.4. https://gaussianprocess.org/gpml/
    """
    known = np.isfinite(features).all(1) & np.isfinite(values) & np.isfinite(variances)
    if not known.any():
        nothing = Landmarks(np.zeros((0, features.shape[1])), np.zeros((0, 0)))
        k = features.shape[1]
        chosen = settings or FieldSettings(1.0, 0.0, 0.0)
        return Field(np.zeros(k), np.zeros(k), nothing, np.zeros(0), 0.0, chosen)
    x, errors = features[known], np.maximum(variances[known], 0.0)
    middle = np.median(x, axis=0)
    precision = feature_weights(x[subset(len(x), MEDIAN_CASES)], np.zeros(x.shape[1], np.bool_))
    y, offset, unit = _cut(values[known])
    if settings is not None:
        tried = [settings]
    else:
        tried = [
            FieldSettings(fine, signal * unit, nugget * unit)
            for fine, signal, nugget in product(FINENESS, SIGNALS, NUGGETS)
        ]
    best, found = -np.inf, None
    rows_of: dict[float, tuple[Landmarks, FloatArray]] = {}
    for one in tried:
        if one.fineness not in rows_of:
            placed = _placed(x, middle, one.fineness * precision)
            landmarks = choose_landmarks(placed, MAX_RANK, TOLERANCE)
            rows_of[one.fineness] = landmarks, landmarks.embed(placed)
        landmarks, z = rows_of[one.fineness]
        rows = np.vstack([np.sqrt(one.signal) * z, np.full(len(y), np.sqrt(FLAT * unit))])
        factors, likelihood = _posterior(rows, y, errors + max(one.nugget, 1e-12 * unit))
        if likelihood > best or found is None:
            constant = offset + factors[-1] * np.sqrt(FLAT * unit)
            scaled = np.sqrt(one.signal) * factors[:-1]
            fine = one.fineness * precision
            best, found = likelihood, Field(middle, fine, landmarks, scaled, constant, one)
    assert found is not None
    return found


def _placed(features: FloatArray, middle: FloatArray, precision: FloatArray) -> FloatArray:
    """Return coordinates (P, k) of places; a feature without weight may be unknown."""
    apart = np.where(precision > 0.0, np.asarray(features, np.float64) - middle, 0.0)
    return np.asarray(apart * np.sqrt(precision))


def _cut(values: FloatArray) -> tuple[FloatArray, float, float]:
    """Return three results: values minus their median, the median, and the variance.

    The function limits outliers in the first result, and computes the variance from this result.
    """
    offset = float(np.median(values))
    apart = values - offset
    robust = 1.4826 * float(np.median(np.abs(apart)))
    if robust > 0.0:
        apart = np.clip(apart, -OUTLYING * robust, OUTLYING * robust)
    return apart, offset, max(float(apart.var()), 1e-300)


def _posterior(rows: FloatArray, values: FloatArray, noise: FloatArray) -> tuple[FloatArray, float]:
    """Return the posterior mean of the factors (r,) of the rows (r, P), and the log likelihood.

    The prior of the factors is standard normal. The Woodbury identity and the matrix determinant
    lemma lead to systems of only r equations.
    """
    weighted = rows / noise
    matrix = rows @ weighted.T
    matrix[np.diag_indices_from(matrix)] += 1.0
    root = np.linalg.cholesky(matrix)
    half = np.linalg.solve(root, weighted @ values)
    quadratic = (values**2 / noise).sum() - half @ half
    determinant = 2.0 * np.log(root.diagonal()).sum() + np.log(noise).sum()
    return np.linalg.solve(root.T, half), float(-0.5 * (quadratic + determinant))
