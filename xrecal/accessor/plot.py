"""The doors of ``.recal`` to figures. Each makes the evidence and hands it to one function.

Matplotlib is imported when a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

import xarray as xr

from xrecal import diagnostics
from xrecal.diagnostics.skce import Test
from xrecal.fit import fit_hindcast as prepare
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold
from xrecal.methods import Method
from xrecal.methods.call_errors import explain_calls

from .plot_evidence import EvidencePlots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

T = TypeVar("T", xr.DataArray, xr.Dataset)


class Figures(Generic[T]):
    """Draw the forecasts held here, and what evidence says of them."""

    _obj: T

    @property
    def plot(self) -> Plots:
        """Figures of these forecasts; see :mod:`xrecal.plot`."""
        return Plots(self._obj)

    def report(
        self,
        observations: Observations,
        dim: Dims = None,
        path: str | PathLike[str] | None = None,
        *,
        threshold: Threshold | None = None,
        test: Test = "bootstrap",
        n_resamples: int = 1000,
        block_length: int | None = None,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> Figure:
        """One page of evidence, as a figure and perhaps a file; see :func:`xrecal.plot.report`."""
        from xrecal.plot import report

        return report(
            self._obj,
            observations,
            dim,
            path,
            threshold=threshold,
            test=test,
            n_resamples=n_resamples,
            block_length=block_length,
            augmented=augmented,
            seed=seed,
            member_dim=member_dim,
        )


class Plots(EvidencePlots):
    """``.recal.plot``: each method scores the forecasts and draws the result on Axes."""

    def __init__(self, obj: Labelled) -> None:
        self._obj: Labelled = obj

    def __repr__(self) -> str:
        names = [name for name in dir(type(self)) if not name.startswith("_")]
        return f"<figures of forecasts: {', '.join(names)}>"

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Say which figures there are."""
        raise TypeError(f"say which figure, as in .recal.plot.fan(observations): {self!r}")

    def fan(
        self,
        observations: Observations | None = None,
        *,
        ax: Axes | None = None,
        raw: Labelled | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Quantiles over dates or leads; see :func:`xrecal.plot.fan`.

        The central 90 and 50 % and the median; quantiles are drawn as they are.
        """
        from xrecal.plot import fan
        from xrecal.plot.matching import (
            fan_quantiles,
            matched_observations,
            raw_beside,
            with_known_members,
        )

        forecast = with_known_members(self._obj, member_dim)
        return fan(
            fan_quantiles(forecast),
            ax=ax,
            observations=matched_observations(forecast, observations),
            raw=raw_beside(raw, forecast),
        )

    def cdf(
        self,
        observations: Observations | None = None,
        *,
        ax: Axes | None = None,
        raw: Labelled | None = None,
        label: str | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """The distribution of one forecast; see :func:`xrecal.plot.cdf`."""
        from xrecal.plot import cdf
        from xrecal.plot.matching import matched_observations, raw_beside, with_known_members

        forecast = with_known_members(self._obj, member_dim)
        return cdf(
            forecast,
            ax=ax,
            observations=matched_observations(forecast, observations),
            raw=raw_beside(raw, forecast),
            label=label,
        )

    def density(
        self,
        observations: Observations | None = None,
        *,
        ax: Axes | None = None,
        raw: Labelled | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """The density of one forecast; see :func:`xrecal.plot.density`."""
        from xrecal.plot import density
        from xrecal.plot.matching import matched_observations, raw_beside, with_known_members

        forecast = with_known_members(self._obj, member_dim)
        return density(
            forecast,
            ax=ax,
            observations=matched_observations(forecast, observations),
            raw=raw_beside(raw, forecast),
        )

    def skill_by_lead(
        self,
        observations: Observations,
        reference: Labelled,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        label: str | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """CRPS skill over a reference forecast, by lead; see :func:`xrecal.plot.skill_by_lead`."""
        from xrecal.plot import skill_by_lead
        from xrecal.plot.matching import crps_skill

        skill = crps_skill(self._obj, observations, reference, dim, member_dim)
        return skill_by_lead(skill, ax=ax, label=label)

    def skill_map(
        self,
        observations: Observations,
        reference: Labelled,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Map of the CRPS skill over a reference forecast; see :func:`xrecal.plot.skill_map`."""
        from xrecal.plot import skill_map
        from xrecal.plot.matching import crps_skill

        return skill_map(crps_skill(self._obj, observations, reference, dim, member_dim), ax=ax)

    def p_value_map(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        test: Test = "bootstrap",
        n_resamples: int = 1000,
        block_length: int | None = None,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Map of tests of calibration given the forecast; see :func:`xrecal.plot.p_value_map`."""
        from xrecal.plot import p_value_map

        tested = diagnostics.skce_test(
            self._obj,
            observations,
            dim,
            test=test,
            n_resamples=n_resamples,
            block_length=block_length,
            augmented=augmented,
            seed=seed,
            member_dim=member_dim,
        )
        return p_value_map(tested, ax=ax)

    def ridge_curve(
        self,
        observations: Observations,
        method: Method = prepare.DEFAULT,
        *,
        ax: Axes | None = None,
        dim: Hashable | None = None,
        member_dim: Hashable | None = None,
        condition_on: str | tuple[str, ...] | None = None,
        covariates: Given = None,
        min_samples: int = 20,
        label: str | None = None,
    ) -> Axes:
        """Held-out loss of this hindcast with each ridge; see :func:`xrecal.plot.ridge_curve`."""
        from xrecal.plot import ridge_curve

        curve = diagnostics.ridge_curve(
            self._obj,
            observations,
            method,
            dim=dim,
            member_dim=member_dim,
            condition_on=condition_on,
            covariates=covariates,
            min_samples=min_samples,
        )
        return ridge_curve(curve, ax=ax, label=label)


explain_calls(Plots, "recal.plot")
