"""Places and leads of forecasts that a pooled fit has not learned from: a warning that says which.

Where each label has a fit of its own an unknown one is an error; a pooled fit takes any.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.warnings import users_stacklevel
from xrecal.inputs.labels import text_of
from xrecal.inputs.leads import seconds_of, unit_of_leads
from xrecal.inputs.pool import HINDCAST_LABELS

from .fitted import FittedVariable
from .mismatch_warnings import ROUNDING, NewForecast, is_angle, is_lead

SHOWN = 6
"""Labels of which a warning tells."""


def warn_of_new_labels(forecasts: Iterable[NewForecast], *, name: str = "forecast") -> None:
    """Warn of labels along pooled dimensions that the hindcast did not have.

    One warning for each dimension, whatever the number of variables. Nothing is told of labels that
    cannot be compared, such as leads in months and in days.
    """
    told = {
        _told(part[d], known, d, name=name): None
        for form, fitted in forecasts
        for d in (fitted.pool.forecast_dims if fitted.pool else ())
        for part in form.parts.values()
        if d in part.coords and part[d].ndim <= 1
        if (known := _labels_of(fitted, d)) is not None
    }
    for one in told:
        if one is not None:
            warnings.warn(one, stacklevel=users_stacklevel())


def _labels_of(fitted: FittedVariable, dim: Hashable) -> xr.DataArray | None:
    """Labels of the hindcast along a pooled dimension; None if the model does not know them all."""
    assert fitted.pool is not None
    cases = fitted.state.coords.get(f"calibration_{dim}")
    if cases is None:
        return None
    attrs = {k: v for k, v in cases.attrs.items() if k != HINDCAST_LABELS}
    if HINDCAST_LABELS in cases.attrs:
        labels = np.asarray(cases.attrs[HINDCAST_LABELS])
    elif len(fitted.pool.taken) == math.prod(fitted.pool.sizes):
        labels = cases.to_index().unique().to_numpy()
    else:
        return None
    return xr.DataArray(labels, dims=[dim], attrs=attrs)


def _told(given: xr.DataArray, known: xr.DataArray, dim: Hashable, *, name: str) -> str | None:
    """What is told of the labels of a forecast; None if the hindcast had all of them."""
    given = given.drop_vars(list(given.coords)).expand_dims(dim) if given.ndim == 0 else given
    new = np.flatnonzero(_are_new(given, known, dim))
    if not new.size:
        return None
    labels, had = (_shown(a, dim) for a in (given.isel({given.dims[0]: new}), known))
    return (
        f"{name} has labels along {dim!r} that the hindcast of the model did not have, {labels}; "
        f"it had {had}. As cases are pooled over {dim!r}, these forecasts are recalibrated as the "
        "others: select known labels, or fit with a hindcast that has them, if they differ"
    )


def _are_new(given: xr.DataArray, known: xr.DataArray, dim: Hashable) -> npt.NDArray[np.bool_]:
    """Which labels the hindcast did not have."""
    nothing = np.zeros(given.size, bool)
    if any(is_lead(dim, labels) for labels in (given, known)):
        units = unit_of_leads(given), unit_of_leads(known)
        if units[0] != units[1] and (None not in units or "timedelta64" in units):
            spans = seconds_of(given), seconds_of(known)
            if spans[0] is None or spans[1] is None:
                return nothing
            return _far_from(spans[0], spans[1]) & _outside(spans[0], spans[1])
    numbers = [labels.dtype.kind in "iuf" for labels in (given, known)]
    if all(numbers):
        a, b = given.to_numpy(), known.to_numpy()
        angle = any(is_angle(dim, labels) for labels in (given, known))
        far = _far_from(a, b, period=360 if angle else None)
        return far & _outside(a, b) if is_lead(dim, given) else far
    if any(numbers):
        return nothing
    texts = set(_texts(known))
    return np.array([text not in texts for text in _texts(given)], bool)


def _far_from(
    given: npt.NDArray[np.generic], known: npt.NDArray[np.generic], period: float | None = None
) -> npt.NDArray[np.bool_]:
    """Which numbers have none of the known ones within the rounding of single precision."""
    a, b = given.astype(np.float64), known.astype(np.float64)
    if period is not None:
        a, b = np.mod(a, period), np.mod(b, period)
        b = np.concatenate([b - period, b, b + period])
    b = np.sort(b)
    right = np.clip(np.searchsorted(b, a), 1, b.size - 1) if b.size > 1 else np.zeros(a.size, int)
    apart = np.minimum(np.abs(a - b[right]), np.abs(a - b[right - 1]))
    rounding = ROUNDING if period is not None else np.finfo(np.float32).eps * np.abs(a)
    return np.asarray(apart > rounding)


def _outside(
    given: npt.NDArray[np.generic], known: npt.NDArray[np.generic]
) -> npt.NDArray[np.bool_]:
    """Which leads are not between the known ones; others a fit may well be asked for."""
    return np.asarray((given < known.min()) | (given > known.max()))


def _texts(labels: xr.DataArray) -> list[str]:
    return [text_of(label) for label in labels.to_index()]


def _shown(labels: xr.DataArray, dim: Hashable) -> str:
    """The first labels, and how many there are of more, with the unit of leads."""
    texts = _texts(labels)
    units = str(labels.attrs.get("units", "")) if is_lead(dim, labels) else ""
    first = f"{', '.join(texts[:SHOWN])} {units}".rstrip()
    return first if len(texts) <= SHOWN else f"{first}, ... ({len(texts)} in all)"
