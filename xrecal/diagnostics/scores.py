"""Scores of whole distributions: the CRPS, and its forms that look at a part."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
import xarray as xr

from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.pairing import Observations, pair_cases
from xrecal.inputs.thresholds import Threshold, Thresholds, read_thresholds
from xrecal.methods.call_errors import explained
from xrecal.products.ensembles import reduce_form
from xrecal.products.reductions import (
    Reduction,
    crps_between,
    crps_of,
    fair_crps_of,
    quantile_crps_of,
)
from xrecal.products.score_variables import _ISSUED, score_variables

from .evidence import require_plain

Emphasis: TypeAlias = Literal["center", "tails", "upper", "lower"]


@explained("xrecal.diagnostics.crps")
def crps(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    fair: bool = False,
    lower: Threshold | None = None,
    upper: Threshold | None = None,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Continuous ranked probability score of forecasts of any form.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms.
    observations : DataArray, Dataset or dict
        What verified, in the same units; matched by label along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions to average over. Missing scores are left out of the mean.
    fair : bool
        Estimate the score of an infinite ensemble from exchangeable members [2]_. Only for plain
        ensembles of at least two members.
    lower, upper : float or DataArray, optional
        Count only what is between them (threshold-weighted CRPS [3]_), in the unit of the
        variable; a DataArray may differ from place to place and date to date.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case in the unit of the variable; lazy if an input is. A DataArray if
        the forecast or the observations are one. NaN where the observation or forecast is missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units do not fit, ``fair`` is asked of other forms than plain
        ensembles or together with a threshold, or ``lower`` is above ``upper``.

    Notes
    -----
    :math:`E|X - y| - \frac12 E|X - X'| = \int (F(z) - 1\{y \le z\})^2 dz` [1]_ of the distribution
    that is issued; members and quantiles count as they stand. ``lower`` and ``upper`` bound the
    integral. Normal distributions have a closed form.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437
    .. [2] Ferro (2014), Fair scores for ensemble forecasts. https://doi.org/10.1002/qj.2270
    .. [3] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110

    Examples
    --------
    >>> forecast.recal.crps(observations, ["init", "location"]).round(2).item()
    0.39
    >>> forecast.recal.crps(observations, ["init", "location"], lower=5.0).round(2).item()
    0.13
    """
    if fair and not (lower is None and upper is None):
        raise ValueError("fair=True has no thresholds; leave out lower and upper, or fair")
    numbers = [float(end) for end in (lower, upper) if isinstance(end, (int, float, np.number))]
    if len(numbers) == 2 and numbers[0] > numbers[1]:
        raise ValueError(f"lower must not exceed upper, found {lower} and {upper}")
    if fair:
        estimator = "fair: of an infinite ensemble, from exchangeable members"
    else:
        ends = [
            f"{k} {_in_words(v)}" for k, v in (("above", lower), ("below", upper)) if v is not None
        ]
        estimator = _ISSUED + (f"; values {' and '.join(ends)} count" if ends else "")

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        if fair:
            require_plain(form, "fair=True")
        if lower is None and upper is None:
            return _reduced(form, observed, fair_crps_of if fair else crps_of)
        bounds = [_bound(lower, -np.inf, form), _bound(upper, np.inf, form)]
        return _reduced(form, observed, crps_between, bounds)

    return score_variables(forecast, observations, one, dim, member_dim, estimator)


@explained("xrecal.diagnostics.quantile_weighted_crps")
def quantile_weighted_crps(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    emphasis: Emphasis = "tails",
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""CRPS as the mean quantile score, with more weight on some levels.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        As for :func:`crps`; forecasts are ensembles, weighted ensembles or quantiles.
    emphasis : {"center", "tails", "upper", "lower"}
        Weight of level :math:`\tau`: :math:`\tau (1 - \tau)`, :math:`(2 \tau - 1)^2`,
        :math:`\tau^2` or :math:`(1 - \tau)^2`.

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case in the unit of the variable, as from :func:`crps`.

    Raises
    ------
    ValueError
        As for :func:`crps`, for an unknown emphasis, and for normal distributions: take quantiles
        of them first.

    References
    ----------
    .. [1] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110

    Examples
    --------
    >>> score = forecast.recal.quantile_weighted_crps(observations, ["init", "location"])
    >>> score.round(2).item()
    0.12
    """
    if emphasis not in get_args(Emphasis):
        raise ValueError(f"emphasis is {emphasis!r}; give one of {list(get_args(Emphasis))}")

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        if form.kind in ("normal", "censored"):
            raise ValueError(
                f"{form.name!r} holds normal distributions, which have no closed form here; take "
                "quantiles: forecast.recal.quantile(np.arange(0.005, 1, 0.01))"
            )
        return _reduced(form, observed, partial(quantile_crps_of, emphasis=emphasis))

    return score_variables(
        forecast,
        observations,
        one,
        dim,
        member_dim,
        f"weight on levels: {emphasis}",
        name="quantile_weighted_crps",
        long_name="quantile-weighted continuous ranked probability score",
    )


def _in_words(bound: object) -> str:
    """A threshold of the CRPS, for its attribute."""
    return "a threshold by place" if isinstance(bound, xr.DataArray) else str(bound)


def _bound(bound: Threshold | None, none: float, form: Form) -> xr.DataArray:
    """A threshold for each case, without a dimension of its own."""
    thresholds: Thresholds = read_thresholds(none if bound is None else bound, form, form.loc.dtype)
    if thresholds.several:
        raise ValueError(
            "lower and upper are one threshold each, but there are several along "
            f"{thresholds.dim!r}; select one"
        )
    return thresholds.values.isel({thresholds.dim: 0}, drop=True)


def _reduced(
    form: Form, observed: xr.DataArray, reduction: Reduction, extras: Sequence[xr.DataArray] = ()
) -> xr.DataArray:
    pairs = pair_cases(form, observed, name="forecast", require_dim=False)
    return reduce_form(form, reduction, extras=[pairs.observations, *extras])
