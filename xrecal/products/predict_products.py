"""Products of recalibrated forecasts, computed inside the chunk: no weights leave a task."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy.typing as npt
import xarray as xr

from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import history_line, probability_attributes
from xrecal.inputs.thresholds import Threshold, read_thresholds

from .ensembles import with_cell_method
from .predict import issued_attributes, map_variables, run_on_forecasts
from .products import CDF, EXCEEDANCE, EventKind, check_count, drawn, members_line, numbers_of
from .reductions import Reduction, mean_of, std_of, vectors_of

if TYPE_CHECKING:
    from xrecal.fit.fitted import Fitted, FittedVariable

    from .schaake_dates import Template


def exceedance(
    model: Fitted, forecast: Labelled, threshold: Threshold, covariates: Given = None
) -> Labelled:
    """Probabilities of recalibrated forecasts; see :meth:`xrecal.Recalibrator.exceedance`."""
    return _of_events(model, forecast, threshold, covariates, EXCEEDANCE)


def cdf(
    model: Fitted, forecast: Labelled, threshold: Threshold, covariates: Given = None
) -> Labelled:
    """CDF of recalibrated forecasts; see :meth:`xrecal.Recalibrator.cdf`."""
    return _of_events(model, forecast, threshold, covariates, CDF)


def _of_events(
    model: Fitted,
    forecast: Labelled,
    threshold: Threshold,
    covariates: Given,
    kind: EventKind,
) -> Labelled:
    """Probabilities of events of one kind."""

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        wanted = read_thresholds(threshold, form, type_of_thresholds(form, fitted), fitted.dim)
        (values,) = run_on_forecasts(
            form,
            fitted,
            kind.reduction,
            [(wanted.dim,)],
            {wanted.dim: wanted.values.sizes[wanted.dim]},
            extras=[wanted.values],
            covariates=covariates,
        )
        described = probability_attributes(issued_attributes(form, fitted), kind.event)
        return wanted.label(values).assign_attrs(described)

    result = map_variables(model, forecast, one)
    if isinstance(result, xr.DataArray):
        result = result.rename(kind.name)
    return with_history(result, f"{kind.line} after {model.method}")


def type_of_thresholds(form: Form, fitted: FittedVariable) -> npt.DTypeLike:
    """Floating type that thresholds are rounded to: that of the members they are compared with.

    Members that are not the observations themselves are as precise as the coarser input.
    """
    observed = fitted.state["observations"].dtype
    if fitted.method.shares_members:
        return observed
    return min(form.loc.dtype, observed, key=lambda dtype: dtype.itemsize)


def members(
    model: Fitted,
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
            partial(vectors_of, n=n, seed=seed) if fitted.jointly else drawn(n, seed),
            [(member,)],
            {member: n},
            extras=numbers_of(form, fitted.dim, fitted.selected),
            covariates=covariates,
        )
        return values.assign_attrs(issued_attributes(form, fitted))

    line = f"{members_line(n, seed)}, after recalibration by {model.method}"
    return with_history(map_variables(model, forecast, one), line)


def mean(model: Fitted, forecast: Labelled, covariates: Given = None) -> Labelled:
    """Means of recalibrated forecasts; see :meth:`xrecal.Recalibrator.mean`."""
    return _moment(model, forecast, mean_of, "mean", "mean", covariates)


def std(model: Fitted, forecast: Labelled, covariates: Given = None) -> Labelled:
    """Spreads of recalibrated forecasts; see :meth:`xrecal.Recalibrator.std`."""
    return _moment(model, forecast, std_of, "standard_deviation", "standard deviation", covariates)


def _moment(
    model: Fitted,
    forecast: Labelled,
    reduction: Reduction,
    method: str,
    what: str,
    covariates: Given,
) -> Labelled:
    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        (values,) = run_on_forecasts(form, fitted, reduction, [()], covariates=covariates)
        return values.assign_attrs(with_cell_method(issued_attributes(form, fitted), form, method))

    result = map_variables(model, forecast, one)
    return with_history(result, f"{what} after recalibration by {model.method}")


def with_history(result: Labelled, line: str) -> Labelled:
    """Result whose history has a line more."""
    return result.assign_attrs(history_line(result.attrs, line))
