"""What a daily cycle is asked for, and what it tells of its work."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from xrecal.chunks.texts import quoted
from xrecal.inputs.metadata import shown_units

from .archive import Date
from .fit_apply import Product
from .inputs import Source
from .monitoring import Watch


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
    too_late: list[str] = field(default_factory=list)
    n_learned: int = 0
    n_revised: int = 0
    n_future: int = 0
    n_scored: int = 0
    n_unscored: int = 0
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    has_written: bool = False

    def tell(self, name: Hashable, piece: xr.Dataset) -> None:
        """Add scores to those that are told."""
        told = self.scores.setdefault(str(name), {"n": 0, "crps": 0.0, "crps_raw": 0.0})
        told["n"] += int(piece[f"{name}_crps"].notnull().sum())
        for what in ("crps", "crps_raw"):
            told[what] += float(piece[f"{name}_{what}"].sum())
        told["units"] = shown_units(piece[f"{name}_crps"].attrs)


def text_of(data: Mapping[str, Any]) -> str:
    """What a run has done, for people."""
    lines = [
        f"{data['output']}: issued {len(data['issued'])}, learned {data['learned']} observations"
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
