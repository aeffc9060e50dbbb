"""Bounds of a variable, such as no rain: found in the observations or given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

SHARE = 0.05
"""Share of the observations that equal an end of their range exactly if it is a bound."""

FEWEST = 5
"""How many these must be: one of 20 observations is at each end of any variable."""


def find_bounds(
    observations: FloatArray, bounds: str | tuple[float | None, float | None] | None = "auto"
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Bounds at each location.

    Parameters
    ----------
    observations : array of float, shape (L, n)
        NaN where unknown.
    bounds : "auto", (lower, upper) or None
        "auto": an end of the observed range is a bound if at least 5 % of the observations, and
        five of them, equal it, and more than twice as many as equal the value next to it (rounded
        values tie everywhere). Numbers are bounds at every location where no observation lies
        beyond them, None in place of one means that there is none there.

    Returns
    -------
    lower, upper : array of float64, shape (L,)
        In the unit of the observations, -inf and inf without a bound.
    violated : array of bool, shape (L,)
        Whether observations lie beyond given bounds, which are then left out.

    Examples
    --------
    >>> rain = np.append(np.zeros(10), np.linspace(0.5, 9.0, 30))[np.newaxis]
    >>> lower, upper, violated = find_bounds(rain)
    >>> lower, upper
    (array([0.]), array([inf]))
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
        start = -np.inf if bounds[0] is None else float(bounds[0])
        end = np.inf if bounds[1] is None else float(bounds[1])
        violated = (least < start) | (most > end)
        return np.where(violated, -np.inf, start), np.where(violated, np.inf, end), violated
    below, above = _is_bound(observations, least), _is_bound(-observations, -most)
    lower[below], upper[above] = least[below], most[above]
    return lower, upper, violated


def _is_bound(observations: FloatArray, least: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the least observation (L,) of each location is a lower bound."""
    known = np.isfinite(observations)
    above = known & (observations > least[:, np.newaxis])
    following = np.where(above, observations, np.inf).min(-1, initial=np.inf)
    at_least = (observations == least[:, np.newaxis]).sum(-1)
    at_following = (observations == following[:, np.newaxis]).sum(-1)
    enough = np.maximum(SHARE * known.sum(-1), FEWEST)
    return np.asarray(above.any(-1) & (at_least >= enough) & (at_least > 2 * at_following))
