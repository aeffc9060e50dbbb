"""Log score of distributions: minus the log of the density at the observation."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import xarray as xr

from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.typing import FloatArray

from .scores import Score, Verified, score_entry, scored

LOG_SCORE = Score(
    "log_score",
    "logarithmic score",
    "minus the natural log of the density; Gaussian kernels give the density of members, and the "
    "density of quantiles is constant between neighbours",
    {"units": "1"},
)


def log_score_of(distribution: Distribution, observations: FloatArray) -> tuple[FloatArray, ...]:
    """Log scores (L, T)."""
    return (distribution.log_score(observations),)


def quantile_log_score_of(
    distribution: Empirical, observations: FloatArray, levels: FloatArray
) -> tuple[FloatArray, ...]:
    """Log scores (L, T) of quantiles at m levels (m,), at L locations with T forecasts each."""
    from xrecal.arrays import quantile_log_score

    return (quantile_log_score(observations, distribution.members, levels),)


@score_entry()
def log_score(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Log score, or ignorance, of forecasts of any form.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form (ensemble, weighted ensemble, quantiles or normal distributions).
    observations : DataArray, Dataset or dict
        Observations in the same units, matched by label along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions to average over. The mean leaves out missing scores.
    member_dim : hashable, optional
        The member dimension. By default, xrecal recognises its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        :math:`-\ln f(y)` of each case, where f is the density of the forecast per unit of the
        variable. The score has no unit and may be positive or negative; smaller is better. If
        you change the unit of the variable, all scores change by the same number. The result is a
        DataArray if the forecast or the observations are a DataArray, and lazy if an input is lazy.
        Values are NaN where the observation or forecast is missing.

        The score is inf where the density is zero: beyond the outermost quantiles, and outside the
        bounds of censored distributions. If all members are equal or there is only one member, the
        score is inf at any other value. A mean that includes such a score is also inf. The score is
        NaN if the observation lies on a point mass, which has no density: on members that are all
        equal, on a single member, on equal quantiles, on a normal distribution with scale 0, or on
        a bound of a censored distribution.

    Raises
    ------
    ValueError
        If dimensions, labels or units do not fit, or for variables on a circle.

    Notes
    -----
    Normal distributions and mixtures have a density. For ensembles, weighted or not, Gaussian
    kernels with Silverman's bandwidth estimate the density; see :func:`xrecal.arrays.log_score`.
    For quantiles, the density is constant between neighbouring quantiles; see
    :func:`xrecal.arrays.quantile_log_score`.

    The log score is local and strictly proper [1]_, and very large for observations in the tails.
    With few members, the score depends as much on the bandwidth as on the forecast [2]_. This is
    also true of differences between the scores of different forms. If the variable has a point
    mass, such as rain at zero, no density exists: the kernels spread dry members to both sides of
    zero, and censored distributions have no score on dry days. So the mean scores of ensembles and
    censored distributions are not comparable. Use :func:`xrecal.diagnostics.crps` for such a
    variable.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437
    .. [2] Krüger, Lerch, Thorarinsdottir & Gneiting (2021), Predictive inference based on Markov
       chain Monte Carlo output. https://doi.org/10.1111/insr.12405

    Examples
    --------
    >>> forecast.recal.log_score(observations, ["init", "location"]).round(1).item()
    38.3
    >>> model.log_score(forecast, observations, dim=["init", "location"]).round(1).item()
    1.4
    """

    def rule(verified: Verified) -> xr.DataArray:
        levels = verified.levels
        if levels is None:
            return verified.reduce(log_score_of)
        return verified.reduce(partial(quantile_log_score_of, levels=levels))

    return scored(forecast, observations, rule, dim, member_dim, LOG_SCORE)
