"""The command and the daily cycle on files of inputs in some writing."""

import json
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from click.testing import CliRunner

from xrecal.cli.commands import xrecal as command

from .calls import LEVELS, REMEDY, Found, Inputs, Pieces, RefusedError
from .worlds import NotHereError, Piece, World, world

EMOS = ["--method", "emos"]
COLUMNS = ",".join(f"{level:g}" for level in LEVELS)
REFUSED, ALARMED = 3, 10


def write(piece: Piece, path: Path) -> None:
    """An input into a file or store; NotHereError where xarray cannot write it."""
    variable = piece.array.name or "t2m"
    dataset = piece.array.to_dataset(name=variable)
    for name in {"_FillValue", "missing_value"} & {*dataset[variable].encoding}:
        dataset[variable].attrs.pop(name, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix == ".nc":
                dataset.to_netcdf(path)
            else:
                dataset.to_zarr(path, consolidated=False)
    except (ValueError, TypeError, NotImplementedError, OverflowError) as error:
        raise NotHereError from error


def run(*args: Any) -> str:
    """What a command prints; RefusedError with its message where it refuses its inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(command, [str(a) for a in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code == REFUSED:
        assert REMEDY.search(result.stderr), result.stderr
        raise RefusedError(result.stderr)
    assert result.exit_code in (0, ALARMED), (result.exit_code, result.stderr)
    return result.stdout


@contextmanager
def files(pieces: Pieces, kind: str) -> Iterator[dict[str, Any]]:
    """Paths of the inputs that commands take, and of a folder for what they write."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for role in ("hindcast", "forecast", "observations"):
            paths[role] = Path(folder) / f"{role}.{kind}"
            write(pieces[role], paths[role])
        yield {**paths, "folder": Path(folder)}


def opened(path: Path) -> xr.Dataset:
    engine = "zarr" if path.suffix == ".zarr" else None
    with xr.open_dataset(path, engine=engine, decode_timedelta=False) as dataset:
        return dataset.load()


def _dims(piece: Piece) -> list[str]:
    """Options that name dimensions."""
    named = {key: piece.names[dim] for key, dim in piece.told.items()}
    return [x for key, name in named.items() for x in (f"--{key.replace('_', '-')}", str(name))]


def _variable(dataset: xr.Dataset) -> xr.DataArray:
    (found,) = (v for v in dataset.data_vars.values() if "quantile" in v.dims)
    return found


def commands(pieces: Pieces, kind: str) -> Found:
    """Fit, apply, update, score and compare, as a user types them."""
    with files(pieces, kind) as at:
        new, observed, folder = at["forecast"], at["observations"], at["folder"]
        model, later = folder / f"model.{kind}", folder / f"later.{kind}"
        outs = [folder / f"{name}.{kind}" for name in ("issued", "issued_later")]
        named = _dims(pieces["hindcast"])
        run("fit", at["hindcast"], observed, model, *EMOS, *named, "--quiet")
        run("apply", model, new, outs[0], "--quantiles", COLUMNS, "--quiet")
        run("update", model, new, observed, later, "--quiet")
        run("apply", later, new, outs[1], "--quantiles", COLUMNS, "--quiet")
        issued, issued_later = (_variable(opened(out)) for out in outs)
        score = run("score", new, observed, "--json", *_dims(pieces["forecast"]))
        (crps,) = (one["crps"] for one in json.loads(score)["scores"].values())
    return {
        "quantile": (issued, "forecast"),
        "quantile later": (issued_later, "forecast"),
        "score": (xr.DataArray(crps), "forecast"),
    }


@cache
def expected_of_commands(name: str) -> Found:
    """The same calls in Python, on canonical inputs."""
    x = Inputs(world(name).pieces, "emos")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = x.model()
        later = model.update(x["forecast"], x["observations"])
        return {
            "quantile": (model.quantile(x["forecast"], LEVELS), "forecast"),
            "quantile later": (later.quantile(x["forecast"], LEVELS), "forecast"),
            "score": (x["forecast"].recal.crps(x["observations"]).mean(), "forecast"),
        }


# the daily cycle ----------------------------------------------------------------------------------

LEARNED, MORNINGS, HANDED_OVER = 55, (57, 58), 60
"""Starts of the first fit, those of the mornings, and of how many there are forecasts."""


@cache
def world_of_the_cycle(name: str) -> World:
    """A first fit, and forecasts of mornings that come after what verified it."""
    whole = world(name).pieces
    hindcast = whole["hindcast"]
    parts = {
        "hindcast": slice(LEARNED),
        "forecast": slice(LEARNED, HANDED_OVER),
    }
    made = {
        role: Piece(
            role,
            hindcast.array[part],
            hindcast.names,
            {**hindcast.positions, "init": np.arange(part.stop - (part.start or 0))},
        )
        for role, part in parts.items()
    }
    return World(name, {**whole, **made}, "days")


def cycle(name: str, pieces: Pieces, kind: str) -> Found:
    """Two mornings: what is issued, scores of what has verified, and the monitor."""
    starts = world(name).pieces["hindcast"].array["init"].to_numpy()
    with files(pieces, kind) as at:
        model, out = at["folder"] / f"model.{kind}", at["folder"] / "out"
        named = _dims(pieces["hindcast"])
        run("fit", at["hindcast"], at["observations"], model, *EMOS, *named, "--quiet")
        for morning in MORNINGS:
            run(
                *("cycle", model, "--forecasts", at["forecast"]),
                *("--observations", at["observations"], "--output", out),
                *("--quantiles", COLUMNS, "--now", starts[morning], "--restart", "never"),
                *("--json", "--quiet"),
            )
        issued = {p.stem: opened(p) for p in sorted((out / "forecasts").iterdir())}
        scores, monitor = opened(out / "scores.nc"), opened(out / "monitor.nc")
    start = pieces["forecast"].names["init"]
    found = {stem: _variable(data).isel({start: 0}, drop=True) for stem, data in issued.items()}
    for data, endings in ((scores, ("_crps", "_crps_raw")), (monitor, ("_e_value",))):
        for ending in endings:
            (values,) = (v for n, v in data.items() if str(n).endswith(ending))
            for k in range(values.sizes[start]):
                found[f"{ending} of start {k}"] = values.isel({start: k}, drop=True)
    return {name: (array, "forecast") for name, array in found.items()}


@cache
def expected_of_the_cycle(name: str) -> Found:
    """The same on canonical inputs."""
    return cycle(name, world_of_the_cycle(name).pieces, "nc")
