"""Novelty: how little of a forecast is known from those that a model has learned from."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import TYPE_CHECKING

import xarray as xr

from xrecal.chunks.warnings import users_stacklevel
from xrecal.fit.fitted import Fitted
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.methods.novelty import compares

from .recalibrated import Recalibrated, recalibrated

if TYPE_CHECKING:
    from xrecal.methods import Method

NOVEL = 0.5
"""Novelty above which a forecast is told."""

DESCRIBED = {
    "long_name": "novelty of the forecast: 0 like past ones, 1 unlike all",
    "units": "1",
}


def model_novelty(model: Fitted, forecast: Labelled, *, covariates: Given = None) -> Labelled:
    """How little is known of forecasts like these: 0 for an ordinary one, 1 for one like no other.

    What is issued of a novel forecast comes from climatology, or from the errors of forecasts that
    were not like it: judge it yourself.

    Parameters
    ----------
    forecast : DataArray or Dataset
        As for ``apply``.
    covariates : dict from str to DataArray, optional
        As for ``apply``.

    Returns
    -------
    DataArray or Dataset
        As the forecast, without the members; lazy if it or the model is. NaN where the forecast, a
        covariate or the fit is missing.

    Raises
    ------
    TypeError
        If the method does not compare forecasts with past ones, as EMOS.

    Warns
    -----
    UserWarning
        If forecasts in memory have a novelty above 0.5.

    Notes
    -----
    One minus the share of the forecast that comes from cases like it, with a small ridge, in units
    of that of an ordinary case; see :func:`xrecal.arrays.ckme_novelty`. Near 0 up to the largest
    past forecasts, about 0.5 where these are exceeded by a fifth of the spread of all, above 0.9
    where by half of it.

    Examples
    --------
    >>> model.novelty(forecast).isel(init=0).round(1).values
    array([0., 0., 0., 0.])
    """
    require_novelty(model.method)
    sources = recalibrated(model, forecast, covariates)
    return sources.product(novelty_of, f"novelty of the forecast to {model.method}", "novelty")


def require_novelty(method: Method) -> None:
    """Raise TypeError unless a method compares forecasts with past ones."""
    if not compares(method):
        raise TypeError(
            f"{method} does not compare forecasts with past ones, so it knows no novelty; CKME and "
            "LinearPool with a CKME do"
        )


def novelty_of(source: Recalibrated) -> xr.DataArray:
    """Novelty of forecasts, and a warning if some in memory are novel."""
    novelty = source.novelty().assign_attrs(DESCRIBED)
    if novelty.chunks is None:
        _warn_of_novel(novelty, source.form.name)
    return novelty


def _warn_of_novel(novelty: xr.DataArray, name: Hashable | None) -> None:
    """Warn if forecasts in memory are novel."""
    n_novel = int((novelty > NOVEL).sum())
    if n_novel:
        of = "" if name is None else f" of {name!r}"
        warnings.warn(
            f"{n_novel} of {int(novelty.notnull().sum())} forecasts{of} are unlike all that the "
            f"model has learned from (novelty above {NOVEL:g}, up to {float(novelty.max()):.2g}): "
            "what is issued of them follows from other forecasts; model.novelty(forecast) tells "
            "which they are",
            stacklevel=users_stacklevel(),
        )
