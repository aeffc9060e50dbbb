"""A small run of all experiments in two minutes: python -m benchmarks.paper smoke.

The forest and the normal distributions of the synthetic set only, so that no framework for
networks is needed; in a folder that is thrown away.
"""

import tempfile
from pathlib import Path

import numpy as np

from . import report
from .data import FOLDER, Part, Split, load_split, set_names
from .experiments import ablations, clock, edk, scores
from .experiments.scores import COLUMNS, row_of
from .summary import ratios
from .tables import add_row, read_rows

METHODS = ("none", "none_tc", "ckme", "ckme_laplace", "pit", "conformal", "auto", "energy")
SINUS_ROWS = (10, 1200, 500)
FEWEST_ROWS = "yacht"


def few_rows(split: Split) -> Split:
    """The first rows of each part."""
    return Split(*(Part(p.x[:n], p.y[:n]) for p, n in zip(split, SINUS_ROWS, strict=True)))


def main() -> None:
    """Run, write a report, and check what must hold."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, cache = folder / scores.FILE, folder / "cache"
        small = few_rows(load_split("sinus", 0))
        for method in METHODS:
            add_row(path, row_of("sinus", "oracle", 0, method, small, cache), COLUMNS)
        if FEWEST_ROWS in set_names():
            scores.run([FEWEST_ROWS], ["DRF"], METHODS, 2, folder, cache)
            ablations.run_preimage([FEWEST_ROWS], ["DRF"], 1, folder, cache)
            ablations.run_bandwidth([FEWEST_ROWS], ["DRF"], 1, folder, cache)
            clock.run([FEWEST_ROWS], ["DRF"], folder, cache)
        else:
            print(f"no sets of features in {FOLDER}: the synthetic one alone")
        edk.run(sizes=(10, 30), trials=2, folder=folder)
        text = report.write(folder, folder / "REPORT.md")
        print(text)
        judge(read_rows(path))


def judge(rows: list[dict[str, str]]) -> None:
    """The claims that must hold on so few cases; raises SystemExit where one does not."""
    found = ratios(rows)
    by_method = {row["method"]: row for row in rows if row["set"] == "sinus"}
    gain = found["sinus", "oracle", "ckme"].mean
    checks = {
        f"sinus: CKME's CRPS over that of a normal with the right moments {gain:.3f} (< 0.95)": gain
        < 0.95,
        f"sinus: SKCE rejects the normal, p = {by_method['none']['skce_p']} (< 0.05)": float(
            by_method["none"]["skce_p"]
        )
        < 0.05,
        f"sinus: SKCE accepts CKME, p = {by_method['ckme']['skce_p']} (>= 0.05)": float(
            by_method["ckme"]["skce_p"]
        )
        >= 0.05,
    }
    if ("yacht", "DRF", "ckme") in found:
        loss = found["yacht", "DRF", "ckme"].mean
        checks[f"yacht: CKME's CRPS over the forest's {loss:.3f} (< 1)"] = loss < 1
    for told, holds in checks.items():
        print(f"{'holds' if holds else 'MISSED'}: {told}")
    if not np.all(list(checks.values())):
        raise SystemExit("the smoke run of the paper's experiments missed a claim")
