"""Skill over lead times."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.special import ndtri

from xrecal.diagnostics.p_values import SIGNIFICANT
from xrecal.inputs.roles import LEAD, Roles

from .labels import as_typed, date_ticks, is_date, positions
from .reading import in_memory, over_locations
from .style import (
    BAND,
    Style,
    aside,
    dress,
    is_first,
    legend,
    mark_curve,
    next_colour,
    open_axes,
    reference_height,
    veil,
)

METHOD = "method"


def skill_by_lead(
    skill: xr.Dataset,
    *,
    ax: Axes | None = None,
    dim: Hashable | None = None,
    label: str | None = None,
) -> Axes:
    """Skill over lead times, with its uncertainty.

    Parameters
    ----------
    skill : Dataset
        Result of :func:`xrecal.skill` along leads. It may also have ``method`` and locations as
        dimensions.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure. A second call on the same Axes
        adds further curves.
    dim : hashable, optional
        The dimension of leads. By default, xrecal recognises its CF standard name or its name
        (lead, step, ...).
    label : str, optional
        Label of the curve in the legend, if there is no dimension ``method``.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``skill`` is not such a Dataset, or if it has no dimension of leads or no value.

    Notes
    -----
    For one location, the shaded area is the central 90 % of a normal distribution around the skill.
    The standard deviation of this distribution is the standard error of the skill. A point is
    filled if the difference of the scores at this lead is significant at 5 %; each lead has a test
    of its own. For many locations, the figure shows the median, and the range of 90 % of the
    locations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> leads = {"lead": ("lead", [1, 2, 3], {"units": "days"})}
    >>> scores = xr.DataArray(rng.uniform(size=(2, 30, 3)), leads, ("kind", "init", "lead"))
    >>> ax = xrecal.plot.skill_by_lead(xrecal.skill(scores[0], scores[1], "init"))
    >>> ax.get_xlabel()
    'lead (days)'
    """
    names = ["skill", "skill_error", "p_value"]
    data = in_memory(skill, names, figure="skill_by_lead", maker="xrecal.skill")
    if not data["skill"].notnull().any():
        raise ValueError("no lead has a skill; nothing to draw")
    along = _lead_dim(data["skill"], dim)
    data = data.sortby(along) if along in data.indexes else data
    curves = {"": data}
    if METHOD in data.dims:
        labels = data[METHOD].to_numpy().tolist()
        curves = {as_typed(str(name)): data.isel({METHOD: i}) for i, name in enumerate(labels)}
    ax = open_axes(ax)
    x, text = positions(data[along])
    several = False
    first = is_first(ax)
    for name, one in curves.items():
        several |= _draw(ax, x, one, along, name or label)
    if first:
        reference_height(ax, 0)
    dress(ax)
    ax.set(xlabel=text, ylabel="skill")
    if is_date(x):
        date_ticks(ax.xaxis, x)
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, -1.5), min(high, 1.02))
    legend(ax)
    each = f"filled: p < {SIGNIFICANT}; area: {BAND:.0%}"
    aside(ax, f"median and {BAND:.0%} of locations" if several else each)
    return ax


def _lead_dim(skill: xr.DataArray, dim: Hashable | None) -> Hashable:
    """Dimension of leads: ``dim``, or the only dimension that xrecal recognises as leads."""
    if dim is not None:
        if dim not in skill.dims:
            raise ValueError(f"skill has no dimension {dim!r}; it has {list(skill.dims)}")
        return dim
    leads = Roles(skill).leads
    if len(leads) != 1:
        raise ValueError(
            f"skill has {'several lead dimensions' if leads else 'no lead dimension'} among "
            f"{list(skill.dims)} ({LEAD.usual}); name the dimension of leads: dim=..."
        )
    return leads[0]


def _draw(ax: Axes, x: np.ndarray, data: xr.Dataset, dim: Hashable, label: str | None) -> bool:
    """Draw one curve; return True if it is the median of many locations."""
    colour = next_colour(ax)
    middle, low, high = over_locations(data["skill"], (dim,))
    several = low is not None
    significant = np.ones(middle.shape, bool)
    if low is None or high is None:
        width = ndtri((1 + BAND) / 2) * over_locations(data["skill_error"], (dim,)).middle
        low, high = middle - width, middle + width
        significant = over_locations(data["p_value"], (dim,)).middle < SIGNIFICANT
    ax.fill_between(x, low, high, color=colour, alpha=veil(ax, 0.18), lw=0, zorder=2)
    mark_curve(ax.plot(x, middle, color=colour, lw=1.4, label=label, zorder=3)[0])
    point: Style = {"color": colour, "ms": 4, "mew": 1.1, "ls": "", "zorder": 3.5}
    ax.plot(x[significant], middle[significant], "o", **point)
    ax.plot(x[~significant], middle[~significant], "o", mfc=ax.get_facecolor(), **point)
    return several
