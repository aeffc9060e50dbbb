"""Base models by the name that the paper gives them: features to distributions of the target."""

from collections.abc import Callable
from importlib import import_module

import numpy as np

from benchmarks.paper.data import Part, Split
from benchmarks.paper.forecasts import CACHE, Forecasted, Forecasts, kept

MODELS = {
    "GDN": ("density", "gaussian"),
    "MDN": ("density", "mixture"),
    "BNN": ("bayesian", "bayesian"),
    "DRF": ("forest", "forest"),
    "oracle": ("analytic", "analytic"),
}
"""Module and function of each; the function is called with training rows, features of the cases to
forecast and a seed. "oracle" is for the synthetic set alone and trains nothing."""

NETWORKS = ("GDN", "MDN", "BNN")

Model = Callable[[Part, list[np.ndarray], int], list[Forecasts]]


def find_model(name: str) -> Model:
    if name not in MODELS:
        raise ValueError(f"no model {name!r}; there are {', '.join(MODELS)}")
    module, function = MODELS[name]
    found: Model = getattr(import_module(f".{module}", __name__), function)
    return found


def forecast(
    set_name: str, model: str, number: int, split: Split, *, calibrated: bool, cache=CACHE
) -> Forecasted:
    """Forecasts of a model, trained on the training rows or, if told, on those to calibrate too."""

    def make() -> Forecasted:
        rows = split.both if calibrated else split.train
        # The rows to calibrate on are then no fair test, and nothing is fitted to them.
        return Forecasted(*find_model(model)(rows, [split.calibration.x, split.test.x], number))

    kind = "both" if calibrated else "train"
    return kept(cache / set_name / f"{model}_{kind}_{number}.npz", make)
