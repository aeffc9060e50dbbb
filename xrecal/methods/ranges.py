"""Ranges of what methods choose: least and greatest number, both included."""

from __future__ import annotations

import numpy as np

ANY = -np.inf, np.inf
FINITE = float(np.finfo(np.float64).min), float(np.finfo(np.float64).max)
NOT_NEGATIVE = 0.0, FINITE[1]
POSITIVE = float(np.finfo(np.float64).tiny), FINITE[1]
POSITIVE_OR_INFINITE = POSITIVE[0], np.inf
