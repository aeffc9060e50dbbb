"""Reliability diagrams of quantiles: which quantile verifies, given that which was issued."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from .labels import with_units
from .legends import legend
from .reading import corners, in_memory, require_one
from .style import SQUARE, dress, is_first, open_axes, reference

LEVEL = "quantile"

SHADES = (0.08, 0.82)
"""Part of the colours of viridis that is legible on white and on black."""


def quantile_reliability(reliability: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Reliability diagram of quantiles: the quantile of observations, given the issued one.

    Parameters
    ----------
    reliability : Dataset
        From :func:`xrecal.diagnostics.quantile_reliability`, of one location: several levels or
        one.
    ax : Axes, optional
        Drawn on and returned; a new figure if not given.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If it is another Dataset, there is no case, or there are several locations, whose values
        have no axis in common: select one, or let the diagnostic pool their cases by ``dim=...``.

    Notes
    -----
    Curves are the isotonic quantile regression of the Dataset [1]_. The legend tells the share of
    observations at or below each quantile, which on average is its level.

    References
    ----------
    .. [1] Gneiting & Resin (2023), Regression diagnostics meets forecast evaluation: conditional
       calibration, reliability diagrams, and coefficient of determination.
       https://doi.org/10.1214/23-EJS2180

    Examples
    --------
    >>> parts = hindcast.recal.quantile_reliability(observations, 0.9, ["init", "location"])
    >>> ax = xrecal.plot.quantile_reliability(parts)
    >>> len(ax.get_ylabel()) > 0
    True
    """
    figure = "quantile_reliability"
    names = ["forecast_quantile", "conditional_quantile", "below", "n_cases"]
    data = in_memory(reliability, names, figure=figure, maker=f"diagnostics.{figure}")
    require_one(
        data["n_cases"], (), figure=figure,
        remedy=", or pool their cases: forecast.recal.quantile_reliability(observations, q, "
        "dim=...)",
    )  # fmt: skip
    data = data if LEVEL in data.dims else data.expand_dims(LEVEL)
    n_levels = data.sizes[LEVEL]
    issued, conditional = (
        data[name].transpose(LEVEL, ...).to_numpy().astype(np.float64).reshape(n_levels, -1)
        for name in names[:2]
    )
    known = ~np.isnan(conditional)
    if not known.any():
        raise ValueError("no case has a quantile and an observation; nothing to draw")
    ax = open_axes(ax, SQUARE)
    first = is_first(ax)
    levels = data[LEVEL].to_numpy()
    shares = data["below"].transpose(LEVEL, ...).to_numpy().reshape(-1)
    colours = mpl.colormaps["viridis"](np.linspace(*SHADES, n_levels))
    for colour, i in zip(colours, np.argsort(levels).tolist(), strict=True):
        x, at = np.unique(issued[i][known[i]], return_index=True)
        label = f"{levels[i]:.4g}: {shares[i]:.0%} below"
        ax.plot(*corners(x, conditional[i][known[i]][at]), color=colour, lw=1.5, label=label)
    both = issued[known], conditional[known]
    ends = min(a.min() for a in both), max(a.max() for a in both)
    if first:
        reference(ax, ends, ends)
    dress(ax, grid="both")
    attrs = data["forecast_quantile"].attrs
    ax.set(aspect="equal", xlabel=with_units("issued quantile", attrs))
    ax.set_ylabel(with_units("quantile of the observation given the issued one", attrs))
    legend(ax)
    return ax
