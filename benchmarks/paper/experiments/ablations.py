"""Projections of signed weights, bandwidths other than the median, and ridges below the grid."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

import xrecal
from benchmarks.paper.data import load_split, n_splits
from benchmarks.paper.forecasts import CACHE, labelled, observed
from benchmarks.paper.models import forecast
from benchmarks.paper.recalibration import PRINTED, Recalibrated
from benchmarks.paper.ridges import distances
from benchmarks.paper.tables import RESULTS, add_row, keys_of
from benchmarks.speed import dense
from xrecal import arrays

from .scores import evidence

PREIMAGE, BANDWIDTH, RIDGE = "preimage.csv", "bandwidth.csv", "ridge.csv"
PREIMAGE_COLUMNS = (
    *("set", "model", "split", "projection", "n_calibration", "crps", "skce_p", "pit_p"),
    *("effective", "seconds"),
)
BANDWIDTH_COLUMNS = ("set", "model", "split", "factor", "crps", "skce_p", "ridge")
RIDGE_COLUMNS = ("set", "model", "split", "kernel", "ridge", "crps", "skce_p", "pit_p")
FACTORS = (0.02, 0.1, 1.0, 4.0, 16.0)
RIDGES = (1e-6, 1e-8, 1e-10)
PRECISE = (("naval", "sinus", "kin8nm"), ("GDN", "DRF"))
"""Sets and models with many cases, some of them very precise."""
TRIED = (("yacht", "housing", "energy"), ("GDN", "DRF"))


def euclidean(signed: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(arrays.project_simplex(signed))


def energy(signed: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(arrays.project_energy(signed, y))


def clipped(signed: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Negative weights to zero, the rest to a sum of one."""
    positive = np.maximum(signed, 0)
    return positive / positive.sum(axis=1, keepdims=True)


def laplace_program(signed: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The exact problem of the paper, with its Laplace kernel, by an interior-point solver."""
    import clarabel
    from scipy import sparse

    apart = np.abs(np.subtract.outer(y, y))
    gram = np.exp(-apart / np.median(apart[np.triu_indices(y.size, 1)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    constraints = sparse.csc_matrix(np.vstack([np.ones(y.size), -np.eye(y.size)]))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(y.size)]
    limits, half = np.array([1.0, *np.zeros(y.size)]), sparse.triu(2 * gram, format="csc")
    solutions = [
        clarabel.DefaultSolver(half, -2 * gram @ beta, constraints, limits, cones, settings).solve()
        for beta in signed
    ]
    weights = np.maximum([solution.x for solution in solutions], 0)
    return weights / weights.sum(axis=1, keepdims=True)


SLOW = "laplace program"
PROJECTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "euclidean": euclidean,
    "energy": energy,
    "clipped": clipped,
    SLOW: laplace_program,
}


def run_preimage(
    sets: Iterable[str] = TRIED[0],
    models: Iterable[str] = TRIED[1],
    splits: int = 5,
    folder: Path = RESULTS,
    cache: Path = CACHE,
) -> None:
    """Add the rows of all projections that are not there yet."""
    path = folder / PREIMAGE
    done = keys_of(path, ("set", "model", "split"))
    for name, model, number in _runs(sets, models, splits, done):
        split = load_split(name, number)
        base = forecast(name, model, number, split, calibrated=False, cache=cache)
        y = split.calibration.y
        state = labelled(base.calibration).recal.fit(observed(y), PRINTED, dim="case").state
        gram, similar = (
            np.exp(-distances(base.calibration, other) / float(state["bandwidth"]))
            for other in base
        )
        signed = dense.signed_weights(*np.linalg.eigh(gram), similar, float(state["ridge"])).T
        for projection, project in PROJECTIONS.items():
            project(signed if projection != SLOW else signed[:1], y)  # compile
            start = time.perf_counter()
            weights = project(signed, y)
            seconds = time.perf_counter() - start
            scores = evidence(_weighted(y, weights), split.test.y)
            row = {"set": name, "model": model, "split": number, "projection": projection}
            row |= {"n_calibration": y.size, "seconds": seconds}
            row |= {key: scores[key] for key in ("crps", "skce_p", "pit_p")}
            row["effective"] = float((1 / (weights**2).sum(axis=1)).mean())
            add_row(path, row, PREIMAGE_COLUMNS)
        print(f"{name} {model} {number}: projections", flush=True)


def run_bandwidth(
    sets: Iterable[str] = TRIED[0],
    models: Iterable[str] = TRIED[1],
    splits: int = 5,
    folder: Path = RESULTS,
    cache: Path = CACHE,
) -> None:
    """Add the rows of multiples of the median bandwidth that are not there yet."""
    path = folder / BANDWIDTH
    done = keys_of(path, ("set", "model", "split"))
    for name, model, number in _runs(sets, models, splits, done):
        split = load_split(name, number)
        base = forecast(name, model, number, split, calibrated=False, cache=cache)
        cases, y, test = labelled(base.calibration), split.calibration.y, labelled(base.test)
        median = float(
            cases.recal.fit(observed(y), replace(PRINTED, ridge=0.01), dim="case").state[
                "bandwidth"
            ]
        )
        for factor in FACTORS:
            method = replace(PRINTED, bandwidth=factor * median)
            model_found = cases.recal.fit(observed(y), method, dim="case")
            found = Recalibrated(model_found.apply(test), {}, 0.0, 0.0, shared=True)
            scores = evidence(found, split.test.y)
            row = {"set": name, "model": model, "split": number, "factor": factor}
            row |= {"crps": scores["crps"], "skce_p": scores["skce_p"]}
            add_row(path, row | {"ridge": float(model_found.state["ridge"])}, BANDWIDTH_COLUMNS)
        print(f"{name} {model} {number}: bandwidths", flush=True)


def run_ridge(
    sets: Iterable[str] = PRECISE[0],
    models: Iterable[str] = PRECISE[1],
    splits: int = 5,
    folder: Path = RESULTS,
    cache: Path = CACHE,
) -> None:
    """Add the rows of given ridges, down to far below those that are searched, exactly solved."""
    path = folder / RIDGE
    done = keys_of(path, ("set", "model", "split"))
    for name, model, number in _runs(sets, models, splits, done):
        split = load_split(name, number)
        base = forecast(name, model, number, split, calibrated=False, cache=cache)
        cases, test = labelled(base.calibration), labelled(base.test)
        targets = observed(split.calibration.y)
        for kernel in ("gaussian", "laplace"):
            for ridge in RIDGES:
                method = replace(PRINTED, kernel=kernel, ridge=ridge)
                found = cases.recal.fit(targets, method, dim="case").apply(test)
                scores = evidence(Recalibrated(found, {}, 0.0, 0.0, shared=True), split.test.y)
                row = {"set": name, "model": model, "split": number, "kernel": kernel}
                kept = {key: scores[key] for key in ("crps", "skce_p", "pit_p")}
                add_row(path, {**row, "ridge": ridge, **kept}, RIDGE_COLUMNS)
        print(f"{name} {model} {number}: ridges", flush=True)


def _runs(
    sets: Iterable[str], models: Iterable[str], splits: int, done: set[tuple[str, ...]]
) -> Iterable[tuple[str, str, int]]:
    for name in sets:
        for number in range(min(splits, n_splits(name))):
            for model in models:
                if (name, model, str(number)) not in done:
                    yield name, model, number


def _weighted(y: np.ndarray, weights: np.ndarray) -> Recalibrated:
    values = xr.DataArray(y, dims="member", name="y")
    found = xrecal.weighted(values, xr.DataArray(weights, dims=("case", "member")))
    return Recalibrated(found, {}, 0.0, 0.0, shared=True)
