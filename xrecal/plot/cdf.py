"""The cumulative distribution of one forecast."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from xrecal.inputs.forms import Labelled

from .case import Members, OneCase, draw_observation, heaviest, reach, read_case, read_raw
from .labels import WIDTH_BELOW, label_of
from .legends import legend
from .reading import Floats, only_variable
from .style import GREY, Style, dress, ink, mark_curve, next_colour, open_axes

APART = 0.07
"""Least distance between the names of past cases, in probability."""

MARGIN = 0.06
"""Room on either side, in parts of the range of the members."""


def cdf(
    forecast: Labelled,
    *,
    ax: Axes | None = None,
    observations: Labelled | None = None,
    raw: Labelled | None = None,
    label: str | None = None,
) -> Axes:
    """Cumulative distribution of one forecast, with the past cases that carry its weight.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms: one variable, case and location, such as
        ``calibrated.isel(time=0)`` of ``calibrated = forecast.recal.apply(model)``.
    ax : Axes, optional
        Drawn on and returned; a new figure if not given. A second call adds a second curve.
    observations : DataArray or Dataset, optional
        What verified, one number in the same units: a vertical line.
    raw : DataArray or Dataset, optional
        The plain ensemble of the same case: a grey curve.
    label : str, optional
        Of the curve in the legend.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there are several cases, locations or variables, nothing but missing values, or units
        differ.

    Notes
    -----
    Of a weighted ensemble whose members are past cases (coordinate ``calibration_<dim>``) each step
    is one of them, as high as its weight; points grow with it, and up to five of the heaviest are
    named by their date.

    Examples
    --------
    >>> ax = xrecal.plot.cdf(forecast.isel(init=0, location=0))
    >>> ax.get_ylabel()
    'probability of at most this value'
    """
    case = read_case(forecast, name="forecast", figure="cdf")
    ax = open_axes(ax)
    colour = next_colour(ax)
    if raw is not None:
        _draw_steps(ax, read_raw(raw, case, figure="cdf"), GREY, 1.2, "raw ensemble")
    if case.has_members:
        members = case.members()
        line = _draw_steps(ax, members, colour, 1.6, label)
        if members.names is not None:
            _name_steps(ax, members, members.names, colour)
    else:
        x, probability = _normal_cdf(case)
        (line,) = ax.plot(x, probability, color=colour, lw=1.6, label=label, zorder=3)
    mark_curve(line)
    draw_observation(ax, observations, case)
    dress(ax, grid="both")
    ax.set(xlabel=label_of(case.form.loc, case.form.name or "forecast", WIDTH_BELOW))
    ax.set(ylim=(0, 1.02), ylabel="probability of at most this value")
    legend(ax)
    return ax


def _draw_steps(ax: Axes, members: Members, colour: str, width: float, label: str | None) -> Any:
    """Steps, level from the ends of the members to a little beyond them."""
    room = MARGIN * (np.ptp(members.values) or 1.0)
    x = np.concatenate([members.values[:1] - room, members.values, members.values[-1:] + room])
    y = np.concatenate([[0.0], np.cumsum(members.masses), [1.0]])
    return ax.step(x, y, where="post", color=colour, lw=width, label=label, zorder=width)[0]


def _name_steps(ax: Axes, members: Members, names: tuple[str, ...], colour: str) -> None:
    """Points on the steps of past cases, and names of the heaviest."""
    middle = np.cumsum(members.masses) - members.masses / 2
    sizes = 40 * members.masses / members.masses.max()
    past = members.past
    points: Style = {"color": colour, "alpha": 0.6, "lw": 0, "zorder": 3}
    ax.scatter(members.values[past], middle[past], s=sizes[past], **points)
    for i in heaviest(members.masses, middle, names, APART):
        ax.annotate(
            names[i], (members.values[i], middle[i]), (7, -3), textcoords="offset points",
            fontsize="x-small", color=ink(ax), va="center", zorder=5,
        )  # fmt: skip


def _normal_cdf(case: OneCase) -> tuple[Floats, Floats]:
    """Values, and the probability of at most these; jumps at bounds are vertical."""
    from xrecal.products.probabilities import cdf as probability_of

    x = reach(case)
    bounds = [part for part in (case.form.lower, case.form.upper) if part is not None]
    ends = np.array([float(bound) for bound in bounds if np.isfinite(bound)])
    room = MARGIN * np.ptp(x)
    x = np.concatenate([x[:1] - room, x, ends - 1e-4 * room, ends, x[-1:] + room])
    x = np.unique(x)
    return x, only_variable(probability_of(case.labelled, x), name="cdf").to_numpy()
