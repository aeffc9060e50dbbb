"""Novelty of forecasts, compared with the forecasts that a model has learned from."""

from __future__ import annotations

import xarray as xr

from xrecal.fit.fitted import Fitted
from xrecal.fit.mismatch_warnings import warn_of_novel
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.methods import Method

from .recalibrated import Missing, Recalibrated, recalibrated


def model_novelty(
    model: Fitted,
    forecast: Labelled,
    *,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
) -> Labelled:
    """Novelty of each forecast: 0 if it is like past forecasts, 1 if it is unlike all of them.

    For a novel forecast, the model uses climatology, or the errors of past forecasts that differ
    much from the new one. So do not trust the recalibrated forecast blindly if the novelty is near
    1.

    Parameters
    ----------
    forecast, covariates, missing_covariates
        As for ``apply``.

    Returns
    -------
    DataArray or Dataset
        Novelty along the dimensions of the forecast, without the member dimension; lazy if the
        forecast or the model is lazy. Values are NaN where the forecast, a covariate or the fit is
        missing.

    Raises
    ------
    TypeError
        If the method does not compare forecasts with past ones (such as EMOS), or if it compares
        vectors of several variables.

    Warns
    -----
    UserWarning
        If one of the forecasts in memory has a novelty above 0.9, or if more than a tenth of them
        have a novelty above 0.5.

    Notes
    -----
    xrecal computes the novelty with a small ridge. Then similar past cases determine only a share
    of the recalibrated forecast. Novelty is one minus the ratio of this share to the share for an
    ordinary case; see :func:`xrecal.arrays.ckme_novelty`. It is near 0 for all forecasts up to the
    largest past forecast. It is about 0.5 for a forecast that exceeds the largest past forecast by
    a fifth of the spread of all past forecasts, and above 0.9 if the excess is half of this spread.

    Examples
    --------
    >>> model.novelty(forecast).isel(init=0).round(1).values
    array([0., 0., 0., 0.])
    """
    for fitted in model.variables.values():
        require_novelty(fitted.method)
    sources = recalibrated(model, forecast, covariates, missing_covariates)
    return sources.product(novelty_of, f"novelty of the forecast to {model.method}", "novelty")


def require_novelty(method: Method) -> None:
    """Raise TypeError unless a method compares forecasts of a single variable with past ones."""
    if method.variables is not None:
        raise TypeError(
            "novelty needs a variable that is not circular and is recalibrated alone, not "
            f"{' and '.join(map(repr, method.variables.names))} as vectors; fit without jointly= "
            "or period="
        )
    if not method.knows_novelty:
        raise TypeError(
            f"{method} does not compare forecasts with past ones, so it has no novelty; use "
            "CKME, or a LinearPool with a CKME"
        )


def novelty_of(source: Recalibrated) -> xr.DataArray:
    """Novelty of forecasts; warn if many forecasts in memory are novel."""
    novelty = source.novelty()
    warn_of_novel(novelty, source.form.name)
    return novelty
