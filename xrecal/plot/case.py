"""One forecast, read for a figure: its members, and the past cases that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes

from xrecal.inputs.forms import Form, Labelled

from .labels import shown_labels
from .reading import Floats, only_form, only_variable, require_one, same_quantity
from .style import ink

N_NAMED = 5
"""Past cases named in a figure, at most."""

TAILS = (0.0005, 0.9995)
"""Levels between which normal distributions are drawn."""

N_POINTS = 400


class Members(NamedTuple):
    """Members of one distribution, ascending, with masses that sum to one."""

    values: Floats
    masses: Floats
    names: tuple[str, ...] | None
    """Of the past cases that members come from, where these are labelled; empty for others."""

    @property
    def past(self) -> npt.NDArray[np.bool_]:
        """Which members come from a past case, unlike quantiles of a component of a pool."""
        return np.array([bool(name) for name in self.names or [""] * self.values.size])


@dataclass(frozen=True)
class OneCase:
    """A forecast of one variable at one location and time, in memory."""

    form: Form
    """With parts along the members alone, or without any dimension."""
    labelled: xr.DataArray | xr.Dataset
    """The same, as it was given."""

    @property
    def has_members(self) -> bool:
        """Whether it is members or quantiles rather than normal distributions."""
        return self.form.kind not in ("normal", "censored")

    def members(self) -> Members:
        """Members with a weight, ascending."""
        values = self.form.loc.to_numpy().astype(np.float64)
        weights = self.form.weights
        masses = np.ones_like(values) if weights is None else weights.to_numpy().astype(np.float64)
        used = np.flatnonzero(np.isfinite(values) & (masses > 0))
        order = used[np.argsort(values[used], kind="stable")]
        labels = self._case_labels()
        names = None if labels is None else _names(labels[order])
        return Members(values[order], masses[order] / masses[order].sum(), names)

    def _case_labels(self) -> np.ndarray | None:
        """Labels of the past case that each member comes from."""
        if self.form.kind != "weighted":
            return None
        coordinates: Mapping[str, xr.DataArray] = {
            str(name): coordinate
            for part in self.form.parts.values()
            for name, coordinate in part.coords.items()
            if coordinate.dims == (self.form.member_dim,)
        }
        found = [c for name, c in coordinates.items() if name.startswith("calibration_")]
        return found[0].to_numpy() if found else None


def read_case(forecast: Labelled, *, name: str, figure: str) -> OneCase:
    """A forecast of one case.

    Raises
    ------
    ValueError
        If there are several variables, locations or cases, or nothing but missing values.
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
    """Values between which nearly all of normal distributions lies, evenly spaced."""
    from xrecal.products.statistics import quantile

    ends = only_variable(quantile(case.labelled, list(TAILS)), name="forecast").to_numpy()
    return np.linspace(float(ends[0]), float(ends[1]), N_POINTS)


def read_raw(raw: Labelled, case: OneCase, *, figure: str) -> Members:
    """Members of the plain ensemble of a case."""
    given = read_case(raw, name="raw", figure=figure)
    if given.form.kind != "ensemble":
        raise ValueError(
            f"raw draws members of a plain ensemble, but {given.form.name!r} is a forecast of the "
            f"form {given.form.kind!r}"
        )
    same_quantity(case.form.loc, given.form.loc, names=("forecast", "raw"))
    return given.members()


def draw_observation(ax: Axes, observations: Labelled | None, case: OneCase) -> None:
    """What verified, as a vertical line; nothing where it is missing."""
    if observations is None:
        return
    observed = only_variable(observations, name="observations")
    same_quantity(case.form.loc, observed, names=("forecast", "observations"))
    value = float(require_one(observed, (), figure="observations").compute())
    if np.isfinite(value):
        ax.axvline(value, color=ink(ax), lw=1.3, ls=(0, (5, 2)), label="observed", zorder=4)


def _names(labels: npt.NDArray[Any]) -> tuple[str, ...]:
    """Labels as they are shown; nothing for missing ones, which have no say in the format."""
    names = np.full(labels.size, "", dtype=object)
    known = xr.DataArray(labels).notnull().to_numpy()
    names[known] = shown_labels(labels[known])
    return tuple(names)


def heaviest(masses: Floats, at: Floats, names: Sequence[str], apart: float) -> list[int]:
    """Positions of the heaviest members, whose names stand ``apart`` from each other.

    Each name once, as the members that components of a pool make of one date share it.
    """
    found: list[int] = []
    for i in np.argsort(-masses, kind="stable").tolist():
        new = names[i] and names[i] not in [names[j] for j in found]
        if new and all(abs(at[i] - at[j]) >= apart for j in found):
            found.append(i)
        if len(found) == N_NAMED:
            break
    return found
