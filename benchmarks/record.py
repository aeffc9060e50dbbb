"""Results of benchmarks: a CSV each in benchmarks/results, and in manifest.json what made it."""

import csv
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
MANIFEST = "manifest.json"
PACKAGES = ("numpy", "scipy", "numba", "xarray", "dask", "distributed", "zarr")


def store(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows to a CSV, and beside it the commit, versions and processor that they are of."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    manifest = path.with_name(MANIFEST)
    known = json.loads(manifest.read_text()) if manifest.exists() else {}
    known[path.name] = made_by()
    manifest.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def stored(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV, as texts; none where there is no file."""
    if not path.exists():
        return []
    with path.open() as file:
        return [*csv.DictReader(file)]


def store_set(
    path: Path, columns: Sequence[str], row: Mapping[str, object], sources: Iterable[str]
) -> None:
    """Write the row of a set, to five digits, in place of the one that a CSV has of it.

    Rows are in the order of sources, so that a run that was stopped can go on with another one.
    """
    rows: dict[object, Mapping[str, object]] = {old["set"]: old for old in stored(path)}
    rows[row["set"]] = row
    order = list(sources)
    sorted_rows = sorted(rows.values(), key=lambda one: order.index(str(one["source"])))
    cells = ([one[name] for name in columns] for one in sorted_rows)
    store(path, columns, ([f"{v:.5g}" if isinstance(v, float) else v for v in c] for c in cells))


def one_process_a_core() -> ProcessPoolExecutor:
    """Processes for work whose time is not judged."""
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))


def made_by() -> dict[str, object]:
    """The command that runs, the code and the machine that it runs on."""
    return {
        "command": f"python -m {_module()}",
        "commit": commit(),
        "finished": datetime.now(UTC).isoformat(timespec="minutes"),
        "python": platform.python_version(),
        "packages": {name: installed(name) for name in PACKAGES},
        "processor": processor(),
        "processors": os.cpu_count(),
    }


@cache
def commit() -> str:
    """The commit of this checkout when first asked, with "+" after it where code differs."""
    here = Path(__file__).parents[1]
    try:
        told = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
        head = subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()
        told = ["git", "-C", str(here), "status", "--porcelain", "--", "xrecal", "benchmarks/*.py"]
        changed = subprocess.run(told, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed.strip() else "")


def installed(name: str) -> str:
    """Version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """Model of the processor."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _module() -> str:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return "?" if spec is None else spec.name.removesuffix(".__main__")
