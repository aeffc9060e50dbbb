"""Commands that print how good forecasts or methods are."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from xrecal.diagnostics import crps
from xrecal.diagnostics.compare import compare
from xrecal.diagnostics.comparison import REFERENCES
from xrecal.fit.mismatch_warnings import NOVEL
from xrecal.inputs.forms import ancillary
from xrecal.inputs.metadata import shown_units
from xrecal.methods import Method
from xrecal.products.apply import FAR

from .inputs import Pair
from .session import Result, Session

TOLD = {"novel": ("novelty", NOVEL), "beyond": ("beyond", FAR)}
"""What is counted of forecasts: the role of a variable beside them, and the limit above which."""


def score_files(session: Session, pair: Pair) -> Result:
    """Mean CRPS of forecasts of any form."""
    forecasts, observed, _ = pair.open()
    scores = crps(forecasts, observed, member_dim=pair.chosen.member_dim)
    by_name = dict(scores.data_vars) if isinstance(scores, xr.Dataset) else {"crps": scores}
    lazy = {
        name: (one.mean(dtype=np.float64), one.notnull().sum()) for name, one in by_name.items()
    }
    told = {what: _counts_above(pair, by_name, *limit) for what, limit in TOLD.items()}
    computed, counts = session.compute([lazy, told])
    by_variable: dict[str, dict[str, Any]] = {}
    lines = []
    for name, one in by_name.items():
        mean, n_cases = (value.item() for value in computed[name])
        units = shown_units(one.attrs)
        by_variable[str(name)] = {"crps": number(mean), "units": units, "n_cases": n_cases}
        lines.append(f"{name}: CRPS {mean:.4g} {units}".rstrip() + f", {n_cases} cases")
        for what, count in counts.items():
            if name in count:
                by_variable[str(name)][f"n_{what}"] = n = count[name].item()
                lines[-1] += f", {n} {what}"
    return Result({"status": "complete", "scores": by_variable}, "\n".join(lines))


def _counts_above(
    pair: Pair, names: Iterable[Hashable], role: str, limit: float
) -> dict[Hashable, xr.DataArray]:
    """Numbers of forecasts with more than a limit of what stands beside them in a role."""
    dataset = pair.forecasts.open({})
    found = {name: ancillary(dataset, name, role) for name in names if name in dataset}
    return {name: (dataset[of] > limit).sum() for name, of in found.items() if of is not None}


def compare_files(
    session: Session, pair: Pair, methods: Sequence[Method] | None, options: Mapping[str, Any]
) -> Result:
    """Table of methods on held-out cases; ``options`` are further arguments of ``compare``."""
    hindcast, observed, _ = pair.open()
    with session.bar():
        table = compare(
            hindcast,
            observed,  # type: ignore[arg-type]  # a Dataset of one variable will do
            methods,
            dim=pair.chosen.dim,
            member_dim=pair.chosen.member_dim,
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
        str(label): {name: number(values[i].item()) for name, values in numbers.items()}
        for i, label in enumerate(table["method"].to_numpy())
    }
    data = {
        "status": "complete",
        "n_cases": int(cases.sum()),
        "units": shown_units(table["crps"].attrs),
        "methods": by_method,
    }
    return Result(data, repr(table))


def number(value: float) -> float | None:
    """The value, or None where it is not finite, which JSON cannot say."""
    return value if math.isfinite(value) else None
