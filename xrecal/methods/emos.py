"""Ensemble model output statistics: a regression that gives normal distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xrecal.arrays.distributions.ensemble_size import (
    Past,
    inverse_sizes,
    narrowing,
    on_footing,
    past_of,
)
from xrecal.arrays.distributions.forms import Censored, Distribution, Normal, find_bounds, moments
from xrecal.arrays.status import BOUNDS, NOT_CONVERGED, TOO_FEW
from xrecal.typing import IntArray

from .base import (
    ANY,
    NOT_NEGATIVE,
    SHARE,
    Bounds,
    Cases,
    Chosen,
    FitArrays,
    NewCases,
    Parameter,
)
from .settings import Settings

COEFFICIENTS = ("intercept", "slope", "spread_intercept", "spread_slope")

PREDICTORS = ("ensemble_mean", "ensemble_variance", "ensemble_inverse_size")
"""Names of parameters with a value for each case. Updates fit the coefficients to these values
again."""

PAST_ENSEMBLES = {
    "inverse_size": Parameter(
        "mean of one over the number of members of past ensembles", within=SHARE
    ),
    "past_variance": Parameter("mean variance of past ensembles", within=NOT_NEGATIVE),
    "past_variation": Parameter("variance of the variances of past ensembles", within=NOT_NEGATIVE),
}
"""Parameters that a model needs if a new ensemble has another number of members than past
ensembles."""


@dataclass(frozen=True, repr=False)
class EMOS(Settings):
    """Nonhomogeneous Gaussian regression that minimises the mean CRPS of past cases.

    The recalibrated forecast is the normal distribution ``N(a + b mean, c² + d² variance)``, from
    the mean and variance of the ensemble [1]_. The variables ``NAME_loc`` and ``NAME_scale`` are
    the mean and the standard deviation of this normal distribution. If the variable has a bound,
    the distribution is censored at this bound [2]_: for rain, all mass below zero becomes the
    probability of no rain. The state (the arrays of a model) stores the mean, the variance and the
    number of members of each past ensemble, so that an update can repeat the fit with all cases.
    New forecasts do not need these values.

    Parameters
    ----------
    bounds : "auto", (lower, upper) or None
        "auto": an end of a location's observed range is a bound if at least 5 % of its past
        observations equal this end exactly. The lower bound is 0 if the standard name or unit of
        the variable excludes negative values. Bounds that you give apply at places where no past
        observation violates them; ``status`` marks the other places.
    condition_on : str or tuple of str, optional
        Covariates: "season" or names. Each covariate adds a linear term to ``NAME_loc``, and a
        circular covariate adds a sine and a cosine. A ridge, a penalty on large coefficients,
        shrinks the terms of covariates other than the season. The errors of held-out cases decide
        how strong the ridge is, or whether the fit leaves these terms out.
    vary_spread : bool
        True if the covariates add linear terms to the logarithm of ``NAME_scale`` too.

    References
    ----------
    .. [1] Gneiting et al. (2005), Calibrated probabilistic forecasting using ensemble model
       output statistics and minimum CRPS estimation. https://doi.org/10.1175/MWR2904.1
    .. [2] Messner, Mayr & Zeileis (2016), Heteroscedastic censored and truncated regression with
       crch. https://doi.org/10.32614/RJ-2016-012

    Examples
    --------
    >>> model = hindcast.recal.fit(observations, xrecal.EMOS())
    >>> model.crps(forecast, observations).mean().round(2).item()
    0.34
    """

    bounds: Bounds = "auto"
    condition_on: str | tuple[str, ...] | None = None
    vary_spread: bool = False

    output = "normal"
    relearns = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.vary_spread, bool):
            raise ValueError(f"EMOS: vary_spread must be True or False, got {self.vary_spread!r}")

    def slots(self, n: int) -> tuple[IntArray, None]:
        """Return position -1 for the normal distribution, because it belongs to no past case."""
        return np.array([-1]), None

    def parameters(self, n_features: int) -> Mapping[str, Parameter]:
        """Return the parameters: coefficients and bounds, and values of past ensembles."""
        parameters = {
            "intercept": Parameter("intercept a in loc = a + b (raw mean)", True),
            "slope": Parameter("slope b in loc = a + b (raw mean)"),
            "spread_intercept": Parameter("c in scale² = c² + d² (raw variance)", True),
            "spread_slope": Parameter("d in scale² = c² + d² (raw variance)"),
        }
        if n_features:
            dims = {"feature": n_features}
            parameters["location_feature"] = Parameter(
                "coefficients of the covariates in loc", True, dims=dims
            )
            if self.vary_spread:
                parameters["spread_feature"] = Parameter(
                    "coefficients of the covariates in the logarithm of scale", dims=dims
                )
        if self.bounds is not None:
            parameters["lower"] = Parameter("lower bound", True, within=ANY)
            parameters["upper"] = Parameter("upper bound", True, within=ANY)
        kept: dict[str, Any] = {"dims": {"calibration": -1}, "for_updates": True}
        parameters |= PAST_ENSEMBLES
        mean, variance, inverse_size = PREDICTORS
        parameters[mean] = Parameter("mean of the ensemble of each case", True, **kept)
        parameters[variance] = Parameter(
            "variance of the ensemble of each case", within=NOT_NEGATIVE, **kept
        )
        parameters[inverse_size] = Parameter(
            "one over the number of members of each case", within=SHARE, **kept
        )
        return parameters

    def fit_locations(self, cases: Cases, min_samples: int, choices: Chosen = None) -> FitArrays:
        """Fit the coefficients at each location; the result also has values (L, n) for updates."""
        kept = self.update_locations(cases, {}, np.arange(cases.observations.shape[1]))
        return {**self.relearn_locations(cases, kept, min_samples), **kept}

    def update_locations(self, added: Cases, fitted: FitArrays, slots: IntArray) -> FitArrays:
        """Return values of the added cases (L, n) for updates; NaN if an observation is missing."""
        assert added.forecasts is not None
        known = np.isfinite(added.observations)
        of_cases = *moments(added.forecasts), inverse_sizes(added.forecasts)
        predictors = (np.where(known, values, np.nan) for values in of_cases)
        return dict(zip(PREDICTORS, predictors, strict=True))

    def relearn_locations(self, cases: Cases, fitted: FitArrays, min_samples: int) -> FitArrays:
        """Fit the coefficients at each location; see :func:`xrecal.arrays.fit_emos`."""
        from xrecal.arrays.baselines.emos import fit_emos

        lower, upper, violated = find_bounds(cases.observations, self.bounds)
        features = cases.covariates.features(self.covariates)
        mean, variance, inverse_size = (fitted[name] for name in PREDICTORS)
        coefficients, n_cases, converged = fit_emos(
            mean,
            variance,
            cases.observations,
            features.values,
            lower=lower,
            upper=upper,
            in_spread=self.vary_spread,
            predictors=features.predictors,
            min_samples=min_samples,
        )
        few = n_cases < min_samples
        status = np.where(few, TOO_FEW, np.where(converged, 0, NOT_CONVERGED))
        k = features.circular.size
        return {
            "n_cases": n_cases,
            "status": status | (BOUNDS * violated),
            **dict(zip(COEFFICIENTS, coefficients.T, strict=False)),
            "location_feature": coefficients[:, 4 : 4 + k],
            "spread_feature": coefficients[:, 4 + k :],
            "lower": np.where(few, np.nan, lower),
            "upper": np.where(few, np.nan, upper),
            **past_of(
                *(np.where(few[:, np.newaxis], np.nan, a) for a in (inverse_size, variance))
            )._asdict(),
        }

    def predict_locations(self, new: NewCases, cases: Cases, fitted: FitArrays) -> Distribution:
        """Return normal distributions; see :func:`xrecal.arrays.predict_emos`."""
        from xrecal.arrays.baselines.emos import predict_emos

        features = new.covariates.features(self.covariates, cases.covariates).values
        coefficients = np.stack([fitted[name] for name in COEFFICIENTS], axis=-1)
        if features.shape[2]:
            location = fitted["location_feature"]
            spread = fitted["spread_feature"] if self.vary_spread else np.zeros_like(location)
            coefficients = np.concatenate([coefficients, location, spread], axis=-1)
        mean, variance = moments(new.forecasts)
        past = Past(*(fitted[name] for name in Past._fields))
        variance, noise = on_footing(variance, inverse_sizes(new.forecasts), past)
        loc, scale = predict_emos(coefficients, mean, variance, features)
        scale *= narrowing(coefficients[:, 1:2] ** 2 * noise, scale**2)
        dtype = new.forecasts.loc.dtype
        normal = loc[..., np.newaxis].astype(dtype), scale[..., np.newaxis].astype(dtype)
        if self.bounds is None:
            return Normal(*normal)
        bounds = (
            fitted[name][:, np.newaxis, np.newaxis].astype(dtype) for name in ("lower", "upper")
        )
        return Censored(*normal, *bounds)
