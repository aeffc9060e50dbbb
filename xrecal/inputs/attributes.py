"""Metadata of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .circular import PERIOD
from .units import same_units

if TYPE_CHECKING:
    from .forms import Form


def describing(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes that still hold for a statistic, which has no ancillary variables."""
    return {name: value for name, value in attrs.items() if name != "ancillary_variables"}


def probability_attributes(attrs: Mapping[Any, Any], event: str) -> dict[str, Any]:
    """Attributes of the probability of an event of a variable, which has another quantity and unit.

    ``event`` goes on after the name of the variable. The history stays.
    """
    name = attrs.get("long_name", "the variable")
    kept = {key: value for key, value in attrs.items() if key == "history"}
    return {"long_name": f"probability that {name} {event}", "units": "1", **kept}


def with_cell_method(attrs: Mapping[Any, Any], form: Form, method: str) -> dict[str, Any]:
    """Attributes of a moment over the members, with the CF cell method added.

    Forms without members have it over ``realization``, a standard name, as components and levels
    are no axes of the variable. A spread of directions is no direction.
    """
    if method == "standard_deviation":
        attrs = {name: value for name, value in attrs.items() if name != PERIOD}
    over = form.member_dim if form.kind in ("ensemble", "weighted") else "realization"
    before = str(attrs.get("cell_methods", ""))
    return {**attrs, "cell_methods": f"{before} {over}: {method}".lstrip()}


def history_line(attrs: dict[str, Any], what: str) -> dict[str, Any]:
    """Attributes with a line added to ``history``."""
    before = str(attrs.get("history", ""))
    return {**attrs, "history": f"{before}\nxrecal: {what}".lstrip()}


def history_only(attrs: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """``history`` with a line added, for results that the other attributes do not describe."""
    return history_line({name: value for name, value in attrs.items() if name == "history"}, what)


def shown_units(attrs: Mapping[Any, Any]) -> str:
    """Units to print behind a number; nothing for a dimensionless variable."""
    units = str(attrs.get("units", "1"))
    return "" if same_units(units, "1") else units
