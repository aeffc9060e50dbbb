"""Array-level numerics: NumPy in, NumPy out; some also on a GPU, with CuPy in and out.

Imports neither xarray nor dask. The folders, in the order in which data flows through them:

=============  ====================================================================================
distributions  forms of a forecast: distances between them, moments, quantiles, members, pools
kernels        similarities of forecasts from their distances, times similarities of covariates
ckme           weights of past cases from similarities: ridge, centre and kernel by cross-validation
baselines      climatology, regression (EMOS), isotonic regression (IDR), recalibration of the PIT
online         experts, and weights of experts that learn from each verified case
shared         one law of errors for many places, from sums over their cases
scores         scores of forecasts, differences of scores, and their decomposition
calibration    tests of calibration: SKCE, PIT, ranks, reliability
device         functions for CuPy arrays: many locations at once
=============  ====================================================================================

Further modules are ``dispatch`` (table of functions by array library), ``rows`` (arguments over
locations), ``serial`` (autocorrelation of successive cases), ``splitting`` (training and test
cases), ``status`` (status of a location) and ``compiled`` (compilation of loops).

Importing this package is cheap: Numba and SciPy are loaded when a function is first used.
"""

from __future__ import annotations

from typing import Any

from .dispatch import HOME, offered

SMALLEST_RIDGE = 1e-12
"""Smallest weight; with a smaller one, rounding would decide the weights of equal forecasts."""

__all__ = sorted(HOME)


def __getattr__(name: str) -> Any:
    """Return a public name; Python finds it directly from then on."""
    globals()[name] = offered(name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
