"""Bounds of a variable, such as no rain: found in the observations or given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

SHARE = 0.05
"""Share of the observations that equal an end of their range exactly if it is a bound."""


def find_bounds(
    observations: FloatArray, bounds: str | tuple[float | None, float | None] | None = "auto"
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Bounds at each location.

    Parameters
    ----------
    observations : array of float, shape (L, n)
        NaN where unknown.
    bounds : "auto", (lower, upper) or None
        "auto": an end of the observed range is a bound if at least 5 % of the observations equal
        it. Numbers are bounds at every location where no observation lies beyond them, None in
        place of one means that there is none there.

    Returns
    -------
    lower, upper : array of float64, shape (L,)
        In the unit of the observations, -inf and inf without a bound.
    violated : array of bool, shape (L,)
        Whether observations lie beyond given bounds, which are then left out.
    """
    n_locations = observations.shape[0]
    lower, upper = np.full(n_locations, -np.inf), np.full(n_locations, np.inf)
    violated = np.zeros(n_locations, dtype=np.bool_)
    if bounds is None:
        return lower, upper, violated
    known = np.isfinite(observations)
    least = np.where(known, observations, np.inf).min(-1, initial=np.inf)
    most = np.where(known, observations, -np.inf).max(-1, initial=-np.inf)
    if not isinstance(bounds, str):
        below, above = (-np.inf if bounds[0] is None else bounds[0]), bounds[1]
        above = np.inf if above is None else above
        violated = (least < below) | (most > above)
        return (
            np.where(violated, -np.inf, float(below)),
            np.where(violated, np.inf, float(above)),
            violated,
        )
    enough = SHARE * known.sum(-1)
    varies = known.any(-1) & (least < most)
    at_least = (observations == least[:, np.newaxis]).sum(-1)
    at_most = (observations == most[:, np.newaxis]).sum(-1)
    lower[varies & (at_least >= enough)] = least[varies & (at_least >= enough)]
    upper[varies & (at_most >= enough)] = most[varies & (at_most >= enough)]
    return lower, upper, violated
