"""Coverage of central intervals."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from xrecal.diagnostics.intervals import UNKNOWN

from .bands import draw_band, share_limits
from .labels import with_units
from .numbers import number_points
from .reading import in_memory, over_locations
from .style import (
    SQUARE,
    Style,
    dress,
    ink,
    is_first,
    legend,
    mark_curve,
    next_colour,
    note,
    open_axes,
    reference,
)

LEVEL = "level"
GRID = np.linspace(0, 1, 201)


def coverage(coverage: xr.Dataset, *, ax: Axes | None = None, label: str | None = None) -> Axes:
    """Share of observations inside central intervals, against the probability of the intervals.

    Parameters
    ----------
    coverage : Dataset
        Result of :func:`xrecal.diagnostics.coverage`, for one location or many.
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
        If ``coverage`` is not such a Dataset, or if no location has a case.

    Notes
    -----
    Points below the diagonal mean that intervals contain too few observations. If a forecast is
    calibrated and its cases are independent, the probability that a point lies within the band is
    90 % (binomial distribution). The number at a point is the mean width of the intervals; the
    figure leaves out numbers that would cover a curve or another number. For many locations, points
    show the median, and vertical lines show the range of 90 % of the locations. The band is that of
    a single location, so for calibrated forecasts these lines are about as long as the band is
    high. If the levels of quantile forecasts do not reach the ends of an interval, the figure has a
    note instead of a point.

    Examples
    --------
    >>> ax = xrecal.plot.coverage(hindcast.recal.coverage(observations, ["init", "location"]))
    >>> ax.get_ylabel()
    'observations inside'
    """
    names = ["coverage", "width", "n_cases"]
    data = in_memory(coverage, names, figure="coverage", maker="diagnostics.coverage")
    data = data if LEVEL in data.dims else data.expand_dims(LEVEL)
    data = data.sortby(LEVEL)
    n = data["n_cases"]
    if not (n > 0).any():
        raise ValueError("no location has a case with forecast and observation; nothing to draw")
    ax = open_axes(ax, SQUARE)
    if is_first(ax):
        low, high = share_limits(int(n.where(n > 0).median().round()), GRID)
        draw_band(ax, GRID, low, high)
        reference(ax, (0, 1), (0, 1))
    colour = next_colour(ax)
    levels = data[LEVEL].to_numpy()
    share, width = (over_locations(data[name], (LEVEL,)) for name in names[:2])
    if share.low is not None and share.high is not None:
        ax.vlines(levels, share.low, share.high, color=colour, lw=1.2, zorder=2.5)
    partial = data["coverage"].attrs.get("comment", "").startswith(UNKNOWN)
    if partial and np.isnan(share.middle).any():
        shown = ", ".join(f"{level:.0%}" for level in levels[np.isnan(share.middle)])
        if (text := f"{shown}: {UNKNOWN}") not in [written.get_text() for written in ax.texts]:
            note(ax, text, x=0.97, y=0.03)
    line: Style = {"color": colour, "ms": 5, "lw": 1.2, "label": label, "zorder": 3}
    mark_curve(ax.plot(levels, share.middle, "o-", **line)[0])
    number_points(
        ax,
        [p for p in zip(levels, share.middle, width.middle, strict=True) if np.isfinite(p[1])],
        ink(ax) if label is None else colour,
    )
    dress(ax, grid="both")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    ax.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
    widths = with_units("numbers: mean width", data["width"].attrs)
    ax.set(xlabel=f"probability of the central interval\n{widths}", ylabel="observations inside")
    legend(ax, loc="upper left")
    return ax
