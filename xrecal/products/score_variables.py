"""Scores of every variable of a forecast, averaged over dimensions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import xarray as xr

from xrecal.chunks.over_cases import over_cases
from xrecal.inputs.dims import Dims, listed, told_dims
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import history_only
from xrecal.inputs.pairing import Observations, pair_variables

_ISSUED = "score of the issued distribution, not corrected for ensemble size"


def score_variables(
    forecast: Labelled,
    observations: Observations,
    score: Callable[[Form, xr.DataArray], xr.DataArray],
    dim: Dims,
    member_dim: Hashable | None,
    estimator: str = _ISSUED,
    *,
    name: str = "crps",
    long_name: str = "continuous ranked probability score",
    units: Mapping[str, str] | None = None,
) -> Labelled:
    """Score every pair of variables and average over ``dim``; in their unit if none is given."""
    results: dict[Hashable, xr.DataArray] = {}
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    for variable, (form, observed) in paired.items():
        scores = score(form, observed)
        over = _dims_to_average(dim, scores)
        if not set(over) <= set(scores.dims):
            raise ValueError(
                f"dim={dim!r} is not among the dimensions of the scores, {list(scores.dims)}"
            )
        own = {k: v for k, v in form.loc.attrs.items() if k == "units"} if units is None else units
        attrs = {"long_name": long_name, "estimator": estimator, **own}
        if over:
            scores = _mean(scores, over)
        results[variable] = scores.assign_attrs(attrs)
    mean = f", mean over {told_dims(over)}" if over else ""
    told = history_only(forecast.attrs, long_name + mean)
    if isinstance(forecast, xr.DataArray) or isinstance(observations, xr.DataArray):
        return next(iter(results.values())).rename(name).assign_attrs(told)
    return xr.Dataset(results, attrs=told)


def _mean(scores: xr.DataArray, dims: Sequence[Hashable]) -> xr.DataArray:
    """Mean of the scores that are not missing, summed in float64.

    In one order whatever the chunks of locations; of several chunks of cases Dask sums each.
    """
    if any(len(scores.variable.chunksizes.get(d, ())) > 1 for d in dims):
        return scores.mean(dims, dtype=np.float64).astype(scores.dtype)
    (mean,) = over_cases(_MeanOfKnown(), scores, dims=dims, what="the mean of scores")
    coords = {name: c for name, c in scores.coords.items() if not set(c.dims) & set(dims)}
    return mean.assign_coords(coords).transpose(*[d for d in scores.dims if d not in dims])


class _MeanOfKnown:
    """Mean (...) of the scores (..., n) that are not missing."""

    on_device = True

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        from xrecal.arrays.dispatch import device_function, is_on_device
        from xrecal.arrays.scores.significance import mean_of_cases

        mean = device_function("mean_of_cases") if is_on_device(scores) else mean_of_cases
        found: np.ndarray = mean(scores.astype(np.float64))
        return found


def _dims_to_average(dim: Dims, scores: xr.DataArray) -> list[Hashable]:
    if dim is None:
        return []
    if dim is ...:
        return list(scores.dims)
    return listed(dim)
