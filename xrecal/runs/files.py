"""Inputs of a run: files and stores, their variables, and blocks (parts read at one time)."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from xrecal.arrays.advice import Advice, Typed
from xrecal.fit.fitted import chunks_of
from xrecal.fit.select_fits import explicit_member_dim
from xrecal.inputs.forms import Form, Labelled, read_forms
from xrecal.inputs.roles import CALIBRATION, Roles
from xrecal.model import Recalibrator
from xrecal.storage.gathered import gathered
from xrecal.storage.storage import block_sizes, format_of_finished, open_data
from xrecal.storage.stored import MODEL

Blocks: TypeAlias = dict[Hashable, int]
"""Sizes of the blocks of locations, by dimension."""


@dataclass(frozen=True)
class Source:
    """A file or store to read from."""

    path: Path
    name: str
    """Name of the input in messages, such as hindcast."""

    def open(self) -> xr.Dataset:
        """Open the file: read labels now, and values when they are needed.

        Raises
        ------
        FileNotFoundError
            If nothing is at the path, or only the unfinished result of an interrupted run.
        ValueError
            If the file cannot be read, is unfinished, lacks chunks or is a model, or if decoding
            could run code from the file.
        """
        dataset = open_data(self.path, f"{self.name} {self.path}")
        if MODEL in dataset.attrs:
            raise ValueError(f"{self.name} {self.path} is a fitted model; give a file of data")
        return _by_name(dataset) if self.path.is_dir() else dataset

    def fingerprint(self) -> dict[str, Any]:
        """Return path, number of files, bytes and newest date, which show if the file has changed.

        A run takes this fingerprint before it opens the file, so that it notices later changes.
        """
        format_of_finished(self.path)
        stats = [self.path.stat()]
        if self.path.is_dir():
            stats += [
                (Path(folder) / file).stat()
                for folder, _, files in os.walk(self.path)
                for file in files
            ]
        return {
            "path": str(self.path.resolve()),
            "files": len(stats),
            "bytes": sum(one.st_size for one in stats),
            "changed": max(one.st_mtime_ns for one in stats),
        }


def _by_name(dataset: xr.Dataset) -> xr.Dataset:
    """Sort variables by name, because a store may list them in another order each time."""
    coords = {name: dataset.coords[name] for name in sorted(dataset.coords, key=str)}
    variables = dataset[sorted(dataset.data_vars, key=str)]
    return variables.drop_vars(coords).assign_coords(coords)


def in_blocks_of(dataset: xr.Dataset, blocks: Mapping[Hashable, int]) -> xr.Dataset:
    """Convert variables to Dask arrays in blocks, and read coordinates into memory.

    Along dimensions that are not in ``blocks``, the arrays are not divided.
    """
    dataset = dataset.chunk({d: blocks.get(d, -1) for d in dataset.dims})
    return dataset.assign_coords({n: c.load() for n, c in dataset.coords.items()})


def forecast_variables(
    dataset: xr.Dataset, variable: str | None, member_dim: Hashable | None, name: str
) -> tuple[xr.Dataset, dict[Hashable, Form]]:
    """Return the forecasts of a Dataset, or only ``variable``, and the form of each forecast."""
    forms = read_forms(dataset, member_dim, name=name)
    if variable is not None:
        if variable not in forms:
            raise ValueError(f"{name} has no forecast {variable!r}; it has {list(forms)}")
        dataset = _parts_of(dataset, {variable: forms[variable]})
        forms = read_forms(dataset, member_dim, name=name)
    return _parts_of(dataset, forms), forms


def _parts_of(dataset: xr.Dataset, forms: Mapping[Hashable, Form]) -> xr.Dataset:
    parts = {part.name for form in forms.values() for part in form.parts.values()}
    return dataset[[v for v in dataset.data_vars if v in parts]]


def forecasts_for(model: Recalibrator, dataset: xr.Dataset, variable: str | None) -> xr.Dataset:
    """Return ``variable`` if it is given, else the variables of the model, else all variables."""
    given, forms = forecast_variables(
        dataset, variable, explicit_member_dim(model, dataset), "forecast"
    )
    wanted = {*model.variables, *(n for v in model.variables.values() for n in v.jointly)}
    if variable is None and wanted < set(forms):
        given = _parts_of(given, {name: forms[name] for name in wanted})
    return given


def observed_variables(
    dataset: xr.Dataset, variable: str | None, forms: Mapping[Hashable, Form]
) -> xr.DataArray | xr.Dataset:
    """Return ``variable`` if given, else variables named like forecasts, else the only variable."""
    if variable is not None:
        if variable not in dataset.data_vars:
            raise ValueError(
                f"observations have no variable {variable!r}; they have {list(dataset.data_vars)}"
            )
        return dataset[variable]
    if all(name in dataset.data_vars for name in forms):
        found = dataset[list(forms)]
        for name, form in forms.items():
            others = [v for v in dataset.data_vars if form.member_dim not in dataset[v].dims]
            if form.member_dim in found[name].dims and others:
                raise ValueError(
                    Advice(
                        f"{name!r} of the observations has members, as forecasts do; name the "
                        "observed variable: ",
                        Typed("variable", name),
                        " ",
                        Typed("observed_variable", ...),
                        f", one of {others}",
                    )
                )
        return found
    if len(forms) == len(dataset.data_vars) == 1:
        return next(iter(dataset.data_vars.values()))
    raise ValueError(
        Advice(
            f"forecasts are {list(forms)}, observations {list(dataset.data_vars)}; name the pair: ",
            Typed("variable"),
            " and ",
            Typed("observed_variable"),
        )
    )


def covariates_in(dataset: xr.Dataset) -> dict[str, Labelled]:
    """Return covariates by name.

    A covariate is one variable, or several variables of one forecast, such as ``NAME_loc`` and
    ``NAME_scale``.
    """
    several: dict[str, Labelled] = {}
    used: set[Hashable] = set()
    if any(Roles(v).members or str(name).endswith("_loc") for name, v in dataset.items()):
        for name, form in read_forms(dataset, name="covariates").items():
            parts = [v for v in dataset.data_vars if v in {p.name for p in form.parts.values()}]
            if len(parts) > 1:
                several[str(name)] = dataset[parts]
                used |= {*parts}
    return {str(v): array for v, array in dataset.data_vars.items() if v not in used} | several


def location_blocks(
    forms: Mapping[Hashable, Form],
    dim: Hashable | None,
    asked: Mapping[str, int],
    whole: Sequence[Hashable] = (),
) -> Blocks:
    """Return the sizes of blocks of locations: as ``asked``, else for about 16 MiB per block.

    Blocks have all positions along the dimensions ``whole``.
    """
    sizes: Blocks = {}
    n_bytes = 0
    for form in forms.values():
        loc = form.broadcast().loc if form.kind == "normal" else form.loc
        one = loc.isel({form.member_dim: 0}, drop=True)
        case = Roles(one).find(CALIBRATION, dim, name="forecast")
        of_parts = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
        sizes |= {d: n for d, n in of_parts.items() if d not in (case, form.member_dim, *whole)}
        n_bytes += sum(part.nbytes for part in form.parts.values())
    for name in asked:
        if name not in sizes:
            why = (
                "is pooled, so each block has all of it; leave it out"
                if name in whole
                else f"is not a dimension of locations; these are {list(map(str, sizes))}"
            )
            raise ValueError(Advice(Typed("chunks"), f" names {name!r}, which {why}"))
    blocks = block_sizes(sizes, n_bytes // max(math.prod(sizes.values()), 1))
    return {d: asked.get(str(d), size) for d, size in (sizes if asked else blocks).items()}


def blocks_of_model(model: Recalibrator, asked: Mapping[str, int]) -> Blocks:
    """Return the sizes of blocks: as ``asked``, else as stored, else for about 16 MiB per block."""
    sizes: Blocks = {}
    cut: Blocks = {}
    n_bytes = 0
    for fitted in model.variables.values():
        sizes |= {d: fitted.state.sizes[d] for d in fitted.locations}
        cut |= {d: chunks_of(fitted.state)[d][0] for d in fitted.locations}
        n_bytes += fitted.state.nbytes
    if asked:
        return sizes | dict(asked.items())
    each = n_bytes // max(math.prod(sizes.values()), 1)
    return cut if cut != sizes else block_sizes(sizes, each)


def for_files(dataset: xr.Dataset) -> xr.Dataset:
    """Drop the encodings of inputs; give text labels a type that all formats support."""
    dataset = gathered(dataset)
    text = {n: c.astype(object) for n, c in dataset.coords.items() if c.dtype.kind == "U"}
    return dataset.assign_coords(text).drop_encoding()
