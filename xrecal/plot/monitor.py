"""Figure of the evidence against calibration over time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .labels import date_ticks, is_date, positions
from .reading import Range, in_memory, over_locations
from .style import (
    BAND,
    PALETTE,
    Style,
    aside,
    dress,
    legend_above,
    mark_curve,
    open_axes,
    veil,
)

LOWEST, ABOVE = 1e-2, 1e3
"""Lower end of the axis, and largest value of its upper end (as a multiple of the higher dashed
line). The dashed lines are the limits for an alarm and for a change."""

FOR_LEGEND = 0.12
"""Margin above the curves, as a share of the height of the axis."""


def monitor(watched: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Evidence against calibration after each case, alarms, and changes of calibration.

    Parameters
    ----------
    watched : Dataset
        Result of :func:`xrecal.diagnostics.monitor`, for one location or many.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``watched`` is not such a Dataset, or if no location has a case.

    Notes
    -----
    Dashed lines are the limits for an alarm and for a change. A dot is the first alarm after a
    restart; the line of the e-value has a gap at each restart. A shaded area reaches from the case
    at which a change began to the case at which it was detected. For many locations, the figure
    shows the median, the range of 90 % of the locations, and the number of locations with an alarm
    or a change. The axis leaves out values below 0.01, and values above a thousand times the higher
    of the two limits.

    Examples
    --------
    >>> watched = hindcast.recal.monitor(observations, restart=None)
    >>> ax = xrecal.plot.monitor(watched.isel(location=0))
    >>> ax.get_yscale(), ax.get_ylabel()
    ('log', 'evidence')
    """
    names = ["e_value", "change_statistic", "alarm", "change", "since"]
    data = in_memory(watched, names, figure="monitor", maker="diagnostics.monitor")
    if not data["e_value"].notnull().any():
        raise ValueError("no location has a case; nothing to draw")
    time = data["restarts"].dims[0]
    limits = 1 / data.attrs["alpha"], data.attrs["run_length"]
    ax = open_axes(ax)
    x, text = positions(data[time])
    begins = data["restarts"].to_numpy()
    evidence, detector = (
        _in_powers_of_ten(data[name], time) for name in ("e_value", "change_statistic")
    )
    drawn = [
        *_draw(ax, x, detector, np.zeros_like(begins), PALETTE[1], "change"),
        *_draw(ax, x, evidence, begins, PALETTE[0], "e-value"),
    ]
    for limit, colour in zip(limits, PALETTE, strict=False):
        ax.axhline(limit, color=colour, alpha=0.8, lw=0.9, ls=(0, (4, 3)), zorder=1.9)
    several = evidence.low is not None
    if several:
        others = [d for d in data["alarm"].dims if d != time]
        n = int(np.prod([data.sizes[d] for d in others]))
        found = {name: int(data[name].any([time]).sum()) for name in ("alarm", "change")}
        told = " and ".join(f"{name} at {count} of {n}" for name, count in found.items())
        aside(ax, f"median and {BAND:.0%} of locations; {told}")
    else:
        _mark(ax, x, data.squeeze(), time, limits[0])
    ax.set_yscale("log")
    dress(ax)
    top = max(10.0 ** np.nanmax(part.middle) for part in (evidence, detector))
    top = np.clip(3 * top, 3 * max(limits), ABOVE * max(limits))
    ax.set_ylim(LOWEST, top * (top / LOWEST) ** FOR_LEGEND)
    for artist in drawn:  # values above the axis end below the legend
        artist.set_clip_path(Rectangle((0, 0), 1, 1 / (1 + FOR_LEGEND), transform=ax.transAxes))
    ax.set(xlabel=text, ylabel="evidence")
    if is_date(x):
        date_ticks(ax.xaxis, x)
    legend_above(ax)
    return ax


def _in_powers_of_ten(values: xr.DataArray, time: Hashable) -> Range:
    """Median and range, over locations, of the logarithms of the values to base 10."""
    logs = values.copy(data=np.log10(np.maximum(values.to_numpy(), 1e-300)))
    return over_locations(logs, (time,))


def _draw(
    ax: Axes,
    x: npt.NDArray[Any],
    logs: Range,
    begins: npt.NDArray[np.bool_],
    colour: str,
    label: str,
) -> list[Artist]:
    """Draw one curve with gaps at restarts, and the range over locations if there is one."""
    cuts = np.flatnonzero(begins)
    middle = 10.0**logs.middle
    areas: list[Artist] = []
    if logs.low is not None and logs.high is not None:
        low, high = 10.0**logs.low, 10.0**logs.high
        alpha = veil(ax, 0.15)
        areas = [ax.fill_between(x, low, high, color=colour, alpha=alpha, lw=0, zorder=2)]
    line: Style = {"color": colour, "lw": 1.4, "label": label, "zorder": 3}
    curves = ax.plot(np.insert(x, cuts, x[cuts]), np.insert(middle, cuts, np.nan), **line)
    mark_curve(curves[0])
    return [*areas, *curves]


def _mark(ax: Axes, x: npt.NDArray[Any], data: xr.Dataset, time: Hashable, limit: float) -> None:
    """Mark the first alarm after each restart, and the time from each change to its detection."""
    alarm = data["alarm"].to_numpy().astype(bool)
    first = alarm & ~(np.roll(alarm, 1) & ~data["restarts"].to_numpy())
    first[0] = alarm[0]
    point: Style = {"color": PALETTE[0], "ms": 5, "ls": "", "zorder": 4}
    ax.plot(x[first], np.full(first.sum(), limit), "o", label="alarm", **point)
    for at in np.flatnonzero(data["change"].to_numpy().astype(bool)):
        since = data["since"].to_numpy()[at]
        begun = data.indexes[time].get_loc(since) if time in data.indexes else int(since)
        ax.axvspan(x[begun], x[at], color=PALETTE[1], alpha=veil(ax, 0.15), lw=0, zorder=1.5)
