"""Compare the size of errors with the spread of forecasts."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import xarray as xr

from xrecal.arrays.rows import is_whole
from xrecal.chunks.blockwise import require_free
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.methods.call_errors import explained
from xrecal.products.statistics import mean_of, std_of

from .evidence import NO_UNIT, described, read_evidence

BIN = "spread_bin"
_TEXTS = {
    "bias": "mean of forecast minus observation",
    "bias_error": "standard error of the bias, allowing for autocorrelation",
    "rmse": "root mean square error of the forecast mean",
    "spread": "root of the mean variance of the forecast",
    "ratio": "ratio of spread and error",
    "spread_of_bin": "root of the mean variance of the cases in the bin",
    "rmse_of_bin": "root mean square error of the cases in the bin",
    "n_in_bin": "number of cases in the bin",
}


@explained("xrecal.diagnostics.spread_skill")
def spread_skill(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    bins: int = 5,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute bias, RMSE and spread over all cases, and in groups of cases with similar spread.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    bins : int
        Number of groups of cases. All groups have the same number of cases; the first has the cases
        with the smallest spread.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over locations, in the unit of the variable: ``bias``, the mean error (forecast mean minus
        observation); ``bias_error``, the standard error of the bias, which allows for
        autocorrelation and counts each date once; ``rmse``, the root mean square error of the
        forecast mean; ``spread``, the root of the mean variance. Over locations, without a unit:
        ``ratio``, ``n_cases`` and ``status``. ``ratio`` is ``spread`` / ``rmse``: 1 if forecasts
        are calibrated, less if they are overconfident. Over locations and groups of cases
        (``spread_bin``): ``spread_of_bin``, ``rmse_of_bin`` and ``n_in_bin``. The first group has
        the smallest spread. The result is lazy if an input is lazy.

    Raises
    ------
    ValueError
        If there is more than one variable, if ``bins`` is not a positive whole number, or if
        dimensions, labels or units of the inputs do not match.

    Notes
    -----
    For plain ensembles of m members, the function multiplies the variance by
    :math:`(m+1)/(m-1)` [1]_, because the mean of m members is uncertain. It does not change the
    variance of other forecasts. The cost is O(m) for each forecast of m members.

    References
    ----------
    .. [1] Fortin et al. (2014), Why should ensemble spread match the RMSE of the ensemble mean?
       https://doi.org/10.1175/JHM-D-14-0008.1

    Examples
    --------
    >>> spread = hindcast.recal.spread_skill(observations, ["init", "location"])
    >>> spread["rmse"].round(2).item(), spread["spread"].round(2).item()
    (0.43, 0.17)
    """
    if not is_whole(bins) or bins < 1:
        raise ValueError(f"bins must be a whole number, at least 1, got {bins!r}")
    evidence = read_evidence(forecast, observations, dim, member_dim)
    form = evidence.form
    require_free(form.dims, [BIN])
    mean, std = evidence.reduce(mean_of), evidence.reduce(std_of)
    known = mean.notnull() & (abs(evidence.observations) < np.inf)
    n_members = []
    if form.kind == "ensemble":
        n_members = [form.loc.notnull().sum([form.member_dim], keep_attrs=False)]
        known = known & (n_members[0] >= 2)
    results = evidence.over_cases(
        partial(_numbers, bins=int(bins)),
        mean,
        std**2,
        evidence.observations,
        *n_members,
        out=[*[()] * 5, *[(BIN,)] * 3],
        sizes={BIN: int(bins)},
        dtypes=[*[mean.dtype] * 7, np.float64],
        what="spread and skill",
    )
    if len(evidence.dims) > 1:
        error = evidence.error_of_mean(mean - evidence.observations)
        results = (results[0], error, *results[2:])
    variables = described(results, _TEXTS, evidence.units)
    variables["ratio"].attrs |= NO_UNIT
    variables["n_in_bin"].attrs.pop("units", None)
    number = {"long_name": "group of cases, by ascending spread", "units": "1"}
    along = {BIN: (np.arange(int(bins)), number)}
    return evidence.result(variables, "spread and skill", known, along=along)


def _numbers(
    mean: np.ndarray,
    variance: np.ndarray,
    observations: np.ndarray,
    n_members: np.ndarray | None = None,
    *,
    bins: int,
) -> tuple[np.ndarray, ...]:
    from xrecal.arrays import spread_skill as numbers_of

    return tuple(numbers_of(mean, variance, observations, bins, n_members))
