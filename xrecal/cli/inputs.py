"""Inputs of a command: files and stores, their variables, and the blocks they are read in."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import xarray as xr

from xrecal.inputs.forms import Form, read_forms
from xrecal.inputs.pool import PoolOver
from xrecal.inputs.roles import CALIBRATION, find_dim
from xrecal.storage.paths import local_path
from xrecal.storage.storage import block_sizes, format_of_finished, open_data
from xrecal.storage.stored import MODEL

Blocks: TypeAlias = dict[Hashable, int]
"""Sizes of blocks of locations."""


@dataclass(frozen=True)
class Selection:
    """Which variables, dimensions and blocks of the inputs."""

    chunks: Mapping[str, int]
    variable: str | None = None
    observed_variable: str | None = None
    dim: str | None = None
    member_dim: str | None = None


@dataclass(frozen=True)
class Source:
    """A file or store that is read from."""

    path: Path
    name: str
    """Name in messages, such as hindcast."""

    def open(self, chunks: Blocks | None = None) -> xr.Dataset:
        """Its variables, lazily; with ``chunks`` as Dask arrays, whole along other dimensions.

        Raises
        ------
        FileNotFoundError
            If there is nothing, or only what an interrupted run left.
        ValueError
            If it cannot be read, is unfinished, lacks chunks or is a model, or needs code to be
            decoded that the file may bring along.
        """
        dataset = open_data(self.path, f"{self.name} {self.path}")
        if MODEL in dataset.attrs:
            raise ValueError(f"{self.name} {self.path} is a fitted model; give a file of data")
        if chunks is not None:
            dataset = dataset.chunk({d: chunks.get(d, -1) for d in dataset.dims})
            dataset = dataset.assign_coords({n: c.load() for n, c in dataset.coords.items()})
        return _by_name(dataset) if self.path.is_dir() else dataset

    def fingerprint(self) -> dict[str, Any]:
        """Numbers that change when the file does: path, number of files, bytes, newest date.

        To be taken before the file is opened: what changes later is then noticed.
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
    """Variables by name: a store may list them in another order each time, results must not."""
    coords = {name: dataset.coords[name] for name in sorted(dataset.coords, key=str)}
    variables = dataset[sorted(dataset.data_vars, key=str)]
    return variables.drop_vars(coords).assign_coords(coords)


def source(path: str, name: str) -> Source:
    """An input by its path."""
    return Source(local_path(path, name=name), name)


def forecast_variables(
    dataset: xr.Dataset, variable: str | None, member_dim: str | None, name: str
) -> tuple[xr.Dataset, dict[Hashable, Form]]:
    """The forecasts of a Dataset, or the named one of them, with the parts of their forms."""
    if variable is not None:
        forms = read_forms(dataset, member_dim, name=name)
        if variable not in forms:
            raise ValueError(f"{name} has no forecast {variable!r}; it has {list(forms)}")
        parts = {part.name for part in forms[variable].parts.values()}
        dataset = dataset[[v for v in dataset.data_vars if v in parts]]
    forms = read_forms(dataset, member_dim, name=name)
    parts = {part.name for form in forms.values() for part in form.parts.values()}
    return dataset[[v for v in dataset.data_vars if v in parts]], forms


def observed_variables(
    dataset: xr.Dataset, variable: str | None, forms: Mapping[Hashable, Form]
) -> xr.DataArray | xr.Dataset:
    """Observations of the forecasts: the named variable, the only one, or those of equal names."""
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
                    f"{name!r} of the observations has members, as forecasts do; name what "
                    f"verified: --variable {name} --observed-variable NAME, one of {others}"
                )
        return found
    if len(forms) == len(dataset.data_vars) == 1:
        return next(iter(dataset.data_vars.values()))
    raise ValueError(
        f"forecasts are {list(forms)}, observations {list(dataset.data_vars)}; name the pair: "
        "--variable and --observed-variable"
    )


def pool_dims(pool: PoolOver) -> tuple[Hashable, ...]:
    """Dimensions along which all positions share a fit, of an option."""
    return pool if isinstance(pool, tuple) else ()


def location_blocks(
    forms: Mapping[Hashable, Form],
    dim: Hashable | None,
    asked: Mapping[str, int],
    whole: Sequence[Hashable] = (),
) -> Blocks:
    """Sizes of blocks of locations: as asked for, or of about 16 MiB of forecasts.

    Blocks have all positions along the dimensions ``whole``.
    """
    sizes: Blocks = {}
    n_bytes = 0
    for form in forms.values():
        loc = form.broadcast().loc if form.kind == "normal" else form.loc
        case = find_dim(
            loc.isel({form.member_dim: 0}, drop=True), CALIBRATION, dim, name="forecast"
        )
        of_parts = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
        sizes |= {d: n for d, n in of_parts.items() if d not in (case, form.member_dim, *whole)}
        n_bytes += sum(part.nbytes for part in form.parts.values())
    unknown = [d for d in asked if d not in sizes]
    if unknown:
        raise ValueError(
            f"--chunks names {unknown[0]!r}, which is pooled, so that blocks hold all of it; leave "
            "it out"
            if unknown[0] in whole
            else f"--chunks names {unknown[0]!r}, which is no dimension of locations; these are "
            f"{list(map(str, sizes))}"
        )
    blocks = block_sizes(sizes, n_bytes // max(math.prod(sizes.values()), 1))
    return {d: asked.get(str(d), size) for d, size in (sizes if asked else blocks).items()}


@dataclass(frozen=True)
class Pair:
    """Forecasts and what verified, and which of their variables and dimensions to take."""

    forecasts: Source
    observations: Source
    chosen: Selection

    def open(
        self, whole: Sequence[Hashable] = ()
    ) -> tuple[xr.Dataset, xr.DataArray | xr.Dataset, Blocks]:
        """Forecasts and what verified, lazily in blocks of locations; sizes of these blocks.

        Blocks have all positions along the dimensions ``whole``.
        """

        def selected(dataset: xr.Dataset) -> tuple[xr.Dataset, dict[Hashable, Form]]:
            of = self.chosen
            return forecast_variables(dataset, of.variable, of.member_dim, self.forecasts.name)

        _, forms = selected(self.forecasts.open())
        blocks = location_blocks(forms, self.chosen.dim, self.chosen.chunks, whole)
        forecasts, forms = selected(self.forecasts.open(blocks))
        observations = self.observations.open(blocks)
        observed = observed_variables(observations, self.chosen.observed_variable, forms)
        return forecasts, observed, blocks
