"""Reliability diagrams of probabilities, and of quantiles."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from .annual import CYCLE
from .bands import draw_band, reliability_limits
from .labels import by_threshold, event_of, with_units
from .reading import Floats, corners, in_memory, range_of, require_one
from .style import (
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

LEVEL = "quantile"

GRID = np.linspace(0, 1, 101)
"""Probabilities at which the figure compares the curves of many locations."""

FEW_VALUES = 30
"""Largest number of different probabilities that the figure shows as points."""

SHADES = (0.08, 0.82)
"""Part of the colour map viridis that is legible on white and on black."""

N_BARS = 20
"""Number of bars of the distribution of issued probabilities."""

INSET = "xrecal-issued"

BELOW, ABOVE = (0.62, 0.07), (0.12, 0.3)
"""Lower left corner of the bar chart of issued probabilities: for a chart below the diagonal, and
for a chart above it."""

MANY_TIMES = 30
"""The axis of the bars is logarithmic if the highest bar is more than this many times as high as
the lowest."""


def reliability(
    reliability: xr.Dataset, *, ax: Axes | None = None, label: str | None = None
) -> Axes:
    """Reliability diagram: how often an event happens, given its probability.

    Parameters
    ----------
    reliability : Dataset
        Result of :func:`xrecal.diagnostics.reliability`, for one threshold or several, and one
        location or many.
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
        If ``reliability`` is not such a Dataset, or if there is no case.

    Notes
    -----
    Curves are isotonic regressions of events on issued probabilities, from the Dataset [1]_.
    Forecasts are reliable if the curve is on the diagonal, and overconfident where the curve is
    flatter than the diagonal. The dotted line is the share of events. For one location, a line "no
    skill" lies half-way between the dotted line and the diagonal. Where the curve is nearer to the
    dotted line than to the diagonal, forecasts are worse than a constant forecast of the share of
    events [3]_. The small bars show how many forecasts have each probability; their axis is
    logarithmic if the highest bar is more than 30 times as high as the lowest.

    At each issued probability, the curve of a calibrated forecast lies within the band with a
    probability of about 90 %. The band comes from groups of independent cases with similar
    probabilities; the number of events in a group has a binomial distribution, as for the
    consistency bars of [2]_. xrecal chooses the number of groups so that the share of events in a
    group and the regression have errors of similar size.

    For many locations, the curve is the median, and the shaded area is the range of 90 % of the
    locations. If most locations have a constant probability, such as 0 for an event that is never
    forecast, the figure has a note in place of the curve.

    References
    ----------
    .. [1] Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic
       classifiers. https://doi.org/10.1073/pnas.2016191118
    .. [2] Bröcker & Smith (2007), Increasing the reliability of reliability diagrams.
       https://doi.org/10.1175/WAF993.1
    .. [3] Hsu & Murphy (1986), The attributes diagram: a geometrical framework for assessing the
       quality of probability forecasts. https://doi.org/10.1016/0169-2070(86)90048-8

    Examples
    --------
    >>> parts = hindcast.recal.reliability(observations, 5.0, ["init", "location"])
    >>> ax = xrecal.plot.reliability(parts)
    >>> ax.get_ylabel()
    'observed frequency'
    """
    names = ["probability", "conditional_probability", "n_cases", "brier_score"]
    parts = ["miscalibration", "discrimination", "uncertainty"]
    data = in_memory(
        reliability, names + parts, figure="reliability", maker="diagnostics.reliability"
    )
    ax = open_axes(ax, SQUARE)
    first = is_first(ax)
    curves = {name: _locations(one) for name, one in by_threshold(data)}
    if not any(curves.values()):
        raise ValueError("no case has a probability and an observation; nothing to draw")
    single = len(curves) == 1 and len(next(iter(curves.values()))) == 1
    for name, locations in curves.items():
        colour = next_colour(ax)
        if single and first:
            at, (low, high) = reliability_limits(locations[0][0])
            draw_band(ax, at, low, high)
        line = _draw_curve(ax, locations, colour, name or label)
        mark_curve(line)
        _draw_issued(ax, np.concatenate([issued for issued, _ in locations]), line, colour)
    if first:
        reference(ax, (0, 1), (0, 1))
        if len(curves) == 1:
            _draw_climatology(ax, next(iter(curves.values())))
    dress(ax, grid="both")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal", ylabel="observed frequency")
    ax.set_xlabel("issued probability" + (f" of {event}" if (event := event_of(data)) else ""))
    legend(ax, loc="upper left")
    constant = [text for name, locations in curves.items() if (text := _constant(name, locations))]
    if first and constant:
        note(ax, "\n".join(constant), y=0.6)
    if single and first and label is None:
        _note_score(ax, data)
    return ax


def _constant(name: str, locations: list[tuple[Floats, Floats]]) -> str:
    """Text in place of a curve if most locations have a constant probability, otherwise empty."""
    fixed = [issued[0] for issued, _ in locations if issued[0] == issued[-1]]
    if len(fixed) <= len(locations) / 2:
        return ""
    text = (f"{name}: " if name else "") + "forecast probability never differs"
    text += f" from {fixed[0]:g}" if len(set(fixed)) == 1 else ""
    return text + (f"\nat {len(fixed)} of {len(locations)} locations" if len(locations) > 1 else "")


def _locations(data: xr.Dataset) -> list[tuple[Floats, Floats]]:
    """For each location: issued probabilities, ascending, and the observed frequency at each.

    The function leaves out locations without cases.
    """
    dims = data["n_cases"].dims
    stacked = []
    for name in ("probability", "conditional_probability"):
        array = data[name].transpose(*dims, ...)
        stacked.append(array.to_numpy().astype(np.float64).reshape(data["n_cases"].size, -1))
    locations = []
    for issued, conditional in zip(*stacked, strict=True):
        known = ~np.isnan(conditional)
        if known.any():
            order = np.argsort(issued[known], kind="stable")
            locations.append((issued[known][order], conditional[known][order]))
    return locations


def _draw_curve(
    ax: Axes, locations: list[tuple[Floats, Floats]], colour: str, label: str | None
) -> Any:
    style: Style = {"color": colour, "lw": 1.6, "label": label, "zorder": 3}
    if len(locations) == 1:
        issued, at = np.unique(locations[0][0], return_index=True)
        conditional = locations[0][1][at]
        if issued.size <= FEW_VALUES:
            return ax.plot(issued, conditional, marker="o", ms=3.5, **style)[0]
        return ax.plot(*corners(issued, conditional), **style)[0]
    middle, low, high = _on_grid(locations)
    ax.fill_between(GRID, low, high, color=colour, alpha=veil(ax, 0.2), lw=0, zorder=2)
    return ax.plot(GRID, middle, **style)[0]


def _on_grid(locations: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats, Floats]:
    """Range of the curves of many locations, where at least half of them have a curve."""
    curves = []
    for issued, conditional in locations:
        x, at = np.unique(issued, return_index=True)
        curves.append(np.interp(GRID, x, conditional[at], left=np.nan, right=np.nan))
    values = np.array(curves)
    half = (~np.isnan(values)).mean(0) >= 0.5
    return range_of(np.where(half, values, np.nan))


def _draw_climatology(ax: Axes, locations: list[tuple[Floats, Floats]]) -> None:
    """Draw the share of events and, half-way between share and diagonal, the line of no skill."""
    # The regression does not change the mean of the events.
    share = float(np.concatenate([happened for _, happened in locations]).mean())
    style: Style = {"color": ink(ax), "alpha": 0.5, "lw": 0.8, "zorder": 1.8}
    ax.axhline(share, ls=":", label=f"climatology {share:.2g}", **style)
    if len(locations) == 1:
        ax.plot((0, 1), (share / 2, (1 + share) / 2), ls="-.", label="no skill", **style)


def _draw_issued(ax: Axes, issued: Floats, line: Line2D, colour: str) -> None:
    """Draw bars that show how often each probability is issued.

    The bars are below the diagonal, or above it if the curve is below. Their axis is logarithmic if
    their heights differ much.
    """
    insets = [child for child in ax.child_axes if isinstance(child, Axes)]
    inset = next((child for child in insets if child.get_label() == INSET), None)
    if inset is None:
        x, y = np.asarray(line.get_xydata(), dtype=np.float64).T
        place = ABOVE if ((x > BELOW[0]) & (y < 0.3)).any() else BELOW
        inset = ax.inset_axes((*place, 0.36, 0.17), label=INSET)
        inset.patch.set(alpha=0.75)
        inset.set(xlim=(0, 1), xticks=[])
        inset.spines[["top", "right"]].set_visible(False)
        for side in ("bottom", "left"):
            inset.spines[side].set(color=ink(ax), alpha=0.6, linewidth=0.6)
        inset.tick_params(labelsize="xx-small", length=2, width=0.6, pad=1, color=ink(ax))
        inset.yaxis.set_minor_locator(NullLocator())
        inset.set_title("forecasts issued", fontsize="x-small", color=ink(ax), loc="right", pad=1)
    counts, edges = np.histogram(issued, N_BARS, (0, 1))
    heights = np.append(counts, counts[-1])
    inset.fill_between(edges, heights, step="post", color=colour, alpha=0.5, lw=0)
    least = counts[counts > 0].min()
    if counts.max() > MANY_TIMES * least or inset.get_yscale() == "log":
        inset.set_yscale("log")
        inset.set_ylim(bottom=0.5)
        inset.yaxis.set_major_locator(LogLocator(numticks=4))
        inset.yaxis.set_major_formatter("{x:g}")
        inset.yaxis.set_minor_locator(NullLocator())
    else:
        inset.set_ylim(bottom=0)
        inset.yaxis.set_major_locator(MaxNLocator(2, integer=True))


def _note_score(ax: Axes, data: xr.Dataset) -> None:
    """Write the Brier score and its parts."""
    names = ("brier_score", "miscalibration", "discrimination", "uncertainty")
    score, *parts = (float(data[name].squeeze()) for name in names)
    lines = [f"Brier score {score:.3f}"]
    lines += [
        f"{sign} {part:.3f} {name}"
        for sign, part, name in zip("=−+", parts, names[1:], strict=True)
    ]
    note(ax, "\n".join(lines), y=0.76)


def quantile_reliability(reliability: xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Reliability diagram of quantiles: quantile of the observations, given the issued quantile.

    Parameters
    ----------
    reliability : Dataset
        Result of :func:`xrecal.diagnostics.quantile_reliability`, for one location, and one level
        or several.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``reliability`` is not such a Dataset, or if there is no case. Several locations also
        raise an error, because their values have no common axis: select one location, or pass
        ``dim=...`` to the diagnostic, which then pools the cases of all locations.

    Notes
    -----
    Curves are isotonic quantile regressions of observations on issued quantiles, from the Dataset
    [1]_. If the annual cycle explains most of the variance of the forecasts,
    ``forecast.recal.plot`` and the report subtract this cycle from forecasts and observations; a
    note above the Axes says "without the annual cycle". With the cycle, the curve would be near the
    diagonal for any forecast. The legend has the share of observations at or below each quantile;
    for calibrated forecasts, this share is on average the level of the quantile.

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
    has_cycle = isinstance(reliability, xr.Dataset) and CYCLE in reliability
    names += [CYCLE] if has_cycle else []
    data = in_memory(reliability, names, figure=figure, maker=f"diagnostics.{figure}")
    require_one(
        data["n_cases"], (), figure=figure,
        remedy=", or pool their cases: forecast.recal.quantile_reliability(observations, q, "
        "dim=...)",
    )  # fmt: skip
    curves = _quantile_curves(data)
    if not curves:
        raise ValueError("no case has a quantile and an observation; nothing to draw")
    ax = open_axes(ax, SQUARE)
    first = is_first(ax)
    for colour, label, x, y in curves:
        ax.plot(x, y, color=colour, lw=1.5, label=label)
    values = np.concatenate([both for *_, x, y in curves for both in (x, y)])
    ends = values.min(), values.max()
    if first:
        reference(ax, ends, ends)
    dress(ax, grid="both")
    attrs = data["forecast_quantile"].attrs
    ax.set(aspect="equal", xlabel=with_units("issued quantile", attrs))
    ax.set_ylabel(with_units("quantile of the observation given the issued one", attrs))
    legend(ax)
    if has_cycle and data[CYCLE].item() > 0:
        aside(ax, "without the annual cycle")
    return ax


def quantiles_beside(ax: Axes, reliability: xr.Dataset, label: str) -> None:
    """Draw the curves of other forecasts of the same levels behind the existing curves."""
    curves = _quantile_curves(reliability)
    style: Style = {"lw": 1.1, "ls": (0, (1.5, 1.2)), "zorder": 1.95}
    for colour, _, x, y in curves:
        ax.plot(x, y, color=colour, **style)
    if curves:
        ax.plot([], [], color=ink(ax), label=label, **style)
        legend(ax)


def _quantile_curves(data: xr.Dataset) -> list[tuple[Any, str, Floats, Floats]]:
    """For each level: colour, label, issued quantiles, and the observed quantile at each."""
    data = data if LEVEL in data.dims else data.expand_dims(LEVEL)
    data = data.sortby(LEVEL)
    curves = []
    colours = mpl.colormaps["viridis"](np.linspace(*SHADES, data.sizes[LEVEL]))
    for i, colour in enumerate(colours):
        one = data.isel({LEVEL: i})
        issued, conditional = (
            one[name].to_numpy().astype(np.float64).ravel()
            for name in ("forecast_quantile", "conditional_quantile")
        )
        known = ~np.isnan(conditional)
        if known.any():
            x, at = np.unique(issued[known], return_index=True)
            label = f"{one[LEVEL].item():.4g}: {one['below'].squeeze().item():.0%} below"
            curves.append((colour, label, *corners(x, conditional[known][at])))
    return curves
