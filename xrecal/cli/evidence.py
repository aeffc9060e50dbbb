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

from .inputs import Pair
from .session import Result, Session


def score_files(session: Session, pair: Pair) -> Result:
    """Mean CRPS of forecasts of any form."""
    forecasts, observed, _ = pair.open()
    scores = crps(forecasts, observed, member_dim=pair.chosen.member_dim)
    by_name = dict(scores.data_vars) if isinstance(scores, xr.Dataset) else {"crps": scores}
    lazy = {
        name: (one.mean(dtype=np.float64), one.notnull().sum()) for name, one in by_name.items()
    }
    computed, novel = session.compute([lazy, _novel(pair, by_name)])
    by_variable: dict[str, dict[str, Any]] = {}
    lines = []
    for name, one in by_name.items():
        mean, n_cases = (value.item() for value in computed[name])
        units = shown_units(one.attrs)
        by_variable[str(name)] = {"crps": _number(mean), "units": units, "n_cases": n_cases}
        lines.append(f"{name}: CRPS {mean:.4g} {units}".rstrip() + f", {n_cases} cases")
        if name in novel:
            by_variable[str(name)]["n_novel"] = novel[name].item()
            lines[-1] += f", {novel[name].item()} novel"
    return Result({"status": "complete", "scores": by_variable}, "\n".join(lines))


def _novel(pair: Pair, names: Iterable[Hashable]) -> dict[Hashable, xr.DataArray]:
    """Numbers of forecasts unlike past ones, of variables whose novelty stands beside them."""
    dataset = pair.forecasts.open({})
    found = {name: ancillary(dataset, name, "novelty") for name in names if name in dataset}
    return {name: (dataset[of] > NOVEL).sum() for name, of in found.items() if of is not None}


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
    """The value, or None where it is not finite, which JSON cannot say."""
    return value if math.isfinite(value) else None
