"""Array-level numerics: NumPy in, NumPy out. Imports neither xarray nor dask.

In the order of the data flow:

============  ================================================================
forms         what a forecast is: points with weights, or normal distributions
cases         calibration cases in the order of their observations, and their folds
distance      ensembles -> squared energy distances
normal        ... closed forms for Gaussian and Gaussian-mixture forecasts
kernel        distances -> similarities, median bandwidth
tuning        similarities -> ridge by blocked cross-validation
ckme          similarities -> signed weights -> fitted state, new weights
simplex       signed weights -> probabilities
weighted      probabilities + past observations -> statistics of a weighted ensemble
scores        forecasts + observations -> CRPS
emos          the Gaussian baseline, fitted by minimum CRPS
============  ================================================================

Importing this package is cheap: Numba and SciPy are loaded when a function is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

SMALLEST_RIDGE = 1e-12
"""With less, rounding decides how much each of several equal forecasts counts."""

_HOME = {
    "Forecasts": "forms",
    "squared_energy_distance": "distance",
    "normal_squared_energy_distance": "normal",
    "normal_crps": "normal",
    "normal_mean_std": "normal",
    "normal_quantile": "normal",
    "median_bandwidth": "kernel",
    "similarity": "kernel",
    "FittedCKME": "ckme",
    "ckme_weights": "ckme",
    "fit_ckme": "ckme",
    "project_energy": "simplex",
    "project_simplex": "simplex",
    "equal_members": "weighted",
    "weighted_cdf": "weighted",
    "weighted_mean": "weighted",
    "weighted_quantile": "weighted",
    "weighted_std": "weighted",
    "crps": "scores",
    "climatology_weights": "climatology",
    "fit_emos": "emos",
    "predict_emos": "emos",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
