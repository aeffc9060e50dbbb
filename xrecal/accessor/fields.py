"""The doors of ``.recal`` to scores of fields. Each method calls one function."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import xarray as xr

from xrecal import diagnostics
from xrecal.diagnostics.multivariate import Scale
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations

T = TypeVar("T", xr.DataArray, xr.Dataset)


class Fields(Generic[T]):
    """Score whole fields of the forecasts held here."""

    _obj: T

    def energy_score(
        self,
        observations: Observations,
        over: Dims = None,
        dim: Dims = None,
        *,
        jointly: Sequence[Hashable] | None = None,
        scale: Scale = None,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Score of fields or vectors; see :func:`xrecal.diagnostics.energy_score`."""
        return diagnostics.energy_score(
            self._obj,
            observations,
            over,
            dim,
            jointly=jointly,
            scale=scale,
            member_dim=member_dim,
        )

    def variogram_score(
        self,
        observations: Observations,
        over: Dims = None,
        dim: Dims = None,
        *,
        order: float = 0.5,
        member_dim: Hashable | None = None,
    ) -> Labelled:
        """Score of dependence; see :func:`xrecal.diagnostics.variogram_score`."""
        return diagnostics.variogram_score(
            self._obj, observations, over, dim, order=order, member_dim=member_dim
        )
