"""Diagrams of warnings: relative operating characteristic (ROC), and performance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.contour import QuadContourSet

from .labels import by_threshold, event_of
from .numbers import number_points
from .reading import Floats, in_memory, range_of, require_one
from .style import (
    GREY,
    SQUARE,
    Style,
    aside,
    dress,
    ink,
    is_first,
    legend,
    mark_curve,
    next_colour,
    note,
    open_axes,
    reference,
    veil,
)

THRESHOLD, LEVEL = "threshold", "probability_level"

GRID = np.linspace(0, 1, 101)
"""False alarm rates at which the figure compares the curves of many locations."""

NUMBERED = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Probabilities to write beside the curve."""

BIASES = (0.3, 0.5, 0.8, 1.0, 1.3, 2.0, 4.0)
"""Frequency biases of the lines in a performance diagram."""

INDICES = np.arange(1, 10) / 10
"""Critical success indices of the curved lines in a performance diagram."""

NAMES = ("hit_rate", "false_alarm_rate", "area", "area_error", "base_rate", "n_cases")


class _Curve(NamedTuple):
    """The curve of one threshold, at one location or many."""

    data: xr.Dataset
    name: str

    def rates(self) -> tuple[Floats, Floats]:
        """Hit and false alarm rates (locations, levels), without missing locations."""
        hits, alarms = (
            self.data[name].transpose(..., LEVEL).to_numpy().astype(np.float64)
            for name in NAMES[:2]
        )
        flat = hits.reshape(-1, hits.shape[-1]), alarms.reshape(-1, alarms.shape[-1])
        known = ~np.isnan(flat[0]).any(-1)
        return flat[0][known], flat[1][known]


def roc(roc: xr.Dataset, *, ax: Axes | None = None, label: str | None = None) -> Axes:
    """Relative operating characteristic (ROC): hit rate against false alarm rate.

    Parameters
    ----------
    roc : Dataset
        Result of :func:`xrecal.diagnostics.roc`, for one threshold or several, and one location or
        many.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure. A second call on the same Axes
        adds further curves.
    label : str, optional
        Label of the curve in the legend, if there is one threshold.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``roc`` is not such a Dataset, or if no location has both cases with the event and cases
        without it.

    Notes
    -----
    Each point of a curve belongs to a user who acts if the probability of the event is at least
    some level; the figure shows this level at some points. If the curve is on the diagonal,
    forecasts do not separate events from other cases. The legend has the area under the curve and
    the standard error of this area; the area is ½ on the diagonal and 1 for perfect forecasts. For
    many locations, the curve is the median, the shaded area is the range of 90 % of the locations,
    and the legend has the mean of the areas under their curves.

    Examples
    --------
    >>> found = hindcast.recal.roc(observations, 5.0, ["init", "location"])
    >>> xrecal.plot.roc(found).get_ylabel()
    'hit rate'
    """
    data = in_memory(roc, NAMES, figure="roc", maker="diagnostics.roc")
    curves = _curves(data)
    ax = open_axes(ax, SQUARE)
    first = is_first(ax)
    for curve in curves:
        hits, alarms = curve.rates()
        if not hits.size:
            continue
        colour = next_colour(ax)
        text = ", ".join(part for part in (curve.name or label, _area(curve.data)) if part)
        middle = _draw_roc(ax, hits, alarms, colour, text)
        mark_curve(middle)
        if len(curves) == len(hits) == 1:
            _number(ax, data, (alarms[0], hits[0]), colour)
    if first:
        reference(ax, (0, 1), (0, 1))
    dress(ax, grid="both")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal", ylabel="hit rate")
    ax.set_xlabel("false alarm rate")
    aside(ax, event_of(data))
    legend(ax, loc="lower right")
    return ax


def performance(roc: xr.Dataset, *, ax: Axes | None = None, label: str | None = None) -> Axes:
    """Performance diagram: hit rate against success ratio, the share of warnings with an event.

    Parameters
    ----------
    roc : Dataset
        Result of :func:`xrecal.diagnostics.roc`, for one location, and one threshold or several.
    ax, label
        As for :func:`roc`.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``roc`` is not such a Dataset, if the event happens in no case or in all cases, or if
        there are several locations. For several locations, select one, or pass ``dim=...`` to the
        diagnostic, which then pools the cases of all locations.

    Notes
    -----
    Each point belongs to warnings that are issued if the probability of the event is at least some
    level; the figure shows this level at some points. The point shows the hit rate (probability of
    detection) and the success ratio, which is one minus the share of false alarms among warnings.
    Both are 1 for perfect warnings, in the upper right corner. Curved lines with numbers show the
    critical success index. Straight dashed lines show the frequency bias, which is the ratio of
    warnings to events [1]_. The vertical grey line is the share of events, which is the success
    ratio of random warnings. Unlike the ROC curve, the diagram counts no correct rejections, so it
    suits rare events.

    References
    ----------
    .. [1] Roebber (2009), Visualizing multiple measures of forecast quality.
       https://doi.org/10.1175/2008WAF2222159.1

    Examples
    --------
    >>> found = hindcast.recal.roc(observations, 5.0, ["init", "location"])
    >>> xrecal.plot.performance(found).get_xlabel()
    'success ratio'
    """
    data = in_memory(roc, NAMES, figure="performance", maker="diagnostics.roc")
    remedy = ", or pool their cases: forecast.recal.roc(observations, threshold, dim=...)"
    keep = [THRESHOLD] if THRESHOLD in data.dims else []
    require_one(data["n_cases"], keep, figure="performance", remedy=remedy)
    curves = _curves(data)
    ax = open_axes(ax, SQUARE)
    first = is_first(ax)
    if first:
        _draw_lines(ax)
    for curve in curves:
        hits, alarms = curve.rates()
        if not hits.size:
            continue
        share = float(curve.data["base_rate"].squeeze())
        warned = hits[0] * share + alarms[0] * (1 - share)
        used = warned > 0
        x, y = hits[0][used] * share / warned[used], hits[0][used]
        colour = next_colour(ax)
        style: Style = {"color": colour, "lw": 1.6, "zorder": 3, "label": curve.name or label}
        (line,) = ax.plot(x, y, **style)
        mark_curve(line)
        if len(curves) == 1:
            _number(ax, data.isel({LEVEL: used}), (x, y), colour)
            if first:
                ax.axvline(share, color=GREY, lw=0.9, zorder=1.8)
                n = int(curve.data["n_cases"].sum())
                note(ax, f"{share:.1%} of {n} cases are events", x=0.97, y=0.03)
    dress(ax, grid=None)
    ax.set(xlim=(0, 1.01), ylim=(0, 1.01), aspect="equal", ylabel="hit rate")
    ax.set_xlabel("success ratio")
    if len(curves) == 1:
        ax.set_title(event_of(data), loc="left", fontsize="x-small", color=ink(ax), pad=12)
    legend(ax, loc="lower left")
    return ax


def _curves(data: xr.Dataset) -> list[_Curve]:
    """Return the curve of each threshold; raise ValueError if no curve has a point."""
    curves = [_Curve(one, name) for name, one in by_threshold(data)]
    if not any(curve.rates()[0].size for curve in curves):
        raise ValueError(
            "no location has cases with the event and cases without it; nothing to draw"
        )
    return curves


def _area(data: xr.Dataset) -> str:
    """Text with the area under the curve and, for a single location, the standard error."""
    area = float(data["area"].mean())
    error = data["area_error"]
    if error.size == 1 and np.isfinite(error.item()):
        return f"area {area:.3f} ± {error.item():.3f}"
    return f"area {area:.3f}"


def _draw_roc(ax: Axes, hits: Floats, alarms: Floats, colour: str, label: str) -> Any:
    """Draw the curve of a location, or the median and the range of several locations."""
    style: Style = {"color": colour, "lw": 1.6, "label": label, "zorder": 3}
    ends = np.zeros((len(hits), 1)), np.ones((len(hits), 1))
    x, y = (np.concatenate([ends[1], a, ends[0]], axis=1)[:, ::-1] for a in (alarms, hits))
    if len(hits) == 1:
        return ax.plot(x[0], y[0], **style)[0]
    # Where a curve rises vertically, its upper end counts.
    on_grid = [np.interp(GRID, a + 1e-9 * np.arange(a.size), b) for a, b in zip(x, y, strict=True)]
    middle, low, high = range_of(np.array(on_grid))
    ax.fill_between(GRID, low, high, color=colour, alpha=veil(ax, 0.2), lw=0, zorder=2)
    return ax.plot(GRID, middle, **style)[0]


def _number(ax: Axes, data: xr.Dataset, at: tuple[Floats, Floats], colour: str) -> None:
    """Draw the points of some probability levels, and write the levels where there is room."""
    levels = data[LEVEL].to_numpy()
    chosen = [int(np.abs(levels - wanted).argmin()) for wanted in NUMBERED]
    chosen = [i for i, n in zip(chosen, NUMBERED, strict=True) if abs(levels[i] - n) < 0.005]
    places: dict[tuple[float, float], float] = {}
    for i in chosen:  # the lowest probability at a point
        places.setdefault((float(at[0][i]), float(at[1][i])), float(levels[i]))
    x, y = zip(*places, strict=True) if places else ((), ())
    ax.plot(x, y, ls="", marker="o", ms=3.5, color=colour, zorder=3.1)
    number_points(ax, [(*place, level) for place, level in places.items()], ink(ax))


def _draw_lines(ax: Axes) -> None:
    """Draw lines of critical success index and frequency bias in a performance diagram."""
    axis = np.linspace(0.001, 1, 200)
    ratio, hits = np.meshgrid(axis, axis)
    index = 1 / (1 / ratio + 1 / hits - 1)
    options: Style = {"levels": INDICES, "colors": [GREY], "alpha": 0.5, "linewidths": 0.7}
    lines: QuadContourSet = ax.contour(ratio, hits, index, zorder=1, **options)
    ax.clabel(lines, INDICES[1::2], fontsize="xx-small", fmt="%g", colors=[ink(ax)])
    for bias in BIASES:
        end = min(1.0, 1 / bias), min(1.0, bias)
        ax.plot((0, end[0]), (0, end[1]), color=ink(ax), alpha=0.3, lw=0.7, ls=(0, (4, 3)))
        over = bias >= 1
        ax.annotate(
            f"{bias:g}", end, (0, 2) if over else (2, 0), textcoords="offset points",
            fontsize="xx-small", color=ink(ax), alpha=0.8, annotation_clip=False,
            ha="center" if over else "left", va="bottom" if over else "center",
        )  # fmt: skip
    line = ax.plot((0, 1), (0, 1), alpha=0)[0]  # a second call on the same Axes finds this name
    line.set_gid("xrecal-reference")
