"""Scores of recalibrated forecasts, computed inside the chunk: no weights leave a task."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import xarray as xr

from xrecal.fit.select_fits import as_given, explicit_member_dim, match_variables, single_dims
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import at_scalars
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.pairing import Observations, pair_cases

from .predict import run_on_forecasts
from .products import check_seed, numbers_of
from .reductions import Reduction, crps_of, pit_of
from .score_variables import score_variables

if TYPE_CHECKING:
    from xrecal.fit.fitted import Fitted, FittedVariable


def crps(
    model: Fitted,
    forecast: Labelled,
    observations: Observations,
    dim: Hashable | Sequence[Hashable] | None = None,
    covariates: Given = None,
) -> Labelled:
    """CRPS of recalibrated forecasts; see :meth:`Recalibrator.crps`."""
    one = against_observations(model, forecast, crps_of, covariates)
    return score_variables(forecast, observations, one, dim, explicit_member_dim(model, forecast))


def against_observations(
    model: Fitted,
    forecast: Labelled,
    reduction: Reduction,
    covariates: Given,
    *,
    numbered: bool = False,
) -> Callable[[Form, xr.DataArray], xr.DataArray]:
    """What a reduction makes of recalibrated forecasts and what verified, for each variable.

    It gets the numbers of the case and of the location too, if ``numbered``.
    """
    matched = match_variables(model, forecast)

    def one(form: Form, observed: xr.DataArray) -> xr.DataArray:
        if form.name not in matched:
            raise ValueError(
                f"{form.name!r} is recalibrated jointly with other variables; score them with the "
                f"model of all of them, and select then: model.crps(...)[{next(iter(matched))!r}]"
            )
        form, fitted = matched[form.name]
        observed = _along_single(observed, forecast, fitted)
        along = fitted.dim if fitted.dim in form.dims else None
        pairs = pair_cases(form, observed, along, name="forecast", require_dim=False)
        numbers = numbers_of(form, fitted.dim, fitted.selected) if numbered else []
        (values,) = run_on_forecasts(
            form,
            fitted,
            reduction,
            [()],
            extras=[pairs.observations, *numbers],
            covariates=covariates,
        )
        return as_given(values, fitted, forecast)

    return one


def _along_single(
    observed: xr.DataArray, forecast: Labelled, fitted: FittedVariable
) -> xr.DataArray:
    """Observations of the single lead or place of a forecast, along it if they say that they are.

    Others are of all places, or over valid times.
    """
    single = single_dims(fitted, forecast)
    observed = at_scalars(observed, forecast, names=("forecast", "observations"), dims=single)
    for d in single:
        if d in observed.coords and observed[d].ndim == 0:
            same = observed[d].to_numpy() == forecast[d].to_numpy()
            observed = observed.expand_dims(d) if same else observed
    return observed


def pit(
    model: Fitted,
    forecast: Labelled,
    observations: Observations,
    seed: int = 0,
    covariates: Given = None,
) -> Labelled:
    """Where observations fall within their recalibrated forecasts.

    See :meth:`xrecal.Recalibrator.pit`.
    """
    check_seed(seed)
    one = against_observations(
        model, forecast, partial(pit_of, seed=seed), covariates, numbered=True
    )
    return score_variables(
        forecast,
        observations,
        one,
        None,
        explicit_member_dim(model, forecast),
        f"placed at random within jumps of the forecast's CDF, seed {seed}",
        name="pit",
        long_name="probability integral transform of the observations",
        units={"units": "1"},
    )
