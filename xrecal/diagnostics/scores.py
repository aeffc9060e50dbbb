"""Evidence: how good a forecast is, with its observations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
import xarray as xr

from .ensembles import reduce_form
from .forms import Form, Labelled
from .pairing import Observations, pair_cases, pair_variables
from .tasks import crps_of


def crps(
    forecast: Labelled,
    observations: Observations,
    dim: Hashable | Sequence[Hashable] | None = None,
    *,
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
        If dimensions, labels or units do not fit, or a weight is negative.

    Notes
    -----
    :math:`E|X - y| - \frac12 E|X - X'|` of the distribution that is issued: members and quantiles
    count as they stand, without the correction for a finite ensemble ("fair" CRPS). Normal
    distributions have a closed form.
    """

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        pairs = pair_cases(form, observed, name="forecast", require_dim=False)
        return reduce_form(form, crps_of, extras=[pairs.observations])

    return score_variables(forecast, observations, one, dim, member_dim)


def score_variables(
    forecast: Labelled,
    observations: Observations,
    score: Callable[[Form, xr.DataArray], xr.DataArray],
    dim: Hashable | Sequence[Hashable] | None,
    member_dim: Hashable | None,
) -> Labelled:
    """Score every pair of variables and average over ``dim``."""
    results: dict[Hashable, xr.DataArray] = {}
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    for name, (form, observed) in paired.items():
        scores = score(form, observed)
        over = _dims_to_average(dim, scores)
        if not set(over) <= set(scores.dims):
            raise ValueError(
                f"dim={dim!r} is not among the dimensions of the scores, {list(scores.dims)}"
            )
        attrs = {
            "long_name": "continuous ranked probability score",
            "estimator": "score of the issued distribution, not corrected for ensemble size",
        }
        if "units" in form.loc.attrs:
            attrs["units"] = form.loc.attrs["units"]
        if over:
            scores = scores.mean(over, dtype=np.float64).astype(scores.dtype)
        results[name] = scores.assign_attrs(attrs)
    if isinstance(forecast, xr.DataArray) or isinstance(observations, xr.DataArray):
        return next(iter(results.values())).rename("crps")
    return xr.Dataset(results)


def _dims_to_average(
    dim: Hashable | Iterable[Hashable] | None, scores: xr.DataArray
) -> list[Hashable]:
    if dim is None:
        return []
    if dim is ...:
        return list(scores.dims)
    return [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)
