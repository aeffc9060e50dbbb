"""Define the fitted model; its methods are functions of other modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import Literal, ParamSpec

import xarray as xr

from . import diagnostics
from .fit import fit_hindcast, report
from .fit import update as updating
from .fit.fitted import Fitted
from .inputs.covariates import Given
from .inputs.forms import Labelled
from .inputs.pairing import Observations
from .methods.call_errors import explained
from .methods.doors import verb
from .plan import planning
from .products import novelty
from .products.apply import model_apply
from .products.recalibrated import Missing
from .products.table import ProductVerbs
from .storage import storage, stored

P = ParamSpec("P")


@dataclass(frozen=True, repr=False, eq=False)
class Recalibrator(Fitted, ProductVerbs, diagnostics.Verbs):
    """A method fitted to one or several variables; ``hindcast.recal.fit`` returns it.

    Attributes
    ----------
    method : Method
        Method with its settings.
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

    apply = verb(model_apply, "apply")
    novelty = verb(novelty.model_novelty, "novelty")
    plan = verb(planning.plan_forecast, "plan")
    to_dataset = verb(stored.to_dataset, "to_dataset")

    @explained("model.update")
    def update(
        self, hindcast: Labelled, observations: Observations, *, covariates: Given = None
    ) -> Recalibrator:
        """Add cases to the model without a new fit.

        Forecasts of the model then also use the new cases. If the weights of cases decrease with
        age (half-life), age counts from the newest case. An update keeps everything that
        cross-validation has chosen: ridge, bandwidth, strength of covariates, support, centre,
        half-life and bounds of a CKME, and weights and tails of a LinearPool. It also keeps the
        places and leads of a pooled fit. A method without such choices becomes equal to a new fit
        to all cases, up to rounding. These methods are EMOS, climatology, PIT, conformal margins,
        IDR except the coefficients of its covariates, and the components of a LinearPool other than
        CKMEs and forests. EMOS in a LinearPool equals a new fit only to about 1e-9, because of its
        optimiser. Cases may come one at a time or many at once. Fit again from time to time, so
        that the choices use all cases. An OnlinePool fits again by itself, and updates its weights
        after each case, in order.

        You may pass cases again; the model recognises them by their labels. A case does not change
        if its new observation is missing, or equals the known observation. The model adds an
        observation that was missing, and replaces an observation that differs. Together with such
        an observation, the model stores the newly passed forecast of the case, but it keeps
        covariates that it knows already. So on each day you may pass the starts of several past
        days again: the fit of each lead then learns a case as soon as its observation is known.
        Only a shared fit raises an error for an observation that differs, because it stores sums
        over cases. The shared CKME in an OnlinePool keeps the first observation.

        Parameters
        ----------
        hindcast : DataArray or Dataset
            Past forecasts, whose dates may be before, after or between those of the known cases.
            Kind, unit and locations must be those of the fit. If the fit is pooled, forecasts must
            have all pooled places and leads. The number of members may differ. If places along one
            dimension share a fit, the forecasts may have any of these places, in any order, and new
            places whose features are known.
        observations : DataArray, Dataset or dict
            Observations of these forecasts; see ``hindcast.recal.fit``.
        covariates : dict from str to DataArray, optional
            Covariates of these forecasts; see ``hindcast.recal.fit``.

        Returns
        -------
        Recalibrator
            Model with all cases, sorted by label. It is lazy if the old model or an input is lazy.
            Locations without a fit stay without a fit. Only EMOS fits such a location, once it has
            enough cases.

        Raises
        ------
        ValueError
            If kind, units, dimensions, labels, or pooled places or leads differ from those of the
            fit. If the fit recalibrates variables jointly, and one of them is missing. If a feature
            of a new place is unknown.

        Warns
        -----
        UserWarning
            If new cases of an OnlinePool come late, have revised observations, have dates in the
            future, or follow weeks without cases.

        Notes
        -----
        An update is cheap, except for EMOS. EMOS is fitted again to all cases, from the same
        initial values as in ``fit``, so the result does not depend on the order of updates. This
        takes O(n) time for n cases at each location, and the model stores 3 n more numbers at each
        location for this purpose.

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
    """Rename a function, and convert its result to a Recalibrator."""

    @wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> Recalibrator:
        fitted = function(*args, **given)
        return Recalibrator(fitted.method, fitted.variables)

    called.__name__ = called.__qualname__ = name
    return called


fit = _as_recalibrator("fit", fit_hindcast.fit)
open_recalibrator = _as_recalibrator("open_recalibrator", storage.open_fitted)


def apply(
    forecast: Labelled,
    model: Recalibrator,
    *,
    covariates: Given = None,
    missing_covariates: Missing = "refuse",
) -> xr.Dataset:
    """Recalibrate new forecasts; see :meth:`xrecal.Recalibrator.apply`.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of the same kind and at the same locations as the hindcast.
    model : Recalibrator
        Fitted model, from ``hindcast.recal.fit(observations)``.
    covariates : dict from str to DataArray or Dataset, optional
        Values of the model's covariates for these forecasts.
    missing_covariates : {"refuse", "without"}
        For forecasts that lack a covariate, "refuse" raises an error, and "without" uses the median
        of this covariate over the record.

    Returns
    -------
    Dataset
        Weighted ensembles with their novelty, or parameters of normal distributions.

    Examples
    --------
    >>> list(forecast.recal.apply(model))
    ['forecast', 'forecast_weight', 'forecast_novelty', 'forecast_beyond', 'forecast_tail_shape']
    """
    if not isinstance(model, Recalibrator):
        raise TypeError(
            "apply takes a fitted model, from hindcast.recal.fit(observations), "
            f"got {type(model).__name__}"
        )
    return model.apply(forecast, covariates=covariates, missing_covariates=missing_covariates)
