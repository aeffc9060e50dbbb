"""A kernel on the features instead of a base model: kernelised distribution regression."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import xarray as xr

import xrecal
from benchmarks.paper.data import Part, load_split, n_splits, set_names
from benchmarks.paper.recalibration import Recalibrated
from benchmarks.paper.ridges import held_out_losses
from benchmarks.paper.tables import RESULTS, add_row, keys_of
from benchmarks.speed import dense

from .scores import evidence

FILE = "features.csv"
COLUMNS = ("set", "split", "n_used", "factor", "ridge", "crps", "skce", "skce_p", "pit_p")
FACTORS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
"""Of the median squared distance of the features."""
RIDGES = 10.0 ** np.arange(-8, 0.1, 0.5)
CHOSEN_ON, SOLVED_WITH = 1000, 4000
"""Rows at most that bandwidth and ridge are chosen on, and that the forecast is made of."""


def squared_distances(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances (n, q) of features."""
    found = (x**2).sum(1)[:, np.newaxis] + (z**2).sum(1) - 2 * x @ z.T
    return np.maximum(found, 0.0)


def standardised(train: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    std = train.std(axis=0)
    std = np.where(std > 0, std, 1.0)
    mean = train.mean(axis=0)
    return (train - mean) / std, (others - mean) / std


def losses(gram: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean held-out CRPS of each ridge, from five folds."""
    return held_out_losses(gram, dense.energy_gram(y), RIDGES)


def predict(rows: Part, x_new: np.ndarray, seed: int) -> tuple[Recalibrated, dict[str, object]]:
    """Weighted ensembles of past targets for new features, and what was chosen."""
    order = np.random.default_rng(seed).permutation(rows.y.size)[:SOLVED_WITH]
    x, x_new = standardised(rows.x[order], x_new)
    y = rows.y[order]
    few = x[:CHOSEN_ON]
    among = squared_distances(few, few)
    s = float(np.median(among[np.triu_indices(len(few), 1)]))
    tried = {f: losses(np.exp(-among / (f * s)), y[:CHOSEN_ON]) for f in FACTORS}
    factor = min(tried, key=lambda f: tried[f].min())
    ridge = float(RIDGES[tried[factor].argmin()])
    gram = np.exp(-squared_distances(x, x) / (factor * s))
    gram[np.diag_indices(y.size)] += ridge * y.size
    signed = np.linalg.solve(gram, np.exp(-squared_distances(x, x_new) / (factor * s)))
    signed += (1 - signed.sum(axis=0)) / y.size
    weights = xrecal.arrays.project_simplex(signed.T)
    found = xrecal.weighted(
        xr.DataArray(y, dims="member", name="y"), xr.DataArray(weights, dims=("case", "member"))
    )
    chosen = {"n_used": y.size, "factor": factor, "ridge": ridge}
    return Recalibrated(found, {}, 0.0, 0.0, shared=True), chosen


def run(
    sets: Iterable[str] | None = None, splits: int | None = None, folder: Path = RESULTS
) -> None:
    """Add the rows that are not there yet."""
    path = folder / FILE
    done = keys_of(path, ("set", "split"))
    for name in set_names() if sets is None else sets:
        for number in range(min(n_splits(name), splits or n_splits(name))):
            if (name, str(number)) in done:
                continue
            split = load_split(name, number)
            found, chosen = predict(split.both, split.test.x, number)
            scores = evidence(found, split.test.y)
            kept = {key: scores[key] for key in ("crps", "skce", "skce_p", "pit_p")}
            add_row(path, {"set": name, "split": number, **chosen, **kept}, COLUMNS)
            print(f"{name} {number} kernel on features: CRPS {kept['crps']:.4g}", flush=True)
