"""Our values beside the paper's: where they agree, where they do not, and the likely cause."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from .summary import Key, Ratio, pairs

COMPARED = ("none_tc", "ckme", "ckme_laplace", "pit")
EQUAL, SAME, OPPOSITE = "equal", "same side", "opposite"
MARGIN = 0.02
"""How far from 1 a ratio must be to stand on one side of it."""


class Cell(NamedTuple):
    """One entry of the table, ours and the paper's."""

    model: str
    set_name: str
    method: str
    ours: Ratio
    paper: Ratio

    @property
    def verdict(self) -> str:
        """Equal within two standard errors of the difference, or on which side of 1."""
        variance = self.ours.sd**2 / self.ours.splits + self.paper.sd**2 / self.paper.splits
        if abs(self.ours.mean - self.paper.mean) <= max(2 * np.sqrt(variance), MARGIN):
            return EQUAL
        sides = {_side(ratio.mean) for ratio in (self.ours, self.paper)}
        return SAME if len(sides) == 1 or 0 in sides else OPPOSITE


def _side(ratio: float) -> int:
    return 0 if abs(ratio - 1) <= MARGIN else (1 if ratio > 1 else -1)


def cells(ours: Mapping[Key, Ratio], paper: Mapping[Key, Ratio]) -> list[Cell]:
    """All entries that both have; both forms of our kernel go with the paper's CKME."""
    found = []
    for model, name in pairs(paper):
        for method in COMPARED:
            theirs = paper.get((name, model, "ckme" if method == "ckme_laplace" else method))
            mine = ours.get((name, model, method))
            if mine and theirs:
                found.append(Cell(model, name, method, mine, theirs))
    return found


def cause(cell: Cell) -> str:
    """Why an entry may differ, by what is known to differ between the two experiments."""
    lower = cell.ours.mean < cell.paper.mean
    if cell.method == "none_tc":
        return (
            "both ratios depend on how a network is trained and stopped; ours has other "
            "learning rates and held-out rows"
            if cell.model != "DRF"
            else "our forest splits by variance and gains more or less from further rows"
        )
    if cell.model == "DRF":
        return (
            "our forest is smoother than theirs, so more can be corrected"
            if lower
            else "our forest forecasts these rows better than theirs, so less can be corrected"
        )
    if cell.set_name in ("yacht", "housing", "energy"):
        return (
            "our network leaves more to correct on this small set"
            if lower
            else "our network is better before recalibration, and the few past targets are a "
            "coarse support for sharp forecasts"
        )
    return (
        "our network leaves more to correct"
        if lower
        else "our network is better calibrated before, so less can be corrected"
    )


def counts(found: Iterable[Cell]) -> dict[str, dict[str, int]]:
    """Verdicts by method."""
    result: dict[str, dict[str, int]] = {}
    for cell in found:
        row = result.setdefault(cell.method, dict.fromkeys((EQUAL, SAME, OPPOSITE), 0))
        row[cell.verdict] += 1
    return result
