"""The doors of ``.recal.plot`` to figures of diagnostics, which they run first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xrecal import diagnostics
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.inputs.thresholds import Threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class EvidencePlots:
    """Judge the forecasts held here, and draw the result."""

    _obj: Labelled

    def pit(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        bins: int = 10,
        augmented: bool = False,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Histogram of the probability integral transform; see :func:`xrecal.plot.pit`."""
        from xrecal.plot import pit

        histogram = diagnostics.pit_histogram(
            self._obj,
            observations,
            dim,
            bins=bins,
            augmented=augmented,
            seed=seed,
            member_dim=member_dim,
        )
        return pit(histogram, ax=ax)

    def rank_histogram(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        seed: int = 0,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Ranks among the members of plain ensembles; see :func:`xrecal.plot.rank_histogram`."""
        from xrecal.plot import rank_histogram

        histogram = diagnostics.rank_histogram(
            self._obj, observations, dim, seed=seed, member_dim=member_dim
        )
        return rank_histogram(histogram, ax=ax)

    def reliability(
        self,
        observations: Observations,
        threshold: Threshold,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        label: str | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Reliability diagram of probabilities; see :func:`xrecal.plot.reliability`."""
        from xrecal.plot import reliability

        found = diagnostics.reliability(
            self._obj, observations, threshold, dim, member_dim=member_dim
        )
        return reliability(found, ax=ax, label=label)

    def quantile_reliability(
        self,
        observations: Observations,
        q: float | Sequence[float] | np.ndarray = (0.1, 0.25, 0.5, 0.75, 0.9),
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Reliability diagram of quantiles; see :func:`xrecal.plot.quantile_reliability`."""
        from xrecal.plot import quantile_reliability

        found = diagnostics.quantile_reliability(
            self._obj, observations, q, dim, member_dim=member_dim
        )
        return quantile_reliability(found, ax=ax)

    def coverage(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        level: float | Sequence[float] = (0.5, 0.8, 0.9),
        seed: int = 0,
        label: str | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Observations inside central intervals; see :func:`xrecal.plot.coverage`."""
        from xrecal.plot import coverage

        found = diagnostics.coverage(
            self._obj, observations, dim, level=level, seed=seed, member_dim=member_dim
        )
        return coverage(found, ax=ax, label=label)

    def spread_skill(
        self,
        observations: Observations,
        dim: Dims = None,
        *,
        ax: Axes | None = None,
        bins: int = 5,
        label: str | None = None,
        member_dim: Hashable | None = None,
    ) -> Axes:
        """Error by spread; see :func:`xrecal.plot.spread_skill`."""
        from xrecal.plot import spread_skill

        found = diagnostics.spread_skill(
            self._obj, observations, dim, bins=bins, member_dim=member_dim
        )
        return spread_skill(found, ax=ax, label=label)
