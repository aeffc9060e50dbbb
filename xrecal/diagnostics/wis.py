"""Compute the weighted interval score of quantiles and of other forecasts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.arrays.distributions.forms import Distribution, Empirical
from xrecal.inputs.dims import Dims, read_levels
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.products.scores import AS_ISSUED, Score, Verified, score_entry, scored
from xrecal.typing import FloatArray, IntArray

WIS = Score("wis", "weighted interval score", AS_ISSUED)
HUB_LEVELS = (0.01, 0.025, *(k / 20 for k in range(1, 20)), 0.975, 0.99)
"""Levels that forecast hubs for influenza and COVID-19 require: median and ends of 11 intervals."""


def wis_of(
    distribution: Distribution, observations: FloatArray, levels: FloatArray
) -> tuple[FloatArray, ...]:
    """Compute weighted interval scores (L, T) of T forecasts at each of L locations."""
    quantiles = distribution.quantile(levels)
    return (arrays.weighted_interval_score(observations, quantiles, levels),)


def quantile_wis_of(
    distribution: Empirical,
    observations: FloatArray,
    levels: FloatArray,
    chosen: IntArray,
    all_chosen: bool,
) -> tuple[FloatArray, ...]:
    """Compute weighted interval scores (L, T) of k issued quantiles, at positions ``chosen`` (k,).

    ``all_chosen`` is true if ``chosen`` has the positions of all levels. A forecast that lacks some
    quantiles then gets the score of its other quantiles, if these contain the median and are
    symmetric about it.
    """
    from xrecal.arrays.scores.intervals import NEAR

    quantiles = distribution.members[..., chosen]
    scores = arrays.weighted_interval_score(observations, quantiles, levels)
    there = ~np.isnan(quantiles)
    partner = np.abs(levels[:, np.newaxis] + levels - 1.0).argmin(-1)
    middle = there[..., np.abs(levels - 0.5) <= NEAR].any(-1)
    some = ~there.all(-1) & middle & (there == there[..., partner]).all(-1)
    if all_chosen and some.any():
        each = arrays.quantile_score(observations[some], quantiles[some], levels)
        scores[some] = 2.0 * np.where(there[some], each, 0.0).sum(-1) / there[some].sum(-1)
    return (scores,)


@score_entry()
def wis(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    levels: Sequence[float] | np.ndarray | None = None,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the weighted interval score (WIS) of forecasts of any form.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`xrecal.diagnostics.crps`.
    levels : sequence of float, optional
        Levels, in [0, 1], of the quantiles that count. They must contain 0.5 (the median), and for
        each level q also 1 - q. If forecasts consist of quantiles, choose among the issued levels;
        by default, all issued levels count. For other forecasts, choose any levels; by default, the
        23 levels of forecast hubs count: 0.01, 0.025, 0.05, 0.1, ..., 0.95, 0.975, 0.99.

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case in the unit of the variable, with the same dimensions as the result
        of ``crps``; smaller is better. It is NaN if the observation or a quantile at one of the
        ``levels`` is missing. There is an exception if you do not give ``levels``: a forecast that
        lacks some quantiles then gets the score of its other quantiles, if these contain the median
        and are symmetric about it.

    Raises
    ------
    ValueError
        See ``crps``; also if the levels lack the median or are not symmetric about it, or if a
        forecast of quantiles lacks one of the levels.

    Notes
    -----
    The score [1]_ is a weighted mean of the absolute error of the median and of the interval scores
    of the central intervals. The weight of an interval of probability :math:`1 - \alpha` is
    :math:`\alpha / 2`; see :func:`xrecal.arrays.weighted_interval_score`. The score equals twice
    the mean quantile score over the levels. All levels count equally, so many levels in the tails
    give the tails more weight. The ``crps`` of quantiles is another number: it treats quantiles as
    members. The weight of each member is the distance between two midpoints: one lies between its
    level and the next lower level, the other between its level and the next higher level.

    References
    ----------
    .. [1] Bracher, Ray, Gneiting & Reich (2021), Evaluating epidemic forecasts in an interval
       format. https://doi.org/10.1371/journal.pcbi.1008618

    Examples
    --------
    >>> forecast.recal.wis(observations, ["init", "location"]).round(2).item()
    0.38
    >>> model.wis(forecast, observations, dim=["init", "location"]).round(2).item()
    0.31
    """
    from xrecal.arrays.scores.intervals import check_symmetric

    asked = None if levels is None else check_symmetric(read_levels(levels))
    wanted = np.array(HUB_LEVELS) if asked is None else asked

    def rule(verified: Verified) -> xr.DataArray:
        issued = verified.levels
        if issued is None:
            return verified.reduce(partial(wis_of, levels=wanted))
        chosen = _chosen(issued, asked, verified.source.form.name)
        used = check_symmetric(issued[chosen])
        reduction = partial(quantile_wis_of, levels=used, chosen=chosen, all_chosen=asked is None)
        return verified.reduce(reduction)

    return scored(forecast, observations, rule, dim, member_dim, WIS)


def _chosen(issued: FloatArray, asked: FloatArray | None, name: Hashable) -> IntArray:
    """Return positions of the issued quantiles to use; raise ValueError for levels not issued."""
    from xrecal.arrays.scores.intervals import NEAR

    if asked is None:
        return np.arange(issued.size)
    same = np.abs(asked[:, np.newaxis] - issued) <= NEAR
    lacking = asked[~same.any(axis=-1)]
    if lacking.size:
        raise ValueError(
            f"levels has {', '.join(f'{level:g}' for level in lacking)}, but {name!r} was "
            f"issued at {', '.join(f'{level:g}' for level in issued)}; leave levels out, or give "
            "some of the issued levels"
        )
    return np.asarray(same.argmax(axis=-1))
