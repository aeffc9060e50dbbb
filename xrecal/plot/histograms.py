"""Histograms of the positions of observations within their forecasts."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .bands import share_limits
from .labels import shown_relation
from .reading import Floats, in_memory, over_locations
from .style import (
    BAND,
    GREY,
    PALETTE,
    SIZE,
    Style,
    dress,
    head_room,
    ink,
    legend,
    note,
    open_axes,
    veil,
)


def pit(histogram: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Histogram of the probability integral transform, with the band of calibrated forecasts.

    Parameters
    ----------
    histogram : Dataset
        Result of :func:`xrecal.diagnostics.pit_histogram`, for one location or many.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``histogram`` is not such a Dataset, or if no location has a case.

    Notes
    -----
    Bars are frequencies relative to those of a flat histogram. If a forecast is calibrated and its
    cases are independent, a bar ends within the band with a probability of 90 % (binomial
    distribution). So on average, one of ten bars ends outside the band. For many locations, bars
    show all cases together, and lines show the range of 90 % of the locations. The band is for a
    single location. So if the forecasts are calibrated, each line is about as long as the band is
    high.

    Examples
    --------
    >>> histogram = hindcast.recal.pit_histogram(observations, ["init", "location"])
    >>> ax = xrecal.plot.pit(histogram)
    >>> ax.get_xlabel()
    'probability integral transform'
    """
    data = in_memory(
        histogram, ["n_in_bin", "n_cases"], figure="pit", maker="diagnostics.pit_histogram"
    )
    ax = open_axes(ax, SIZE)
    n_bins = data.sizes["pit_bin"]
    _draw(ax, data, "pit_bin", data["pit_bin"].to_numpy(), 1 / n_bins)
    ax.set(xlabel="probability integral transform", xlim=(0, 1))
    return ax


def rank_histogram(histogram: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Histogram of the ranks of observations, with the band of calibrated forecasts.

    Parameters
    ----------
    histogram : Dataset
        Result of :func:`xrecal.diagnostics.rank_histogram`, for one location or many.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        As for :func:`pit`.

    Notes
    -----
    Bars, lines and band are as for :func:`pit`. For one location, the figure also shows the p-value
    of the test that the histogram is flat.

    Examples
    --------
    >>> histogram = hindcast.recal.rank_histogram(observations, ["init", "location"])
    >>> ax = xrecal.plot.rank_histogram(histogram)
    >>> ax.get_xlabel()
    'rank of the observation among the members'
    """
    names = ["n_in_bin", "n_cases", "p_value"]
    data = in_memory(histogram, names, figure="rank_histogram", maker="diagnostics.rank_histogram")
    ax = open_axes(ax, SIZE)
    ranks = data["rank"].to_numpy()
    _draw(ax, data, "rank", ranks, 1.0)
    ax.set(xlabel="rank of the observation among the members", xlim=(-0.5, ranks[-1] + 0.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if data["p_value"].size == 1:
        note(ax, f"flat: p {shown_relation(data['p_value'].item())}", y=0.91)
    return ax


def _draw(ax: Axes, data: xr.Dataset, dim: Hashable, at: Floats, width: float) -> None:
    """Draw relative frequencies as bars, with the band, the range over locations and notes."""
    n_bins = at.size
    counts, n = data["n_in_bin"], data["n_cases"]
    usable = n > 0
    total, n_locations = int(n.sum()), int(usable.sum())
    if not n_locations:
        raise ValueError("no location has a case with forecast and observation; nothing to draw")
    everywhere = counts.where(usable).sum([d for d in counts.dims if d != dim]) * n_bins / total
    usual = int(np.round(n.where(usable).median()))
    low, high = share_limits(usual, 1 / n_bins) * n_bins
    ax.axhspan(low, high, color=GREY, alpha=veil(ax, 0.25), lw=0, label=f"calibrated ({BAND:.0%})")
    for height in (low, high):  # in front of the bars, which would hide the band
        ax.axhline(height, color=ink(ax), alpha=0.5, lw=0.7, zorder=2.5)
    ax.bar(at, everywhere.to_numpy(), 0.92 * width, color=PALETTE[0], alpha=0.75, zorder=2)
    if n.size > 1:
        spread = over_locations((counts * n_bins / n.where(usable)), (dim,))
        if spread.low is not None and spread.high is not None:
            lines: Style = {"color": ink(ax), "lw": 1.1, "alpha": 0.8, "zorder": 3}
            ax.vlines(at, spread.low, spread.high, label=f"{BAND:.0%} of locations", **lines)
    dress(ax)
    ax.set(ylabel="relative frequency")
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.5))
    head_room(ax, 0.17 if n.size == 1 else 0.25)
    note(ax, f"{n_locations} locations\n{total} cases" if n.size > 1 else f"{total} cases")
    legend(ax, loc="upper right")


def outline(ax: Axes, histogram: xr.Dataset, label: str) -> None:
    """Draw the outline of another histogram of the same kind over an existing histogram.

    If the ensembles of the two histograms differ in size, the function stretches the outline to the
    width of the existing histogram. Without cases, the function draws nothing.
    """
    counts, n = histogram["n_in_bin"], int(histogram["n_cases"].sum())
    if n == 0:
        return
    dim = "rank" if "rank" in counts.dims else "pit_bin"
    edges = np.linspace(*ax.get_xlim(), histogram.sizes[dim] + 1)
    bars = counts.sum([d for d in counts.dims if d != dim]).to_numpy() * (edges.size - 1) / n
    ax.stairs(bars, edges, color=PALETTE[1], lw=1.4, label=label, zorder=2.8)
    ax.set_ylim(0, max(ax.get_ylim()[1], 1.4 * bars.max()))
    legend(ax, loc="upper right")
