"""``.recal`` on DataArray and Dataset: doors to functions that take forecasts first."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import TYPE_CHECKING

import xarray as xr

from xrecal import diagnostics, model
from xrecal.diagnostics.skce import Test
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold
from xrecal.products import categories, cross_validate, members, probabilities, statistics

from .doors import Accessor, door

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
) -> Figure:
    """One page of evidence, as a figure and perhaps a file; see :func:`xrecal.plot.report`."""
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
    )


class _Recal(Accessor):
    """Recalibrate, describe, score and draw the forecasts held here; see :mod:`xrecal`."""

    _typed_as = "recal"

    def __repr__(self) -> str:
        return f"<what can be done with these forecasts: {self._doors()}>"

    @property
    def plot(self) -> Plots:
        """Figures of these forecasts; see :mod:`xrecal.plot`."""
        from .plot import Plots  # needs matplotlib

        return Plots(self._obj)

    # model
    fit = door(model.fit)
    apply = door(model.apply)
    cross_validate = door(cross_validate.cross_validate)

    # products
    mean = door(statistics.mean)
    std = door(statistics.std)
    quantile = door(statistics.quantile)
    exceedance = door(probabilities.exceedance)
    cdf = door(probabilities.cdf)
    categories = door(categories.categories)
    members = door(members.members)

    # scores
    crps = door(diagnostics.crps)
    quantile_weighted_crps = door(diagnostics.quantile_weighted_crps)
    log_score = door(diagnostics.log_score)
    brier_score = door(diagnostics.brier_score)
    ranked_probability_score = door(diagnostics.ranked_probability_score)
    rps = ranked_probability_score
    quantile_score = door(diagnostics.quantile_score)
    wis = door(diagnostics.wis)
    error_spread = door(diagnostics.error_spread)
    energy_score = door(diagnostics.energy_score)
    variogram_score = door(diagnostics.variogram_score)

    # skill and discrimination
    brier_skill_score = door(diagnostics.brier_skill_score)
    rpss = door(diagnostics.rpss)
    roc = door(diagnostics.roc)
    economic_value = door(diagnostics.economic_value)
    generalised_discrimination = door(diagnostics.generalised_discrimination)
    anomaly_correlation = door(diagnostics.anomaly_correlation)
    tercile_summary = door(diagnostics.tercile_summary)

    # evidence
    pit = door(diagnostics.pit)
    pit_histogram = door(diagnostics.pit_histogram)
    pit_test = door(diagnostics.pit_test)
    rank_histogram = door(diagnostics.rank_histogram)
    reliability = door(diagnostics.reliability)
    quantile_reliability = door(diagnostics.quantile_reliability)
    coverage = door(diagnostics.coverage)
    spread_skill = door(diagnostics.spread_skill)
    skce = door(diagnostics.skce)
    skce_test = door(diagnostics.skce_test)
    monitor = door(diagnostics.monitor)
    decompose = door(diagnostics.decompose)
    ridge_curve = door(diagnostics.ridge_curve)
    summary = door(diagnostics.summary)
    report = door(report)


@xr.register_dataarray_accessor("recal")
class DataArrayRecal(_Recal):
    """``DataArray.recal``: recalibrate, describe, score and draw these forecasts."""


@xr.register_dataset_accessor("recal")
class DatasetRecal(_Recal):
    """``Dataset.recal``: recalibrate, describe, score and draw these forecasts."""
