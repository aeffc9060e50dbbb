"""Figures of one forecast: its distribution, and the past cases with the most weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes

from xrecal.arrays.distributions.missing import level_masses
from xrecal.inputs.forms import Form, Labelled
from xrecal.products.probabilities import cdf as probability_of
from xrecal.products.statistics import quantile
from xrecal.typing import FloatArray

from .labels import WIDTH_BELOW, label_of, pretty_units, shown_labels
from .reading import Floats, only_ensemble, only_form, only_variable, require_one, same_quantity
from .style import (
    GREY,
    PALETTE,
    Style,
    dress,
    ink,
    legend,
    legend_above,
    mark_curve,
    next_colour,
    open_axes,
    veil,
)

N_NAMED = 5
"""Largest number of past cases whose names a figure shows."""

TAILS = (0.0005, 0.9995)
"""Levels of the quantiles between which a figure shows normal distributions."""

MASS = (0.002, 0.998)
"""Levels of the quantiles between which a figure shows members."""

N_POINTS = 400
"""Number of points of the curve of a normal distribution."""

APART_IN_CDF = 0.07
"""Least difference in probability between past cases that a cumulative distribution names."""

APART_IN_DENSITY = 0.05
"""Least distance between the names of past cases in a density, as a share of the members' range."""

MARGIN = 0.06
"""Margin on both sides of the members, as a share of the range of the members."""

STEMS = 0.4
"""Height of the line of the heaviest past case, as a share of the height of the density."""

MAX_BINS = 60
"""Largest number of bins of the histogram of a density."""


def cdf(
    forecast: Labelled,
    *,
    ax: Axes | None = None,
    observations: Labelled | None = None,
    raw: Labelled | None = None,
    label: str | None = None,
) -> Axes:
    """Cumulative distribution of one forecast, with the past cases that have the most weight.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecast of any form, of one variable, case and location, such as ``calibrated.isel(time=0,
        location=0)``, where ``calibrated = forecast.recal.apply(model)``.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure. A second call on the same Axes
        adds a second curve.
    observations : DataArray or Dataset, optional
        Observation, one number in the same units. The figure shows it as a vertical line.
    raw : DataArray or Dataset, optional
        The plain ensemble of the same case. The figure shows it as a grey curve.
    label : str, optional
        Label of the curve in the legend.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there are several cases, locations or variables, if all values are missing, or if units
        differ.

    Notes
    -----
    If the members of a weighted ensemble are past cases (coordinate ``calibration_<dim>``), each
    step is one case, and the height of the step is the weight of the case. Cases with more
    weight have larger points. The figure shows the dates of the cases with the most weight, at most
    five. The axis shows at least 99.6 % of the mass, the raw ensemble and the observation; members
    with almost no weight may lie outside the axis.

    Examples
    --------
    >>> ax = xrecal.plot.cdf(forecast.isel(init=0, location=0))
    >>> ax.get_ylabel()
    'probability of at most this value'
    """
    case = read_case(forecast, name="forecast", figure="cdf")
    ax = open_axes(ax)
    colour = next_colour(ax)
    beside = None if raw is None else read_raw(raw, case, figure="cdf")
    first = colour == PALETTE[0] and not ax.lines
    limits = shown_range(case, beside, observations, None if first else ax.get_xlim())
    if beside is not None:
        _draw_steps(ax, beside, GREY, 1.2, "raw ensemble")
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
    ax.set(xlim=limits, ylim=(0, 1.02), ylabel="probability of at most this value")
    legend(ax)
    return ax


def density(
    forecast: Labelled,
    *,
    ax: Axes | None = None,
    observations: Labelled | None = None,
    raw: Labelled | None = None,
) -> Axes:
    """Density of one forecast, with the past cases that have the most weight.

    Parameters
    ----------
    forecast, observations
        As for :func:`cdf`.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure.
    raw : DataArray or Dataset, optional
        The plain ensemble of the same case. The figure shows its members as ticks on the axis.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        As for :func:`cdf`.

    Notes
    -----
    The figure shows members as a weighted histogram; the width of its bins follows the rule of
    Freedman and Diaconis [1]_ for the effective number of members. A thick line at a bound shows
    the probability that a censored distribution gives to this bound. Thin lines show past cases;
    the height of a line is proportional to the weight of the case, but no axis shows the weight.
    The figure shows the dates of the cases with the most weight, at most five.

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
    ax.set_xlim(shown_range(case, members, observations))
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


class Members(NamedTuple):
    """Members of one distribution, in ascending order, with masses that sum to one."""

    values: Floats
    masses: Floats
    names: tuple[str, ...] | None
    """Label of each member's past case, empty for a member without a case; None without labels."""

    @property
    def past(self) -> npt.NDArray[np.bool_]:
        """True for members that are past cases, False for quantiles of a component of a pool."""
        return np.array([bool(name) for name in self.names or [""] * self.values.size])


@dataclass(frozen=True)
class OneCase:
    """A forecast of one variable at one location and time, in memory."""

    form: Form
    """Form of the forecast; its parts have no dimensions other than that of the members."""
    labelled: xr.DataArray | xr.Dataset
    """The given forecast of one case."""

    @property
    def has_members(self) -> bool:
        """True for members or quantiles, False for normal distributions."""
        return not self.form.traits.has_scale

    def members(self) -> Members:
        """Members with a weight above 0, in ascending order."""
        values = self.form.loc.to_numpy().astype(np.float64)
        given, levels = self.form.weights, self.form.levels
        masses: FloatArray = np.ones_like(values)
        if given is not None:
            masses = given.to_numpy().astype(np.float64)
        elif levels is not None:
            masses = level_masses(levels.to_numpy(), values)
        used = np.flatnonzero(np.isfinite(values) & (masses > 0))
        order = used[np.argsort(values[used], kind="stable")]
        labels = self._case_labels()
        names = None if labels is None else _names(labels[order])
        return Members(values[order], masses[order] / masses[order].sum(), names)

    def _case_labels(self) -> np.ndarray | None:
        """Labels of the past case of each member."""
        if self.form.kind != "weighted":
            return None
        coordinates: Mapping[str, xr.DataArray] = {
            str(name): coordinate
            for part in self.form.parts.values()
            for name, coordinate in part.coords.items()
            if coordinate.dims == (self.form.member_dim,)
        }
        labels = [c for name, c in coordinates.items() if name.startswith("calibration_")]
        return labels[0].to_numpy() if labels else None


def read_case(forecast: Labelled, *, name: str, figure: str) -> OneCase:
    """Read the forecast of one case.

    Raises
    ------
    ValueError
        If there are several variables, locations or cases, or only missing values.
    """
    form = only_form(forecast, name=name)
    for part in form.parts.values():
        require_one(part, (form.member_dim,), figure=figure)
    single = [d for d in form.dims if d != form.member_dim]
    labelled = forecast.isel(dict.fromkeys(single, 0)).compute()
    one = OneCase(only_form(labelled, name=name), labelled)
    values = one.members().values if one.has_members else one.form.loc.to_numpy()
    if not np.isfinite(values).any():
        raise ValueError(f"{figure}: the {name} is missing at this case; select another")
    return one


def reach(case: OneCase) -> Floats:
    """Evenly spaced values over nearly all of a normal distribution."""
    ends = only_variable(quantile(case.labelled, list(TAILS)), name="forecast").to_numpy()
    return np.linspace(float(ends[0]), float(ends[1]), N_POINTS)


def shown_range(
    case: OneCase,
    raw: Members | None,
    observations: Labelled | None,
    before: tuple[float, float] | None = None,
) -> tuple[float, float]:
    """Ends of an axis that shows nearly all of the mass, the raw ensemble and the observation.

    The function ignores members with almost no weight, because they could make the axis very long.
    ``before`` has the ends of the axis before this drawing.
    """
    ends = list(_mass_range(case.members())) if case.has_members else []
    ends += [] if case.has_members else [reach(case).item(0), reach(case).item(-1)]
    ends += [] if raw is None else [raw.values.item(0), raw.values.item(-1)]
    observed = None if observations is None else _observed(observations, case)
    ends += [] if observed is None or not np.isfinite(observed) else [observed]
    room = MARGIN * ((max(ends) - min(ends)) or 1.0)
    ends = [min(ends) - room, max(ends) + room, *(before or ())]
    return min(ends), max(ends)


def _mass_range(members: Members) -> tuple[float, float]:
    """Range of values with nearly all of the mass of members."""
    share = np.cumsum(members.masses)
    last = members.values.size - 1
    low = min(int(np.searchsorted(share, MASS[0], side="right")), last)
    high = min(int(np.searchsorted(share, MASS[1] - 1e-9)), last)  # sums of masses are rounded
    return float(members.values[low]), float(members.values[high])


def read_raw(raw: Labelled, case: OneCase, *, figure: str) -> Members:
    """Members of the plain ensemble of a case."""
    given = read_case(raw, name="raw", figure=figure)
    only_ensemble(given.labelled)
    same_quantity(case.form.loc, given.form.loc, names=("forecast", "raw"))
    return given.members()


def draw_observation(ax: Axes, observations: Labelled | None, case: OneCase) -> None:
    """Draw the observation as a vertical line; draw nothing if it is missing."""
    if observations is None:
        return
    value = _observed(observations, case)
    if np.isfinite(value):
        ax.axvline(value, color=ink(ax), lw=1.3, ls=(0, (5, 2)), label="observed", zorder=4)


def _observed(observations: Labelled, case: OneCase) -> float:
    """The observation as a number; NaN if it is missing."""
    observed = only_variable(observations, name="observations")
    same_quantity(case.form.loc, observed, names=("forecast", "observations"))
    return float(require_one(observed, (), figure="observations").compute())


def _names(labels: npt.NDArray[Any]) -> tuple[str, ...]:
    """Labels as text; empty for missing labels, which do not affect the format."""
    names = np.full(labels.size, "", dtype=object)
    there = xr.DataArray(labels).notnull().to_numpy()
    names[there] = shown_labels(labels[there])
    return tuple(names)


def heaviest(masses: Floats, at: Floats, names: Sequence[str], apart: float) -> list[int]:
    """Positions of the heaviest members whose names are at least ``apart`` from each other.

    Each name occurs once, although several components of a pool may have members of the same date.
    """
    heavy: list[int] = []
    for i in np.argsort(-masses, kind="stable").tolist():
        new = names[i] and names[i] not in [names[j] for j in heavy]
        if new and all(abs(at[i] - at[j]) >= apart for j in heavy):
            heavy.append(i)
        if len(heavy) == N_NAMED:
            break
    return heavy


def _draw_steps(ax: Axes, members: Members, colour: str, width: float, label: str | None) -> Any:
    """Draw the cumulative distribution of members as steps, with a margin on both sides."""
    room = MARGIN * (np.ptp(members.values) or 1.0)
    x = np.concatenate([members.values[:1] - room, members.values, members.values[-1:] + room])
    y = np.concatenate([[0.0], np.cumsum(members.masses), [1.0]])
    return ax.step(x, y, where="post", color=colour, lw=width, label=label, zorder=width)[0]


def _name_steps(ax: Axes, members: Members, names: tuple[str, ...], colour: str) -> None:
    """Draw points on the steps of past cases, and the names of the heaviest cases."""
    middle = np.cumsum(members.masses) - members.masses / 2
    sizes = 40 * members.masses / members.masses.max()
    past = members.past
    low, high = _mass_range(members)
    points: Style = {"color": colour, "alpha": 0.6, "lw": 0, "zorder": 3}
    ax.scatter(members.values[past], middle[past], s=sizes[past], **points)
    for i in heaviest(members.masses, middle, names, APART_IN_CDF):
        right = members.values[i] <= low + 0.7 * (high - low)  # the text would leave the Axes
        ax.annotate(
            names[i], (members.values[i], middle[i]), (7 if right else -7, -3 if right else 4),
            textcoords="offset points", fontsize="x-small", color=ink(ax), va="center",
            ha="left" if right else "right", zorder=5,
        )  # fmt: skip


def _normal_cdf(case: OneCase) -> tuple[Floats, Floats]:
    """Values, and the probabilities of not exceeding them; jumps at bounds are vertical."""
    x = reach(case)
    bounds = [part for part in (case.form.lower, case.form.upper) if part is not None]
    ends = np.array([float(bound) for bound in bounds if np.isfinite(bound)])
    room = MARGIN * np.ptp(x)
    x = np.concatenate([x[:1] - room, x, ends - 1e-4 * room, ends, x[-1:] + room])
    x = np.unique(x)
    return x, only_variable(probability_of(case.labelled, x), name="cdf").to_numpy()


def _draw_members(ax: Axes, members: Members) -> None:
    """Draw a weighted histogram, and past cases as lines with names."""
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
    for i in heaviest(masses, values, members.names, APART_IN_DENSITY * (np.ptp(edges) or 1.0)):
        ax.annotate(
            members.names[i], (values[i], top[i]), (0, 3), textcoords="offset points",
            fontsize="x-small", color=ink(ax), ha="center", va="bottom", rotation=90, zorder=5,
        )  # fmt: skip


def _histogram(members: Members) -> tuple[Floats, Floats]:
    """Densities and edges of bins; the effective number of members gives the width of the bins."""
    values, masses = members.values, members.masses
    at = np.searchsorted(np.cumsum(masses), [0.25, 0.75]).clip(0, values.size - 1)
    width = 2 * np.ptp(values[at]) * (masses**2).sum() ** (1 / 3)
    ends = _mass_range(members)
    span = ends[1] - ends[0]
    n_bins = int(np.clip(np.ceil(span / width), 1, MAX_BINS)) if width > 0 else MAX_BINS // 3
    heights, edges = np.histogram(values, n_bins, ends if span else None, weights=masses)
    return heights / np.diff(edges), edges


def _draw_normal(ax: Axes, case: OneCase) -> None:
    """Draw the density of a mixture of normal distributions, and the mass on each bound."""
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
