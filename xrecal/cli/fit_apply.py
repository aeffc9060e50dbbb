"""Commands that write a result: a fitted model, or recalibrated forecasts."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from xrecal.arrays.status import MEANINGS
from xrecal.chunks.texts import quoted
from xrecal.fit.fit_hindcast import fit
from xrecal.fit.fitted import FittedVariable, chunks_of
from xrecal.fit.select_fits import explicit_member_dim
from xrecal.inputs.dims import read_inner_levels
from xrecal.methods import Method
from xrecal.model import Recalibrator, open_recalibrator
from xrecal.plan.planning import plan
from xrecal.plan.plans import Plan
from xrecal.products.categories import CATEGORIES_LINE, climatological
from xrecal.products.issue import issue
from xrecal.products.members import drawn_by_model, members_line
from xrecal.products.probabilities import EXCEEDANCE, probabilities
from xrecal.products.statistics import quantiles
from xrecal.storage.encoding import to_plain
from xrecal.storage.paths import local_path
from xrecal.storage.settings import encode
from xrecal.storage.storage import block_sizes, in_blocks
from xrecal.storage.stored import VERSION, to_dataset

from .blocks import Run, blocks_of, write_in_blocks
from .inputs import Blocks, Pair, Selection, Source, forecast_variables, pool_dims, source
from .plan import require_memory, shown
from .requests import Request
from .session import Result, Session


@dataclass(frozen=True)
class Output:
    """Path to write to, and how to treat what stands there already."""

    path: str
    resume: bool
    overwrite: bool
    force: bool
    """Whether to go on where the memory may not suffice."""
    dry_run: bool

    def run(self, request: Request, *inputs: Source) -> Run:
        """The run that writes there."""
        target = local_path(self.path, name="the output")
        return Run(target, {"xrecal": VERSION, **request}, inputs)


class Product(NamedTuple):
    """Part of recalibrated forecasts to write, all others None."""

    levels: Sequence[float] | None
    """Of quantiles."""
    n_members: int | None
    thresholds: Sequence[float] | None = None
    """That probabilities are of exceeding."""
    between: Sequence[float] | None = None
    """Levels of the quantiles of the climatology between categories."""

    @property
    def size(self) -> int:
        """Number of values for each forecast."""
        if self.between is not None:
            return len(self.between) + 1
        return self.n_members or len(self.levels or self.thresholds or ())

    def of(self, model: Recalibrator, forecasts: xr.Dataset) -> xr.Dataset:
        """The product of forecasts and what is known of them beside it, as lazy as they are."""
        after = f"after recalibration by {model.method}"
        if self.levels is not None:
            levels = np.asarray(self.levels)
            product = partial(quantiles, levels=levels, several=True)
            return issue(model, forecasts, product, f"quantiles {after}")
        if self.thresholds is not None:
            events = partial(probabilities, threshold=list(self.thresholds), kind=EXCEEDANCE)
            return issue(model, forecasts, events, f"{EXCEEDANCE.line} {after}")
        if self.between is not None:
            shares = partial(climatological, levels=read_inner_levels(self.between), named=True)
            return issue(model, forecasts, shares, f"{CATEGORIES_LINE} {after}")
        assert self.n_members is not None
        drawn = partial(drawn_by_model, n=self.n_members, seed=0)
        return issue(model, forecasts, drawn, f"{members_line(self.n_members, 0)}, {after}")


def fit_files(
    session: Session,
    pair: Pair,
    output: Output,
    method: Method,
    options: Mapping[str, Any],
) -> Result:
    """Fit a method and write the model; ``options`` are further arguments of ``fit``."""
    inputs = pair.forecasts, pair.observations
    read = fingerprints(*inputs)
    hindcast, observed, blocks = pair.open(pool_dims(options["pool"]))
    chosen = pair.chosen
    asked: dict[str, Any] = {"dim": chosen.dim, "member_dim": chosen.member_dim, **options}
    model = fit(hindcast, observed, method, **asked)
    request = {
        "command": "fit",
        **read,
        "method": encode(model.method, "the method"),  # covariates too, however they were typed
        **vars(chosen),
        "min_samples": options["min_samples"],
        "pool": encode(options["pool"], "pool"),
        "chunks": {str(d): n for d, n in blocks.items()},
    }
    state = in_blocks(to_plain(to_dataset(model)), model)
    with _without_warnings():
        planned = plan(hindcast, observed, method, **asked, probe=False)
    run = output.run(request, *inputs)
    result = _write_or_plan(session, run, output, state, planned)
    if output.dry_run:
        return result
    written = open_recalibrator(output.path)
    counts = {str(name): _counts(fitted) for name, fitted in written.variables.items()}
    lines = [
        f"  {quoted(name)}: {one['n_matched']} of {one['n_forecasts']} cases matched; "
        + ", ".join(f"{what}: {n}" for what, n in one["status"].items())
        for name, one in counts.items()
    ]
    return Result({**result.data, "variables": counts}, "\n".join([result.text, *lines]))


def apply_files(
    session: Session,
    path: str,
    forecast: Source,
    output: Output,
    chosen: Selection,
    product: Product,
) -> Result:
    """Recalibrate forecasts and write a product of them."""
    inputs = source(path, "model"), forecast
    read = fingerprints(*inputs)
    blocks = blocks_of_model(open_recalibrator(path, chunks={}), chosen.chunks)
    model = open_recalibrator(path, chunks=blocks)
    given = forecasts_for(model, forecast.open(blocks), chosen.variable)
    request = {
        "command": "apply",
        **read,
        "variable": chosen.variable,
        "quantiles": product.levels,
        "members": product.n_members,
        "exceedance": product.thresholds,
        "categories": product.between,
        "chunks": {str(d): n for d, n in blocks.items()},
    }
    values = product.of(model, given)
    with _without_warnings():
        planned = model.plan(given, values=product.size, probe=False)
    run = output.run(request, *inputs)
    return _write_or_plan(session, run, output, for_files(values), planned)


def fingerprints(*inputs: Source) -> dict[str, Any]:
    """Fingerprints of inputs that are to be read, by their names."""
    return {one.name: one.fingerprint() for one in inputs}


def blocks_of_model(model: Recalibrator, asked: Mapping[str, int]) -> Blocks:
    """Sizes of blocks of locations: as asked for, as stored, or of about 16 MiB of state."""
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


def forecasts_for(model: Recalibrator, dataset: xr.Dataset, variable: str | None) -> xr.Dataset:
    """The named forecast variable, or those that the model was fitted on, or all there are."""
    member_dim = explicit_member_dim(model, dataset)
    name = None if member_dim is None else str(member_dim)
    given, forms = forecast_variables(dataset, variable, name, "forecast")
    wanted = {*model.variables, *(n for v in model.variables.values() for n in v.jointly)}
    if variable is None and wanted < set(forms):
        parts = [part.name for v in wanted for part in forms[v].parts.values()]
        given = given[[v for v in given.data_vars if v in parts]]
    return given


def for_files(dataset: xr.Dataset) -> xr.Dataset:
    """Without encodings of the inputs, and text labels of a type that all formats have."""
    text = {n: c.astype(object) for n, c in dataset.coords.items() if c.dtype.kind == "U"}
    return dataset.assign_coords(text).drop_encoding()


def _write_or_plan(
    session: Session, run: Run, output: Output, result: xr.Dataset, planned: Plan
) -> Result:
    """Write a result, or only say what that would take."""
    if output.dry_run:
        run.is_complete(overwrite=output.overwrite, resume=output.resume)
        return shown(planned, run, result)
    data = {"status": "complete", "output": str(run.target)}
    with run.alone():
        complete = run.is_complete(overwrite=output.overwrite, resume=output.resume)
        if not complete:
            require_memory(planned, force=output.force)
        run.make_way(overwrite=output.overwrite)
        if complete:
            n = len(blocks_of(result))
            return Result(
                {**data, "blocks": n, "blocks_skipped": n},
                f"{quoted(run.target)} is complete already",
            )
        n, skipped = write_in_blocks(result, run, session.compute)
    text = f"wrote {quoted(run.target)}: {n} block{'s' * (n != 1)}"
    text += f", {skipped} of an earlier run" if skipped else ""
    return Result({**data, "blocks": n, "blocks_skipped": skipped}, text)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide the warnings of pairing, which the work itself has given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _counts(fitted: FittedVariable) -> dict[str, Any]:
    """Counts of cases, and of locations by the status of their fit."""
    status = fitted.state["status"].to_numpy()
    counts = {"ok": int((status == 0).sum())}
    counts |= {text: int(((status & bit) > 0).sum()) for bit, text in MEANINGS.items()}
    return {
        "n_matched": fitted.n_matched,
        "n_forecasts": fitted.n_forecasts,
        "locations": status.size,
        "status": {text: count for text, count in counts.items() if count},
    }
