"""Recalibration methods: settings, and functions that fit and forecast with arrays."""

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
"""Methods that users choose from. A fit makes further methods: a CKME of vectors if it recalibrates
variables jointly, a shared CKME if it pools many cases, and a forest if a pool has many
covariates."""
