"""Centre and spread of forecasts at each place, from its record and its features.

All places share a regression of the observation on mean and variance of the ensemble (EMOS). Each
place has a correction of this regression: a mean error, a slope and a factor of the spread. The
correction follows from eight sums over the cases of the place. Updates add new cases to these sums.
The fit shrinks a correction from a short record towards the correction that the features of the
place predict. For a place without a record, the correction comes from its features alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

from .cells import NothingToLearnError
from .field import Field, FieldSettings, fit_field
from .regression import Pooled, fit_pooled

SUMS = range(8)
NUMBER, COUNT, WEIGHT, LEVEL, LEVEL_SQUARED, ERROR, LEVEL_ERROR, ERROR_SQUARED = SUMS
"""Positions of the sums of a place: number of cases, sum of weights, and weighted sums of 1, x, x²,
e, x e and e²; :func:`place_sums` defines x, e and the weights."""

ODD = 6.0
"""Largest distance of the estimate of a place from the prediction by features, in standard
deviations. A place at a larger distance is unlike all others, so the fit does not shrink its
estimates."""

FEWEST = 3
"""Least number of cases of a place for an estimate of its spread."""


def without_places(
    pooled: Pooled,
    corrections: Corrections,
    place: IntArray,
    cases: tuple[FloatArray, FloatArray, FloatArray],
) -> Pooled:
    """Remove the corrections of places from a sample of cases, and fit the regression to it.

    Without this removal, the mean errors of places would add to the spread of errors.

    Parameters
    ----------
    pooled : Pooled
        The regression that the corrections belong to.
    corrections : Corrections
        Corrections of P places.
    place : array of int, shape (n,)
        Number of the place of each case.
    cases : tuple of arrays of float, shape (n,)
        Means, variances and observations, as in :func:`fit_pooled`.

    Returns
    -------
    Pooled
        New regression, for which corrections must be learned again.
    """
    mean, variance, observations = cases
    location, _, _ = pooled.standardised(mean, variance)
    centre, _ = corrections.apply(pooled, place, mean, variance)
    typical = np.median(corrections.log_factor)
    relative = np.exp(typical - corrections.log_factor[place])
    return fit_pooled(mean, variance, location + (observations - centre) * relative)


def place_sums(
    pooled: Pooled,
    place: IntArray,
    n_places: int,
    cases: tuple[FloatArray, FloatArray, FloatArray],
    weights: npt.ArrayLike = 1.0,
) -> FloatArray:
    """Compute sums over the cases of each place.

    Parameters
    ----------
    pooled : Pooled
        The regression that corrections from the sums belong to.
    place : array of int, shape (n,)
        Number of the place of each case.
    n_places : int
        Number of places, P.
    cases : tuple of arrays of float, shape (n,)
        Means, variances and observations, as in :func:`fit_pooled`. The function leaves out cases
        with a value that is not finite.
    weights : array of float, shape (n,), optional
        Weights of the cases; 1 by default.

    Returns
    -------
    array of float64, shape (8, P)
        Number of cases, sum of weights, and sums of 1, x, x², e, x e and e² with weights divided by
        scale². Here x is the standardised ensemble mean, and e the error of the regression.
    """
    mean, variance, observations = cases
    location, scale, x = pooled.standardised(mean, variance)
    e, counted = observations - location, np.broadcast_to(np.asarray(weights), x.shape)
    weight = counted / scale**2
    terms = np.stack([np.ones_like(e), counted, weight, weight * x, weight * x * x])
    terms = np.concatenate([terms, [weight * e, weight * x * e, weight * e * e]])
    used = np.isfinite(terms).all(0)
    return np.stack([np.bincount(place[used], term[used], n_places) for term in terms])


class PlaceSettings(NamedTuple):
    """Settings of corrections, which a fit chooses once, from all cases."""

    slope_variance: float
    """Variance of slopes of places around their mean"""
    centre: FieldSettings
    spread: FieldSettings
    inflation: float
    """Factor by which dependence of errors raises the variance of mean errors, from
    :func:`inflation_of`"""


class Corrections(NamedTuple):
    """Corrections of the pooled regression at P places."""

    centre: FloatArray
    """(P,) term added to the centre of the forecast, in the unit of the variable"""
    slope: FloatArray
    """(P,) further term for each standard deviation by which the ensemble mean exceeds its
    average"""
    log_factor: FloatArray
    """(P,) logarithm of the factor that multiplies the scale"""
    doubt: FloatArray
    """(P,) standard error of ``centre``, in the unit of the variable"""

    def apply(
        self, pooled: Pooled, place: IntArray, mean: FloatArray, variance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return centre and scale (n,) of cases; ``place`` (n,) has the numbers of their places.

        The scale includes the uncertainty of the centre, so it is wider for a short record.
        """
        location, scale, level = pooled.standardised(mean, variance)
        shift = self.centre[place] + self.slope[place] * level
        own = scale * np.exp(self.log_factor[place])
        return location + shift, np.hypot(own, self.doubt[place])


class Places(NamedTuple):
    """Estimates of the corrections of places, from records and features."""

    local: Corrections
    """Corrections from records, shrunk to the corrections from features"""
    slope: float
    """Mean slope of all places"""
    centre: Field
    """Field (smooth function of the features) of the mean error, in the unit of the variable"""
    spread: Field
    """Field whose values are logarithms of the factor that multiplies the scale"""
    odd: npt.NDArray[np.bool_]
    """(P,) True if mean error or spread is unlike those of all other places. Such a place may have
    another unit or datum"""
    settings: PlaceSettings

    def at(self, features: FloatArray) -> Corrections:
        """Return corrections at places without a record, from their features (P, k) alone."""
        centre = self.centre.at(features)
        slope, doubt = (
            np.full_like(centre, value)
            for value in (self.slope, np.sqrt(self.settings.centre.nugget))
        )
        return Corrections(centre, slope, self.spread.at(features), doubt)


def fit_places(
    sums: FloatArray,
    features: FloatArray,
    kurtosis: float,
    settings: PlaceSettings | None = None,
    inflation: float = 1.0,
    known: Places | None = None,
) -> Places:
    r"""Compute corrections of the pooled regression at each place.

    Parameters
    ----------
    sums : array of float, shape (8, P)
        Sums from :func:`place_sums`, over all cases or over the cases outside some folds; zeros for
        a held-out place.
    features : array of float, shape (P, k)
        Features of the places, NaN if unknown.
    kurtosis : float
        Kurtosis of standardised errors.
    settings : PlaceSettings, optional
        Settings of a fit to all cases; by default the function estimates them.
    inflation : float
        Variance of a mean over a record, divided by the variance of a mean over independent cases,
        from :func:`inflation_of`; ignored if settings are given.
    known : Places, optional
        Estimates of other places. The function shrinks corrections towards the mean slope and the
        fields of these places.

    Returns
    -------
    Places

    Raises
    ------
    ValueError
        If no place has two cases, and ``known`` is None.

    Notes
    -----
    The function applies empirical Bayes to one property after the other: slope, mean error, spread.
    It shrinks slopes of places towards their mean. For this, it estimates the variance of true
    slopes as the variance of estimated slopes minus the variance of their errors [1]_. The smaller
    this variance is, the more the function shrinks the slopes. The function shrinks mean errors and
    logarithms of spreads towards smooth fields of features
    (:func:`~xrecal.arrays.shared.field.fit_field`), by the factor :math:`\tau^2 / (\tau^2 + v)`.
    Here :math:`\tau^2` is the variance that no feature explains, and v is the variance of the error
    of an estimate from n cases. For a mean error, v is :math:`\sigma^2 / \sum w` times the
    inflation, with the variance :math:`\sigma^2` of standardised errors and the weights w. For the
    logarithm of a spread, v is :math:`(\kappa - 1) / 4 n`, with the kurtosis :math:`\kappa`.

    References
    ----------
    .. [1] DerSimonian & Laird (1986), Meta-analysis in clinical trials.
       https://doi.org/10.1016/0197-2456(86)90046-2
    """
    n, weight = sums[COUNT], sums[WEIGHT]
    if known is not None:
        settings = known.settings
    elif not (n >= 2).any():
        raise NothingToLearnError("no place has two cases: there is nothing to learn a centre from")
    some = np.where(n > 0, weight, 1.0)
    level, error = sums[LEVEL] / some, sums[ERROR] / some
    within = np.maximum(sums[LEVEL_SQUARED] - weight * level**2, 0.0)
    shared = sums[LEVEL_ERROR] - weight * level * error
    left = np.maximum(sums[ERROR_SQUARED] - weight * error**2, 0.0)
    inflation = inflation if settings is None else settings.inflation
    if known is None:
        variance = inflation * float(left.sum() / max((n - 1)[n > 1].sum(), 1.0))
    else:  # few cases do not show the spread, so features decide
        variance = inflation * float(np.exp(2 * known.spread.at(features)).mean())
    slope, typical, slope_error, between = _slopes(within, shared, variance, settings, known)
    with np.errstate(divide="ignore"):
        centre_error = np.where(n > 0, variance / some + level**2 * slope_error, np.inf)
    own = error - slope * level
    chosen = None if settings is None else settings.centre
    centre_field = (
        known.centre if known is not None else fit_field(features, own, centre_error, chosen)
    )
    centre = _shrunk(own, centre_error, centre_field, features)
    spread, spread_field = _spreads(sums, centre.values, slope, features, kurtosis, settings, known)
    settled = PlaceSettings(between, centre_field.settings, spread_field.settings, inflation)
    local = Corrections(centre.values, slope, spread.values, np.sqrt(centre.variances))
    odd = (np.abs(centre.apart) > ODD) | (np.abs(spread.apart) > ODD)
    return Places(local, typical, centre_field, spread_field, odd, settled)


def inflation_of(sums: FloatArray) -> float:
    """Estimate the factor by which dependence between errors raises the variance of mean errors.

    Parameters
    ----------
    sums : array of float, shape (F, 8, P)
        Sums from :func:`place_sums`, over each of F folds of consecutive dates.

    Returns
    -------
    float
        Variance of the mean errors of folds, divided by their variance if cases were independent.
        The factor is at least 1, and exactly 1 if there are too few folds or cases. If errors are
        autocorrelated or drift, the factor is above 1, because the mean error of a record is then
        less accurate for other dates.
    """
    n, weight = sums[:, COUNT], sums[:, WEIGHT]
    some = np.where(weight > 0, weight, 1.0)
    means = sums[:, ERROR] / some
    whole = np.where(weight.sum(0) > 0, weight.sum(0), 1.0)
    mean = sums[:, ERROR].sum(0) / whole
    within = (sums[:, ERROR_SQUARED] - weight * means**2).sum()
    between = (weight * (means - mean) ** 2).sum()
    free = (n - 1)[n > 1].sum()
    folds = np.maximum((n > 0).sum(0) - 1, 0).sum()
    if not (within > 0 and free > 0 and folds > 0):
        return 1.0
    return max(float(between / folds / (within / free)), 1.0)


def _slopes(
    within: FloatArray,
    shared: FloatArray,
    variance: float,
    settings: PlaceSettings | None,
    others: Places | None,
) -> tuple[FloatArray, float, FloatArray, float]:
    """Return slopes (P,), mean slope, error variances of slopes (P,) and variance of slopes."""
    weight = within / max(variance, 1e-300)
    known = weight > 0
    if not known.any() and others is None:
        return np.zeros(within.size), 0.0, np.zeros(within.size), 0.0
    raw = np.divide(shared, within, out=np.zeros(within.size), where=known)
    typical = float((weight * raw).sum() / weight.sum()) if others is None else others.slope
    between = None if settings is None else settings.slope_variance
    if between is None:
        excess = (weight * (raw - typical) ** 2)[known].sum() - (known.sum() - 1)
        room = weight.sum() - (weight**2).sum() / weight.sum()
        between = max(float(excess / room), 0.0) if room > 0 else 0.0
    trust = between * weight / (1.0 + between * weight)
    slopes = typical + trust * (raw - typical)
    return slopes, typical, between * (1.0 - trust), between


def _spreads(
    sums: FloatArray,
    centre: FloatArray,
    slope: FloatArray,
    features: FloatArray,
    kurtosis: float,
    settings: PlaceSettings | None,
    others: Places | None,
) -> tuple[_Shrunk, Field]:
    """Return logarithms of the factors of the scale (P,), shrunk to a field, and this field."""
    n = sums[COUNT]
    squares = sums[ERROR_SQUARED] - 2 * centre * sums[ERROR] + centre**2 * sums[WEIGHT]
    squares += slope**2 * sums[LEVEL_SQUARED]
    squares += 2 * slope * (centre * sums[LEVEL] - sums[LEVEL_ERROR])
    known = (n >= FEWEST) & (squares > 1e-12 * n)
    some = np.where(known, n, 2.0)
    own = np.where(known, 0.5 * np.log(np.where(known, squares, 1.0) / (some - 1.0)), 0.0)
    # Variance of half the logarithm of a variance from n cases.
    error = np.where(known, (kurtosis - 1.0) / (4.0 * some), np.inf)
    chosen = None if settings is None else settings.spread
    field = fit_field(features, own, error, chosen) if others is None else others.spread
    return _shrunk(own, error, field, features), field


class _Shrunk(NamedTuple):
    """Values of a property (P,) from records, shrunk to a field."""

    values: FloatArray
    variances: FloatArray
    """Variances of the errors of these values"""
    apart: FloatArray
    """Distance between each value from a record and the field, in standard deviations"""


def _shrunk(own: FloatArray, error: FloatArray, field: Field, features: FloatArray) -> _Shrunk:
    """Shrink values (P,) from records, whose errors have variances (P,), to a field."""
    said, nugget = field.at(features), field.settings.nugget
    known = np.isfinite(error)
    error = np.where(known, np.maximum(error, 1e-300), 1.0)
    apart = np.where(known, own - said, 0.0)
    standardised = apart / np.sqrt(nugget + error)
    odd = np.abs(standardised) > ODD
    # This is a normal posterior, except for a place unlike all others, which is not shrunk to the
    # field.
    share = np.where(known, error / (nugget + error), 1.0) * ~odd
    values = said + (1.0 - share) * apart
    return _Shrunk(values, np.where(odd, error, nugget * share), standardised)
