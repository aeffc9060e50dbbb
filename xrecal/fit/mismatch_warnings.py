"""Warnings about forecasts that do not match the hindcast of their model.

Forecasts may be of another place or lead, be far from all training values, be unlike all past
forecasts, or have new labels along pooled dimensions. Each of these four mismatches causes a
warning, not an error, because users may intend it. Values a million times larger than all training
values count as missing, by the rule of :mod:`xrecal.inputs.missing`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.dispatch import to_host
from xrecal.arrays.distributions.missing import LEAST, MILLION, largest_of
from xrecal.chunks.blockwise import on_device
from xrecal.chunks.run import Inputs, Named, run
from xrecal.chunks.warnings import warn
from xrecal.inputs.circular import PERIOD
from xrecal.inputs.dims import text_of
from xrecal.inputs.forms import Form
from xrecal.inputs.identities import ROUNDING, is_angle, names_place
from xrecal.inputs.leads import seconds_of, span_of, unit_of_leads
from xrecal.inputs.metadata import shown_units
from xrecal.inputs.missing import warn_of_absurd, warn_of_customary
from xrecal.inputs.places import like_places
from xrecal.inputs.roles import is_lead

from .cases import largest_known
from .fitted import FittedVariable

SHOWN = 6
"""Largest number of labels in a warning."""

NOVEL = 0.5
"""Novelty above which a forecast counts as novel: unlike past forecasts."""

OFTEN = 0.1
"""Share of novel forecasts above which a warning is issued. Among ordinary forecasts, 2 in 100 are
novel for a fit to 30 cases, and 1 in 1000 for a fit to 300 cases. More forecasts are novel if their
values have heavy tails."""

ALIEN = 0.9
"""Novelty above which even one forecast causes a warning."""

SEEN = "the largest that the model has seen"
"""Words for the known value with which a warning compares new values."""

NewForecast = tuple[Form, FittedVariable]


def warn_of_other_place(forecasts: Iterable[NewForecast], *, name: str = "forecast") -> None:
    """Warn about forecasts with another place or lead than the hindcast of their fit.

    The function compares scalar coordinates of the forecasts and the fit: names of stations and
    sites, latitudes and longitudes, and leads. Variables with equal messages share one warning.
    """
    _warn(_other_place(*one, name=name) for one in forecasts)


def _warn(messages: Iterable[str | None]) -> None:
    """Issue one warning for each different message; ignore None."""
    for message in dict.fromkeys(messages):
        if message is not None:
            warn(message)


def _other_place(form: Form, fitted: FittedVariable, *, name: str) -> str | None:
    """Return a message about different coordinates of forecast and fit; None if they agree."""
    learned = _scalars(fitted.state)
    given = {n: c for part in form.parts.values() for n, c in _scalars(part).items()}
    differ = [n for n in learned if n in given and _differ(n, learned[n], given[n])]
    if not differ:
        return None
    there, here = (
        ", ".join(f"{n} {_shown(n, coords[n])}" for n in differ) for coords in (learned, given)
    )
    drop = repr(differ[0]) if len(differ) == 1 else repr(differ)
    return (
        f"the model was fitted at {there}, but {name} is at {here}: does it belong to the model? "
        f"If so, use {name}.drop_vars({drop}). If not, use a model fitted to a hindcast there"
    )


def _scalars(obj: xr.DataArray | xr.Dataset) -> dict[Hashable, xr.DataArray]:
    """Return the scalar coordinates with a known value in memory."""
    scalars = {n: c for n, c in obj.coords.items() if c.ndim == 0 and c.chunks is None}
    return {n: c for n, c in scalars.items() if not bool(c.isnull())}


def _differ(name: Hashable, a: xr.DataArray, b: xr.DataArray) -> bool:
    """Return whether two coordinates of one name belong to different places or leads."""
    if any(is_lead(name, c) for c in (a, b)):
        return _differ_in_time(a, b)
    if any(is_angle(name, c) for c in (a, b)):
        if not (_are_numbers(a) and _are_numbers(b)):
            return False
        apart = float(a.to_numpy()) - float(b.to_numpy())
        return abs(math.remainder(apart, 360)) > ROUNDING
    if not any(names_place(name, c) for c in (a, b)):
        return False
    return _differ_in_value(a, b)


def _differ_in_time(a: xr.DataArray, b: xr.DataArray) -> bool:
    """Return whether two leads differ; a number without a unit gets the unit of the other lead."""
    units = unit_of_leads(a), unit_of_leads(b)
    if units[0] != units[1] and (None not in units or "timedelta64" in units):
        spans = span_of(a), span_of(b)
        return None not in spans and spans[0] != spans[1]
    return _differ_in_value(a, b)


def _differ_in_value(a: xr.DataArray, b: xr.DataArray) -> bool:
    """Return whether two labels differ: in value if both are numbers, or else in their text."""
    if _are_numbers(a) and _are_numbers(b):
        return bool(a.to_numpy() != b.to_numpy())
    return _text(a) != _text(b)


def warn_of_far_values(forecasts: Iterable[NewForecast]) -> None:
    """Warn about forecasts in memory that are far from all values that their fit has learned from.

    Far means that all forecasts are outside the range of the hindcast's members, at a distance
    larger than the width of this range. The range covers all locations together; for normal
    distributions it is the range of their means. There is no warning for variables on a circle, nor
    for methods that do not store the hindcast, such as EMOS. Lazy forecasts and lazy fits cause no
    warning either, because the function does not compute them.
    """
    for form, fitted in forecasts:
        learned = _learned(fitted)
        if learned is None or learned.chunks is not None or form.loc.chunks is not None:
            continue
        (low, high), (lowest, highest) = _range(learned), _range(form.loc)
        width = high - low
        if width > 0 and (lowest - high > width or low - highest > width):
            units = shown_units(fitted.attrs)
            name = "forecast" if form.name is None else f"{form.name} of the forecast"
            warn(
                f"{name} is between {lowest:.4g} and {highest:.4g}, far from the hindcast that "
                f"the model was fitted on, {low:.4g} to {high:.4g} {units}".rstrip()
                + ": is it in another unit, whatever its attribute units says, or another "
                "variable? Give it in the unit of the hindcast",
            )


def _learned(fitted: FittedVariable) -> xr.DataArray | None:
    """Return the stored members of the hindcast; None without them, or for a circular variable."""
    if fitted.attrs.get(PERIOD) is not None:
        return None
    return fitted.state.get(fitted.members)


def _range(values: xr.DataArray) -> tuple[float, float]:
    """Return the smallest and the largest value; NaN without values."""
    if values.size == 0:
        return math.nan, math.nan
    return float(values.min().data), float(values.max().data)  # values on a GPU need .data


def largest_seen(fitted: FittedVariable) -> xr.DataArray:
    """Return the largest absolute value of members and observations of a fit at each location.

    On a GPU the function does not read the values, and returns zero. The result has no labels.
    """
    names = [name for name in (fitted.members, "observations") if name in fitted.arrays]
    seen = {name: fitted.arrays[name] for name in names}
    cores = {name: [d for d in a.dims if d not in fitted.locations] for name, a in seen.items()}
    given: Inputs = {"seen": {name: (array, cores[name]) for name, array in seen.items()}}
    return run(_Largest(), given, {0: ({}, np.float64)}, what="the largest value that was seen")[0]


class _Largest:
    """Function that returns the largest absolute value (L,) of arrays (L, ...)."""

    on_device = True

    def __call__(self, seen: Named) -> Named:
        return {0: largest_known(*seen.values())}


def warn_of_unseen(forecasts: Iterable[NewForecast]) -> None:
    """Warn about members in memory so far beyond all seen values that they count as missing."""
    for form, fitted in forecasts:
        if isinstance(form.loc.data, np.ndarray):
            name = "forecast" if form.name is None else f"forecast[{form.name!r}]"
            known = without_unseen_values(form.loc, fitted)
            if known.chunks is None:
                found = form.loc.data[np.isnan(known.data) & ~np.isnan(form.loc.data)]
                warn_of_absurd(found, name=name, beside=SEEN)
                warn_of_customary({name: known.data})


def warn_of_unseen_values(observed: xr.DataArray, known: xr.DataArray) -> None:
    """Warn about observations in memory so far beyond seen values that they count as missing."""
    if observed.dims == known.dims:
        given = np.broadcast_to(observed.to_numpy(), known.shape)
        found = given[np.isnan(known.data) & ~np.isnan(given)]
        warn_of_absurd(found[:0], found, name="forecast", beside=SEEN)
    warn_of_customary({"observations": known.data})


def without_unseen_values(values: xr.DataArray, fitted: FittedVariable) -> xr.DataArray:
    """Return members or observations; values far beyond all that a fit has seen become NaN.

    If no value in memory is large, the function returns the values unchanged.
    """
    in_memory = isinstance(values.data, np.ndarray)
    if in_memory and largest_of(values.data[np.newaxis])[0] <= LEAST:
        return values
    if on_device(values):
        return values
    seen = largest_seen(fitted)
    seen = like_places(seen, values, seen.dims, names=("values", "the model"), select=True)
    seen = seen.drop_vars(list(seen.coords))  # spelling of coordinates may differ
    sizes = abs(values)
    absurd = (seen > 0) & (sizes > LEAST) & (sizes < np.inf) & (sizes > MILLION * seen)
    return values.where(~absurd).transpose(*values.dims, ...)


def warn_of_new_labels(forecasts: Iterable[NewForecast], *, name: str = "forecast") -> None:
    """Warn about labels along pooled dimensions that the hindcast did not have.

    Variables with equal messages share one warning. Labels that cannot be compared, such as leads
    in months and in days, cause no warning.
    """
    _warn(
        _on_new(part[d], labels, d, name=name)
        for form, fitted in forecasts
        for d in (fitted.pool.forecast_dims if fitted.pool else ())
        for part in form.parts.values()
        if d in part.coords and part[d].ndim <= 1
        if (labels := _labels_of(fitted, d)) is not None
    )


def _labels_of(fitted: FittedVariable, dim: Hashable) -> xr.DataArray | None:
    """Return the labels of the hindcast along a pooled dimension; None if it had no labels."""
    cases = fitted.state.coords.get(f"calibration_{dim}")
    if cases is None:
        return None
    return xr.DataArray(cases.to_index().unique().to_numpy(), dims=[dim], attrs=cases.attrs)


def _on_new(given: xr.DataArray, learned: xr.DataArray, dim: Hashable, *, name: str) -> str | None:
    """Return a message about new labels of a forecast; None if the hindcast had all labels."""
    given = given.drop_vars(list(given.coords)).expand_dims(dim) if given.ndim == 0 else given
    new = np.flatnonzero(_are_new(given, learned, dim))
    if not new.size:
        return None
    labels, had = (_shown_labels(a, dim) for a in (given.isel({given.dims[0]: new}), learned))
    return (
        f"{name} has labels along {dim!r} that the hindcast of the model did not have, {labels}; "
        f"it had {had}. As cases are pooled over {dim!r}, xrecal recalibrates these forecasts "
        "like all others. If the new labels differ from known ones, select known labels, or fit "
        "with a hindcast that has the new labels"
    )


def _are_new(given: xr.DataArray, learned: xr.DataArray, dim: Hashable) -> npt.NDArray[np.bool_]:
    """Mark labels that the hindcast did not have."""
    nothing = np.zeros(given.size, bool)
    if any(is_lead(dim, labels) for labels in (given, learned)):
        units = unit_of_leads(given), unit_of_leads(learned)
        if units[0] != units[1] and (None not in units or "timedelta64" in units):
            spans = seconds_of(given), seconds_of(learned)
            if spans[0] is None or spans[1] is None:
                return nothing
            return _far_from(spans[0], spans[1]) & _outside(spans[0], spans[1])
    numbers = [labels.dtype.kind in "iuf" for labels in (given, learned)]
    if all(numbers):
        a, b = given.to_numpy(), learned.to_numpy()
        angle = any(is_angle(dim, labels) for labels in (given, learned))
        far = _far_from(a, b, period=360 if angle else None)
        return far & _outside(a, b) if is_lead(dim, given) else far
    if any(numbers):
        return nothing
    texts = set(_texts(learned))
    return np.array([text not in texts for text in _texts(given)], bool)


def _far_from(
    given: npt.NDArray[np.generic], learned: npt.NDArray[np.generic], period: float | None = None
) -> npt.NDArray[np.bool_]:
    """Mark numbers that differ from all known numbers by more than single-precision rounding."""
    a, b = given.astype(np.float64), learned.astype(np.float64)
    if period is not None:
        a, b = np.mod(a, period), np.mod(b, period)
        b = np.concatenate([b - period, b, b + period])
    b = np.sort(b)
    right = np.clip(np.searchsorted(b, a), 1, b.size - 1) if b.size > 1 else np.zeros(a.size, int)
    apart = np.minimum(np.abs(a - b[right]), np.abs(a - b[right - 1]))
    rounding = ROUNDING if period is not None else np.finfo(np.float32).eps * np.abs(a)
    return np.asarray(apart > rounding)


def _outside(
    given: npt.NDArray[np.generic], learned: npt.NDArray[np.generic]
) -> npt.NDArray[np.bool_]:
    """Mark leads outside the range of known leads; do not mark leads between known leads."""
    return np.asarray((given < learned.min()) | (given > learned.max()))


def warn_of_novel(novelty: xr.DataArray, name: Hashable | None) -> None:
    """Warn if more than a tenth of the forecasts in memory are novel, or one is extremely novel."""
    if novelty.chunks is not None:
        return
    values = to_host(novelty.data)
    novel = values > NOVEL
    n, n_novel = np.count_nonzero(~np.isnan(values)), np.count_nonzero(novel)
    if n_novel > OFTEN * n or (values > ALIEN).any():
        of = "" if name is None else f" of {name!r}"
        warn(
            f"{n_novel} of {n} forecasts{of} are unlike all that the model has learned from "
            f"(novelty above {NOVEL:g}, up to {np.nanmax(values):.2g})"
            f"{first_place(novelty.copy(data=novel))}: their recalibrated forecasts come from "
            "climatology or from the errors of other forecasts. Check these forecasts; "
            "the novelty from apply or from model.novelty identifies them",
        )


def first_place(found: xr.DataArray) -> str:
    """Return a text with the labels of the first true value; empty for a scalar."""
    place = np.unravel_index(int(found.data.argmax()), found.shape)
    labels = [
        f"{d} {text_of(found.indexes[d][i]) if d in found.indexes else f'number {i}'}"
        for d, i in zip(found.dims, place, strict=True)
    ]
    return f", the first at {', '.join(labels)}" if labels else ""


def _are_numbers(label: xr.DataArray) -> bool:
    return label.dtype.kind in "iuf"


def _text(label: xr.DataArray) -> str:
    return text_of(label.drop_vars(list(label.coords)).expand_dims("label").to_index()[0])


def _texts(labels: xr.DataArray) -> list[str]:
    return [text_of(label) for label in labels.to_index()]


def _shown(name: Hashable, label: xr.DataArray) -> str:
    """Return a label as text, with its unit if it is a lead."""
    units = label.attrs.get("units", "") if is_lead(name, label) else ""
    return f"{_text(label)} {units}".rstrip()


def _shown_labels(labels: xr.DataArray, dim: Hashable) -> str:
    """Return the first labels as text, with the unit of leads, and the number of all labels."""
    texts = _texts(labels)
    units = str(labels.attrs.get("units", "")) if is_lead(dim, labels) else ""
    first = f"{', '.join(texts[:SHOWN])} {units}".rstrip()
    return first if len(texts) <= SHOWN else f"{first}, ... ({len(texts)} in all)"
