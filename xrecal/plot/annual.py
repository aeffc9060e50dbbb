"""Reliability of quantiles relative to the annual cycle, which any forecast knows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
import xarray as xr

from xrecal import diagnostics
from xrecal.diagnostics.evidence import Evidence, in_one_chunk, read_evidence
from xrecal.inputs.covariates import season_of
from xrecal.inputs.dims import Dims, read_levels
from xrecal.inputs.forms import Labelled, of_cases
from xrecal.inputs.pairing import Observations
from xrecal.products.statistics import mean_of, quantiles_of

from .reading import Floats

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

CYCLE = "annual_cycle"
"""Name of the variable with the range of the subtracted cycle, in the unit of the forecast."""


def quantile_reliability(
    forecast: Labelled,
    observations: Observations,
    q: float | Sequence[float] | np.ndarray = QUANTILES,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
    beside: Evidence | None = None,
) -> xr.Dataset:
    """Reliability of quantiles, without the annual cycle of the forecasts.

    The result is the Dataset of :func:`xrecal.diagnostics.quantile_reliability`. If there are
    dates, it also has the range of the subtracted cycle. At each location, the function subtracts
    the annual cycle of the forecast means from forecasts and observations. It does so only if
    yearly and half-yearly waves explain more than half of the variance of these means (as in
    :func:`xrecal.diagnostics.skce_test`), because such a cycle would put the curve near the
    diagonal for any forecast. Otherwise the range is 0. Calibrated forecasts stay calibrated,
    because the cycle depends on forecasts and dates alone. ``beside`` may be another forecast of
    the same cases. The function then subtracts the cycle of this other forecast, so the curves of
    both forecasts have the same observations and a common axis.
    """
    levels = read_levels(q)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    cycle = _cycle_of(evidence if beside is None else beside)
    if cycle is None:
        return diagnostics.quantile_reliability(
            forecast, observations, q, dim, member_dim=member_dim
        )
    form = evidence.form
    issued = evidence.reduce(partial(quantiles_of, levels=levels), new={"quantile": levels.size})
    issued = issued.assign_coords(quantile=levels).rename(form.name)
    attrs = evidence.units | of_cases(form, evidence.pairs.dim)
    relative, observed = (
        (values - cycle).transpose(*values.dims).reset_coords(drop=True).assign_attrs(attrs)
        for values in (issued, evidence.observations)
    )  # paired already, so without single leads and valid times
    # For quantiles, the issued levels are these quantiles themselves.
    found = diagnostics.quantile_reliability(relative, observed, q, dim)
    reach = (cycle.max([evidence.time]) - cycle.min([evidence.time])).max()
    return found.assign({CYCLE: reach.assign_attrs(evidence.units)})


def _cycle_of(evidence: Evidence) -> xr.DataArray | None:
    """Annual cycle of the forecast means at each location; None if there are no dates."""
    form, time = evidence.form, evidence.time
    season = season_of(form, time) if time in form.dims else None
    if season is None or time not in season.dims:
        return None
    mean = in_one_chunk(evidence.reduce(mean_of), time)
    cycle: xr.DataArray = xr.apply_ufunc(
        _cycle,
        mean,
        season.drop_vars([c for c in season.coords if c not in mean.coords]),
        input_core_dims=[[time]] * 2,
        output_core_dims=[[time]],
        vectorize=True,
        dask="parallelized",
        output_dtypes=[mean.dtype],
    )
    return cycle


def _cycle(mean: Floats, season: Floats) -> Floats:
    """Annual cycle (n,) of n forecast means: NaN for means that are NaN; 0 if the cycle is weak."""
    from xrecal.arrays.calibration.skce_locations import annual_cycle

    known = np.isfinite(mean)
    found = annual_cycle(mean[known].astype(np.float64), season[known]) if known.any() else None
    if found is None:
        return np.zeros_like(mean)
    cycle = np.full_like(mean, np.nan)
    cycle[known] = found
    return cycle
