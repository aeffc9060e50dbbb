"""Runs on files: read inputs and write results in blocks, which are parts of the locations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from xrecal.fit.news import news_of
from xrecal.fit.select_fits import explicit_member_dim
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import read_forms
from xrecal.inputs.pairing import Observations, in_order, pair_cases, pair_variables
from xrecal.inputs.pool import PoolOver
from xrecal.methods import Method
from xrecal.methods.call_errors import explained
from xrecal.model import Recalibrator, open_recalibrator
from xrecal.plan.plans import Plan, check_plan
from xrecal.products.recalibrated import Missing
from xrecal.storage.encoding import to_plain
from xrecal.storage.paths import local_path
from xrecal.storage.settings import encode
from xrecal.storage.storage import in_blocks, open_data
from xrecal.storage.stored import VERSION, to_dataset

from .blocks import blocks_of
from .files import (
    Blocks,
    Source,
    blocks_of_model,
    covariates_in,
    for_files,
    forecast_variables,
    forecasts_for,
    in_blocks_of,
    location_blocks,
    observed_variables,
)
from .issued import Product
from .target import Target, Written, write_in_blocks

Location: TypeAlias = str | PathLike[str]


class Run:
    """Work on files that proceeds block by block, and can continue after an interruption.

    A run opens inputs lazily, in blocks of locations. :meth:`write` computes a result one block at
    a time. The result appears at its path when it is complete. After a kill or a full disk, the
    same run with ``resume=True`` computes the blocks that are missing. The result then equals, bit
    by bit, the result of a run without interruption.

    Parameters
    ----------
    output : path, optional
        Path of the result, which ends in ``.zarr`` or ``.nc``. If the forecast is a GRIB file,
        ``.grib2`` is possible for quantiles and probabilities of exceedance. Leave ``output`` out
        for work that only reads.
    chunks : mapping from dimension to int, optional
        Sizes of the blocks of locations. The default depends on what the run opens first: for a
        model, the blocks in which it is stored; for forecasts, blocks of about 16 MiB.
    resume : bool
        True continues an interrupted run, and accepts the result if the run is already complete.
    overwrite : bool
        Whether to replace the file or store at the path, once the new result is complete.
    compute : callable, optional
        Function that computes a list of Dask collections; by default ``dask.compute``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     hindcast.to_netcdf(folder / "hindcast.nc")
    ...     observations.to_netcdf(folder / "observations.nc")
    ...     run = xrecal.Run(folder / "model.zarr", chunks={"location": 2}, resume=True)
    ...     past = run.open(folder / "hindcast.nc", "hindcast")
    ...     observed = run.open_observations(folder / "observations.nc", past)
    ...     print(run.write(past.recal.fit(observed)).n_blocks)
    2
    """

    def __init__(
        self,
        output: Location | None = None,
        *,
        chunks: Mapping[str, int] | None = None,
        resume: bool = False,
        overwrite: bool = False,
        compute: Callable[[list[Any]], Sequence[Any]] | None = None,
    ) -> None:
        if resume and overwrite:
            raise ValueError("resume=True continues and overwrite=True starts again; give only one")
        self.output = None if output is None else local_path(output, name="the output")
        self.chunks: Mapping[str, int] = {} if chunks is None else chunks
        self.resume, self.overwrite = resume, overwrite
        self.blocks: Blocks | None = None
        """Sizes of the blocks of locations; None until forecasts or a model are open."""
        self._compute = compute_all if compute is None else compute
        self._member_dim: Hashable | None = None
        self._inputs: dict[str, Source] = {}
        self._prints: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<xrecal run: {', '.join(self._inputs) or 'nothing'} -> {self.output}>"

    def _noted(self, path: Location, name: str) -> Source:
        """Record an input; if the run has an output, take the fingerprint of the input first."""
        source = Source(local_path(path, name=name), name)
        if self.output is not None:
            self._prints[name] = source.fingerprint()
        self._inputs[name] = source
        return source

    @explained("run.open_model")
    def open_model(self, path: Location) -> Recalibrator:
        """Open a model in the blocks of the run.

        Parameters
        ----------
        path : path
            File or store that ``model.save`` or ``xrecal fit`` wrote.

        Returns
        -------
        Recalibrator
        """
        source = self._noted(path, "model")
        self.blocks = blocks_of_model(open_recalibrator(source.path, chunks={}), self.chunks)
        return open_recalibrator(source.path, chunks=self.blocks)

    @explained("run.open")
    def open(
        self,
        path: Location,
        name: str = "forecast",
        *,
        model: Recalibrator | None = None,
        variable: str | None = None,
        dim: Hashable | None = None,
        member_dim: Hashable | None = None,
        pool: PoolOver = None,
        beside: bool = False,
    ) -> xr.Dataset:
        """Open forecasts lazily, in blocks of locations.

        Opening a file never runs code from the file, such as a codec that a stranger has added.

        Parameters
        ----------
        path : path
            netCDF or GRIB file, or Zarr store.
        name : str
            Name of the input in messages, such as hindcast.
        model : Recalibrator, optional
            Model; the run then opens only the variables of the model.
        variable : str, optional
            Forecast variable to open; by default all of them.
        dim, member_dim : hashable, optional
            Dimensions of cases and of members, if xrecal does not recognise them.
        pool : hashable, sequence or mapping, optional
            Dimensions that the fit pools, as for ``hindcast.recal.fit``. Blocks have all positions
            along dimensions that the fit pools without a window.
        beside : bool
            True also opens variables that describe the forecasts, such as their novelty.

        Returns
        -------
        Dataset
        """
        dataset = self._noted(path, name).open()
        if model is not None:
            given = forecasts_for(model, dataset, variable)
            self._member_dim = explicit_member_dim(model, given)
        else:
            given, forms = forecast_variables(dataset, variable, member_dim, name)
        if self.blocks is None:
            whole = () if pool is None or isinstance(pool, Mapping) else pool
            whole = (whole,) if isinstance(whole, str) else tuple(whole)  # type: ignore[arg-type]
            self.blocks = location_blocks(forms, dim, self.chunks, whole)
        if beside:
            named = [str(v.attrs.get("ancillary_variables", "")) for v in given.values()]
            given = given.assign({n: dataset[n] for n in " ".join(named).split() if n in dataset})
        return in_blocks_of(given, self.blocks)

    @explained("run.open_observations")
    def open_observations(
        self,
        path: Location,
        forecasts: xr.Dataset,
        variable: str | None = None,
        *,
        member_dim: Hashable | None = None,
    ) -> xr.DataArray | xr.Dataset:
        """Open the observations of forecasts, in blocks of locations.

        Parameters
        ----------
        path : path
            netCDF or GRIB file, or Zarr store.
        forecasts : Dataset
            Forecasts from :meth:`open`. Observations have the same names as the forecasts, or are
            the only variable of their file.
        variable : str, optional
            Variable with the observations, if it has another name.
        member_dim : hashable, optional
            Dimension of members, if xrecal does not recognise it.

        Returns
        -------
        DataArray or Dataset
        """
        forms = read_forms(forecasts, member_dim or self._member_dim, name="forecast")
        dataset = in_blocks_of(self._noted(path, "observations").open(), self.blocks or {})
        return observed_variables(dataset, variable, forms)

    @explained("run.open_covariates")
    def open_covariates(self, path: Location) -> dict[str, xr.DataArray | xr.Dataset]:
        """Open covariates in blocks of locations; first open the forecasts or the model.

        Parameters
        ----------
        path : path
            netCDF or GRIB file, or Zarr store. Each variable is a covariate with the name of the
            variable. Variables of one forecast, such as ``NAME_loc`` and ``NAME_scale``, together
            are one covariate.

        Returns
        -------
        dict from str to DataArray or Dataset
        """
        return covariates_in(
            in_blocks_of(self._noted(path, "covariates").open(), self.blocks or {})
        )

    @staticmethod
    def by_variable(
        forecasts: xr.Dataset, member_dim: Hashable | None = None
    ) -> dict[str, xr.Dataset]:
        """Return all parts of each forecast variable as one Dataset, by the name of the variable.

        Parameters
        ----------
        forecasts : Dataset
            Forecasts from :meth:`open`.
        member_dim : hashable, optional
            Dimension of members, if xrecal does not recognise it.

        Returns
        -------
        dict from str to Dataset
        """
        return {
            str(name): forecast_variables(forecasts, str(name), member_dim, "forecast")[0]
            for name in read_forms(forecasts, member_dim, name="forecast")
        }

    @staticmethod
    def issue(
        model: Recalibrator,
        forecast: xr.Dataset,
        *,
        quantiles: Sequence[float] | None = None,
        members: int | None = None,
        exceedance: Sequence[float] | None = None,
        categories: Sequence[float] | None = None,
        covariates: Given = None,
        missing_covariates: Missing = "refuse",
    ) -> xr.Dataset:
        """Recalibrate forecasts, and return one product, such as quantiles, with their novelty.

        Parameters
        ----------
        model : Recalibrator
            Model from :meth:`open_model`, or any other model.
        forecast : Dataset
            Forecasts from :meth:`open`, or any other forecasts.
        quantiles : sequence of float, optional
            Levels of quantiles, as for ``model.quantile``.
        members : int, optional
            Number of equally likely members, as for ``model.members``.
        exceedance : sequence of float, optional
            Thresholds, as for ``model.exceedance``.
        categories : sequence of float, optional
            Levels of the quantiles of the climatology, as for ``model.categories``.
        covariates, missing_covariates
            As for ``model.apply``.

        Returns
        -------
        Dataset
            The product ``NAME``, with ``NAME_novelty`` and ``NAME_beyond`` (probability of values
            far beyond the record) if ``model.apply`` returns these two. The Dataset is lazy if an
            input is lazy.
        """
        product = Product(quantiles, members, exceedance, categories)
        product.require_one()
        return product.of(model, forecast, covariates, missing_covariates)

    @staticmethod
    def news(
        model: Recalibrator, hindcast: xr.Dataset, observations: Observations
    ) -> dict[str, dict[str, int]]:
        """Count the observations that ``model.update`` would learn or revise.

        Parameters
        ----------
        model : Recalibrator
            A fitted model.
        hindcast : Dataset
            Forecasts with more cases.
        observations : DataArray, Dataset or dict
            Observations of these cases.

        Returns
        -------
        dict
            For each variable two numbers: ``learned`` counts observations of cases for which the
            model has no observation, and ``revised`` counts observations that differ from the
            observation in the model.
        """
        counts = {}
        first = next(iter(model.variables.values()))
        member_dim = explicit_member_dim(model, hindcast)
        pairs = pair_variables(hindcast, observations, member_dim, name="hindcast")
        for name, (form, array) in pairs.items():
            fitted = model.variables.get(name, first)
            news = news_of(fitted, in_order(pair_cases(form, array, fitted.dim, name="hindcast")))
            counts[str(name)] = {"learned": news.n_learned, "revised": news.n_revised}
        return counts

    @explained("run.preview")
    def preview(
        self,
        result: Recalibrator | xr.Dataset,
        settings: Mapping[str, Any] | None = None,
        *,
        command: str = "write",
    ) -> Written:
        """Count the blocks that :meth:`xrecal.Run.write` would make, and write nothing.

        Parameters
        ----------
        result, settings, command
            As for :meth:`write`.

        Returns
        -------
        Written
            Numbers ``n_blocks`` and ``n_skipped`` (finished blocks of an interrupted run).

        Raises
        ------
        FileExistsError, FileNotFoundError, ValueError
            Errors that :meth:`write` would raise before it computes anything.
        """
        target = self._target(settings, command)
        complete = target.is_complete(overwrite=self.overwrite, resume=self.resume)
        n = len(blocks_of(target.as_written(_stored(result))))
        return Written(n, target.count_finished(n), was_complete=complete)

    @explained("run.write")
    def write(
        self,
        result: Recalibrator | xr.Dataset,
        settings: Mapping[str, Any] | None = None,
        *,
        command: str = "write",
        plan: Plan | None = None,
    ) -> Written:
        """Compute a result block by block and put it at the path of the output.

        Parameters
        ----------
        result : Recalibrator or Dataset
            Lazy result with equal chunks, made from inputs that this run has opened.
        settings : mapping from str, optional
            All settings on which the result depends: text, numbers, methods, and lists and mappings
            of these. An interrupted run continues only if these settings, the inputs and the
            version of xrecal are the same.
        command : str
            Name of the work, which messages about an unfinished result use.
        plan : Plan, optional
            Plan of the work. The run raises an error if tasks of this plan need more memory than
            the run has for them.

        Returns
        -------
        Written
            Numbers ``n_blocks`` and ``n_skipped`` (blocks that an earlier run has computed).

        Raises
        ------
        FileExistsError
            If there is a result at the path, complete or not, and neither ``resume`` nor
            ``overwrite`` is True; if another process writes to the path; or if the path is a folder
            but not a Zarr store.
        FileNotFoundError
            If the folder of the path does not exist.
        ValueError
            If the path is an input or has another ending, if the result at the path has other
            inputs or settings, or if tasks of the plan need too much memory.
        TaskError
            If a block cannot be computed or written, the result cannot be read back, or an input
            has changed during the run. The run keeps finished blocks for ``resume=True``, unless
            an input has changed or the complete result cannot be read back.
        """
        target = self._target(settings, command)
        dataset = target.as_written(_stored(result))
        with target.alone():
            complete = target.is_complete(overwrite=self.overwrite, resume=self.resume)
            if not complete and plan is not None:
                check_plan(plan)
            target.make_way(overwrite=self.overwrite)
            if complete:
                n = len(blocks_of(dataset))
                return Written(n, n, was_complete=True)
            return write_in_blocks(dataset, target, self._compute)

    def open_result(self) -> xr.Dataset:
        """Open the result of ``write``.

        Returns
        -------
        Dataset
            Lazy Dataset, whose values are read when they are needed.
        """
        output = self._path()
        return open_data(output, str(output))

    def _path(self) -> Path:
        if self.output is None:
            raise ValueError("the run has no output; write xrecal.Run(path)")
        return self.output

    def _target(self, settings: Mapping[str, Any] | None, command: str) -> Target:
        told = {name: _plain(value, name) for name, value in (settings or {}).items()}
        request = {"xrecal": VERSION, "command": command, **self._prints, **told}
        return Target(self._path(), request, tuple(self._inputs.values()))


def compute_all(collections: list[Any]) -> Sequence[Any]:
    """Compute Dask collections together."""
    from dask.base import compute

    return list(compute(*collections))


def _plain(value: Any, name: str) -> Any:
    """Convert a setting to types of JSON."""
    return encode(value, name) if isinstance(value, (Method, tuple)) else value


def _stored(result: Recalibrator | xr.Dataset) -> xr.Dataset:
    """Convert a result to a Dataset for files, in blocks."""
    if isinstance(result, Recalibrator):
        return in_blocks(to_plain(to_dataset(result)), result)
    dataset = _as_numbers(for_files(result))
    return dataset if dataset.chunks else dataset.chunk()


def _as_numbers(dataset: xr.Dataset) -> xr.Dataset:
    """Convert booleans and dates to numbers, with the attributes for reading them back."""
    plain = {}
    for name, array in dataset.data_vars.items():
        if array.dtype == bool:
            plain[name] = array.astype(np.int8).assign_attrs(array.attrs | {"dtype": "bool"})
        elif array.dtype.kind == "M":
            units = {"units": "seconds since 1970-01-01"}
            seconds = (array.data - np.datetime64(0, "s")) / np.timedelta64(1, "s")
            plain[name] = array.copy(data=seconds).assign_attrs(array.attrs | units)
    return dataset.assign(plain)
