"""Products of recalibrated forecasts, computed inside the chunk: no weights leave a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from .attributes import history_line
from .covariates import Given
from .forms import Form, Labelled
from .predict import issued_attributes, map_variables, run_on_forecasts
from .products import (
    Threshold,
    check_count,
    drawn,
    members_line,
    numbers_of,
    read_thresholds,
)
from .reductions import Reduction, exceedance_of, mean_of, std_of

if TYPE_CHECKING:
    from .recalibrator import FittedVariable, Recalibrator
    from .templates import Template


def exceedance(
    model: Recalibrator, forecast: Labelled, threshold: Threshold, covariates: Given = None
) -> Labelled:
    """Probabilities of recalibrated forecasts; see :meth:`xrecal.Recalibrator.exceedance`."""

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        types = form.loc.dtype, fitted.state["observations"].dtype
        wanted = read_thresholds(threshold, form, min(types, key=lambda dtype: dtype.itemsize))
        (values,) = run_on_forecasts(
            form,
            fitted,
            exceedance_of,
            [(wanted.dim,)],
            {wanted.dim: wanted.values.sizes[wanted.dim]},
            extras=[wanted.values],
            covariates=covariates,
        )
        return wanted.label(values, issued_attributes(form, fitted))

    result = map_variables(model, forecast, one)
    if isinstance(result, xr.DataArray):
        result = result.rename("exceedance")
    return _with_history(result, f"probability of exceeding a threshold after {model.method}")


def members(
    model: Recalibrator,
    forecast: Labelled,
    n: int | None,
    template: Template = None,
    seed: int = 0,
    covariates: Given = None,
) -> Labelled:
    """Members of recalibrated forecasts; see :meth:`xrecal.Recalibrator.members`."""
    if template is not None:
        raise ValueError(
            "template names the dates whose order members follow; add coherence='schaake', or "
            "leave it out"
        )
    n = check_count(n, seed)

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        member = form.member_dim_of_results
        (values,) = run_on_forecasts(
            form,
            fitted,
            drawn(n, seed),
            [(member,)],
            {member: n},
            extras=numbers_of(form, fitted.dim),
            covariates=covariates,
        )
        return values.assign_attrs(issued_attributes(form, fitted))

    line = f"{members_line(n, seed)}, after recalibration by {model.method}"
    return _with_history(map_variables(model, forecast, one), line)


def mean(model: Recalibrator, forecast: Labelled, covariates: Given = None) -> Labelled:
    """Means of recalibrated forecasts; see :meth:`xrecal.Recalibrator.mean`."""
    return _statistic(model, forecast, mean_of, "mean", covariates)


def std(model: Recalibrator, forecast: Labelled, covariates: Given = None) -> Labelled:
    """Spreads of recalibrated forecasts; see :meth:`xrecal.Recalibrator.std`."""
    return _statistic(model, forecast, std_of, "standard deviation", covariates)


def _statistic(
    model: Recalibrator, forecast: Labelled, reduction: Reduction, what: str, covariates: Given
) -> Labelled:
    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        (values,) = run_on_forecasts(form, fitted, reduction, [()], covariates=covariates)
        return values.assign_attrs(issued_attributes(form, fitted))

    result = map_variables(model, forecast, one)
    return _with_history(result, f"{what} after recalibration by {model.method}")


def _with_history(result: Labelled, line: str) -> Labelled:
    return result.assign_attrs(history_line(result.attrs, line))
