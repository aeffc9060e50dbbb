"""Isotonic distributional regression, which assumes that forecasts order the observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from xrecal.arrays.distributions.ensemble_size import inverse_sizes, on_footing, past_of
from xrecal.arrays.distributions.forms import Distribution, Empirical, Forecasts, moments
from xrecal.typing import FloatArray, IntArray

from .base import NOT_NEGATIVE, SHARE, Cases, Chosen, FitArrays, NewCases, Parameter, count_cases
from .settings import Settings

OF_CASES = (
    ("ensemble_inverse_size", "one over the number of members of each case", SHARE),
    ("ensemble_variance", "variance of the ensemble of each case", NOT_NEGATIVE),
)
"""Names, descriptions and ranges of the parameters with a value for each case. The method needs
these parameters if the number of members of a forecast differs from that of past ensembles."""


@dataclass(frozen=True, repr=False)
class IDR(Settings):
    """Isotonic distributional regression on the ensemble mean.

    The method assumes only that the probability of exceeding any threshold does not decrease with
    the ensemble mean [1]_. It has no parameters to tune. The recalibrated forecast is a weighted
    ensemble of the past observations.

    Parameters
    ----------
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. With covariates, a linear regression of the observation on
        the ensemble mean and the covariates replaces the ensemble mean. This is a distributional
        index model [2]_.

    References
    ----------
    .. [1] Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression.
       https://doi.org/10.1111/rssb.12450
    .. [2] Henzi, Kleger & Ziegel (2020), Distributional (single) index models.
       https://arxiv.org/abs/2006.09219

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.IDR())
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.39
    """

    condition_on: str | tuple[str, ...] | None = None

    shares_members = True

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: index of each case, coefficients, and values of past ensembles.

        The index is the number by which the method orders cases.
        """
        return {
            "index": Parameter("index of each case", True, dims={"calibration": -1}),
            "index_coefficient": Parameter(
                "intercept, slope and coefficients of the covariates in the index",
                dims={"coefficient": 2 + n_features},
            ),
            **{
                name: Parameter(text, within=within, dims={"calibration": -1})
                for name, text, within in OF_CASES
            },
        }

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Compute the index of the cases: the number by which the method orders them.

        The isotonic regression itself runs later, with each new forecast.
        """
        from xrecal.arrays.baselines.idr import fit_index

        assert cases.forecasts is not None
        mean, variance = moments(cases.forecasts)
        features = cases.covariates.features(self.covariates).values
        counted = count_cases(cases, min_samples)
        coefficients = np.zeros((counted["n_cases"].size, 2 + features.shape[2]))
        coefficients[:, 1] = 1.0
        if features.shape[2]:
            coefficients = fit_index(mean, cases.observations, features)
        few = counted["n_cases"] < min_samples
        coefficients[few] = np.nan
        return {
            **counted,
            "index": _index(coefficients, mean, features),
            "index_coefficient": coefficients,
            **_sizes(cases.forecasts, np.where(few[:, np.newaxis], np.nan, variance)),
        }

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Compute the index of added cases with the coefficients of the fit; see :func:`_index`."""
        assert added.forecasts is not None
        features = added.covariates.features(self.covariates).values
        mean, variance = moments(added.forecasts)
        index = _index(fitted["index_coefficient"], mean, features)
        return {"index": index, **_sizes(added.forecasts, variance)}

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return weighted past observations; see :func:`xrecal.arrays.idr_weights`.

        If an ensemble has fewer members than past ensembles, its mean has a larger random error.
        The weights of such a forecast are averages over this error, by Gauss-Hermite quadrature at
        three values of the index.
        """
        from xrecal.arrays.baselines.idr import idr_weights

        features = new.covariates.features(self.covariates, cases.covariates).values
        mean, variance = moments(new.forecasts)
        coefficients, past = fitted["index_coefficient"], fitted["index"]
        index = _index(coefficients, mean, features)
        weights = idr_weights(index, past, cases.observations)
        known = np.isfinite(cases.observations)
        of_past = past_of(*(np.where(known, fitted[name], np.nan) for name, *_ in OF_CASES))
        noise = on_footing(variance, inverse_sizes(new.forecasts), of_past)[1]
        is_worse = noise < 0.0
        if is_worse.any():
            apart = np.abs(coefficients[:, 1:2]) * np.sqrt(3.0 * np.where(is_worse, -noise, 0.0))
            below, above = (
                idr_weights(index + far, past, cases.observations) for far in (-apart, apart)
            )
            averaged = (below + 4.0 * weights + above) / 6.0
            weights = np.where(is_worse[..., np.newaxis], averaged, weights)
        return Empirical(cases.observations, weights.astype(new.forecasts.loc.dtype))


def _sizes(forecasts: Forecasts, variance: FloatArray) -> FitArrays:
    """Return the inverse number of members, and the variance, of each case (L, n).

    Both numbers are NaN if the variance is NaN.
    """
    values = np.where(np.isnan(variance), np.nan, inverse_sizes(forecasts)), variance
    return {name: value for (name, *_), value in zip(OF_CASES, values, strict=True)}


def _index(coefficients: FloatArray, mean: FloatArray, features: FloatArray) -> FloatArray:
    """Return the index (L, n) of forecasts: the number by which the method orders forecasts."""
    from xrecal.arrays.baselines.idr import index_of

    if features.shape[2] == 0:  # the mean itself: equal means stay equal
        return mean * coefficients[:, 1:2]
    return np.asarray(index_of(coefficients, mean, features))
