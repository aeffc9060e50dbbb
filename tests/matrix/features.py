"""Features as axes of a service: fits of places, predictors, forms, and steps after the fit."""

from itertools import combinations, product
from typing import Any

import xrecal

FEW = (xrecal.EMOS(), xrecal.CKME())

METHODS: dict[str, Any] = {
    type(method).__name__: method
    for method in (
        xrecal.CKME(),
        xrecal.LinearPool(FEW),
        xrecal.OnlinePool(FEW[:1]),
        xrecal.EMOS(),
        xrecal.IDR(),
        xrecal.PITRecalibration(),
        xrecal.ConformalPrediction(),
        xrecal.Climatology(),
        xrecal.Raw(),
    )
}
"""By name; pools of few methods, so that tests are fast."""

AXES: dict[str, tuple[str, ...]] = {
    "places": ("each place", "few cases pooled", "many cases pooled", "windows"),
    "choices": ("choices of all places", "choices of each place"),
    "given": (
        "the forecast",
        "season",
        "predictors",
        "predictors, later missing",
        "predictors, later broken",
    ),
    "gap": ("no gap", "gap"),
    "memory": ("all cases alike", "half-life"),
    "leads": ("no leads", "leads"),
    "form": ("members", "named members", "weighted", "quantiles", "normal"),
    "arrays": ("NumPy", "Dask"),
    "step": (
        "apply",
        "quantile",
        "save and open",
        "update",
        "update with a new place",
        "apply at a new place",
        "by year",
        "by block",
        "retrospective",
        "rolling",
        "rolling with refit",
        "compare",
        "plan",
        "command",
    ),
}
"""Values of each axis; the first one is what a call without arguments does."""

USUAL = {axis: values[0] for axis, values in AXES.items()}


def cases() -> list[dict[str, str]]:
    """Every method with every feature, the other axes as usual."""
    alone = [
        {**USUAL, axis: value}
        for axis, values in AXES.items()
        for value in (values if axis == "step" else values[1:])
    ]
    return [{"method": method, **case} for method in METHODS for case in alone]


def pairs(method: str) -> list[dict[str, str]]:
    """A method with any two features."""
    found = []
    for one, other in combinations(AXES, 2):
        for values in product(AXES[one], AXES[other]):
            case = {**USUAL, one: values[0], other: values[1]}
            if all(case[axis] != USUAL[axis] for axis in (one, other)):
                found.append({"method": method, **case})
    return found


def feature(case: dict[str, str]) -> str:
    """The features of a case that are not the usual ones, as a name."""
    return " + ".join(v for a, v in case.items() if a in AXES and v != USUAL[a]) or USUAL["step"]
