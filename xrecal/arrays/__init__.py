"""Functions that take and return NumPy arrays; some also take and return CuPy arrays on a GPU.

This package does not import xarray or dask. Data pass through its folders in this order:

=============  ====================================================================================
distributions  forms of forecasts: their distances, moments, quantiles, members and mixtures
kernels        similarities of forecasts and covariates
ckme           weights of past cases by similarity, with settings from cross-validation
baselines      climatology, regression (EMOS), isotonic regression (IDR), recalibration by the PIT
online         forecasts averaged over experts, with weights updated after each case
shared         one law of errors for many places, from sums over the cases of all places
scores         scores of forecasts, tests of differences of scores, and decompositions of scores
calibration    tests of calibration: SKCE, PIT, ranks, reliability
device         functions for CuPy arrays, which compute many locations at once
=============  ====================================================================================

Further modules are ``dispatch`` (table of functions by array library), ``rows`` (arrays with one
row per location), ``serial`` (autocorrelation of successive cases), ``splitting`` (training and
test cases), ``status`` (status of a location) and ``compiled`` (compilation of loops).

The import of this package is fast, because it loads Numba and SciPy only when a function needs
them.
"""

from __future__ import annotations

from typing import Any

from .dispatch import HOME, offered

SMALLEST_RIDGE = 1e-12
"""Smallest ridge. With a smaller ridge, rounding errors would decide the weights of cases with
equal forecasts."""

__all__ = sorted(HOME)


def __getattr__(name: str) -> Any:
    """Look up a public name, and store it so that Python finds it directly from then on."""
    globals()[name] = offered(name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
