"""Weighted interval score of quantiles and of distributions."""

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
"""Levels of the forecast hubs of influenza and COVID-19: the median and eleven intervals."""


def wis_of(
    distribution: Distribution, observations: FloatArray, levels: FloatArray
) -> tuple[FloatArray, ...]:
    """Weighted interval scores (L, T)."""
    quantiles = distribution.quantile(levels)
    return (arrays.weighted_interval_score(observations, quantiles, levels),)


def quantile_wis_of(
    distribution: Empirical,
    observations: FloatArray,
    levels: FloatArray,
    chosen: IntArray,
    all_chosen: bool,
) -> tuple[FloatArray, ...]:
    """Weighted interval scores (L, T) of the chosen (k,) of the issued quantiles.

    With ``all_chosen``, scores of all quantiles that each forecast has, if these suit the score.
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
    r"""Weighted interval score (WIS) of forecasts of any form.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`xrecal.diagnostics.crps`.
    levels : sequence of float, optional
        Levels of the quantiles that count, in [0, 1]: 0.5 (the median), and with each level q also
        1 - q. For forecasts in quantiles, some of the issued levels; by default all. For other
        forecasts any levels; by default the 23 of forecast hubs: 0.01, 0.025, 0.05, 0.1, ..., 0.95,
        0.975, 0.99.

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case in the unit of the variable, as from ``crps``; smaller is better.
        NaN where the observation or one of the ``levels`` is missing. Without ``levels``, a
        forecast that lacks some levels is scored at the others, if they suit the score.

    Raises
    ------
    ValueError
        See ``crps``, if the levels lack the median or are not symmetric about it, or if the
        forecast in quantiles lacks one of them.

    Notes
    -----
    The score [1]_ is the mean of the error of the median and the scores of the central intervals,
    with weights :math:`\alpha / 2`; see :func:`xrecal.arrays.weighted_interval_score`. It equals
    twice the mean quantile score over the levels. All levels count equally, so many levels in the
    tails give the tails more weight. The ``crps`` of quantiles is another number: it takes
    quantiles as members, each with the mass between the midpoints to its neighbours.

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
    """Numbers of the issued quantiles to use; ValueError if a given level was not issued."""
    from xrecal.arrays.scores.intervals import NEAR

    if asked is None:
        return np.arange(issued.size)
    same = np.abs(asked[:, np.newaxis] - issued) <= NEAR
    lacking = asked[~same.any(axis=-1)]
    if lacking.size:
        raise ValueError(
            f"levels holds {', '.join(f'{level:g}' for level in lacking)}, but {name!r} was "
            f"issued at {', '.join(f'{level:g}' for level in issued)}; leave levels out, or give "
            "some of these"
        )
    return np.asarray(same.argmax(axis=-1))
