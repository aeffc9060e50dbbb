"""Compare units, and write attributes of results.

All spellings of a unit count as equal; different units are an error. xrecal converts no values,
because users would not notice a wrong guess. Instead the error gives the line of code that converts
the values.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.chunks.texts import quoted

CONVENTIONS = "CF-1.11"
"""CF conventions that issued forecasts follow."""

_SPELLINGS = {
    "K": "kelvin kelvins degk deg_k degreek degree_k degrees_k degrees_kelvin degree_kelvin",
    "degC": "celsius degc deg_c °c ℃ degreec degree_c degrees_c degree_celsius degrees_celsius "
    "deg_celsius",
    "degF": "fahrenheit degf deg_f °f ℉ degreef degree_f degrees_f degree_fahrenheit "
    "degrees_fahrenheit deg_fahrenheit",
    "m": "metre metres meter meters",
    "km": "kilometre kilometres kilometer kilometers",
    "cm": "centimetre centimetres centimeter centimeters",
    "mm": "millimetre millimetres millimeter millimeters",
    "kg": "kilogram kilograms",
    "s": "sec secs second seconds",
    "min": "minute minutes",
    "h": "hr hrs hour hours",
    "d": "day days",
    "Pa": "pascal pascals",
    "hPa": "hpa hectopascal hectopascals mbar millibar millibars mb",
    "kPa": "kpa kilopascal kilopascals",
    "knot": "knots kt kts",
    "degree": "degrees deg arcdegree °",
    "%": "percent pct",
    "": "1 - ~ dimensionless unitless fraction",
}

_ALIASES = {alias: unit for unit, aliases in _SPELLINGS.items() for alias in aliases.split()}

_ALIASES |= {"C": "degC", "F": "degF"}


# unit: (base unit with its exponents, factor); temperature scales are not multiples.
_FACTORS: dict[str, tuple[dict[str, int], float]] = {
    "m": ({"m": 1}, 1.0),
    "km": ({"m": 1}, 1000.0),
    "cm": ({"m": 1}, 0.01),
    "mm": ({"m": 1}, 0.001),
    "s": ({"s": 1}, 1.0),
    "min": ({"s": 1}, 60.0),
    "h": ({"s": 1}, 3600.0),
    "d": ({"s": 1}, 86400.0),
    "knot": ({"m": 1, "s": -1}, 1852.0 / 3600.0),
    "Pa": ({"Pa": 1}, 1.0),
    "hPa": ({"Pa": 1}, 100.0),
    "kPa": ({"Pa": 1}, 1000.0),
    "%": ({}, 0.01),
}

_TEMPERATURE: dict[tuple[str, ...], str] = {
    ("degC", "K"): "({} + 273.15)",
    ("K", "degC"): "({} - 273.15)",
    ("degC", "degF"): "({} * 1.8 + 32)",
    ("degF", "degC"): "(({} - 32) / 1.8)",
    ("K", "degF"): "(({} - 273.15) * 1.8 + 32)",
    ("degF", "K"): "(({} - 32) / 1.8 + 273.15)",
}

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")

_POWER = re.compile(r"(?P<name>[A-Za-z_%°℃℉]+)(?P<exponent>[+-]?\d+)?")

VALID_TIME = "valid_time"
"""Name of coordinates with valid times; their CF standard name is ``time``."""

OF_CASES = "calibration_dim"
"""Attribute of issued forecasts that names the case dimension, if no rule recognises it."""


def check_units(name_a: str, units_a: Any, name_b: str, units_b: Any) -> str | None:
    """Check that the units of two inputs agree; return a note if one of them is missing.

    Parameters
    ----------
    name_a, name_b : str
        Names of the inputs in messages.
    units_a, units_b
        `units` attributes of the inputs, None if missing; a value that is not text, such as the
        number 1, is converted to text.

    Returns
    -------
    str or None
        If exactly one unit is missing, a note that the other unit is assumed; else None.

    Raises
    ------
    ValueError
        If units differ. The message has the code that converts the second input, unless this code
        is unknown.
    """
    if units_a is None or units_b is None:
        if units_a is None and units_b is None:
            return None
        missing, unit = (name_a, units_b) if units_a is None else (name_b, units_a)
        return f"units of {missing} not stated, taken as {unit}"
    units_a, units_b = str(units_a), str(units_b)
    if units_a == units_b or same_units(units_a, units_b):
        return None
    expression = _conversion(units_a, name_b, units_b)
    remedy: str
    if expression is None:
        remedy = "convert one of them so that both have the same units attribute"
    else:
        code = f"{name_b} = {expression}.assign_attrs(units={units_a!r})"
        remedy = Advice(
            "if the values are converted already, correct the attribute units alone; otherwise "
            "convert first: ",
            Typed("units", (name_b, units_a), code),
        )
    stated = [
        f"{name} {'are' if name.endswith('s') else 'is'} in {units.strip() or 'no unit'}"
        for name, units in ((name_a, units_a), (name_b, units_b))
    ]
    raise ValueError(Advice(f"{stated[0]} but {stated[1]}; ", remedy))


def same_units(a: str, b: str) -> bool:
    """Return whether two `units` attributes name the same unit.

    Parameters
    ----------
    a, b : str
        Two attributes. For example, "K" equals "kelvin", "mm/day" equals "kg m**-2 d-1" (of water),
        and "1" equals "".

    Returns
    -------
    bool
        False if the units differ, or if a spelling is unknown and the strings differ.
    """
    return _parse(a) == _parse(b)


def shown_units(attrs: Mapping[Any, Any]) -> str:
    """Return the units as text to print after a number; empty for a dimensionless variable."""
    units = str(attrs.get("units", "1"))
    return "" if same_units(units, "1") else quoted(units)


def standard_name_of(coordinate: xr.DataArray | xr.Variable) -> str | None:
    """Return the CF standard name of a coordinate; None if it is missing or not text."""
    name = coordinate.attrs.get("standard_name")
    return name if isinstance(name, str) else None


class Mark(NamedTuple):
    """CF standard names, units, and names in lower case; each identifies a kind of coordinate."""

    standard_names: tuple[str, ...]
    units: tuple[str, ...]
    names: tuple[str, ...]

    def fits(self, name: Hashable, coordinate: xr.DataArray) -> bool:
        """Return whether the CF standard name, units or name of a coordinate show this kind."""
        return (
            standard_name_of(coordinate) in self.standard_names
            or str(coordinate.attrs.get("units")) in self.units
            or str(name).lower() in self.names
        )


LATITUDE = Mark(
    ("latitude",), ("degrees_north", "degree_north"), ("lat", "latitude", "nav_lat", "xlat")
)
LONGITUDE = Mark(
    ("longitude",), ("degrees_east", "degree_east"), ("lon", "longitude", "nav_lon", "xlong")
)
HEIGHT = Mark(
    ("height", "altitude", "surface_altitude", "height_above_mean_sea_level"),
    (),
    ("height", "altitude", "elevation", "orography"),
)


def _parse(units: str) -> dict[str, int]:
    """Split units into names, all in one spelling, with exponents; unknown names stay."""
    text = units.replace("(0 - 1)", "1")  # the spelling of ECMWF for a fraction
    text = text.translate(_SUPERSCRIPTS).replace("**", "").replace("^", "")
    text = re.sub(r"\bdeg(?:rees?)?\s+(?=[CFK]\b)", "deg", text)  # deg C
    text = re.sub(r"(?<=\w)\s*[.*·]\s*(?=[A-Za-z])", " ", text)
    text = re.sub(r"\s*/\s*", " /", text)
    powers: dict[str, int] = {}
    for token in text.split():
        sign, word = (-1, token[1:]) if token.startswith("/") else (1, token)
        match = _POWER.fullmatch(word)
        name, exponent = (match["name"], match["exponent"]) if match else (word, None)
        name = _ALIASES.get(name, _ALIASES.get(name.lower(), name))
        if name:  # other parts are dimensionless
            powers[name] = powers.get(name, 0) + sign * int(exponent or 1)
    if powers.get("kg") == 1 and powers.get("m") == -2:  # water: 1 kg m-2 is 1 mm
        del powers["kg"], powers["m"]
        powers["mm"] = powers.get("mm", 0) + 1
    return {name: power for name, power in powers.items() if power}


def _conversion(a: str, name_b: str, b: str) -> str | None:
    """Return the code that converts `name_b` from unit b to unit a; None if it is unknown."""
    names_a, names_b = _parse(a), _parse(b)
    if len(names_a) == len(names_b) == 1:
        scale = _TEMPERATURE.get((*names_b, *names_a))
        if scale is not None and {*names_a.values(), *names_b.values()} == {1}:
            return scale.format(name_b)
    factor = _factor(a, b)
    if factor is None:
        return None
    multiply, divide = f"{factor:.6g}", f"{1 / factor:.6g}"
    if len(multiply) < len(divide) or (len(multiply) == len(divide) and factor >= 1):
        return f"({name_b} * {multiply})"
    return f"({name_b} / {divide})"


def _factor(a: str, b: str) -> float | None:
    """Return the factor that converts values from unit b to unit a; None if it is unknown."""
    dimensions: list[dict[str, int]] = []
    factor = 1.0
    for units, direction in ((b, 1), (a, -1)):
        total: dict[str, int] = {}
        for name, power in _parse(units).items():
            base, size = _FACTORS.get(name, ({name: 1}, 1.0))
            factor *= size ** (direction * power)
            for dimension, exponent in base.items():
                total[dimension] = total.get(dimension, 0) + exponent * power
        dimensions.append({name: power for name, power in total.items() if power})
    return factor if dimensions[0] == dimensions[1] else None


def describing(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a variable that also describe its mean or another statistic."""
    return {name: value for name, value in attrs.items() if name != "ancillary_variables"}


def probability_attributes(attrs: Mapping[Any, Any], event: str) -> dict[str, Any]:
    """Return the attributes of the probability of an event: long name, unit, and old history.

    ``event`` follows the name of the variable in the long name.
    """
    name = attrs.get("long_name", "the variable")
    kept = {key: value for key, value in attrs.items() if key == "history"}
    return {"long_name": f"probability that {name} {event}", "units": "1", **kept}


def history_line(attrs: dict[str, Any], what: str) -> dict[str, Any]:
    """Return attributes after adding a line to ``history``."""
    before = str(attrs.get("history", ""))
    return {**attrs, "history": f"{before}\nxrecal: {what}".lstrip()}


def with_conventions(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the attributes of an issued Dataset, including the CF conventions."""
    given = str(attrs.get("Conventions", ""))
    if "CF-" in given:
        return dict(attrs)
    return {**attrs, "Conventions": f"{CONVENTIONS}, {given}" if given else CONVENTIONS}


def joined(*remarks: str | None) -> str:
    """Join remarks to one text, each remark once; empty without remarks."""
    return "; ".join(dict.fromkeys(remark for remark in remarks if remark))


def history_only(attrs: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """Return only ``history``, with a line added, for results that no other attribute fits."""
    return history_line({name: value for name, value in attrs.items() if name == "history"}, what)
