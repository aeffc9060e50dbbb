"""Compute the width of central intervals, and the share of observations inside them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import require_free
from xrecal.inputs.dims import NEAR, Dims, is_between
from xrecal.inputs.forms import Form, Labelled, levels_of
from xrecal.inputs.pairing import Observations
from xrecal.methods.call_errors import explained
from xrecal.products.source import check_seed
from xrecal.products.statistics import quantiles_of

from .evidence import NO_UNIT, Evidence, described, read_evidence, stacked
from .pit import pit_of_cases

LEVEL = "level"
UNKNOWN = "not known from these quantiles"
"""Note on intervals that end outside the levels, if a forecast consists of quantiles."""
_TEXTS = {
    "coverage": "share of observations inside the central interval",
    "width": "mean width of the central interval",
    "interval_score": "mean interval score",
    "dependence": "bias-corrected squared distance correlation between interval and PIT",
}


@explained("xrecal.diagnostics.coverage")
def coverage(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    level: float | Sequence[float] = (0.5, 0.8, 0.9),
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Compute coverage and width of central intervals, and dependence of errors on the forecast.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    level : float or sequence of float
        Probabilities :math:`1 - \alpha` of the intervals, between 0 and 1.
    seed : int
        Seed of the random numbers of the PIT; see :func:`pit`.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over ``level`` (if there are several) and locations: ``coverage``, the share of observations
        inside the interval from quantile :math:`\alpha/2` to :math:`1 - \alpha/2`, ends included;
        ``width``, the mean length of the interval in the unit of the variable; ``interval_score``,
        the mean of the length plus :math:`2/\alpha` times the distance of the observation from the
        interval, in the same unit; ``dependence``, the bias-corrected squared distance correlation
        between the ends of the interval and the PIT (0 on average if errors do not depend on the
        forecast). Over locations: ``n_cases`` and ``status``. The result is lazy if an input is
        lazy.

    Raises
    ------
    ValueError
        If levels are not between 0 and 1, or if dimensions, labels or units of the inputs do not
        match.

    Notes
    -----
    Coverage can be right on average, but wrong given the forecast; ``dependence`` and
    :func:`skce_test` show such errors. An interval of rain that ends at zero contains a larger
    share of the observations than its level. An interval from few members contains a smaller share,
    because it cannot extend beyond the outermost members: 46, 73 and 82 % for 10 exchangeable
    members at levels of 50, 80 and 90 %. If a forecast consists of quantiles, the results of an
    interval are NaN if an end is outside the levels of the quantiles. An end between two levels is
    replaced by the quantile of the nearest level, as in ``.recal.quantile``. So choose intervals
    whose ends are among the levels. The cost is O(m) for each forecast of m members, and O(n²) for
    the dependence of n cases.

    References
    ----------
    .. [1] Gneiting & Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
       https://doi.org/10.1198/016214506000001437
    .. [2] Székely & Rizzo (2014), Partial distance correlation with methods for dissimilarities.
       https://doi.org/10.1214/14-AOS1255

    Examples
    --------
    >>> coverage = hindcast.recal.coverage(observations, ["init", "location"], level=[0.5, 0.9])
    >>> coverage["coverage"].round(2).values
    array([0.16, 0.36])
    """
    check_seed(seed)
    levels = _checked(level)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    require_free(evidence.form.dims, [LEVEL])
    pit = pit_of_cases(evidence, seed)
    low, high = interval_ends(evidence, levels)
    parts = [
        evidence.over_cases(
            partial(_cover, level=one),
            evidence.observations,
            low.isel({LEVEL: i}),
            high.isel({LEVEL: i}),
            pit,
            out=[()] * 4,
            what="the coverage",
        )
        for i, one in enumerate(levels)
    ]
    results = [stacked(part, LEVEL) for part in zip(*parts, strict=True)]
    variables = described(results, _TEXTS, evidence.units)
    for name in ("coverage", "dependence"):
        variables[name].attrs |= NO_UNIT
    unknown = levels[~is_known(evidence.form, levels)]
    if unknown.size:
        comment = f"{UNKNOWN}: {', '.join(f'{one:g}' for one in unknown)}"
        variables = {name: array.assign_attrs(comment=comment) for name, array in variables.items()}
    along = {LEVEL: (levels, {"long_name": "probability of the interval", "units": "1"})}
    what = "coverage of central intervals"
    result = evidence.result(variables, what, pit.notnull(), along=along)
    return result.isel({LEVEL: 0}) if np.ndim(level) == 0 else result


def interval_ends(evidence: Evidence, levels: np.ndarray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the lower and upper ends of the central intervals of each forecast, over ``level``.

    If the forecast consists of quantiles, both ends are NaN if one end is outside their levels.
    """
    wanted = np.concatenate([(1 - levels) / 2, (1 + levels) / 2])
    ends = evidence.reduce(partial(quantiles_of, levels=wanted), new={LEVEL: wanted.size})
    form = evidence.form
    if form.levels is not None:  # forecasts may lack some quantiles
        there = form.levels.where(form.loc.notnull())
        least, most = there.min([form.member_dim]), there.max([form.member_dim])
        low, high = (xr.DataArray(end, dims=[LEVEL]) for end in np.split(wanted, 2))
        known = (low >= least - NEAR) & (high <= most + NEAR)
        ends = ends.where(xr.concat([known, known], LEVEL))
    return ends.isel({LEVEL: slice(levels.size)}), ends.isel({LEVEL: slice(levels.size, None)})


def is_known(form: Form, levels: np.ndarray) -> np.ndarray:
    """Return whether both ends of central intervals are between the levels of the forecast."""
    if form.kind != "quantile":
        return np.ones(levels.size, bool)
    given = levels_of(form)
    return is_between((1 - levels) / 2, given) & is_between((1 + levels) / 2, given)


def _checked(level: float | Sequence[float]) -> np.ndarray:
    levels = np.atleast_1d(np.asarray(level))
    numbers = levels.dtype.kind in "iuf" and levels.ndim == 1 and levels.size > 0
    if not numbers or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"level must hold probabilities between 0 and 1, got {level!r:.60}")
    return levels.astype(np.float64)


def _cover(
    observations: np.ndarray, low: np.ndarray, high: np.ndarray, pit: np.ndarray, level: float
) -> tuple[np.ndarray, ...]:
    from xrecal.arrays import interval_coverage, interval_score
    from xrecal.arrays.calibration.dependence import distance_correlation

    share, width = interval_coverage(observations, low, high)[:2]
    score = interval_score(observations, low, high, level)
    known = ~np.isnan(score)
    n = known.sum(-1)
    mean = np.where(known, score, 0.0).sum(-1) / np.where(n > 1, n, np.nan)
    ends = np.stack([low, high], axis=-1)
    return share, width, mean, distance_correlation(ends, pit[..., np.newaxis])
