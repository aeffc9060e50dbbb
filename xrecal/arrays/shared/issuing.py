"""Forecasts of a shared fit: quantiles at known and new places, and their novelty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.typing import FloatArray

from .network import Cases
from .passes import WITH_RECORD, WITHOUT_RECORD, Shared, moments_and_covariates
from .places import fit_places, place_sums

BEYOND = 0.2
"""Distance beyond a past range at which the novelty is ½, as a share of the width of this range.
Ensemble means, spreads and each covariate have a past range. With the share 0.2, the novelty agrees
with the novelty of a CKME, which compares whole forecasts."""


class Issued(NamedTuple):
    """Quantiles and novelty of n cases."""

    quantiles: FloatArray
    """(n, q) quantiles at q levels"""
    novelty: FloatArray
    """(n,) novelty, from 0 to 1"""


def at_own_place(fit: Shared, cases: Cases, features: FloatArray) -> Shared:
    """Add one new place with features (1, k) to a fit, from the cases at this place.

    The function shrinks centre and spread of the place towards the values that the features of the
    place predict.
    """
    values = (*cases.moments(), cases.observations)
    sums = place_sums(fit.pooled, np.zeros(cases.place.size, np.int64), 1, values, cases.weight)
    places = fit_places(sums, features, fit.pooled.kurtosis, known=fit.places)
    return fit._replace(places=fit.places._replace(local=places.local), features=features)


def issue(fit: Shared, cases: Cases, features: FloatArray, levels: FloatArray) -> Issued:
    """Compute quantiles and novelty of new forecasts.

    Parameters
    ----------
    fit : Shared
        Result of :func:`.passes.finish`.
    cases : Cases
        New cases; the function does not read their observations. Places outside the fit have the
        number -1.
    features : array of float, shape (n, k)
        Features of the places of the cases. For a place of the fit, the function uses the features
        that the fit stores.
    levels : array of float, shape (q,)
        Levels in [0, 1].

    Returns
    -------
    Issued
        Quantiles in the unit of the variable, and novelty from 0 to 1. Both are NaN if a forecast
        has no members, or if a covariate or feature with a weight is unknown. The farther the
        ensemble mean, spread and covariates are outside their past ranges, the larger is the
        novelty. At a new place, the novelty also grows with the distance of the features of this
        place from the features of known places.
    """
    n = cases.place.size
    quantiles, novelty = np.full((n, levels.size), np.nan), _beyond(fit, cases)
    new = cases.place < 0
    for law, here in ((WITH_RECORD, np.flatnonzero(~new)), (WITHOUT_RECORD, np.flatnonzero(new))):
        if not here.size:
            continue
        some, network = cases.take(here), fit.network(law)
        if law == WITHOUT_RECORD:
            # The forecasts of a place are adjacent, so its distribution of errors is computed once.
            places, number = np.unique(features[here], axis=0, return_inverse=True)
            network = fit.network(law, (fit.places.at(places), places))
            some = some._replace(place=number.ravel())
            unlike = fit.places.centre.unlike(places)[number.ravel()]
            novelty[here] = np.maximum(novelty[here], unlike)
        quantiles[here] = network.quantiles(some, levels)
    novelty[np.isnan(quantiles).any(1)] = np.nan
    return Issued(quantiles, novelty)


def _beyond(fit: Shared, cases: Cases) -> FloatArray:
    """Return the novelty (n,) of cases with a mean, spread or covariate beyond its past range.

    Covariates without a weight do not count.
    """
    given, found = moments_and_covariates(cases), np.zeros(cases.place.size)
    of_laws = [coordinates.precision[fit.features.shape[1] :] for coordinates in fit.coordinates]
    counts = [True, True, *(np.max(of_laws, axis=0) > 0)]
    for part, (low, high), count in zip(given, fit.seen, counts, strict=True):
        if count and high > low:
            far = np.maximum(np.maximum(low - part, part - high), 0.0) / (high - low)
            found = np.fmax(found, 1.0 - 0.5 ** (far / BEYOND) ** 2)
    return found
