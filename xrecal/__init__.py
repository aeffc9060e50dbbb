"""Probabilistic recalibration of ensemble forecasts for xarray.

>>> model = hindcast.recal.fit(observations)
>>> calibrated = forecast.recal.apply(model)

The table shows the steps of a recalibration in order. The last column is the folder of the code:

========  ===========================================================  =====================
pair      roles of dimensions, valid time, exact labels, missing data  inputs
distance  ensembles -> squared energy distances                        arrays.distributions
kernel    distances -> similarities (times a kernel on covariates)     arrays.kernels
ckme      similarities -> signed weights, ridge by cross-validation    arrays.ckme
simplex   signed weights -> probabilities                              arrays.ckme
ensemble  probabilities + past observations or errors -> distribution  arrays.distributions
learn     verified cases -> fitted model, at every location            fit, methods
product   quantiles, probabilities, members, coherent fields           products
evidence  scores, tests of calibration, comparison of methods          diagnostics, plot
========  ===========================================================  =====================

Examples
--------
Most examples in docstrings use forecasts of this small synthetic hindcast:

>>> import numpy as np
>>> import xarray as xr
>>> import xrecal
>>> data = xrecal.datasets.lorenz96(n_inits=60, n_members=8, n_locations=4, lead_days=[5])
>>> data = data.isel(lead=0, drop=True)
>>> observations = data.observation
>>> hindcast, forecast = data.forecast[:50], data.forecast[50:]
>>> model = hindcast.recal.fit(observations)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import accessor as accessor
from . import datasets as datasets
from . import diagnostics as diagnostics
from . import hubs as hubs
from . import model
from .chunks.blockwise import TaskError
from .chunks.progress import reported as progress
from .diagnostics import skill
from .diagnostics.compare import compare
from .inputs import forecasts
from .inputs import probabilities as from_probabilities
from .methods import (
    CKME,
    EMOS,
    IDR,
    Climatology,
    ConformalPrediction,
    LinearPool,
    OnlinePool,
    PITRecalibration,
    Raw,
)
from .methods.call_errors import explained
from .model import Recalibrator
from .plan.planning import plan
from .plan.plans import MemoryPlanError, Plan, check_plan
from .runs import Cycle, Run
from .storage.stored import VERSION

if TYPE_CHECKING:
    from . import plot as plot

__version__ = VERSION

__all__ = [
    "CKME",
    "EMOS",
    "IDR",
    "Climatology",
    "ConformalPrediction",
    "Cycle",
    "LinearPool",
    "MemoryPlanError",
    "OnlinePool",
    "PITRecalibration",
    "Plan",
    "Raw",
    "Recalibrator",
    "Run",
    "TaskError",
    "check_plan",
    "compare",
    "datasets",
    "diagnostics",
    "gaussian",
    "hubs",
    "open_recalibrator",
    "plan",
    "probabilities",
    "progress",
    "skill",
    "weighted",
]


# Defined after the functions that explain their calls.
gaussian = explained("xrecal.gaussian")(forecasts.gaussian)
probabilities = explained("xrecal.probabilities")(from_probabilities.probabilities)
weighted = explained("xrecal.weighted")(forecasts.weighted)
open_recalibrator = explained("xrecal.open_recalibrator")(model.open_recalibrator)


def __getattr__(name: str) -> Any:
    if name == "plot":  # needs matplotlib, which other calls do not
        return import_module(f"{__name__}.plot")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "plot", "__version__"})
