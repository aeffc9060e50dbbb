"""Ways to recalibrate: settings, and how each fits and predicts on arrays."""

from .base import Method
from .ckme import CKME
from .climatology import Climatology
from .emos import EMOS

__all__ = ["CKME", "EMOS", "Climatology", "Method"]
