"""Held-out loss of a CKME with each ridge."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from .labels import label_of
from .reading import in_memory, over_locations
from .style import (
    BAND,
    PALETTE,
    Style,
    aside,
    dress,
    legend,
    mark_curve,
    next_colour,
    open_axes,
    veil,
)

RIDGE = "ridge"

SHOWN = 0.4
"""Largest excess over the smallest loss that the axis shows, as a share of the smallest loss."""


def ridge_curve(curve: xr.Dataset, *, ax: Axes | None = None, label: str | None = None) -> Axes:
    """Held-out loss with each ridge, and the ridge that a fit chooses.

    Parameters
    ----------
    curve : Dataset
        Result of :func:`xrecal.diagnostics.ridge_curve`, for one location or many.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure. A second call on the same Axes
        adds a second curve.
    label : str, optional
        Label of the curve in the legend.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``curve`` is not such a Dataset, or if no location has a curve.

    Notes
    -----
    For many locations, the loss at each location is relative to the smallest loss there. The figure
    shows the median of these relative losses, and the range of 90 % of the locations. Ticks on the
    axis are the chosen ridges of the locations.

    Examples
    --------
    >>> curve = hindcast.recal.ridge_curve(observations).isel(location=0)
    >>> ax = xrecal.plot.ridge_curve(curve)
    >>> ax.get_xlabel()
    'ridge'
    """
    names = ["loss", "chosen_ridge"]
    data = in_memory(curve, names, figure="ridge_curve", maker="diagnostics.ridge_curve")
    loss, chosen = data["loss"], data["chosen_ridge"].to_numpy().ravel()
    if not loss.notnull().any():
        raise ValueError("no location has a curve, as there are too few cases; nothing to draw")
    ax = open_axes(ax)
    colour = next_colour(ax)
    ridges = data[RIDGE].to_numpy()
    several = chosen.size > 1
    text = label_of(loss)
    if several:
        loss = 100 * (loss / loss.min(RIDGE) - 1)
        text = "held-out loss above the smallest (%)"
    middle, low, high = over_locations(loss, (RIDGE,))
    if low is not None and high is not None:
        ax.fill_between(ridges, low, high, color=colour, alpha=veil(ax, 0.2), lw=0, zorder=2)
    line: Style = {"color": colour, "ms": 4, "lw": 1.4, "label": label, "zorder": 3}
    mark_curve(ax.plot(ridges, middle, "o-", **line)[0])
    chosen = chosen[np.isfinite(chosen)]
    ax.set_xscale("log")
    dress(ax)
    if several:
        ticks: Style = {"color": colour, "ms": 9, "mew": 1, "alpha": 0.6, "ls": "", "zorder": 4}
        bottom: Style = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        ax.plot(chosen, 0 * chosen, "|", label="chosen", **ticks, **bottom)
    else:
        style: Style = {"color": PALETTE[1] if colour == PALETTE[0] else colour, "lw": 1.3}
        ax.axvline(chosen[0], ls=(0, (5, 2)), label=f"chosen: {chosen[0]:.2g}", **style)
    lowest = 0.0 if several else float(np.nanmin(middle))
    top = min(ax.get_ylim()[1], 100 * SHOWN if several else (1 + SHOWN) * lowest)
    ax.set_ylim(lowest - 0.06 * (top - lowest), top)
    ax.set(xlabel="ridge", ylabel=text)
    legend(ax)
    if several:
        aside(ax, f"median and {BAND:.0%} of {chosen.size} locations")
    return ax
