"""Array-level numerics: NumPy in, NumPy out; some also on a GPU, with CuPy in and out.

Imports neither xarray nor dask. The folders, in the order in which data flows through them:

=============  ====================================================================================
distributions  what a forecast is: distances between them, moments, quantiles, members, pools
kernels        distances -> similarities of forecasts, times those of covariates
ckme           similarities -> weights of past cases: ridge, centre and kernel by cross-validation
baselines      climatology, regression (EMOS), isotonic regression (IDR), recalibration of the PIT
online         verified cases -> weights of experts that go on learning, day by day
shared         cases of many places -> sums over them -> one law of errors for all
scores         forecasts + observations -> scores, their differences, what they are made of
calibration    forecasts + observations -> tests of calibration: SKCE, PIT, ranks, reliability
device         what CuPy arrays are served by: many locations at once
=============  ====================================================================================

Beside them stand ``dispatch`` (which module serves which function and library), ``rows`` (arguments
over locations), ``serial`` (dependence of successive cases),
``splitting`` (cases -> training and test), ``status`` (what a fit reports about a
location) and ``compiled`` (how loops are compiled).

Importing this package is cheap: Numba and SciPy are loaded when a function is first used.
"""

from __future__ import annotations

from typing import Any

from .dispatch import HOME, offered

SMALLEST_RIDGE = 1e-12
"""With less, rounding decides how much each of several equal forecasts counts."""

__all__ = sorted(HOME)


def __getattr__(name: str) -> Any:
    """A public name, which Python finds by itself from then on."""
    globals()[name] = offered(name)
    return globals()[name]


def __dir__() -> list[str]:
    return __all__
