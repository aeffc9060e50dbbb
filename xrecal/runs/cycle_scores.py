"""Scores of the verified forecasts of a daily cycle."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import xarray as xr

from xrecal.diagnostics import crps
from xrecal.inputs.covariates import Given
from xrecal.inputs.identities import is_angle, naming
from xrecal.inputs.places import like_places
from xrecal.model import Recalibrator
from xrecal.products.scores import verify

from .files import for_files

NAMES = ("forecasts", "scores of former runs")
"""Names, in messages, of two datasets whose places must match."""


def scored(
    model: Recalibrator,
    forecast: xr.Dataset,
    observed: Mapping[Hashable, Any],
    here: Mapping[Hashable, xr.DataArray],
    valid: Mapping[Hashable, xr.DataArray],
    seed: int,
    covariates: Given = None,
) -> xr.Dataset:
    """Return scores of a start's forecast: CRPS, CRPS of the raw forecast, PIT values, medians.

    The result also has observations and valid times. ``observed`` has the observations, with valid
    times to pair them; ``here`` has the same observations without valid times. ``valid`` has the
    valid times.
    """
    made = verify(model, forecast, observed, seed, covariates)
    made["crps_raw"] = crps(forecast, observed)
    piece = {}
    for name, array in here.items():
        for what, values in made.items():
            piece[f"{name}_{what}"] = values[name]
        ordered = [d for d in piece[f"{name}_crps"].dims if d in array.dims]
        piece[f"{name}_observation"] = array.transpose(*ordered)
        piece[f"{name}_valid_time"] = valid[name].assign_attrs(long_name="valid time")
    whole = xr.Dataset({n: _with_places(v) for n, v in piece.items()})
    return for_files(whole.assign_attrs(title="scores of forecasts that have verified"))


def _with_places(values: xr.DataArray) -> xr.DataArray:
    """Keep only the labels of dimensions, and the names and positions of places."""
    kept = {n for d in values.dims for n in naming(values, d)}
    kept |= {n for n, c in values.coords.items() if c.ndim == 2 and is_angle(n, c)}
    return values.drop_vars([n for n in values.coords if n not in kept])


def joined(old: xr.Dataset | None, pieces: Sequence[xr.Dataset], dim: Hashable) -> xr.Dataset:
    """Join old and new scores; new scores replace old scores of the same starts."""
    options: dict[str, Any] = {"coords": "minimal", "compat": "override"}
    new = xr.concat(pieces, dim, **options, join="exact")
    if old is not None:
        rest = old.isel({dim: ~old.indexes[dim].isin(new.indexes[dim])})
        rest = like_places(rest, new, [d for d in new.dims if d != dim], names=NAMES)
        new = xr.concat([rest, new], dim, **options, join="outer", combine_attrs="override")
    return new.sortby(dim).drop_encoding()


def new_ones(
    old: xr.Dataset | None, name: Hashable, observed: xr.DataArray, dim: Hashable
) -> xr.DataArray:
    """Mark observations that have no score, or a score computed from another value."""
    there = observed.notnull()
    label = f"{name}_observation"
    starts = observed.indexes[dim]
    if old is None or label not in old or not starts.isin(old.indexes[dim]).all():
        return there
    places = [d for d in observed.dims if d != dim]
    scored = like_places(old[label].sel({dim: starts}), observed, places, names=NAMES)
    scored = scored.transpose(*observed.dims)
    differs: xr.DataArray = there & (observed.to_numpy() != scored.to_numpy())
    return differs


def digest_of(dataset: xr.Dataset, settings: str) -> str:
    """Compute one hash of the values of a Dataset and of settings."""
    digest = blake2b(settings.encode(), digest_size=16)
    for name in sorted(dataset.variables, key=str):
        digest.update(str(name).encode())
        digest.update(np.ascontiguousarray(dataset[name].to_numpy()).tobytes())
    return digest.hexdigest()
