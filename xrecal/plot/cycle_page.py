"""One page about the last months of a cycle of daily forecasts."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from xrecal.inputs.roles import Roles

from .bands import share_limits
from .labels import as_typed, positions, single_labels, with_units
from .monitor import monitor
from .page import RAW, RECALIBRATED, SIZE
from .style import BAND, GREY, PALETTE, Style, dress, ink, legend_above

LEVELS = (0.5, 0.9)
"""Levels of central intervals for the coverage."""

WIDTH, MOST_LINES = 184, 17
"""Letters per line of text, and largest number of lines below the panels."""

LINE, HEAD, FEET, AROUND, BESIDE = 0.14, 0.95, 0.4, 0.85, 0.55
"""Heights in inches: of a line of text, of the head of the page, of its foot, of all titles, labels
and gaps around a row of panels, and of the gaps around the text."""

FOOT = (
    f"Grey bands contain {BAND:.0%} of the coverages of calibrated forecasts with the same number "
    "of independent cases. Shaded areas reach from the beginning of a change to its detection.\n"
    "The monitor shows the place and lead with the most evidence; it raises an alarm where the "
    "e-value crosses the dashed line of its colour."
)


def cycle_page(
    scores: xr.Dataset, watched: xr.Dataset, status: str, first: np.datetime64
) -> Figure:
    """Draw scores and coverage by lead, the monitor, and the status as text.

    ``scores`` and ``watched`` are the contents of the files of scores and of the monitor; the page
    shows the starts from ``first`` on. ``status`` is the text about the status of the cycle.
    """
    dim = watched["restarts"].dims[0]
    names = [str(n).removesuffix("_crps_raw") for n in scores if str(n).endswith("_crps_raw")]
    last = scores.isel({dim: scores.indexes[dim] >= first})
    width, height = SIZE[0], SIZE[1] * (0.45 + 0.55 * len(names))
    inside = height - HEAD - FEET
    layout = ConstrainedLayoutEngine(
        w_pad=0.12, h_pad=0.1, rect=(0.01, FEET / height, 0.98, inside / height)
    )
    figure = Figure(figsize=(width, height), layout=layout)
    lines = _lines(status)
    low = LINE * len(lines)
    high = (inside - low - BESIDE) / len(names) - AROUND  # panels take all that the text leaves
    grid = figure.add_gridspec(len(names) + 1, 3, height_ratios=[high] * len(names) + [low])
    for row, name in enumerate(names):
        axes = [figure.add_subplot(grid[row, column]) for column in range(3)]
        _draw_scores(axes[0], last, name)
        _draw_coverage(axes[1], last[f"{name}_pit"])
        place = _draw_monitor(axes[2], watched, name, dim, first)
        titles = (f"Mean score of {name}", "Central intervals", f"Monitor{place}")
        for ax, title in zip(axes, titles, strict=True):
            ax.set_title(as_typed(title), fontsize="medium", loc="left", weight="bold", pad=8)
    _write(figure.add_subplot(grid[-1, :]), lines)
    dates = [str(date.astype("M8[D]")) for date in last.indexes[dim].to_numpy()[[0, -1]]]
    title = f"Daily cycle of {as_typed(', '.join(names))}"
    head = f"{last.sizes[dim]} starts that have verified, {dates[0]} to {dates[1]}"
    figure.text(0.02, 1 - 0.25 / height, title, fontsize="x-large", weight="bold", va="top")
    figure.text(0.02, 1 - 0.56 / height, head, va="top", alpha=0.75)
    figure.text(0.02, 0.1 / height, FOOT, fontsize="x-small", va="bottom", alpha=0.75)
    return figure


def _by_lead(array: xr.DataArray) -> tuple[list[Hashable], npt.NDArray[np.float64], str]:
    """Dimensions of leads (one or none), positions of leads on an axis, and the axis label."""
    lead = [d for d in Roles(array).leads if d in array.dims][:1]
    if not lead:
        return lead, np.zeros(1), ""
    return lead, *positions(array[lead[0]])


def _draw_scores(ax: Axes, scores: xr.Dataset, name: str) -> None:
    """Draw the mean CRPS by lead, with and without recalibration."""
    found = scores[f"{name}_crps"]
    lead, x, text = _by_lead(found)
    for label, what, colour in ((RAW, "crps_raw", GREY), (RECALIBRATED, "crps", PALETTE[0])):
        values = scores[f"{name}_{what}"].where(found.notnull())
        mean = values.mean([d for d in values.dims if d not in lead])
        ax.plot(x, np.atleast_1d(mean), "o-", color=colour, ms=5, lw=1.4, label=label)
    dress(ax)
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])
    ax.set(xlabel=text, ylabel=with_units("CRPS", found.attrs))
    _mark_leads(ax, x)
    legend_above(ax)


def _draw_coverage(ax: Axes, pit: xr.DataArray) -> None:
    """Draw the share of observations inside central intervals by lead."""
    lead, x, text = _by_lead(pit)
    over = [d for d in pit.dims if d not in lead]
    n = np.atleast_1d(pit.notnull().sum(over))
    for level, colour in zip(LEVELS, PALETTE, strict=False):
        inside = (abs(2 * pit - 1) <= level).where(pit.notnull()).mean(over)
        limits = [share_limits(int(one), np.array([level])) for one in np.maximum(n, 1)]
        low, high = (np.array([pair[i][0] for pair in limits]) for i in (0, 1))
        ends = x if x.size > 1 else x[0] + np.array([-1, 1])
        ax.fill_between(ends, low, high, color=GREY, alpha=0.25, lw=0)
        ax.axhline(level, color=ink(ax), alpha=0.55, lw=0.9, ls=(0, (4, 3)))
        line: Style = {"color": colour, "ms": 5, "lw": 1.4, "label": f"{level:.0%} interval"}
        ax.plot(x, np.atleast_1d(inside), "o-", **line)
    dress(ax)
    ax.set(ylim=(0, 1.08), yticks=np.linspace(0, 1, 6), xlabel=text, ylabel="observations inside")
    ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    _mark_leads(ax, x)
    legend_above(ax)


def _mark_leads(ax: Axes, x: npt.NDArray[np.float64]) -> None:
    """Put ticks at the leads if there are at most 8, and no ticks if there are no leads."""
    if x.size == 1:
        ax.set_xlim(x[0] - 1, x[0] + 1)
    if x.size <= 8:
        ax.set_xticks(x if ax.get_xlabel() else [])


def _draw_monitor(
    ax: Axes, watched: xr.Dataset, name: str, dim: Hashable, first: np.datetime64
) -> str:
    """Draw the monitor of the place and lead with the most evidence; return their names as text."""
    own = {n: str(n).removeprefix(f"{name}_") for n in watched if str(n).startswith(f"{name}_")}
    data = watched[list(own)].rename(own)
    late = data["e_value"].isel({dim: data.indexes[dim] >= first})
    most = late.max([dim])
    if most.ndim:
        at = np.unravel_index(int(np.argmax(most.to_numpy())), most.shape)
        data = data.isel(dict(zip(most.dims, at, strict=True)))
    labels = ", ".join(single_labels(data["e_value"]))
    monitor(data, ax=ax)
    dates = data.indexes[dim].to_numpy()
    ax.set_xlim(max(first, dates[0]), dates[-1] + np.timedelta64(1, "D"))
    ax.set_xlabel("start")
    return f": {labels}" if labels else ""


def _lines(status: str) -> list[str]:
    """Lines of the status, at most as many as the page has room for."""
    lines = [
        line
        for text in status.splitlines()
        for line in textwrap.wrap(text, WIDTH, subsequent_indent="    ")
    ]
    if len(lines) <= MOST_LINES:
        return lines
    n = len(lines) - MOST_LINES + 1
    return [*lines[: MOST_LINES - 1], f"and {n} more lines in status.txt"]


def _write(ax: Axes, lines: Sequence[str]) -> None:
    """Write the status."""
    ax.axis("off")
    ax.text(0, 1, as_typed("\n".join(lines)), fontsize="small", va="top", color=ink(ax))
    ax.set_title("Status", fontsize="medium", loc="left", weight="bold", pad=8)
