"""Methods of recalibration: their settings, and how each fits and predicts on arrays."""

from .base import Method
from .ckme import CKME
from .climatology import Climatology
from .conformal import ConformalPrediction
from .emos import EMOS
from .forest import Forest
from .idr import IDR
from .online_pool import OnlinePool
from .pit import PITRecalibration
from .pool import LinearPool
from .raw import Raw
from .shared_ckme import SharedCKME
from .vectors import VectorCKME

__all__ = [
    "CKME",
    "EMOS",
    "IDR",
    "METHODS",
    "Climatology",
    "ConformalPrediction",
    "Forest",
    "LinearPool",
    "Method",
    "OnlinePool",
    "PITRecalibration",
    "Raw",
    "SharedCKME",
    "VectorCKME",
]

METHODS = (
    CKME, EMOS, LinearPool, OnlinePool, IDR, PITRecalibration, ConformalPrediction, Climatology,
    Raw,
)  # fmt: skip
"""Methods that users choose from. Fits make further methods: a CKME of vectors for variables fitted
jointly, a shared CKME for many pooled cases, and a forest in pools with many covariates."""
