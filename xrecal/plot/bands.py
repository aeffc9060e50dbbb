"""Bands in which calibrated forecasts lie; they depend on the number of cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from .reading import Floats
from .style import BAND, GREY, Style, veil

ENDS = ((1 - BAND) / 2, (1 + BAND) / 2)

N_GROUPS = 1.5
"""The number of groups of cases is this number times the cube root of the number of cases."""


def share_limits(n: npt.ArrayLike, probability: npt.ArrayLike) -> Floats:
    """Lower and upper end (2, ...) of the central 90 % range for the share of events in n cases.

    The cases are independent, with the same ``probability`` of the event. The range is exact, from
    the binomial distribution, and NaN if ``n`` is 0.
    """
    from scipy.stats import binom

    number, chance = np.broadcast_arrays(np.asarray(n, np.float64), probability)
    counts = [binom.ppf(end, number, chance) for end in ENDS]
    return np.asarray(counts) / np.where(number > 0, number, np.nan)


def error_limits(n: npt.ArrayLike) -> Floats:
    """Lower and upper end (2, ...) of the central 90 % range for observed RMSE / true RMSE.

    The range is exact for ``n`` independent normal errors, from the chi-square distribution, and
    NaN if ``n`` is 0.
    """
    from scipy.stats import chi2

    number: npt.NDArray[Any] = np.where(np.asarray(n) > 0, n, np.nan)
    squares = np.asarray([chi2.ppf(end, number) for end in ENDS])
    return np.asarray(np.sqrt(squares / number))


def reliability_limits(probability: Floats) -> tuple[Floats, Floats]:
    """Issued probabilities (k,), and the range (2, k) of observed frequencies at each probability.

    The function divides cases into groups of similar size. The number of groups grows with the cube
    root of the number of cases. The share of events in a group then has an error similar to that of
    the regression in the diagram. With 1.5 times the cube root, about 90 % of the curves of
    calibrated forecasts lie within the range at a given probability.
    """
    ascending = np.sort(probability)
    n = ascending.size
    k = max(1, round(N_GROUPS * n ** (1 / 3)))
    inner = np.arange(1, k) * n // k
    group = np.unique(np.searchsorted(ascending[inner], ascending, "right"), return_inverse=True)[1]
    size = np.bincount(group)
    last = np.cumsum(size) - 1
    mean = np.bincount(group, ascending) / size  # rounding must not leave the group
    mean = mean.clip(ascending[last - size + 1], ascending[last])
    # The first and the last case represent their groups.
    at = np.concatenate([ascending[:1], mean, ascending[-1:]])
    at, first = np.unique(at.clip(0, 1), return_index=True)
    sizes = np.concatenate([size[:1], size, size[-1:]])[first]
    return at, share_limits(sizes, at)


def draw_band(ax: Axes, x: Floats, low: Floats, high: Floats) -> None:
    """Shade a band behind everything else; draw a bar if the band has a single point."""
    shade: Style = {"color": GREY, "alpha": veil(ax, 0.25), "label": f"calibrated ({BAND:.0%})"}
    if x.size == 1:
        ax.vlines(x, low, high, lw=8, zorder=1, **shade)
    else:
        ax.fill_between(x, low, high, lw=0, zorder=1, **shade)
