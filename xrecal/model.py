"""The fitted object: verbs on what was fitted, each one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import Concatenate, Literal, ParamSpec, TypeVar

import xarray as xr

from .fit import fit_hindcast, report
from .fit import update as updating
from .fit.fitted import Fitted
from .inputs.covariates import Given
from .inputs.forms import Labelled
from .inputs.pairing import Observations
from .methods.call_errors import explained
from .plan import planning
from .products import (
    categories,
    log_score,
    members,
    novelty,
    probabilities,
    scores,
    statistics,
)
from .products.apply import model_apply
from .storage import storage, stored

P = ParamSpec("P")
R = TypeVar("R")


def verb(
    name: str, function: Callable[Concatenate[Fitted, P], R]
) -> Callable[Concatenate[Recalibrator, P], R]:
    """A function of a model as the method ``name``, which explains calls that it does not take.

    Signature and docstring are those of the function.
    """

    @wraps(function)
    def method(self: Recalibrator, /, *args: P.args, **given: P.kwargs) -> R:
        return function(self, *args, **given)

    signature = inspect.signature(function)
    first, *others = signature.parameters.values()
    own = signature.replace(parameters=[first.replace(name="self"), *others])
    method.__signature__ = own  # type: ignore[attr-defined]
    method.__name__, method.__qualname__ = name, f"Recalibrator.{name}"
    del method.__wrapped__  # whose first parameter has another name
    return explained(f"model.{name}")(method)


@dataclass(frozen=True, repr=False, eq=False)
class Recalibrator(Fitted):
    """A fitted method, for one variable or several. Made by ``hindcast.recal.fit``.

    Attributes
    ----------
    method : Method
        The settings.
    variables : mapping
        Fitted variables by name.

    Examples
    --------
    >>> model.is_computed, model.state["ridge"].dims
    (True, ('location',))
    >>> model["forecast"].method == model.method
    True
    """

    def __repr__(self) -> str:
        return report.describe_recalibrator(self)

    def _repr_html_(self) -> str:
        return report.model_html(self)

    apply = verb("apply", model_apply)
    mean = verb("mean", statistics.model_mean)
    std = verb("std", statistics.model_std)
    quantile = verb("quantile", statistics.model_quantile)
    exceedance = verb("exceedance", probabilities.model_exceedance)
    cdf = verb("cdf", probabilities.model_cdf)
    categories = verb("categories", categories.model_categories)
    members = verb("members", members.model_members)
    crps = verb("crps", scores.model_crps)
    log_score = verb("log_score", log_score.model_log_score)
    brier_score = verb("brier_score", scores.model_brier_score)
    pit = verb("pit", scores.model_pit)
    novelty = verb("novelty", novelty.model_novelty)
    plan = verb("plan", planning.plan_forecast)
    to_dataset = verb("to_dataset", stored.to_dataset)

    @explained("model.update")
    def update(
        self, hindcast: Labelled, observations: Observations, *, covariates: Given = None
    ) -> Recalibrator:
        """The model with more cases, without a new fit.

        All that the fit has chosen stays: ridge, bandwidth, strength of covariates, support,
        centre, half-life, bounds, coefficients. The new cases join those that forecasts are
        compared with and made from; half-lives count from the newest. So it is cheap, and exact
        for given settings; fit anew from time to time, so that the choices learn from all cases.

        Parameters
        ----------
        hindcast : DataArray or Dataset
            Past forecasts that the model does not know, before, after or between the others, of
            the same kind, unit and locations. The number of members may differ.
        observations : DataArray, Dataset or dict
            What verified, as for the fit.
        covariates : dict from str to DataArray, optional
            As for the fit.

        Returns
        -------
        Recalibrator
            Cases by ascending label; lazy if the model or an input is. Locations without a fit
            stay without.

        Raises
        ------
        ValueError
            If the method keeps no cases (EMOS) or the model is pooled, labels are in it already,
            or kind, units, dimensions or labels differ.

        Examples
        --------
        >>> model = hindcast[:40].recal.fit(observations)
        >>> model.update(hindcast[40:], observations).state.sizes["calibration"]
        50
        """
        return updating.update(self, hindcast, observations, covariates)

    @explained("model.save")
    def save(
        self,
        path: str | PathLike[str],
        *,
        overwrite: bool = False,
        zarr_format: Literal[2, 3] | None = None,
    ) -> None:
        """Write the model to a file or Zarr store; see :func:`xrecal.storage.storage.save`."""
        storage.save(self, path, overwrite=overwrite, zarr_format=zarr_format)


def _as_recalibrator(name: str, function: Callable[P, Fitted]) -> Callable[P, Recalibrator]:
    """The function, under a name, whose result can be asked for forecasts."""

    @wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> Recalibrator:
        fitted = function(*args, **given)
        return Recalibrator(fitted.method, fitted.variables)

    called.__name__ = called.__qualname__ = name
    return called


fit = _as_recalibrator("fit", fit_hindcast.fit)
open_recalibrator = _as_recalibrator("open_recalibrator", storage.open_fitted)


def apply(forecast: Labelled, model: Recalibrator, *, covariates: Given = None) -> xr.Dataset:
    """Recalibrate new forecasts; see :meth:`xrecal.Recalibrator.apply`.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Of the kind the model was fitted on, at the same locations.
    model : Recalibrator
        From ``hindcast.recal.fit(observations)``.
    covariates : mapping of str to DataArray, optional
        What the model is conditioned on, for these forecasts.

    Returns
    -------
    Dataset
        Distributions: weighted ensembles with their novelty, or the parameters of normal ones.

    Examples
    --------
    >>> list(forecast.recal.apply(model))
    ['forecast', 'forecast_weight', 'forecast_novelty']
    """
    if not isinstance(model, Recalibrator):
        raise TypeError(
            "apply takes a fitted model, from hindcast.recal.fit(observations), "
            f"got {type(model).__name__}"
        )
    return model.apply(forecast, covariates=covariates)
