"""Define ``.recal`` on DataArray and Dataset; its methods call functions of xrecal."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import TYPE_CHECKING

import xarray as xr

from xrecal import diagnostics, model
from xrecal.diagnostics.skce import Test
from xrecal.fit.known_at import known_at
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold
from xrecal.methods.doors import door
from xrecal.products.cross_validate import cross_validate
from xrecal.products.table import ProductDoors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .plot import Plots


def report(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    path: str | PathLike[str] | None = None,
    *,
    raw: Labelled | None = None,
    threshold: Threshold | None = None,
    test: Test = "serial",
    n_resamples: int = 1000,
    block_length: int | None = None,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
    progress: bool = True,
) -> Figure:
    """Draw one page of scores and tests of these forecasts; see :func:`xrecal.plot.report`."""
    from xrecal.plot import report  # needs matplotlib

    return report(
        forecast,
        observations,
        dim,
        path,
        raw=raw,
        threshold=threshold,
        test=test,
        n_resamples=n_resamples,
        block_length=block_length,
        augmented=augmented,
        seed=seed,
        member_dim=member_dim,
        progress=progress,
    )


class _Recal(ProductDoors, diagnostics.Doors):
    """Recalibrate, describe, score and draw these forecasts; see :mod:`xrecal`."""

    _typed_as = "recal"

    def __repr__(self) -> str:
        return f"<calls for these forecasts: {self._doors()}>"

    @property
    def plot(self) -> Plots:
        """Figures of these forecasts; see :mod:`xrecal.plot`."""
        from .plot import Plots  # needs matplotlib

        return Plots(self._obj)

    fit = door(model.fit)
    apply = door(model.apply)
    cross_validate = door(cross_validate)
    known_at = door(known_at)
    report = door(report)


@xr.register_dataarray_accessor("recal")
class DataArrayRecal(_Recal):
    """``DataArray.recal``: recalibrate, describe, score and draw these forecasts."""


@xr.register_dataset_accessor("recal")
class DatasetRecal(_Recal):
    """``Dataset.recal``: recalibrate, describe, score and draw these forecasts."""
