"""Spread and skill: size of the errors compared with the spread."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes

from .bands import draw_band, error_limits
from .labels import pretty_units, with_units
from .reading import in_memory, over_locations
from .style import (
    SQUARE,
    Style,
    dress,
    is_first,
    legend,
    mark_curve,
    next_colour,
    note,
    open_axes,
    reference,
)

BIN = "spread_bin"


def spread_skill(
    spread_skill: xr.Dataset, *, ax: Axes | None = None, label: str | None = None
) -> Axes:
    """Error of the forecast mean against the spread of the forecast.

    Parameters
    ----------
    spread_skill : Dataset
        Result of :func:`xrecal.diagnostics.spread_skill`, for one location or many.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure. A second call on the same Axes
        adds a second curve.
    label : str, optional
        Label of the curve in the legend.

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        If ``spread_skill`` is not such a Dataset, or if no location has a case.

    Notes
    -----
    Each point is a group of cases with similar spread; points above the diagonal mean that
    forecasts are too confident. For one location, the figure has a band. If a forecast is
    calibrated and its errors are normal and independent, a point lies within the band with a
    probability of 90 % (chi-square distribution). For many locations, small points are the groups
    of each location, and the line is the median over locations.

    Examples
    --------
    >>> spread = hindcast.recal.spread_skill(observations, ["init", "location"])
    >>> ax = xrecal.plot.spread_skill(spread)
    >>> ax.get_ylabel()
    'error of the mean (RMSE)'
    """
    names = ["spread_of_bin", "rmse_of_bin", "n_in_bin", "bias", "ratio"]
    data = in_memory(spread_skill, names, figure="spread_skill", maker="diagnostics.spread_skill")
    spread, error = data["spread_of_bin"], data["rmse_of_bin"]
    if not (spread.notnull() & error.notnull()).any():
        raise ValueError("no group of cases has a spread and an error; nothing to draw")
    ax = open_axes(ax, SQUARE)
    first, colour = is_first(ax), next_colour(ax)
    several = data["bias"].size > 1
    x, y = (over_locations(array, (BIN,)).middle for array in (spread, error))
    if several:
        dots: Style = {"color": colour, "ms": 2.2, "mew": 0, "alpha": 0.35, "zorder": 2}
        alike = error.transpose(*spread.dims)
        ax.plot(spread.to_numpy().ravel(), alike.to_numpy().ravel(), "o", **dots)
    elif first:
        low, high = x * error_limits(data["n_in_bin"].squeeze().to_numpy())
        draw_band(ax, x, low, high)
    line: Style = {"color": colour, "ms": 5, "lw": 1.2, "label": label, "zorder": 3}
    mark_curve(ax.plot(x, y, "o-", **line)[0])
    top = 1.08 * float(max(spread.max(), error.max()))
    top = top if first else max(top, ax.get_xlim()[1])
    if first:
        reference(ax, (0, 1e6 * top), (0, 1e6 * top))
    dress(ax, grid="both")
    attrs = spread.attrs
    ax.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    ax.set(xlabel=with_units("spread", attrs), ylabel=with_units("error of the mean (RMSE)", attrs))
    legend(ax)
    if first and label is None:
        _note_numbers(ax, data, several)
    return ax


def _note_numbers(ax: Axes, data: xr.Dataset, several: bool) -> None:
    """Write the ratio of spread and error, and the bias."""
    units = pretty_units(data["bias"].attrs)
    bias, ratio = float(data["bias"].median()), float(data["ratio"].median())
    of = f"medians of {int(data['bias'].notnull().sum())} locations:\n" if several else ""
    signed = f"{bias:+.3g}".replace("-", "−")
    note(ax, f"{of}spread / error {ratio:.2f}\nbias {signed} {units}".rstrip(), 0.97, 0.04)
