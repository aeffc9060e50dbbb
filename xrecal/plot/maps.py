"""Maps of skill, of tests of calibration, and of probabilities of terciles."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize

from xrecal.diagnostics import adjusted_p_values
from xrecal.diagnostics.p_values import SIGNIFICANT
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import LATITUDE, LONGITUDE, Mark
from xrecal.inputs.roles import Roles
from xrecal.products.categories import CATEGORY, TERCILES, issued_categories

from .coasts import draw_coastlines
from .labels import label_of, wrapped
from .reading import drop_single, first_along
from .style import GREY, SMALL, Style, aside, dress, ink, open_axes, veil

SKILL_COLOURS = "RdBu"
"""Red: worse than the reference. Blue: better. Colour-blind readers can distinguish both."""

TERCILE_COLOURS = (
    ("#0B3C6F", "#2C73B0", "#74A9D6", "#BCD7EE"),
    ("#D9EFD2", "#A3D398", "#55A868", "#22703A"),
    ("#FBD3A8", "#F0A057", "#D2691E", "#8C3B06"),
)
"""Colours of below, near and above normal, in their order on the colour bar."""
TERCILE_EDGES = (0.4, 0.5, 0.6, 0.7)
"""Probabilities at which the shade changes; the map is white where all categories are below 0.4."""

P_COLOURS = "YlOrBr_r"
P_EDGES = (0, 0.001, 0.01, 0.05, 0.1, 0.5, 1)

EASTING = Mark(("projection_x_coordinate", "grid_longitude"), (), ("x", "rlon", "easting"))
NORTHING = Mark(("projection_y_coordinate", "grid_latitude"), (), ("y", "rlat", "northing"))


def skill_map(skill: Labelled, *, ax: Axes | None = None) -> Axes:
    """Map of skill: blue where a forecast is better than its reference, red where it is worse.

    Parameters
    ----------
    skill : Dataset or DataArray
        Result of :func:`xrecal.skill` along two dimensions, or its variable ``skill``. From the
        result of :func:`xrecal.diagnostics.tercile_summary`, the map shows the variable ``rpss``.
    ax : Axes, optional
        Axes to draw on and return; by default those of a new figure. Axes of cartopy, made with
        ``projection=...``, keep their projection.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If the values do not have exactly two dimensions, or if all of them are missing.

    Notes
    -----
    The colour scale is symmetrical around 0. It ends at the largest absolute skill, but never
    beyond 1. If the Dataset has p-values, dots mark the locations where the skill is significant at
    a false discovery rate of 5 % [1]_. xrecal recognises longitudes and latitudes by their CF
    standard names, units or names; they may have one dimension or two. Locations without a value
    are grey. The colour bar names the score and the reference. The map has coastlines if cartopy is
    installed and has downloaded the coastlines before.

    References
    ----------
    .. [1] Wilks (2016), "The stippling shows statistically significant grid points".
       https://doi.org/10.1175/BAMS-D-15-00267.1

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cells = {"lat": [40.0, 50.0], "lon": [0.0, 10.0, 20.0]}
    >>> values = rng.uniform(size=(2, 30, 2, 3))
    >>> scores = xr.DataArray(values, cells, ("kind", "time", "lat", "lon"))
    >>> ax = xrecal.plot.skill_map(xrecal.skill(scores[0], scores[1], "time"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('lon', 'lat')
    """
    name = "rpss" if isinstance(skill, xr.Dataset) and "rpss" in skill else "skill"
    values = _variable(skill, name, "skill_map", "xrecal.skill")
    p_values = skill["p_value"] if isinstance(skill, xr.Dataset) and "p_value" in skill else None
    field = _field(values, "skill_map")
    most = min(1.0, float(np.nanmax(np.abs(field)))) or 1.0
    below = float(field.min()) < -most
    options: dict[str, Any] = {"cmap": SKILL_COLOURS, "norm": Normalize(-most, most)}
    ax, mesh, at = _draw(ax, field, options)
    _bar(ax, mesh, _what_skill(skill, values), extend="min" if below else "neither")
    if p_values is not None:
        _stipple(ax, at, p_values, values.notnull(), "significant")
    return ax


def p_value_map(p_values: Labelled, *, ax: Axes | None = None) -> Axes:
    """Map of p-values, with dots where tests reject calibration at a false discovery rate of 5 %.

    Parameters
    ----------
    p_values : Dataset or DataArray
        Result of :func:`xrecal.diagnostics.skce_test` or of another test, along two dimensions, or
        the variable ``p_value`` of this result.
    ax : Axes, optional
        As for :func:`skill_map`.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        As for :func:`skill_map`, or if a p-value is outside [0, 1].

    Notes
    -----
    Dots come from :func:`xrecal.diagnostics.adjusted_p_values`: on average, at most 5 % of the
    locations with a dot are calibrated. A test by resampling needs 20 times as many resamples as
    there are locations; with fewer resamples, the map cannot have a dot at one location alone.
    ``forecast.recal.plot`` and ``summary`` use the test that allows for serial dependence;
    ``skce_test`` by default assumes that cases are independent. The t-test of :func:`skill_map`
    allows for autocorrelation, but it does not suit the SKCE, which is a mean over pairs of cases.

    Examples
    --------
    >>> cells = {"lat": [40.0, 50.0], "lon": [0.0, 10.0, 20.0]}
    >>> p_values = xr.DataArray([[0.01, 0.2, 0.3], [0.02, 0.9, 0.5]], cells, ("lat", "lon"))
    >>> ax = xrecal.plot.p_value_map(p_values)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('lon', 'lat')
    """
    values = _variable(p_values, "p_value", "p_value_map", "diagnostics.skce_test")
    field = _field(values, "p_value_map")
    norm = BoundaryNorm(P_EDGES, 256)
    ax, mesh, at = _draw(ax, field, {"cmap": P_COLOURS, "norm": norm})
    _bar(ax, mesh, "p-value", ticks=P_EDGES, format="%g")
    n_cases = p_values.get("n_cases") if isinstance(p_values, xr.Dataset) else None
    scored = values.notnull() if n_cases is None else n_cases > 0
    _stipple(ax, at, values, scored, "rejected")
    return ax


def tercile_map(probabilities: Labelled, *, ax: Axes | None = None) -> Axes:
    """Map of the likeliest tercile: blue below normal, green near normal, orange above normal.

    Parameters
    ----------
    probabilities : DataArray or Dataset
        Probabilities of three categories on one date, along ``category`` and two other dimensions.
        They come from ``model.categories(forecast)``, ``forecast.recal.categories(edges)`` or
        ``cross_validate(output="categories")``, or are the variable ``probability`` of
        :func:`xrecal.diagnostics.tercile_summary`.
    ax : Axes, optional
        As for :func:`skill_map`.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        If there are not three categories, if the probabilities do not have two further dimensions,
        or if all values are missing.

    Notes
    -----
    Darker colours mean larger probabilities: from 40 %, 50 %, 60 % and 70 % on. The map is white
    where no category reaches 40 %, because the forecast hardly differs from climatology there.
    Locations without a value are grey, as in :func:`skill_map`.

    Examples
    --------
    >>> cells = {"lat": [40.0, 50.0], "lon": [0.0, 10.0, 20.0]}
    >>> share = xr.DataArray([[0.1, 0.3, 0.5], [0.2, 0.7, 0.3]], cells, ("lat", "lon"))
    >>> parts = [share, (1 - share) / 2, (1 - share) / 2]
    >>> ax = xrecal.plot.tercile_map(xr.concat(parts, "category"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('lon', 'lat')
    """
    summary = isinstance(probabilities, xr.Dataset) and "probability" in probabilities
    issued = None if summary else issued_categories(probabilities)
    probabilities = probabilities if issued is None else issued
    values = _variable(probabilities, "probability", "tercile_map", "diagnostics.tercile_summary")
    if values.sizes.get(CATEGORY) != len(TERCILES):
        raise ValueError(
            f"tercile_map draws the probabilities of three categories along {CATEGORY!r}, found "
            f"{dict(values.sizes)}"
        )
    place = values.drop_vars(CATEGORY, errors="ignore")
    likeliest = _field(place.max(CATEGORY, skipna=False), "tercile_map")
    which = drop_single(place.fillna(-1.0).argmax(CATEGORY)).compute()
    below, near, above = TERCILE_COLOURS
    shades = np.digitize(likeliest, TERCILE_EDGES)  # 0 if no category is likely enough
    columns = np.choose(which.transpose(*likeliest.dims), [4 - shades, 4 + shades, 8 + shades])
    columns = np.where(shades == 0, 4, columns)
    field = likeliest.copy(data=np.where(likeliest.isnull(), np.nan, columns))
    colours = ListedColormap([*below, "white", *near, *above])
    norm = BoundaryNorm(np.arange(colours.N + 1) - 0.5, colours.N)
    ax, mesh, _ = _draw(ax, field, {"cmap": colours, "norm": norm})
    _bar_of_terciles(ax, mesh)
    return ax


def _bar_of_terciles(ax: Axes, mesh: Any) -> None:
    """Draw the colour bar of three categories below a map."""
    percent = [f"{edge:.0%}".rstrip("%") for edge in TERCILE_EDGES]
    at = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5]
    labels = [*percent[:0:-1], *percent[:1], *percent, *percent]
    figure = ax.figure
    # Without a layout engine, nothing else keeps the bar off the labels of the map.
    pad = 0.04 if figure.get_layout_engine() else 0.24
    bar = figure.colorbar(mesh, ax=ax, location="bottom", ticks=at, shrink=0.95, pad=pad, aspect=36)
    bar.set_ticklabels(labels)
    bar.ax.tick_params(labelsize="x-small", length=2)
    bar.outline.set_visible(False)
    bar.ax.set_xlabel("probability of the likeliest tercile (%)", fontsize=SMALL)
    for place, name in zip((1.5, 6.5, 10.5), TERCILES, strict=True):
        bar.ax.text(
            place, 1.15, name.replace("_", " "), ha="center", va="bottom", fontsize="x-small",
            transform=bar.ax.get_xaxis_transform(), color=ink(ax),
        )  # fmt: skip


def _what_skill(skill: Labelled, values: xr.DataArray) -> str:
    """Text with the score and the reference of the skill, from attributes."""
    if values.name == "rpss":
        return "ranked probability skill score\nover equal odds"
    score = str(skill.attrs.get("score", "")).partition(" in ")[0]
    name = f"skill by the {score}" if score else "skill"
    over = skill.attrs.get("reference") or values.attrs.get("reference")
    return wrapped(f"{name} over {over}" if over else name)


def _variable(data: Labelled, name: str, figure: str, maker: str) -> xr.DataArray:
    """Return a DataArray unchanged, or the variable ``name`` of a Dataset."""
    if isinstance(data, xr.DataArray):
        return data
    if not isinstance(data, xr.Dataset):
        raise TypeError(f"{figure} draws a Dataset or DataArray, got {type(data).__name__}")
    if name not in data:
        raise ValueError(
            f"{figure} draws the variable {name!r} of {maker}; found {list(data.data_vars)}"
        )
    return data[name]


def _field(values: xr.DataArray, figure: str) -> xr.DataArray:
    """Values along two dimensions, in memory."""
    flat = drop_single(values)
    if flat.ndim != 2:
        hint = "stations have no map"
        if flat.ndim > 2:
            other = next(iter(Roles(flat).leads), flat.dims[0])
            hint = f"select along each other dimension, such as .isel({first_along(other)})"
        raise ValueError(
            f"{figure} needs values over two dimensions, but they are over {list(flat.dims)}; "
            f"{hint}"
        )
    field = flat.compute()
    if not field.notnull().any():
        raise ValueError(f"{figure}: all values are missing; nothing to draw")
    return field


def _draw(
    ax: Axes | None, field: xr.DataArray, options: dict[str, Any]
) -> tuple[Axes, Any, dict[str, Any]]:
    """Draw the coloured field; return the Axes, the drawn field, and options to mark locations."""
    x, y, geographic = _coordinates(field)
    ax = open_axes(ax, (5.6, 3.8))
    how: dict[str, Any] = {}
    if hasattr(ax, "projection") and geographic:
        import cartopy.crs

        how["transform"] = cartopy.crs.PlateCarree()
    values = field.transpose(*(y.dims if y.ndim == 2 else (y.dims[0], x.dims[0])))
    mesh = ax.pcolormesh(x, y, values, shading="nearest", rasterized=True, **options, **how)
    if geographic and all(np.issubdtype(part.dtype, np.number) for part in (x, y)):
        draw_coastlines(ax, x.to_numpy(), y.to_numpy(), **how)
    at = {"x": x, "y": y, **how}
    if hasattr(ax, "projection"):
        ax.patch.set(facecolor=GREY, alpha=0.25)
        if geographic:
            _ticks_of_projection(ax)
        return ax, mesh, at
    dress(ax, grid=None)
    ax.patch.set(facecolor=GREY, alpha=veil(ax, 0.25))
    ax.set(xlabel=label_of(x), ylabel=label_of(y))
    ax.set_aspect(1 / max(0.2, np.cos(np.deg2rad(float(y.mean())))) if geographic else "equal")
    return ax, mesh, at


def _ticks_of_projection(ax: Any) -> None:
    """Write longitudes and latitudes at the lower and left edge of Axes of cartopy."""
    where: Style = {"draw_labels": {"left": "y", "bottom": "x"}, "x_inline": False}
    lines = ax.gridlines(**where, y_inline=False, color=ink(ax), alpha=0.25, linewidth=0.6)
    lines.rotate_labels = False
    lines.xlabel_style = lines.ylabel_style = {"size": SMALL, "color": ink(ax)}


def _coordinates(field: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray, bool]:
    """Horizontal and vertical coordinates, and True if they are longitude and latitude."""
    for right, up, geographic in ((LONGITUDE, LATITUDE, True), (EASTING, NORTHING, False)):
        x, y = _matching(field, right), _matching(field, up)
        if x is not None and y is not None and x.ndim == y.ndim:
            return x, y, geographic
    down, right_dim = field.dims
    return field[right_dim], field[down], False


def _matching(field: xr.DataArray, mark: Mark) -> xr.DataArray | None:
    """Coordinate of the field that ``mark`` describes, such as longitudes; otherwise None."""
    matching = (c for name, c in field.coords.items() if c.dims and mark.fits(name, c))
    return max(matching, key=lambda c: c.ndim, default=None)  # curvilinear grids have 2-D ones


def _bar(ax: Axes, mesh: Any, text: str, **options: Any) -> None:
    """Draw a colour bar beside a map."""
    # Inset, so that it is as high as the map with its fixed aspect.
    place = ax.inset_axes((1.02, 0.04, 0.028, 0.92))
    bar = ax.figure.colorbar(mesh, cax=place, **options)
    bar.set_label(text, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL, length=3)
    bar.outline.set_visible(False)


def _stipple(
    ax: Axes, at: dict[str, Any], p_values: xr.DataArray, scored: xr.DataArray, what: str
) -> None:
    """Draw dots where p-values are significant at a false discovery rate of 5 %.

    The function also writes the number of dots, and the number of locations that have a score but
    no p-value, because they have too few cases.
    """
    adjusted = drop_single(adjusted_p_values(p_values)).compute()
    scored = drop_single(scored).compute().transpose(*adjusted.dims)
    rejected = (adjusted < SIGNIFICANT) & scored
    x, y = (part.broadcast_like(adjusted).transpose(*adjusted.dims) for part in (at["x"], at["y"]))
    marked = rejected.to_numpy()
    how = {key: value for key, value in at.items() if key == "transform"}
    dots: Style = {"s": 5, "lw": 0.4, "facecolor": "white", "edgecolor": "black", "zorder": 3}
    ax.scatter(x.to_numpy()[marked], y.to_numpy()[marked], **dots, **how)
    n, untested = int(adjusted.notnull().sum()), int((adjusted.isnull() & scored).sum())
    few = f", {untested} have too few cases" if untested else ""
    aside(ax, f"{marked.sum()} of {n} locations {what}{few}")
