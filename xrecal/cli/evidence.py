"""The command that prints how good methods are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import xarray as xr

from xrecal.diagnostics.compare import DEFAULTS, compare
from xrecal.diagnostics.comparison import REFERENCES
from xrecal.inputs.metadata import shown_units
from xrecal.methods import Method
from xrecal.plan.planning import plan

from .inputs import Pair, Selection, Source, forecast_variables, pool_dims
from .plan import numbers_of, table_of
from .session import Result, Session

SPLITS = ("by", "gap", "window", "every", "refit")
"""Arguments that split a hindcast."""


class Asked(NamedTuple):
    """What is compared."""

    methods: Sequence[Method] | None
    options: Mapping[str, Any]
    """Further arguments of ``compare``."""
    forecast: Source | None
    """To score in place of cases held out."""
    dry_run: bool


def compare_files(session: Session, pair: Pair, asked: Asked) -> Result:
    """Table of methods on cases that they have not seen: those held out, or new forecasts."""
    methods, options, new, dry_run = asked
    hindcast, observed, blocks = pair.open(pool_dims(options["pool"]))
    if dry_run:
        return _planned(hindcast, observed, pair.chosen, asked)
    forecast = None
    if new is not None:
        of = pair.chosen
        forecast, _ = forecast_variables(new.open(blocks), of.variable, of.member_dim, new.name)
    with session.bar():
        table = compare(
            hindcast,
            observed,  # type: ignore[arg-type]  # a Dataset of one variable will do
            methods,
            forecast=forecast,
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


def _planned(hindcast: xr.Dataset, observed: Any, chosen: Selection, asked: Asked) -> Result:
    """The plan of each method: of its cross-validation, or of its fit to the whole hindcast."""
    options = dict(asked.options) | {"dim": chosen.dim, "member_dim": chosen.member_dim}
    if asked.forecast is not None:
        options = {name: value for name, value in options.items() if name not in SPLITS}
    methods = asked.methods or DEFAULTS.values()
    plans = {str(one): plan(hindcast, observed, one, probe=False, **options) for one in methods}
    text = "\n".join(f"{label}\n{table_of(one)}" for label, one in plans.items())
    told = {label: numbers_of(one) for label, one in plans.items()}
    return Result({"status": "planned", "methods": told}, text)


def number(value: float) -> float | None:
    """The value, or None where it is not finite, which JSON cannot say."""
    return value if math.isfinite(value) else None
