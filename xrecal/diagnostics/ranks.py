"""Compute rank histograms: ranks of observations among the members of plain ensembles."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Empirical
from xrecal.chunks.blockwise import require_free
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled, numbers_of
from xrecal.inputs.pairing import Observations
from xrecal.methods.call_errors import explained
from xrecal.products.scores import uniform_of
from xrecal.products.source import check_seed
from xrecal.typing import FloatArray, IntArray

from .evidence import NO_UNIT, described, read_evidence

RANK = "rank"
_TEXTS = {
    "statistic": "chi-square of the rank histogram",
    "p_value": "p-value of the chi-square test that the rank histogram is flat",
    "slope": "linear component, positive if forecasts are too low",
    "slope_p_value": "p-value of the test that there is no linear component",
    "convexity": "U-shaped component, positive if the spread is too small",
    "convexity_p_value": "p-value of the test that there is no U-shaped component",
}


@explained("xrecal.diagnostics.rank_histogram")
def rank_histogram(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Count the ranks of observations among members, and test whether the histogram is flat.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Plain ensembles of one variable.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    seed : int
        Seed of the random numbers that rank an observation among members equal to this observation.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over locations and ``rank``, from 0 (below all members) to m (above all m members):
        ``n_in_bin``, the number of cases. Over locations: ``statistic`` and ``p_value`` of a test
        that the histogram is flat (chi-square with m degrees of freedom); ``slope``, the linear
        component of the histogram, positive if forecasts are too low, and its p-value
        ``slope_p_value``; ``convexity``, the U-shaped component, positive if the spread is too
        small, and its p-value ``convexity_p_value``; ``n_cases`` and ``status``. The result is lazy
        if an input is lazy.

    Raises
    ------
    ValueError
        If forecasts are not plain ensembles, or if dimensions, labels or units of the inputs do not
        match.

    Notes
    -----
    The histogram is flat if members and observation are exchangeable, whatever the number of
    members. The histogram leaves out cases with a missing member, because their ranks would have a
    smaller range. If a member is missing in every case, remove it first:
    ``forecast.dropna("member", how="all")``. The chi-square test needs independent cases, about 5
    for each rank. The cost is O(m) for each forecast of m members.

    References
    ----------
    .. [1] Hamill (2001), Interpretation of rank histograms for verifying ensemble forecasts.
       https://doi.org/10.1175/1520-0493(2001)129<0550:IORHFV>2.0.CO;2
    .. [2] Jolliffe & Primo (2008), Evaluating rank histograms using decompositions of the
       chi-square test statistic. https://doi.org/10.1175/2007MWR2219.1

    Examples
    --------
    >>> histogram = hindcast.recal.rank_histogram(observations, ["init", "location"])
    >>> histogram["n_in_bin"].values
    array([59., 16.,  8., 10.,  7.,  6., 11., 13., 70.])
    """
    check_seed(seed)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    form = evidence.form
    if form.kind != "ensemble":
        raise ValueError(
            f"a rank histogram needs plain ensembles, but {form.name!r} is a forecast of the "
            f"form {form.kind!r}; use pit_histogram"
        )
    require_free(form.dims, [RANK])
    extras = [evidence.observations, *numbers_of(form, evidence.pairs.dim)]
    ranks = evidence.reduce(partial(rank_of, seed=seed), extras)
    n_ranks = form.loc.sizes[form.member_dim] + 1
    counts, *tests = evidence.over_cases(
        partial(_counts_and_tests, n_ranks=n_ranks),
        ranks,
        out=[(RANK,), *[()] * 6],
        sizes={RANK: n_ranks},
        dtypes=[np.float64, *[ranks.dtype] * 6],
        what="the rank histogram",
    )
    variables = {"n_in_bin": counts.assign_attrs(long_name="number of cases")}
    variables |= described(tests, _TEXTS, NO_UNIT)
    number = {"long_name": "number of members below the observation", "units": "1"}
    along = {RANK: (np.arange(n_ranks), number)}
    return evidence.result(variables, "rank histogram", ranks.notnull(), along=along)


def _counts_and_tests(ranks: np.ndarray, n_ranks: int) -> tuple[np.ndarray, ...]:
    from xrecal.arrays import flatness_test, rank_counts

    counts = rank_counts(ranks, n_ranks)
    return (counts, *flatness_test(counts))


def rank_of(
    distribution: Empirical,
    observations: FloatArray,
    cases: IntArray,
    *location: IntArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Return ranks (L, T) of observations; random numbers, as in ``pit_of``, order equal values."""
    from xrecal.arrays.calibration.ranks import observation_ranks

    uniform = uniform_of(seed, cases, location)
    return (observation_ranks(observations, distribution.members, uniform)[0],)
