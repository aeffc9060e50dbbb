"""What a daily cycle is asked for, and what it tells of its work."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from xrecal.chunks.texts import quoted
from xrecal.inputs.metadata import shown_units

from .archive import Date
from .cycle_scores import means
from .fit_apply import Product
from .inputs import Source
from .monitoring import Watch

BESIDE = {"issued_before": "issued before", "in_hindcast": "in the hindcast"}
"""Counts of starts that nobody waits for."""

NOT_ISSUED = {
    "too_late": "too late", "early": "of the future", "empty": "empty", "refused": "refused"
}  # fmt: skip
"""Starts that are not issued, by the reason."""


@dataclass(frozen=True)
class Cycle:
    """What a cycle is asked for."""

    model: Source
    forecasts: Sequence[str]
    observations: Sequence[str]
    output: str
    product: Product
    variable: str | None
    observed_variable: str | None
    keep: int
    """Models that are kept."""
    watch: Watch
    model_at: Date | None
    """Go back to the model of this date."""
    now: Date


@dataclass
class Done:
    """What a run has done."""

    issued: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """Those issued after later ones."""
    missing: list[str] = field(default_factory=list)
    """Those issued without a value at any place."""
    n_before: int = 0
    """Those issued by an earlier run."""
    too_late: list[str] = field(default_factory=list)
    """Not issued, as every model there is knows what came after."""
    hindcast: list[str] = field(default_factory=list)
    """Cases of the first fit, older than all that is issued."""
    early: list[str] = field(default_factory=list)
    """Later than now."""
    empty: list[str] = field(default_factory=list)
    """Without a member at any place."""
    refused: dict[str, str] = field(default_factory=dict)
    """Messages by start."""
    n_learned: int = 0
    n_revised: int = 0
    n_future: int = 0
    n_scored: int = 0
    n_unscored: int = 0
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    has_written: bool = False

    @property
    def not_issued(self) -> dict[str, Any]:
        """Starts that have no forecast, by the reason."""
        return {
            "too_late": self.too_late,
            "early": self.early,
            "empty": self.empty,
            "refused": self.refused,
            "in_hindcast": len(self.hindcast),
        }

    def data(self, folder: Path, n_starts: int) -> dict[str, Any]:
        """Results for machines."""
        return {
            "status": "complete" if self.has_written else "nothing new",
            "output": str(folder),
            "starts": n_starts,
            "issued": self.issued,
            "late": self.late,
            "issued_before": self.n_before,
            **self.not_issued,
            "learned": self.n_learned,
            "revised": self.n_revised,
            "of_the_future": self.n_future,
            "scored": self.n_scored,
            "unscored": self.n_unscored,
            "scores": {name: means(one) for name, one in self.scores.items()},
        }

    def why_incomplete(self, newest: str) -> str | None:
        """Why a run has not done what it was asked for; None if it has."""
        if self.refused:
            return f"not issued: {', '.join(self.refused)}; the warning says why"
        if newest in (*self.too_late, *self.empty):
            return f"the newest start, {newest}, is not issued; the warning says why"
        return None

    def part_from_hindcast(self, cases: Collection[str], issued: Sequence[str]) -> None:
        """Part cases of the first fit, where a later start is issued, from what came too late."""
        first = issued[0] if issued else ""
        self.hindcast = [stem for stem in self.too_late if stem < first and stem in cases]
        self.too_late = [stem for stem in self.too_late if stem not in self.hindcast]

    def tell(self, name: Hashable, piece: xr.Dataset) -> None:
        """Add scores to those that are told."""
        told = self.scores.setdefault(str(name), {"n": 0, "crps": 0.0, "crps_raw": 0.0})
        told["n"] += int(piece[f"{name}_crps"].notnull().sum())
        for what in ("crps", "crps_raw"):
            told[what] += float(piece[f"{name}_{what}"].sum())
        told["units"] = shown_units(piece[f"{name}_crps"].attrs)


def text_of(data: Mapping[str, Any]) -> str:
    """What a run has done, for people."""
    late = f" ({len(data['late'])} of them late)" if data["late"] else ""
    counts = [f"{len(data['issued'])} issued{late}"]
    counts += [f"{data[name]} {words}" for name, words in BESIDE.items() if data[name]]
    counts += [f"{len(data[name])} {words}" for name, words in NOT_ISSUED.items() if data[name]]
    lines = [
        f"{quoted(data['output'])}: of {data['starts']} starts {', '.join(counts)}; "
        f"learned {data['learned']} observations"
        + (f" and {data['revised']} revisions" if data["revised"] else "")
        + f", scored {data['scored']}"
    ]
    for name, one in data["scores"].items():
        if one["crps"] is not None:
            lines.append(
                f"{quoted(name)}: CRPS {one['crps']:.4g} {one['units']}, "
                f"raw {one['crps_raw']:.4g}, {one['n']} cases"
            )
    if data["alarms"] or data["changes"]:
        lines.append(f"{data['alarms']} alarms, {data['changes']} changes of calibration")
    return "\n".join(lines)
