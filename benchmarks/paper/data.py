"""Sets of features and targets, in the splits of the paper."""

import gzip
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(os.environ.get("XRECAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "uci"
"""Holds ``.npz`` files with data, index_features, index_target, index_train, index_test."""

NAMES = {
    "bostonHousing": "housing",
    "naval-propulsion-plant": "naval",
    "protein-tertiary-structure": "protein",
    "power-plant": "power",
    "wine-quality-red": "wine",
}
"""Names in the paper of files that are called otherwise."""

ORDER = (
    *("yacht", "housing", "energy", "concrete", "wine", "kin8nm"),
    *("power", "naval", "bike", "sinus", "sinus_printed", "protein"),
)
"""Of the sets in the paper's tables, the smallest first."""

BIKE = "bike_sharing_hour.csv.gz"
DROPPED = ("instant", "dteday", "casual", "registered", "cnt")
"""Columns of the bike set that are no features: the target, its parts, and labels of rows."""

SHARE_OF_CALIBRATION, SHARE_OF_TEST = 0.2, 0.1
SINUS_CASES = 20_000
SMALL, SPLITS, FEW_SPLITS = 2000, 20, 5
"""Sets with at most 2000 rows are run in up to 20 splits, others in 5."""


class Table(NamedTuple):
    """Features (n, p), targets (n,), and rows of training and test in each split."""

    features: np.ndarray
    targets: np.ndarray
    train: np.ndarray
    test: np.ndarray


class Part(NamedTuple):
    """Features (n, p) and targets (n,) of some rows."""

    x: np.ndarray
    y: np.ndarray


class Split(NamedTuple):
    """Rows to train a model on, to calibrate it on, and to score it on."""

    train: Part
    calibration: Part
    test: Part

    @property
    def both(self) -> Part:
        """Training and calibration together."""
        return Part(
            *(np.concatenate(pair) for pair in zip(self.train, self.calibration, strict=False))
        )


def set_names(folder: Path = FOLDER) -> list[str]:
    """Sets that are there, in the order of the paper; others after them."""
    files = [NAMES.get(path.stem, path.stem) for path in sorted(folder.glob("*.npz"))]
    found = [*files, *(["bike"] if (folder / BIKE).exists() else []), "sinus", "sinus_printed"]
    return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


@cache
def load_table(name: str, folder: Path = FOLDER) -> Table:
    """All rows of a set with its splits."""
    if name in ("sinus", "sinus_printed"):
        return _with_random_splits(*_sinus(printed=name == "sinus_printed"))
    if name == "bike":
        return _with_random_splits(*_bike(folder / BIKE))
    stems = [stem for stem, alias in NAMES.items() if alias == name]
    for stem in (*stems, name):
        path = folder / f"{stem}.npz"
        if path.exists():
            return _from_file(path)
    raise SystemExit(f"no set {name!r}; {folder} and the code hold {', '.join(set_names(folder))}")


def _from_file(path: Path) -> Table:
    with np.load(path) as file:
        needed = {"data", "index_features", "index_target", "index_train", "index_test"}
        if needed - set(file):
            raise ValueError(f"{path} lacks {', '.join(sorted(needed - set(file)))}")
        data = file["data"]
        return Table(
            data[:, file["index_features"]],
            data[:, int(file["index_target"])],
            file["index_train"],
            file["index_test"],
        )


def _bike(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(path, "rt") as file:
        names = file.readline().strip().split(",")
        kept = [i for i, name in enumerate(names) if name not in DROPPED]
        target = names.index("cnt")
        rows = np.loadtxt(file, delimiter=",", usecols=[*kept, target])
    return rows[:, :-1], rows[:, -1]


def _sinus(*, printed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two modes at x ± sin(3x), or at x ± sin(3x/20) as the appendix prints it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, SINUS_CASES)
    shift = np.sin(3 * x / 20 if printed else 3 * x)
    y = x + rng.choice([-1.0, 1.0], SINUS_CASES) * shift + rng.normal(0, 0.1, SINUS_CASES)
    return x[:, np.newaxis], y


def _with_random_splits(features: np.ndarray, targets: np.ndarray) -> Table:
    n = targets.size
    orders = [np.random.default_rng(seed).permutation(n) for seed in range(SPLITS)]
    cut = n - round(SHARE_OF_TEST * n)
    return Table(
        features, targets, np.stack([o[:cut] for o in orders]), np.stack([o[cut:] for o in orders])
    )


def n_splits(name: str, folder: Path = FOLDER) -> int:
    """Splits that are run: all of a small set, some of a large one."""
    table = load_table(name, folder)
    return min(len(table.train), SPLITS if table.targets.size <= SMALL else FEW_SPLITS)


def load_split(name: str, number: int, folder: Path = FOLDER) -> Split:
    """One split; the last fifth of the training rows, whose order is random, calibrates."""
    table = load_table(name, folder)
    if not 0 <= number < len(table.train):
        raise ValueError(f"{name} has splits 0 to {len(table.train) - 1}, got {number}")
    rows = table.train[number]
    cut = int((1 - SHARE_OF_CALIBRATION) * rows.size)
    parts = rows[:cut], rows[cut:], table.test[number]
    return Split(*(Part(table.features[part], table.targets[part]) for part in parts))
