"""Split the CRPS into the part that recalibration can remove, and the rest."""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from operator import and_

import xarray as xr

from xrecal.arrays.distributions.forms import Distribution, Forecasts, distribution_of
from xrecal.chunks.over_cases import over_cases
from xrecal.fit.conditioned import checked
from xrecal.fit.fit_hindcast import DEFAULT
from xrecal.fit.held_out import By, Splits, hold_out
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Labelled
from xrecal.inputs.lengths import Span
from xrecal.inputs.pairing import Observations, pair_variables
from xrecal.methods import Method
from xrecal.methods.call_errors import explained
from xrecal.typing import FloatArray

from .evidence import by_name, described, read_evidence

_TEXTS = {
    "miscalibration": "miscalibration: part that recalibration would remove",
    "miscalibration_error": "standard error of the miscalibration, allowing for autocorrelation",
    "rest": "rest of the CRPS, which recalibration cannot reduce",
    "rest_error": "standard error of the rest, allowing for autocorrelation",
    "crps": "mean continuous ranked probability score",
}


@explained("xrecal.diagnostics.decompose")
def decompose(
    forecast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    by: By = "block",
    gap: Span = 0,
    blocks: int = 5,
    window: Span | None = None,
    every: Span | None = None,
    year_start: str | int | None = None,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    min_samples: int = 20,
) -> xr.Dataset:
    r"""Split the CRPS into miscalibration and the rest, by recalibrating held-out cases.

    Parameters
    ----------
    forecast, observations, dim, member_dim
        See ``forecast.recal.fit``; one variable.
    method : Method
        Method that recalibrates the held-out cases.
    by, gap, blocks, window, every, year_start, condition_on, covariates, min_samples
        See ``forecast.recal.cross_validate``.

    Returns
    -------
    Dataset
        Over locations, in the unit of the variable: ``crps``, the mean CRPS over the cases;
        ``miscalibration`` and ``rest``, which add up to the CRPS; their standard errors
        ``miscalibration_error`` and ``rest_error``; ``n_cases`` and ``status``. The miscalibration
        of a calibrated forecast may be negative. Means are NaN with fewer than 2 cases; standard
        errors are NaN with fewer than 3. The result is lazy if an input is lazy.

    Raises
    ------
    ValueError, TypeError
        See ``forecast.recal.cross_validate``.

    Notes
    -----
    Let Q be the forecast of a case, y its observation, and R the forecast recalibrated by a fit
    that has not learned from this case. Two terms estimate the miscalibration: :math:`d(R, Q)` and
    :math:`S(Q, y) - S(R, y)`, where S is the CRPS and d is half the squared energy distance. The
    result is the mean of both terms over the cases. The random error of R raises the first term and
    lowers the second, so the mean of both terms hardly depends on this error. The rest of the CRPS
    has two causes: information that the forecast lacks, and uncertainty that no forecast can
    remove. Forecasts and observations alone cannot separate these two causes. If the recalibration
    uses covariates, the gain from the covariates counts as miscalibration.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437

    Examples
    --------
    >>> parts = hindcast.recal.decompose(observations, xrecal.EMOS())
    >>> parts["miscalibration"].round(2).values, parts["crps"].round(2).values
    (array([0.04, 0.03, 0.05, 0.05]), array([0.27, 0.18, 0.23, 0.38]))
    """
    method = checked(method, condition_on, min_samples, "forecast.recal.decompose", covariates)
    evidence = read_evidence(forecast, observations, dim, member_dim)
    evidence, _ = evidence.by_quantiles(keep=evidence.form.traits.has_distances)
    splits = Splits(by, gap, blocks, window, every, None, min_samples, year_start)
    pairs = evidence.pairs
    ((_, observed),) = pair_variables(forecast, observations, member_dim, name="forecast").values()
    source = hold_out(evidence.form, observed, method, splits, pairs.dim, covariates)
    scores = source.reduce(score_parts_of, {}, {}, {}, extras=["observed", "issued"])
    parts = over_cases(
        by_name("decompose"),
        *scores,
        dims=evidence.dims,
        out=[()] * len(_TEXTS),
        what=evidence.work("the decomposition"),
    )
    variables = described(parts, _TEXTS, evidence.units)
    complete = reduce(and_, (score.notnull() for score in scores))
    what = f"decomposition of the CRPS by {method}, {splits}"
    return evidence.result(
        variables, what, complete, sure=True, cross_validation=str(splits), method=repr(method)
    )


def score_parts_of(
    distribution: Distribution, observations: FloatArray, issued: Forecasts
) -> tuple[FloatArray, ...]:
    """Return raw CRPS, recalibrated CRPS and half the squared energy distance, each (L, T)."""
    from xrecal.arrays.scores.decomposition import half_squared_distance

    before = distribution_of(issued)
    distance = half_squared_distance(before, distribution.as_members())
    return before.crps(observations), distribution.crps(observations), distance
