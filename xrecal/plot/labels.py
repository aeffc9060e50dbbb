"""Text on axes: names with units, dates, lead times."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Hashable, Mapping
from typing import Any

import matplotlib.dates as mdates
import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.font_manager import FontProperties

from xrecal.diagnostics.p_values import shown_p
from xrecal.inputs.metadata import same_units, shown_units

WIDTH, WIDTH_BELOW = 36, 64
"""Largest number of characters per line, for a label beside the Axes and for a label below."""

_SIGNS = {"degC": "°C", "degF": "°F", "degree": "°"}
_DEGREES = {"degrees_east": "°E", "degree_east": "°E", "degrees_north": "°N", "degree_north": "°N"}
_EXPONENT = re.compile(r"(?<=[A-Za-z])(?:\*\*|\^)?([+-]?\d+)")


def as_typed(text: str) -> str:
    """Text that matplotlib shows unchanged; plain dollar signs would begin a formula."""
    return text.replace("$", r"\$")


def pretty_units(attrs: Mapping[Any, Any]) -> str:
    """Units to print, with raised exponents; empty for a dimensionless variable."""
    units = shown_units(attrs)
    for name, sign in _SIGNS.items():
        if units and same_units(units, name):
            return sign
    return _DEGREES.get(units) or _EXPONENT.sub(r"$\\mathregular{^{\1}}$", as_typed(units))


def with_units(text: str, attrs: Mapping[Any, Any], width: int = WIDTH) -> str:
    """Text with units in brackets, on as few lines as possible; lines have similar lengths."""
    units = pretty_units(attrs)
    return wrapped(text, width) + (f" ({units})" if units else "")


def wrapped(text: str, width: int = WIDTH) -> str:
    """Text without formulas, on as few lines as possible; lines have similar lengths."""
    n_lines = len(textwrap.wrap(text, width))
    while n_lines > 1 and len(textwrap.wrap(text, width - 1)) == n_lines:
        width -= 1
    return as_typed("\n".join(textwrap.wrap(text, width)))


def name_of(array: xr.DataArray, fallback: Hashable = "value") -> str:
    """Long name of a variable; if there is none, the standard name, or else the name."""
    given = (array.attrs.get(kind) for kind in ("long_name", "standard_name"))
    name = next((text for text in given if isinstance(text, str) and text), array.name)
    return str(fallback if name is None else name).replace("_", " ")


def label_of(array: xr.DataArray, fallback: Hashable = "value", width: int = WIDTH) -> str:
    """Name and units of a variable."""
    return with_units(name_of(array, fallback), array.attrs, width)


def width_beside(ax: Axes) -> int:
    """Number of letters per line beside the Axes: at least half of ``WIDTH``, at most ``WIDTH``."""
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    letter = 0.55 * FontProperties(size=rcParams["axes.labelsize"]).get_size_in_points()
    return int(np.clip(height / letter, WIDTH // 2, WIDTH))


def positions(coordinate: xr.DataArray) -> tuple[npt.NDArray[Any], str]:
    """Return the positions of the labels of a coordinate on an axis, and the axis label.

    Lengths of time become hours or days. For dates called ``time`` or ``valid_time``, the axis
    label is empty.

    Raises
    ------
    ImportError
        If dates have a non-standard calendar, but the package nc-time-axis is not installed.
    """
    values = coordinate.to_numpy()
    if values.dtype.kind == "m":
        unit = "d" if not (values % np.timedelta64(1, "D")).astype(np.int64).any() else "h"
        numbers = values / np.timedelta64(1, "D" if unit == "d" else "h")
        return numbers, with_units(name_of(coordinate), {"units": unit}, WIDTH_BELOW)
    if is_date(values):
        if values.dtype == object:
            _require_calendars(values[0])
        plain = coordinate.name in ("time", "valid_time") and "long_name" not in coordinate.attrs
        return values, "" if plain else wrapped(name_of(coordinate), WIDTH_BELOW)
    return values, label_of(coordinate, width=WIDTH_BELOW)


def is_date(values: npt.NDArray[Any]) -> bool:
    """Return whether labels are dates of any calendar."""
    return values.dtype.kind == "M" or bool(
        values.dtype == object and values.size and hasattr(values.flat[0], "dayofyr")
    )


def date_ticks(axis: Axis, values: npt.NDArray[Any]) -> None:
    """Set a few ticks with short dates; dates of non-standard calendars keep their ticks."""
    if values.dtype.kind == "M":
        locator = mdates.AutoDateLocator(minticks=3, maxticks=7)
        axis.set_major_locator(locator)
        axis.set_major_formatter(mdates.ConciseDateFormatter(locator))


def shown_labels(values: npt.NDArray[Any]) -> list[str]:
    """Labels of cases as text, without the time of day if it is the same for all dates."""
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        same = np.unique(values - days).size <= 1
        return [str(v).replace("T", " ") for v in (days if same else values.astype("M8[m]"))]
    if is_date(values):
        same = len({(date.hour, date.minute) for date in values}) <= 1
        return [date.strftime("%Y-%m-%d" if same else "%Y-%m-%d %H:%M") for date in values]
    return [f"{v:g}" if isinstance(v, float) else as_typed(str(v)) for v in values.tolist()]


def shown_relation(p: float) -> str:
    """A p-value as text to put after "p", such as "= 0.03"."""
    text = shown_p(p)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"


def _require_calendars(date: Any) -> None:
    """Raise ImportError unless matplotlib can draw dates of non-standard calendars."""
    try:
        import nc_time_axis  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"dates of the calendar {date.calendar!r} need nc-time-axis: pip install "
            "nc-time-axis, or convert the dates to numpy dates: data.convert_calendar('standard', "
            "use_cftime=False)"
        ) from error


def event_of(data: xr.Dataset) -> str:
    """Text that names the event of a single threshold; empty for several thresholds or none."""
    if "threshold" not in data.coords or data["threshold"].size > 1:
        return ""
    value = data["threshold"]
    return f"more than {value.item():g} {pretty_units(value.attrs)}".rstrip()


def by_threshold(data: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """For each threshold, name of the event and results; without thresholds, one empty name."""
    if "threshold" not in data.dims:
        return [("", data)]
    return [
        (f"> {value.item():g} {pretty_units(value.attrs)}".rstrip(), data.sel(threshold=value))
        for value in data["threshold"]
    ]


def single_labels(array: xr.DataArray) -> list[str]:
    """Scalar coordinates as text, such as a station, a place or a lead, but no dates."""
    told = []
    for name, coordinate in array.coords.items():
        if coordinate.ndim or is_date(coordinate.to_numpy().reshape(-1)):
            continue
        value = coordinate.to_numpy()
        if value.dtype.kind in "OUS":
            told.append(str(value.item()))
        elif value.dtype.kind in "iufm":
            number, units = _number_of(coordinate)
            degrees = units.startswith("°")
            told.append(f"{number}{units}" if degrees else f"{name} {number} {units}".rstrip())
    return told


def range_of_leads(leads: xr.DataArray) -> str:
    """Text with the first and the last lead."""
    if leads.dtype.kind != "m":
        first, last = (f"{leads[i].item():g}" for i in (0, -1))
        return f"{leads.name} {first} to {last} {pretty_units(leads.attrs)}".rstrip()
    first, last = (" ".join(_number_of(leads[i])) for i in (0, -1))
    return f"{leads.name} {first} to {last}"


def _number_of(value: xr.DataArray) -> tuple[str, str]:
    """A number and its units; lengths of time are in whole days, or otherwise in hours."""
    if value.dtype.kind != "m":
        return f"{value.item():g}", pretty_units(value.attrs)
    hours = value.to_numpy() / np.timedelta64(1, "h")
    number, unit = (f"{hours / 24:g}", "day") if hours % 24 == 0 else (f"{hours:g}", "hour")
    return number, unit if number == "1" else f"{unit}s"
