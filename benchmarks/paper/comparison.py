"""Our values beside the paper's: where they agree, where they do not, and the likely cause."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from .summary import Key, Ratio, pairs

COMPARED = {
    "none_tc": "none_tc",
    "ckme": "ckme",
    "ckme_laplace": "ckme",
    "pit": "pit",
    "gp_beta": "gpbeta",
}
"""Our labels, and those of the paper's values that go with them."""
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
        # Two splits or less do not tell how much they vary: not less than the paper's.
        sd = self.ours.sd if self.ours.splits > 2 else max(self.ours.sd, self.paper.sd)
        variance = sd**2 / self.ours.splits + self.paper.sd**2 / self.paper.splits
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
        for method, printed in COMPARED.items():
            theirs = paper.get((name, model, printed))
            mine = ours.get((name, model, method))
            if mine and theirs:
                found.append(Cell(model, name, method, mine, theirs))
    return found


def cause(cell: Cell) -> str:
    """Why an entry may differ, by what is known to differ between the two experiments."""
    lower = cell.ours.mean < cell.paper.mean
    if cell.method == "none_tc":
        return FOREST if cell.model == "DRF" else TRAINING
    if cell.method == "pit":
        return UNEVEN
    if cell.method == "gp_beta":
        return PROCESS
    if cell.set_name == "naval" and not lower:
        return RIDGES
    if cell.model == "DRF":
        return SMOOTHER if lower else SHARPER
    if cell.set_name in FEW_CASES:
        return MORE_LEFT if lower else COARSE
    return MORE_LEFT if lower else LESS_LEFT


FEW_CASES = ("yacht", "housing", "energy", "concrete", "wine")
FOREST = "our forest splits by the variance, so further rows change it otherwise"
TRAINING = (
    "our networks are trained and stopped otherwise, on which both scores of the ratio depend"
)
UNEVEN = "how far the base model's PIT is from flat differs with its training"
PROCESS = "the process is fitted otherwise, to other base models"
RIDGES = (
    "the search for the ridge ended at 3e-7 in these rows; less, or exp(-D/s), does better here "
    "(see below)"
)
SMOOTHER = "our forest is smoother than theirs, so more can be corrected"
SHARPER = "our forest is closer to the targets than theirs, so less can be corrected"
COARSE = (
    "our network is sharper before recalibration, for which the few past targets are a coarse "
    "support"
)
MORE_LEFT = "our network leaves more to correct"
LESS_LEFT = "our network is better calibrated before, so less can be corrected"


def counts(found: Iterable[Cell]) -> dict[str, dict[str, int]]:
    """Verdicts by method."""
    result: dict[str, dict[str, int]] = {}
    for cell in found:
        row = result.setdefault(cell.method, dict.fromkeys((EQUAL, SAME, OPPOSITE), 0))
        row[cell.verdict] += 1
    return result
