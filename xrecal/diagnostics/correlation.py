"""Correlation between anomalies of forecast means and of observations."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold, read_thresholds
from xrecal.products.scores import score_entry
from xrecal.products.statistics import mean_of

from .evidence import NO_UNIT, Evidence, by_name, described, read_evidence

_TEXTS = {
    "correlation": "anomaly correlation of the forecast mean",
    "correlation_error": "standard error of the correlation, allowing for autocorrelation",
}


@score_entry(variable="correlation", each=True)
def anomaly_correlation(
    forecast: Labelled,
    observations: Observations,
    climatology: Threshold | None = None,
    dim: Dims = None,
    *,
    centred: bool = True,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute the correlation between anomalies of forecast means and of observations.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    climatology : float or DataArray, optional
        Values from which anomalies are measured, in the unit of the variable. They may vary with
        location, date or part of the year, such as ``observations.groupby("time.month").mean()``;
        see :func:`xrecal.products.probabilities.exceedance`. By default, anomalies of forecast
        means are measured from the mean of all forecast means, and anomalies of observations from
        the mean of all observations.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...). If you
        name the dimensions of places, the result is the pattern correlation of each date.
    centred : bool
        True also subtracts from the anomalies their means over the cases. A constant bias then has
        no effect.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over all dimensions except those of cases and members: ``correlation`` in [-1, 1]; its
        standard error ``correlation_error``, which allows for dependence of successive cases;
        ``n_cases`` and ``status``. The correlation is NaN with fewer than 3 cases, or if all
        anomalies of the forecast means or of the observations are equal (with ``centred=False``: if
        they are 0). The result is lazy if an input is lazy.

    Raises
    ------
    ValueError
        If there is more than one variable, if ``centred=False`` comes without a climatology, or if
        dimensions, labels or units of the inputs do not match.

    Notes
    -----
    See :func:`xrecal.arrays.anomaly_correlation` for the formula [1]_. If cases are from several
    seasons and no climatology is given, the annual cycle raises the correlation, because any
    forecast contains this cycle. If the climatology was computed from the same observations, the
    correlation of n cases is too high by about 1/n.

    References
    ----------
    .. [1] Murphy & Epstein (1989), Skill scores and correlation coefficients in model verification.
       https://doi.org/10.1175/1520-0493(1989)117<0572:SSACCI>2.0.CO;2

    Examples
    --------
    >>> found = hindcast.recal.anomaly_correlation(observations)
    >>> found["correlation"].round(2).values
    array([1.  , 1.  , 1.  , 0.99])
    """
    if climatology is None and not centred:
        raise ValueError(
            "centred=False needs a climatology, such as "
            'climatology=observations.groupby("time.month").mean()'
        )
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    mean, observed = evidence.reduce(mean_of), evidence.observations
    if climatology is not None:
        usual = _usual(climatology, evidence)
        mean, observed = mean - usual, observed - usual
    correlation, influence = evidence.over_cases(
        by_name("anomaly_correlation", centred=bool(centred)),
        mean,
        observed,
        out=[(), evidence.dims],
        dtypes=[mean.dtype, np.float64],
        what="the correlation",
    )
    error = evidence.error_of_mean(influence).astype(mean.dtype)
    variables = described((correlation, error), _TEXTS, NO_UNIT)
    known = mean.notnull() & (abs(observed) < np.inf)
    return evidence.result(variables, "anomaly correlation", known, sure=True)


def _usual(climatology: Threshold, evidence: Evidence) -> xr.DataArray:
    """Return the climatology of each case."""
    form = evidence.form
    wanted = read_thresholds(climatology, form, form.loc.dtype, evidence.pairs.dim)
    if wanted.several:
        raise ValueError(
            f"climatology must have one value per case, but has several along {wanted.dim!r}; "
            "select one"
        )
    return wanted.values.isel({wanted.dim: 0}, drop=True)
