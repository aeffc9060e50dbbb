"""The density of one forecast."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from xrecal.inputs.forms import Labelled

from .case import Members, OneCase, draw_observation, heaviest, reach, read_case, read_raw
from .labels import WIDTH_BELOW, label_of, pretty_units
from .legends import legend_above
from .reading import Floats
from .style import GREY, PALETTE, Style, dress, ink, open_axes, veil

APART = 0.05
"""Least distance between the names of past cases, in parts of the range of the members."""

STEMS = 0.4
"""Height of the heaviest past case, in parts of that of the density."""

MAX_BINS = 60


def density(
    forecast: Labelled,
    *,
    ax: Axes | None = None,
    observations: Labelled | None = None,
    raw: Labelled | None = None,
) -> Axes:
    """Density of one forecast, with the past cases that carry its weight.

    Parameters
    ----------
    forecast, observations
        As for :func:`cdf`.
    ax : Axes, optional
        Drawn on and returned; a new figure if not given.
    raw : DataArray or Dataset, optional
        The plain ensemble of the same case: ticks on the axis.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        As for :func:`cdf`.

    Notes
    -----
    Members make a weighted histogram, with bins by the rule of Freedman and Diaconis [1]_ for the
    effective number of members. The mass that censoring puts on a bound is a line with its
    probability. Past cases are lines as high as their weights, on no scale of their own, and up to
    five of the heaviest are named by their date.

    References
    ----------
    .. [1] Freedman & Diaconis (1981), On the histogram as a density estimator: L2 theory.
       https://doi.org/10.1007/BF01025868

    Examples
    --------
    >>> ax = xrecal.plot.density(forecast.isel(init=0, location=0))
    >>> ax.get_ylabel()
    'probability density'
    """
    case = read_case(forecast, name="forecast", figure="density")
    members = None if raw is None else read_raw(raw, case, figure="density")
    ax = open_axes(ax)
    if case.has_members:
        _draw_members(ax, case.members())
    else:
        _draw_normal(ax, case)
    ax.set_ylim(bottom=0)
    if members is not None:
        ticks: Style = {"ms": 9, "mew": 1.2, "clip_on": False, "zorder": 4, "ls": ""}
        ax.plot(members.values, 0 * members.values, "|", color=GREY, label="raw ensemble", **ticks)
    draw_observation(ax, observations, case)
    dress(ax)
    units = pretty_units(case.form.loc.attrs)
    ax.set_ylabel(f"probability density (per {units})" if units else "probability density")
    ax.set_xlabel(label_of(case.form.loc, case.form.name or "forecast", WIDTH_BELOW))
    legend_above(ax)
    return ax


def _draw_members(ax: Axes, members: Members) -> None:
    heights, edges = _histogram(members)
    ax.stairs(heights, edges, fill=True, color=PALETTE[0], alpha=veil(ax, 0.3), zorder=2)
    ax.stairs(heights, edges, color=PALETTE[0], lw=1.2, zorder=2.2)
    if members.names is None:
        return
    values, masses = members.values, members.masses
    top = STEMS * heights.max() * masses / masses.max()
    stems: Style = {"color": PALETTE[1], "lw": 1.1, "zorder": 3}
    past = members.past
    ax.vlines(values[past], 0, top[past], label="weight of past cases", **stems)
    for i in heaviest(masses, values, members.names, APART * (np.ptp(edges) or 1.0)):
        ax.annotate(
            members.names[i], (values[i], top[i]), (0, 3), textcoords="offset points",
            fontsize="x-small", color=ink(ax), ha="center", va="bottom", rotation=90, zorder=5,
        )  # fmt: skip


def _histogram(members: Members) -> tuple[Floats, Floats]:
    """Densities and edges of bins as wide as the effective number of members asks for."""
    values, masses = members.values, members.masses
    at = np.searchsorted(np.cumsum(masses), [0.25, 0.75]).clip(0, values.size - 1)
    width = 2 * np.ptp(values[at]) * (masses**2).sum() ** (1 / 3)
    span = np.ptp(values)
    n_bins = int(np.clip(np.ceil(span / width), 1, MAX_BINS)) if width > 0 else MAX_BINS // 3
    heights, edges = np.histogram(values, n_bins, weights=masses, density=True)
    return heights, edges


def _draw_normal(ax: Axes, case: OneCase) -> None:
    from scipy.stats import norm

    form, x = case.form, reach(case)
    loc = form.loc.to_numpy().astype(np.float64)
    assert form.scale is not None
    scale = form.scale.to_numpy().astype(np.float64)
    weights = np.ones_like(loc) if form.weights is None else form.weights.to_numpy()
    parts = norm.pdf(x[:, np.newaxis], loc, scale) * weights
    heights = parts.sum(-1) / weights.sum()
    ax.fill_between(x, heights, color=PALETTE[0], alpha=veil(ax, 0.3), lw=0, zorder=2)
    ax.plot(x, heights, color=PALETTE[0], lw=1.4, zorder=2.2)
    for bound, beyond in ((form.lower, norm.cdf), (form.upper, norm.sf)):
        if bound is not None and (mass := float(beyond(float(bound), loc, scale)[0])) >= 0.0005:
            top = heights.max()
            ax.vlines(float(bound), 0, top, color=PALETTE[0], lw=3, zorder=3)
            ax.annotate(
                f"P = {mass:.1%}", (float(bound), top), (3, 2), textcoords="offset points",
                fontsize="x-small", color=ink(ax), va="bottom", zorder=5,
            )  # fmt: skip
