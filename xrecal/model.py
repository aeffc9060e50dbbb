"""The fitted object: verbs on what was fitted, each one function."""

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

    apply = verb(model_apply, "apply")
    novelty = verb(novelty.model_novelty, "novelty")
    plan = verb(planning.plan_forecast, "plan")
    to_dataset = verb(stored.to_dataset, "to_dataset")

    @explained("model.update")
    def update(
        self, hindcast: Labelled, observations: Observations, *, covariates: Given = None
    ) -> Recalibrator:
        """The model with more cases, without a new fit.

        The new cases join those that forecasts are compared with and made from; half-lives count
        from the newest. All that was chosen by cross-validation stays: of a CKME ridge, bandwidth,
        strength of covariates, support, centre, half-life and bounds, of a LinearPool also its
        weights and tails, of a pooled fit the positions taken. What has no such choices learns
        from all cases, and is then what a fit to all would have made it: EMOS, climatology, PIT,
        conformal margins, IDR but for the coefficients of its covariates, and in a pool all
        methods but CKMEs; to rounding, which the optimiser of EMOS in a pool makes 1e-9 or so.
        Cases may come one at a time or many at once. Fit anew from time to time, so that the
        choices learn from all cases; an OnlinePool does so itself, and learns weights from each
        case, in order.

        Of cases that are known by their label nothing changes where the observation is the one
        that is known, or is missing now. One that was missing is filled in, one that differs takes
        the place of the first, each with its forecast; covariates that are known stay. So the
        starts of the last days may be given each day, and each lead learns when it verifies. Only
        a fit that many pooled places share refuses an observation that differs: it keeps sums. The
        law of all places in an OnlinePool keeps the one that it has learned from.

        Parameters
        ----------
        hindcast : DataArray or Dataset
            Past forecasts before, after or between the others, of the same kind, unit and
            locations, at all positions that are pooled. The number of members may differ. Where
            places share a fit along one dimension, at any of them, in any order, and at new ones,
            whose features must be known.
        observations : DataArray, Dataset or dict
            What verified, as for the fit.
        covariates : dict from str to DataArray, optional
            As for the fit.

        Returns
        -------
        Recalibrator
            Cases by ascending label; lazy if the model or an input is. Locations without a fit
            stay without, but with EMOS, which is fitted where cases suffice now.

        Raises
        ------
        ValueError
            If a variable lacks those that it is recalibrated with, or kind, units, dimensions,
            pooled positions or labels differ, or a feature of a new place is unknown.

        Warns
        -----
        UserWarning
            If new cases of an OnlinePool are late, revised, after a gap of weeks or of the future.

        Notes
        -----
        Cheap but for EMOS, which is fitted to all cases from its start, so that it does not depend
        on how they came: O(n) a location. That needs 2 n numbers more of the state at each.

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
        Of the kind the model was fitted on, at the same locations.
    model : Recalibrator
        From ``hindcast.recal.fit(observations)``.
    covariates : dict from str to DataArray or Dataset, optional
        Covariates that the model conditions on, for these forecasts.
    missing_covariates : {"refuse", "without"}
        Refuse forecasts without one of the covariates, or do without it.

    Returns
    -------
    Dataset
        Distributions: weighted ensembles with their novelty, or the parameters of normal ones.

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
