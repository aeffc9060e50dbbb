"""``.recal`` on DataArray and Dataset: thin doors. Each method calls one function."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
import xarray as xr

from xrecal import model
from xrecal.fit import fit_hindcast as prepare
from xrecal.fit.held_out import By, Span
from xrecal.fit.jointly import Period
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.pool import PoolOver
from xrecal.inputs.thresholds import Edges, Threshold
from xrecal.methods import Method
from xrecal.methods.call_errors import explain_calls
from xrecal.model import Recalibrator
from xrecal.products import categories, members, probabilities, statistics
from xrecal.products import cross_validate as cross_validation
from xrecal.products.cross_validate import OutputOf

from .doors import show_what_is_behind
from .evidence import Evidence
from .fields import Fields
from .plot import Figures

T = TypeVar("T", xr.DataArray, xr.Dataset)


class _Recal(Evidence[T], Fields[T], Figures[T]):
    """Recalibrate, describe, score and draw the forecasts held here; see :mod:`xrecal`."""

    def __init__(self, obj: T) -> None:
        self._obj: T = obj

    def __repr__(self) -> str:
        names = [name for name in dir(type(self)) if not name.startswith("_")]
        return f"<what can be done with these forecasts: {', '.join(names)}>"

    def fit(
        self,
        observations: Observations,
        method: Method = prepare.DEFAULT,
        *,
        dim: Hashable | None = None,
        member_dim: Hashable | None = None,
        condition_on: str | tuple[str, ...] | None = None,
        covariates: Given = None,
        pool: PoolOver = None,
        jointly: Sequence[Hashable] | None = None,
        period: Period = None,
        min_samples: int = 20,
    ) -> Recalibrator:
        """Learn from past forecasts and what verified; see :func:`xrecal.fit.fit_hindcast.fit`."""
        return model.fit(
            self._obj,
            observations,
            method,
            dim=dim,
            member_dim=member_dim,
            condition_on=condition_on,
            covariates=covariates,
            pool=pool,
            jointly=jointly,
            period=period,
            min_samples=min_samples,
        )

    def cross_validate(
        self,
        observations: Observations,
        method: Method = prepare.DEFAULT,
        *,
        dim: Hashable | None = None,
        member_dim: Hashable | None = None,
        by: By = "year",
        gap: Span = 0,
        blocks: int = 5,
        window: Span | None = None,
        every: Span | None = None,
        output: OutputOf = "quantile",
        q: float | Sequence[float] | np.ndarray = cross_validation.QUANTILES,
        threshold: Threshold | None = None,
        n: int | None = None,
        seed: int = 0,
        condition_on: str | tuple[str, ...] | None = None,
        covariates: Given = None,
        pool: PoolOver = None,
        min_samples: int = 20,
    ) -> Labelled:
        """Predict each case unseen; see :func:`xrecal.products.cross_validate.cross_validate`."""
        return cross_validation.cross_validate(
            self._obj,
            observations,
            method,
            dim=dim,
            member_dim=member_dim,
            by=by,
            gap=gap,
            blocks=blocks,
            window=window,
            every=every,
            output=output,
            q=q,
            threshold=threshold,
            n=n,
            seed=seed,
            condition_on=condition_on,
            covariates=covariates,
            pool=pool,
            min_samples=min_samples,
        )

    def apply(self, model: Recalibrator, *, covariates: Given = None) -> xr.Dataset:
        """Recalibrate these forecasts; see :meth:`xrecal.Recalibrator.apply`.

        Parameters
        ----------
        model : Recalibrator
            From ``hindcast.recal.fit(observations)``.
        covariates : mapping of str to DataArray, optional
            What the model is conditioned on, for these forecasts.

        Returns
        -------
        Dataset
            Distributions: weighted ensembles, or the parameters of normal ones.

        Examples
        --------
        >>> list(forecast.recal.apply(model))
        ['forecast', 'forecast_weight']
        """
        if not isinstance(model, Recalibrator):
            raise TypeError(
                "apply takes a fitted model, from hindcast.recal.fit(observations), "
                f"got {type(model).__name__}"
            )
        return model.apply(self._obj, covariates=covariates)

    def mean(self, *, member_dim: Hashable | None = None) -> Labelled:
        """Mean of each forecast; see :func:`xrecal.products.statistics.mean`."""
        return statistics.mean(self._obj, member_dim=member_dim)

    def std(self, *, member_dim: Hashable | None = None) -> Labelled:
        """Standard deviation of each forecast; see :func:`xrecal.products.statistics.std`."""
        return statistics.std(self._obj, member_dim=member_dim)

    def quantile(
        self, q: float | Sequence[float] | np.ndarray, *, member_dim: Hashable | None = None
    ) -> Labelled:
        """Quantiles of each forecast; see :func:`xrecal.products.statistics.quantile`."""
        return statistics.quantile(self._obj, q, member_dim=member_dim)

    def exceedance(self, threshold: Threshold, *, member_dim: Hashable | None = None) -> Labelled:
        """P(Y > threshold) of forecasts; see :func:`xrecal.products.probabilities.exceedance`."""
        return probabilities.exceedance(self._obj, threshold, member_dim=member_dim)

    def cdf(self, threshold: Threshold, *, member_dim: Hashable | None = None) -> Labelled:
        """P(Y <= threshold) of each forecast; see :func:`xrecal.products.probabilities.cdf`."""
        return probabilities.cdf(self._obj, threshold, member_dim=member_dim)

    def categories(self, edges: Edges, *, member_dim: Hashable | None = None) -> Labelled:
        """Probabilities of categories; see :func:`xrecal.products.categories.categories`."""
        return categories.categories(self._obj, edges, member_dim=member_dim)

    def members(self, n: int, *, seed: int = 0, member_dim: Hashable | None = None) -> Labelled:
        """Equally likely members of each forecast; see :func:`xrecal.products.members.members`."""
        return members.members(self._obj, n, seed=seed, member_dim=member_dim)


@xr.register_dataarray_accessor("recal")
class DataArrayRecal(_Recal[xr.DataArray]):
    """``DataArray.recal``: recalibrate, describe, score and draw these forecasts."""


@xr.register_dataset_accessor("recal")
class DatasetRecal(_Recal[xr.Dataset]):
    """``Dataset.recal``: recalibrate, describe, score and draw these forecasts."""


show_what_is_behind(_Recal)
explain_calls(_Recal, "recal")
