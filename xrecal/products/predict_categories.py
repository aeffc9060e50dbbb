"""Categories of the calibration climatology: their edges at each location, their probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise, work_on
from xrecal.fit.fitted import CASE
from xrecal.inputs.covariates import Given, season_of
from xrecal.inputs.dims import read_inner_levels
from xrecal.inputs.forms import Form, Labelled, require_free
from xrecal.inputs.seasonal import take_cases
from xrecal.methods.base import is_positive
from xrecal.typing import FloatArray

from .categories import CATEGORY, EDGE, category_attributes, labels_of_levels, with_edges
from .predict import issued_attributes, map_variables, run_on_forecasts
from .predict_products import type_of_thresholds, with_history
from .reductions import categories_of

if TYPE_CHECKING:
    from xrecal.fit.fitted import Fitted, FittedVariable

_DATE = "date_of_year"
"""Dimension of the different dates of forecasts inside a task."""


def categories(
    model: Fitted,
    forecast: Labelled,
    q: float | Sequence[float] | np.ndarray,
    window: float | None = None,
    covariates: Given = None,
) -> Labelled:
    """Probabilities of recalibrated forecasts; see :meth:`xrecal.Recalibrator.categories`."""
    levels = read_inner_levels(q)
    if window is not None and not is_positive(window):
        raise ValueError(f"window must be a positive number of days, got {window!r}")

    def one(form: Form, fitted: FittedVariable) -> xr.DataArray:
        require_free(form, CATEGORY)
        edges = climatology_edges(form, fitted, levels, window)
        (values,) = run_on_forecasts(
            form,
            fitted,
            categories_of,
            [(CATEGORY,)],
            {CATEGORY: levels.size + 1},
            extras=[edges],
            covariates=covariates,
        )
        named = isinstance(forecast, xr.Dataset)
        values = with_edges(values, edges, labels_of_levels(levels), form, named)
        return values.assign_attrs(category_attributes(issued_attributes(form, fitted)))

    result = map_variables(model, forecast, one)
    if isinstance(result, xr.DataArray):
        result = result.rename("categories")
    of = "all cases" if window is None else f"cases within a window of {window:g} days"
    line = f"probabilities of categories of the climatology of {of} after {model.method}"
    return with_history(result, line)


def climatology_edges(
    form: Form, fitted: FittedVariable, levels: FloatArray, window: float | None
) -> xr.DataArray:
    """Quantiles of the calibration observations at each location, perhaps near each date."""
    observed = fitted.state["observations"].drop_vars(
        [c for c in fitted.state.coords if c not in fitted.locations], errors="ignore"
    )
    dtype = type_of_thresholds(form, fitted)
    season = None if window is None else _season(form, fitted, window)
    dates, places = None, None
    sizes: dict[Hashable, int] = {EDGE: levels.size}
    if season is not None:
        dates, places = np.unique(season.to_numpy(), return_inverse=True)
        sizes = {_DATE: dates.size, **sizes}
    (edges,) = run_blockwise(
        _Edges(levels, dtype, fitted.axis.season, dates, window),
        observed,
        core=[(CASE,)],
        out=[tuple(sizes)],
        dtypes=[dtype],
        sizes=sizes,
        what=work_on("the climatology", form.name),
    )
    if season is None or places is None:
        return edges
    at = xr.DataArray(places.reshape(season.shape), dims=season.dims)
    return take_cases(edges, _DATE, at, form)


def _season(form: Form, fitted: FittedVariable, window: float) -> xr.DataArray:
    """Fraction of the year of each forecast; ValueError where dates are not known."""
    season = season_of(form, fitted.dim)
    for owner, known in (("the hindcast had", fitted.axis.season), ("the forecast has", season)):
        if known is None:
            raise ValueError(
                f"window={window:g} needs dates (datetime64 or cftime) along {fitted.dim!r}, and "
                f"{owner} none; leave window out, or add them"
            )
    assert season is not None
    return season


class _Edges:
    """Observations (..., n) of a chunk to edges (..., k), or (..., T, k) for T dates."""

    def __init__(
        self,
        levels: FloatArray,
        dtype: npt.DTypeLike,
        season: FloatArray | None,
        new_season: FloatArray | None,
        window: float | None,
    ) -> None:
        self.levels, self.dtype = levels, dtype
        self.season, self.new_season, self.window = season, new_season, window

    def __call__(self, observations: FloatArray) -> FloatArray:
        """Run the task on one chunk."""
        from xrecal.arrays.baselines.climatology import climatology_quantiles

        found = climatology_quantiles(
            observations,
            self.levels,
            season=self.season,
            new_season=self.new_season,
            window=self.window,
        )
        return found.astype(self.dtype)
