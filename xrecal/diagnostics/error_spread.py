"""Error-spread score of raw and recalibrated forecasts."""

from __future__ import annotations

from collections.abc import Hashable

import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled
from xrecal.inputs.metadata import shown_units
from xrecal.inputs.pairing import Observations
from xrecal.products.scores import AS_ISSUED, Score, Verified, score_entry, scored
from xrecal.typing import FloatArray

ERROR_SPREAD = Score("error_spread", "error-spread score", AS_ISSUED)


def error_spread_of(distribution: Distribution, observations: FloatArray) -> tuple[FloatArray, ...]:
    """Compute error-spread scores (L, T), for L places and T cases."""
    from xrecal.arrays import error_spread as of_moments

    moments = distribution.mean(), distribution.std(), distribution.skewness()
    return (of_moments(observations, *moments),)


@score_entry()
def error_spread(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    member_dim: Hashable | None = None,
) -> Labelled:
    """Compute the error-spread score, which checks mean, spread and skewness of the forecasts.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See :func:`xrecal.diagnostics.crps`.

    Returns
    -------
    DataArray or Dataset
        Score >= 0 of each case, in the fourth power of the unit of the variable; smaller is better.
        The result has the same dimensions as the result of ``crps``.

    Raises
    ------
    ValueError
        See ``crps``; also for variables on a circle.

    Notes
    -----
    See :func:`xrecal.arrays.error_spread` for the formula [1]_. The score uses the moments of the
    distribution as issued. The moments of an ensemble are sums divided by the number of members,
    not by this number minus 1, so the score of a small ensemble is too high.

    References
    ----------
    .. [1] Christensen, Moroz & Palmer (2015), Evaluation of ensemble forecast uncertainty using a
       new proper score. https://doi.org/10.1002/qj.2375

    Examples
    --------
    >>> forecast.recal.error_spread(observations, ["init", "location"]).round(2).item()
    1.41
    >>> model.error_spread(forecast, observations, dim=["init", "location"]).round(2).item()
    1.39
    """

    def rule(verified: Verified) -> xr.DataArray:
        return verified.reduce(error_spread_of)

    return _in_its_unit(scored(forecast, observations, rule, dim, member_dim, ERROR_SPREAD))


def _in_its_unit(scores: Labelled) -> Labelled:
    """Change the unit of the scores to the fourth power of the unit of the variable."""
    if isinstance(scores, xr.Dataset):
        return scores.map(_in_its_unit, keep_attrs=True)
    units = shown_units(scores.attrs)
    if not units:
        return scores
    return scores.assign_attrs(units=f"{units}4" if units.isalpha() else f"({units})^4")
