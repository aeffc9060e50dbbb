"""Distributions made from the named arrays of a forecast."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from xrecal.typing import FloatArray

from .forms import Censored, Distribution, Normal, distribution_of
from .missing import forecasts_from


def distribution_from(parts: Mapping[str, FloatArray], *, censored: bool = False) -> Distribution:
    """Return the distributions of forecasts given as named arrays.

    The arrays hold ensembles, quantiles with their levels, or mixtures of normal distributions. If
    ``censored`` is True, the arrays hold single normal distributions (..., 1) and bounds. Both
    bounds become NaN where no value lies between them.
    """
    if not censored:
        return distribution_of(forecasts_from(parts))
    normal = distribution_from({name: parts[name] for name in ("loc", "scale")})
    assert isinstance(normal, Normal)
    below = parts.get("lower", np.full_like(normal.loc, -np.inf))
    above = parts.get("upper", np.full_like(normal.loc, np.inf))
    empty = (below > above) | (below == np.inf) | (above == -np.inf)
    below, above = (np.where(empty, np.nan, bound) for bound in (below, above))
    return Censored(normal.loc, normal.scale, below, above)
