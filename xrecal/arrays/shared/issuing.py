"""Forecasts of a shared fit: quantiles at places of the fit and at new ones, and their novelty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xrecal.typing import FloatArray

from .network import Cases
from .passes import WITH_RECORD, WITHOUT_RECORD, Shared, moments_and_covariates
from .places import fit_places, place_sums

BEYOND = 0.2
"""Of the range of past ensemble means, spreads or values of a covariate: a forecast that is so far
beyond it is half new, as it is to a CKME that compares forecasts themselves."""


class Issued(NamedTuple):
    """Of n cases."""

    quantiles: FloatArray
    """(n, q)"""
    novelty: FloatArray
    """(n,)"""


def at_own_place(fit: Shared, cases: Cases, features: FloatArray) -> Shared:
    """A fit at one place that it does not know, with features (1, k), by the cases there.

    Centre and spread of the place are shrunk to those that its features say.
    """
    values = (*cases.moments(), cases.observations)
    sums = place_sums(fit.pooled, np.zeros(cases.place.size, np.int64), 1, values, cases.weight)
    places = fit_places(sums, features, fit.pooled.kurtosis, known=fit.places)
    return fit._replace(places=fit.places._replace(local=places.local), features=features)


def issue(fit: Shared, cases: Cases, features: FloatArray, levels: FloatArray) -> Issued:
    """Quantiles of new forecasts, and how little is known of cases like them.

    Parameters
    ----------
    fit : Shared
        From :func:`.passes.finish`.
    cases : Cases
        New ones: their observations are not read. Numbers of places not of the fit are -1.
    features : array of float, shape (n, k)
        Of their places. Where a place is of the fit, those of the fit count.
    levels : array of float, shape (q,)
        In [0, 1].

    Returns
    -------
    Issued
        In the unit of the variable. NaN where a forecast has no members, or a covariate or feature
        that counts is unknown. The novelty is from 0 to 1: how far ensemble mean, spread and
        covariates that count are beyond those of the past, and at a new place how little known
        places stand for its features.
    """
    n = cases.place.size
    quantiles, novelty = np.full((n, levels.size), np.nan), _beyond(fit, cases)
    new = cases.place < 0
    for law, here in ((WITH_RECORD, np.flatnonzero(~new)), (WITHOUT_RECORD, np.flatnonzero(new))):
        if not here.size:
            continue
        some, network = cases.take(here), fit.network(law)
        if law == WITHOUT_RECORD:
            # Forecasts of a place come together: what is said of it is worked out once.
            places, number = np.unique(features[here], axis=0, return_inverse=True)
            network = fit.network(law, (fit.places.at(places), places))
            some = some._replace(place=number.ravel())
            unlike = fit.places.centre.unlike(places)[number.ravel()]
            novelty[here] = np.maximum(novelty[here], unlike)
        quantiles[here] = network.quantiles(some, levels)
    novelty[np.isnan(quantiles).any(1)] = np.nan
    return Issued(quantiles, novelty)


def _beyond(fit: Shared, cases: Cases) -> FloatArray:
    """Novelty (n,) of what is outside of the ranges that were seen, of all that counts."""
    given, found = moments_and_covariates(cases), np.zeros(cases.place.size)
    of_laws = [coordinates.precision[fit.features.shape[1] :] for coordinates in fit.coordinates]
    counts = [True, True, *(np.max(of_laws, axis=0) > 0)]
    for part, (low, high), count in zip(given, fit.seen, counts, strict=True):
        if count and high > low:
            far = np.maximum(np.maximum(low - part, part - high), 0.0) / (high - low)
            found = np.fmax(found, 1.0 - 0.5 ** (far / BEYOND) ** 2)
    return found
