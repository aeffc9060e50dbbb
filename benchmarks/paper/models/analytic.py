"""The normal distribution with the moments of the synthetic set: nothing is trained."""

import numpy as np

from benchmarks.paper.data import Part
from benchmarks.paper.forecasts import Forecasts


def analytic(train: Part, features: list[np.ndarray], seed: int) -> list[Forecasts]:
    """Mean x and variance 0.1² + sin²(3x); the true law has two modes."""
    found = []
    for x in features:
        loc = x[:, :1]
        scale = np.hypot(0.1, np.sin(3 * loc))
        found.append(Forecasts(loc, scale, np.ones_like(loc)))
    return found
