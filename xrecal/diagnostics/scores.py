"""Compute the CRPS with more weight on some levels of quantiles."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Literal, TypeAlias, get_args

import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.pairing import Observations
from xrecal.products.scores import Score, Verified, score_entry, scored
from xrecal.typing import FloatArray

Emphasis: TypeAlias = Literal["center", "tails", "upper", "lower"]


def quantile_crps_of(
    distribution: Distribution, observations: FloatArray, emphasis: str
) -> tuple[FloatArray, ...]:
    """Compute the CRPS (L, T), for L places and T cases, with more weight on some levels."""
    return (distribution.quantile_weighted_crps(observations, emphasis),)


@score_entry()
def quantile_weighted_crps(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    emphasis: Emphasis = "tails",
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the CRPS as a mean of quantile scores, with more weight on some levels.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`xrecal.diagnostics.crps`. Normal distributions are replaced by 200 quantiles.
    emphasis : {"center", "tails", "upper", "lower"}
        Levels that get more weight. A quantile at level :math:`\tau` gets the weight
        :math:`\tau (1 - \tau)` with "center", :math:`(2 \tau - 1)^2` with "tails", :math:`\tau^2`
        with "upper", and :math:`(1 - \tau)^2` with "lower".

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case in the unit of the variable, with the same dimensions as the result
        of ``crps``.

    Raises
    ------
    ValueError
        See ``crps``; also if the emphasis is unknown.

    References
    ----------
    .. [1] Gneiting & Ranjan (2011), Comparing density forecasts using threshold- and
       quantile-weighted scoring rules. https://doi.org/10.1198/jbes.2010.08110

    Examples
    --------
    >>> score = forecast.recal.quantile_weighted_crps(observations, ["init", "location"])
    >>> score.round(2).item()
    0.12
    """
    if emphasis not in get_args(Emphasis):
        raise ValueError(f"emphasis is {emphasis!r}; give one of {list(get_args(Emphasis))}")

    def rule(verified: Verified) -> xr.DataArray:
        return verified.reduce(partial(quantile_crps_of, emphasis=emphasis))

    text = Score(
        "quantile_weighted_crps",
        "quantile-weighted continuous ranked probability score",
        f"weight on levels: {emphasis}",
    )
    return scored(forecast, observations, rule, dim, member_dim, text)
