"""The doors of ``.recal`` to scores. Each method calls one function."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
import xarray as xr

from xrecal import diagnostics
from xrecal.diagnostics.scores import Emphasis
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Edges, Threshold

T = TypeVar("T", xr.DataArray, xr.Dataset)


class Scores(Generic[T]):
    """Score the forecasts held here; see :mod:`xrecal.diagnostics`."""

    _obj: T

    def crps(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        fair: bool = False,
        lower: Threshold | None = None,
        upper: Threshold | None = None,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Score against what verified; see :func:`xrecal.diagnostics.crps`."""
        return diagnostics.crps(
            self._obj, observations, dim, fair=fair, lower=lower, upper=upper, member_dim=member_dim
        )

    def quantile_weighted_crps(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        emphasis: Emphasis = "tails",
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """CRPS with weighted levels; see :func:`xrecal.diagnostics.quantile_weighted_crps`."""
        return diagnostics.quantile_weighted_crps(
            self._obj, observations, dim, emphasis=emphasis, member_dim=member_dim
        )

    def brier_score(
        self,
        observations: Observations,
        threshold: Threshold,
        dim: Dims = None,
        *,
        fair: bool = False,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Score of a probability; see :func:`xrecal.diagnostics.brier_score`."""
        return diagnostics.brier_score(
            self._obj, observations, threshold, dim, fair=fair, member_dim=member_dim
        )

    def ranked_probability_score(
        self,
        observations: Observations,
        edges: Edges,
        dim: Dims = None,
        *,
        fair: bool = False,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Score of categories; see :func:`xrecal.diagnostics.ranked_probability_score`."""
        return diagnostics.ranked_probability_score(
            self._obj, observations, edges, dim, fair=fair, member_dim=member_dim
        )

    def quantile_score(
        self,
        observations: Observations,
        q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
        dim: Dims = None,
        *,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Score of quantiles; see :func:`xrecal.diagnostics.quantile_score`."""
        return diagnostics.quantile_score(self._obj, observations, q, dim, member_dim=member_dim)
