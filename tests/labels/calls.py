"""Calls on inputs in some writing, and what they give in canonical labels."""

import re
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import xrecal

from .worlds import Piece, world

PACKAGE = Path(xrecal.__path__[0])

METHODS = {
    "emos": xrecal.EMOS(),
    "ckme": xrecal.CKME(),
    "pool": xrecal.LinearPool(methods=(xrecal.EMOS(), xrecal.Climatology())),
    "season": xrecal.EMOS(condition_on="season"),
    "soil": xrecal.EMOS(condition_on="soil"),
}

SCALE = 300.0

LEVELS = [0.1, 0.5, 0.8]

Pieces = dict[str, Piece]

Given = dict[str, Any]
"""Inputs as they are handed over."""

Found = dict[str, tuple[xr.DataArray, str]]
"""Results by name, and the role of the input whose labels they have."""


def handed_over(piece: Piece) -> xr.DataArray | xr.Dataset:
    if piece.form == "array":
        return piece.array
    return piece.array.to_dataset(name=piece.array.name or "t2m")


def _told(piece: Piece) -> Given:
    """Arguments that name dimensions: of forecasts ``dim`` and ``member_dim``."""
    return {key: piece.names[dim] for key, dim in piece.told.items() if piece.names[dim]}


class Inputs:
    """What calls take, of inputs in some writing."""

    def __init__(self, pieces: Pieces, method: str) -> None:
        self.pieces = pieces
        self.method = METHODS[method]
        self.soil = method == "soil"
        self.given = {role: handed_over(piece) for role, piece in pieces.items()}

    def __getitem__(self, role: str) -> Any:
        return self.given[role]

    def told(self, role: str, *keys: str) -> Given:
        told = _told(self.pieces[role])
        return {k: v for k, v in told.items() if not keys or k in keys}

    def covariates(self, role: str) -> Given:
        return {"covariates": {"soil": self.pieces[role].array}} if self.soil else {}

    def model(self) -> xrecal.Recalibrator:
        return self["hindcast"].recal.fit(
            self["observations"],
            self.method,
            **self.told("hindcast"),
            **self.covariates("covariate"),
        )


def _quantile(x: Inputs) -> Found:
    new = x.covariates("new_covariate")
    return {"quantile": (x.model().quantile(x["forecast"], LEVELS, **new), "forecast")}


def _apply(x: Inputs) -> Found:
    found = x.model().apply(x["forecast"], **x.covariates("new_covariate"))
    return {_part(name): (found[name], "forecast") for name in found}


def _part(name: Any) -> str:
    """Loc, scale, weight and so on of a variable of any name."""
    return str(name).rpartition("_")[2] if "_" in str(name) else "members"


def _crps(x: Inputs) -> Found:
    new = x.covariates("new_covariate")
    return {"crps": (x.model().crps(x["forecast"], x["observations"], **new), "forecast")}


def _pit(x: Inputs) -> Found:
    new = x.covariates("new_covariate")
    return {"pit": (x.model().pit(x["forecast"], x["observations"], **new), "forecast")}


def _exceedance(x: Inputs) -> Found:
    model, new = x.model(), x.covariates("new_covariate")
    found = {}
    for role in ("threshold", "monthly_threshold", "seasonal_threshold"):
        found[role] = (model.exceedance(x["forecast"], x[role], **new), "forecast")
    return found


def _categories(x: Inputs) -> Found:
    found = x.model().categories(x["forecast"], **x.covariates("new_covariate"))
    if isinstance(found, xr.Dataset):
        found = found[x.pieces["forecast"].array.name or "t2m"]
    return {"categories": (found, "forecast")}


def _update(x: Inputs) -> Found:
    new = x.covariates("new_covariate")
    model = x.model().update(x["forecast"], x["observations"], **new)
    return {"quantile": (model.quantile(x["forecast"], LEVELS, **new), "forecast")}


def _cross_validate(x: Inputs) -> Found:
    found = {}
    for output in ("crps", "quantile"):
        out = x["hindcast"].recal.cross_validate(
            x["observations"], x.method, by="block", output=output,
            **({"q": LEVELS} if output == "quantile" else {}),
            **x.told("hindcast"), **x.covariates("covariate"),
        )  # fmt: skip
        found[output] = (out, "hindcast")
    return found


def _by_year(x: Inputs) -> Found:
    out = x["hindcast"].recal.cross_validate(
        x["observations"], x.method, by="year", output="crps", **x.told("hindcast"),
        **x.covariates("covariate"),
    )  # fmt: skip
    return {"crps": (out, "hindcast")}


def _compare(x: Inputs) -> Found:
    methods = [xrecal.EMOS(), xrecal.Climatology()]
    table = xrecal.compare(x["hindcast"], x["observations"], methods, **x.told("hindcast"))
    names = ("crps", "skill_climatology", "skill_raw", "n_cases")
    return {name: (_only(table, name), "hindcast") for name in names}


def _raw_crps(x: Inputs) -> Found:
    return {"crps": (x["forecast"].recal.crps(x["observations"], **_raw(x)), "forecast")}


def _raw(x: Inputs) -> Given:
    """Names of dimensions, as scores take them."""
    return x.told("forecast", "member_dim")


def _raw_exceedance(x: Inputs) -> Found:
    found = {}
    for role in ("threshold", "monthly_threshold", "seasonal_threshold"):
        found[role] = (x["forecast"].recal.exceedance(x[role]), "forecast")
    return found


def _summary(x: Inputs) -> Found:
    table = x["forecast"].recal.summary(x["observations"], **x.told("forecast"))
    names = ("crps", "bias", "spread_error_ratio", "coverage", "n_cases")
    return {name: (_only(table, name), "forecast") for name in names}


def _scores_of_events(x: Inputs) -> Found:
    new, observed, raw = x["forecast"], x["observations"], _raw(x)
    brier = xrecal.diagnostics.brier_score(new, observed, x["monthly_threshold"], **raw)
    correlation = xrecal.diagnostics.anomaly_correlation(
        new, observed, x["seasonal_threshold"], **x.told("forecast")
    )
    return {"brier": (brier, "forecast"), "correlation": (correlation["correlation"], "forecast")}


def _monitor(x: Inputs) -> Found:
    """Of normal distributions, whose PIT has no draws."""
    model = x["hindcast"].recal.fit(x["observations"], xrecal.EMOS(), **x.told("hindcast"))
    issued = model.apply(x["hindcast"])
    found = issued.recal.monitor(x["observations"], **x.told("hindcast", "dim"))
    return {name: (found[name], "hindcast") for name in ("e_value", "change_statistic", "alarm")}


def _stored_and_opened(x: Inputs) -> Found:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        x.model().save(f"{folder}/model.zarr")
        model = xrecal.open_recalibrator(f"{folder}/model.zarr").load()
    new = x.covariates("new_covariate")
    return {"quantile": (model.quantile(x["forecast"], LEVELS, **new), "forecast")}


def _only(table: xr.Dataset, name: str) -> xr.DataArray:
    """A variable of a table of one forecast variable."""
    found = table[name]
    return found.isel(variable=0, drop=True) if "variable" in found.dims else found


CALLS: dict[str, Callable[[Inputs], Found]] = {
    "quantile": _quantile,
    "apply": _apply,
    "crps": _crps,
    "pit": _pit,
    "exceedance": _exceedance,
    "categories": _categories,
    "update": _update,
    "cross_validate": _cross_validate,
    "cross_validate by year": _by_year,
    "compare": _compare,
    "raw crps": _raw_crps,
    "raw exceedance": _raw_exceedance,
    "summary": _summary,
    "scores of events": _scores_of_events,
    "monitor": _monitor,
    "stored": _stored_and_opened,
}

WITHOUT_METHOD = {"compare", "raw crps", "raw exceedance", "summary", "scores of events", "monitor"}
"""Calls to which the method makes no difference."""

ON_STEPS = {"quantile", "apply", "pit", "exceedance", "categories", "update", "cross_validate",
            "stored"}  # fmt: skip
"""Calls whose results jump with the last digit of a weight, or draw, where forecasts are steps."""


@cache
def expected_of(world_name: str, call: str, method: str) -> Found:
    """What the canonical inputs give, in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CALLS[call](Inputs(world(world_name).pieces, method))
    return {name: (_loaded(array), role) for name, (array, role) in found.items()}


def _loaded(found: xr.DataArray | xr.Dataset) -> xr.DataArray:
    if isinstance(found, xr.Dataset):
        (name,) = found.data_vars
        found = found[name]
    return found.compute()


class RefusedError(Exception):
    """What a call said to inputs that it refuses."""


REMEDY = re.compile(
    r"\b(use|give|name|rename|select|add|set|drop|pass|bring|write|leave|convert|correct|choose|"
    r"make|take|install|keep|fill|chunk|assign|sort|decode|hand over|need|needs)\b|\.\w+\(",
    re.IGNORECASE,
)


def result_of(inputs: Inputs, call: str) -> tuple[Found, list[str]]:
    """Results in memory and warnings; RefusedError with the message where inputs are refused.

    A refusal is raised by the package itself, in words that say what to do.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = CALLS[call](inputs)
            loaded = {name: (_loaded(array), role) for name, (array, role) in found.items()}
        except (ValueError, TypeError, ImportError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if not Path(last.filename).is_relative_to(PACKAGE):
                raise
            if not REMEDY.search(str(error)):
                raise
            raise RefusedError(str(error)) from error
    return loaded, [str(w.message) for w in told]


def _order_by_labels(found: xr.DataArray, piece: Piece, dim: str) -> np.ndarray:
    """Position in the input of each position of a result along a dimension, by its labels."""
    array, n = piece.array, found.sizes[dim]
    for name, own in array.coords.items():
        if own.dims != (dim,) or name not in found.coords or found[name].dims != (dim,):
            continue
        mine = own.to_index()
        if mine.is_unique and n == mine.size:
            order = mine.get_indexer(found[name].to_index())
            if (order >= 0).all():
                return np.asarray(order)
    for name, own in array.coords.items():
        if (
            own.ndim != 2
            or own.dtype.kind != "f"
            or dim not in own.dims
            or name not in found.coords
        ):
            continue
        if {*found[name].dims} != {*own.dims}:
            continue
        # Rows of a curvilinear grid, in any order of its columns.
        mine, theirs = (
            [tuple(np.sort(row.ravel()).round(6)) for row in a.transpose(dim, ...).to_numpy()]
            for a in (own, found[name])
        )
        if sorted(mine) == sorted(theirs) and len({*mine}) == n:
            return np.array([mine.index(row) for row in theirs])
    return np.arange(n)


def compare(found: Found, expected: Found, pieces: Pieces, rtol: float, told: list[str]) -> None:
    """Assert that results are the expected ones, at the labels where they stand."""
    assert found.keys() == expected.keys(), (sorted(found), sorted(expected))
    for name, (array, role) in found.items():
        wanted, _ = expected[name]
        piece = pieces[role]
        for dim, positions in piece.positions.items():
            if dim not in wanted.dims or dim in ("member", "quantile"):
                continue
            own = piece.names[dim]
            wanted = wanted.isel({dim: positions})
            if own is None:
                assert dim not in array.dims
                wanted = wanted.isel({dim: 0})
            else:
                assert own in array.dims, f"{name} lacks {own!r}: {array.dims}"
                order = _order_by_labels(array, piece, own)
                wanted = wanted.isel({dim: order})
        names = {own: dim for dim, own in piece.names.items() if own in array.dims}
        if piece.names.get("quantile") and "quantile" in wanted.dims:
            names = {own: dim for own, dim in names.items() if dim != "quantile"}
        extra = [d for d in array.dims if names.get(d, d) not in wanted.dims]
        if extra and _is_a_list(pieces, name, role, extra):
            continue
        assert not extra, f"{name} has other dimensions: {array.dims} in place of {wanted.dims}"
        axes = {names.get(d, d): k for k, d in enumerate(array.dims)}
        assert set(axes) == set(wanted.dims), f"{name}: {array.dims} in place of {wanted.dims}"
        values = array.to_numpy().transpose([axes[d] for d in wanted.dims])
        _compare_values(name, values, wanted.to_numpy(), rtol, told)


def _is_a_list(pieces: Pieces, threshold: str, role: str, extra: list[Any]) -> bool:
    """Whether a dimension of a threshold has nothing in common with places of the forecasts.

    Then each of its thresholds is one for all places, and the result has its dimension.
    """
    if threshold not in pieces or extra != [pieces[threshold].name("station")]:
        return False
    own, places = pieces[threshold], pieces[role]
    here, there = own.array[extra[0]].to_numpy(), places.array[places.names["station"]].to_numpy()
    return not {*map(str, here)} & {*map(str, there)}


def _compare_values(name: str, got: Any, wanted: Any, rtol: float, told: list[str]) -> None:
    assert got.shape == wanted.shape, f"{name}: {got.shape} in place of {wanted.shape}"
    if wanted.dtype.kind not in "fiub":
        return
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    if told:  # less than all may be known, where a warning says so
        wanted = np.where(np.isnan(got), np.nan, wanted)
    # Scores and probabilities are of differences of values around SCALE.
    steep = 100 if name in ("e_value", "change_statistic") else 1
    np.testing.assert_allclose(got, wanted, steep * rtol, atol=rtol * SCALE, err_msg=name)
