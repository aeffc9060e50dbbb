"""Commands that print how good forecasts or methods are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from xrecal.diagnostics import crps
from xrecal.diagnostics.compare import compare
from xrecal.diagnostics.comparison import REFERENCES
from xrecal.inputs.metadata import shown_units
from xrecal.methods import Method

from .inputs import Selection, Source, paired
from .session import Result, Session


def score_files(
    session: Session, forecast: Source, observations: Source, chosen: Selection
) -> Result:
    """Mean CRPS of forecasts of any form."""
    (given, observed), _, _ = paired(forecast, observations, chosen)
    scores = crps(given, observed, member_dim=chosen.member_dim)
    by_name = dict(scores.data_vars) if isinstance(scores, xr.Dataset) else {"crps": scores}
    lazy = {
        name: (one.mean(dtype=np.float64), one.notnull().sum()) for name, one in by_name.items()
    }
    (computed,) = session.compute([lazy])
    found, lines = {}, []
    for name, one in by_name.items():
        mean, n_cases = (value.item() for value in computed[name])
        units = shown_units(one.attrs)
        found[str(name)] = {"crps": _number(mean), "units": units, "n_cases": n_cases}
        lines.append(f"{name}: CRPS {mean:.4g} {units}".rstrip() + f", {n_cases} cases")
    return Result({"status": "complete", "scores": found}, "\n".join(lines))


def compare_files(
    session: Session,
    hindcast: Source,
    observations: Source,
    chosen: Selection,
    methods: Sequence[Method] | None,
    options: Mapping[str, Any],
) -> Result:
    """Table of methods on held-out cases; ``options`` are further arguments of ``compare``."""
    (given, observed), _, _ = paired(hindcast, observations, chosen)
    with session.bar():
        table = compare(
            given,
            observed,  # type: ignore[arg-type]  # a Dataset of one variable will do
            methods,
            dim=chosen.dim,
            member_dim=chosen.member_dim,
            **options,
        )
    cases = table["n_cases"]
    others = [d for d in table["crps"].dims if d != "method"]
    whole = "overall_" if others else ""
    means = (table["crps"] * cases).sum(others) / cases.sum()
    numbers = {
        "crps": means,
        **{f"skill_{r}": 1 - means / means.sel({"method": r}, drop=True) for r in REFERENCES},
        **{n: table[f"{whole}{n}"] for n in ("crps_error", "p_climatology", "p_raw")},
        **{n: table[n] for n in ("fit_seconds", "apply_seconds")},
    }
    if not others:  # p-values of many locations are no number
        numbers |= {n: table[n] for n in ("pit_p_value", "skce", "skce_p_value")}
    by_method = {
        str(label): {name: _number(values[i].item()) for name, values in numbers.items()}
        for i, label in enumerate(table["method"].to_numpy())
    }
    data = {
        "status": "complete",
        "n_cases": int(cases.sum()),
        "units": shown_units(table["crps"].attrs),
        "methods": by_method,
    }
    return Result(data, repr(table))


def _number(value: float) -> float | None:
    """As JSON has it, which knows no NaN."""
    return value if math.isfinite(value) else None
