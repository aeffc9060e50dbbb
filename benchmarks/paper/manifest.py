"""What the results were made with: versions, seeds, processor, time."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.record import commit, installed, processor

from .tables import RESULTS

PACKAGES = (
    *("numpy", "scipy", "numba", "xarray", "jax", "jaxlib", "optax", "scikit-learn", "clarabel"),
)
FILE = "manifest.json"
SEEDS = {
    "models": "number of the split; networks start from 1000, 2000 (BNN) plus it",
    "splits of bike and sinus": "number of the split",
    "sinus": 0,
    "tests and PIT": 0,
}


def write(command: str, seconds: float, folder: Path = RESULTS) -> None:
    """Add one run to the manifest."""
    path = folder / FILE
    found = read(folder)
    runs = [*found.get("runs", []), _run(command, seconds)]
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**description(), "runs": runs}, indent=1) + "\n")


def read(folder: Path = RESULTS) -> Mapping[str, object]:
    """The manifest; nothing if there is none."""
    path = folder / FILE
    return json.loads(path.read_text()) if path.exists() else {}


def description() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "packages": {name: installed(name) for name in PACKAGES},
        "processor": processor(),
        "processors": os.cpu_count(),
        "seeds": SEEDS,
    }


def _run(command: str, seconds: float) -> dict[str, object]:
    end = datetime.now(UTC).isoformat(timespec="minutes")
    made = {"command": command, "commit": commit(), "processor": processor()}
    return {**made, "seconds": round(seconds), "finished": end}
