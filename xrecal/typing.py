"""Array types that functions share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
"""A NumPy array of float32 or float64."""

IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
"""A NumPy array of integers."""

Places: TypeAlias = Mapping[Hashable, tuple[IntArray, int]]
"""For each dimension, positions of some places, and the number of all places."""
