"""The squared kernel calibration error (SKCE) and the test of calibration given the forecast."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import VALID, Forecasts, verdicts
from xrecal.arrays.rows import is_whole
from xrecal.chunks.warnings import warn
from xrecal.inputs.covariates import season_of
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Form, Labelled, require_plain
from xrecal.inputs.pairing import Observations
from xrecal.methods.call_errors import explained
from xrecal.products.source import check_seed

from .evidence import Evidence, read_evidence, warn_of_dependence, with_meanings
from .pit import BLOCK_TEXT
from .series import over_series

Test: TypeAlias = Literal["serial", "bootstrap", "wild", "montecarlo", "block"]

N_RESAMPLES = 1000

_TESTS = {
    "serial": "rotated waves, which allow for serial dependence",
    "bootstrap": "bootstrap of Arcones and Giné",
    "wild": "wild bootstrap",
    "montecarlo": "observations drawn from the forecasts",
    "block": "normal approximation of block estimates",
}
"""Descriptions of tests for results."""


class _Settings(NamedTuple):
    """Settings of the estimate and its test, as :class:`xrecal.arrays.SkceSettings` has them."""

    test: Test | None = None
    """None for the estimate alone."""
    n_resamples: int = N_RESAMPLES
    block_length: int | None = None
    augmented: bool = False
    seed: int = 0

    @property
    def description(self) -> str:
        """Description of the test."""
        assert self.test is not None
        words = _TESTS[self.test]
        if self.test in ("serial", "wild", "block") and self.block_length is not None:
            words += f", {self.block_length} cases a block"
        return words if self.test == "block" else f"{words}, {self.n_resamples} resamples"


@explained("xrecal.diagnostics.skce")
def skce(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    augmented: bool = False,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Squared kernel calibration error: 0 on average for forecasts calibrated given themselves.

    Parameters
    ----------
    forecast, observations, dim, augmented, member_dim
        See :func:`skce_test`, which has notes too.

    Returns
    -------
    Dataset
        Over locations ``skce``, unbiased and therefore possibly negative, without unit;
        ``n_cases`` and ``status``.

    Examples
    --------
    >>> skce = hindcast.recal.skce(observations, "init")
    >>> skce["skce"].round(4).values
    array([0.0001, 0.0008, 0.0006, 0.    ])
    """
    evidence = read_evidence(forecast, observations, dim, member_dim)
    return _run(evidence, _Settings(augmented=augmented))


@explained("xrecal.diagnostics.skce_test")
def skce_test(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    test: Test = "bootstrap",
    n_resamples: int = N_RESAMPLES,
    block_length: int | None = None,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    r"""Test of calibration given the forecast (auto-calibration), by the SKCE.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable, in any of the four forms of forecasts.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches them by label along the dimension
        of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases. If not given, this is the calibration dimension (time, init, ...).
    test : {"bootstrap", "wild", "serial", "montecarlo", "block"}
        Method that finds how the error of calibrated forecasts is distributed. "bootstrap":
        resampled cases [1]_. "wild": random signs; below 100 cases its share of false rejections is
        closer to the level of the test. "serial": slow waves, for cases that depend on each other.
        "montecarlo": observations drawn from the forecasts, right for any number of cases. "block":
        normal approximation of the mean of estimates from blocks of cases, for very many cases.
    n_resamples : int
        Number of resamples; not for "block".
    block_length : int, optional
        "serial": number of successive cases, or of dates with several cases, that count as one
        (from the data if not given). "wild": number of successive cases that share a sign (1 if not
        given). "block": number of cases of an estimate (the root of the number of cases if not
        given).
    augmented : bool
        Add each observation to its own ensemble: exact for members that are exchangeable with the
        observation. Only for plain ensembles. Without it, the empirical distribution of m such
        members is not calibrated.
    seed : int
        Seed of the random numbers.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over locations: ``skce``, unbiased and therefore possibly negative, without unit;
        ``p_value`` (right-tailed, small if forecasts are not calibrated); for "serial"
        ``block_length``; ``n_cases``; ``status``. Flags of the status are: fewer than 2 cases, or
        observations that are all the same (NaN); fewer than 10 cases; identical forecasts, so the
        test compares observations alone; weights that are negative or do not sum to one (NaN);
        cases that depend on each other although the test takes them as independent, or too few of
        them ("serial", NaN); forecasts compared relative to their season. Lazy if an input is;
        cases must be in one chunk.

    Raises
    ------
    ValueError
        If ``augmented`` is set for other forms than plain ensembles, an argument is out of range,
        or dimensions, labels or units of the inputs do not match.

    Notes
    -----
    With the Energy Distance Kernel k on forecasts and a Laplace kernel l on observations, the SKCE
    is the mean over pairs of :math:`k(P_i, P_j) (l(y_i, y_j) - E l(Z_i, y_j) - E l(y_i, Z_j) +
    E l(Z_i, Z_j))` with :math:`Z_i \sim P_i` [2]_. Bandwidths are medians; that of "montecarlo" is
    the median of observations drawn from the forecasts.

    All tests but "serial", and "wild" with blocks, take cases as independent. With serial
    dependence they reject too often, "block" most of all, because it compares neighbours; a warning
    reports this. "wild" needs ten blocks or more (fewer are flagged). If several dimensions are
    pooled, "serial" allows for any dependence among the cases of one date.

    If two harmonics of the season explain more than half of the variance of the means of 20 or more
    dated forecasts, the test removes them from forecasts and observations. With an annual cycle
    both kernels would be too wide to see any other error.

    Censored normal distributions are tested by 200 of their quantiles. A forecast in quantiles is
    tested as the distribution of these values alone. So the test rejects few quantiles even if they
    are exact; :func:`pit_test` does not. Test many levels, or the weighted ensemble that they came
    from, or ``cross_validate(..., output="pit")``.
    O(n²) distances and n² numbers of memory a location, and O(n_resamples n²) for the test, which
    for "montecarlo" of normal distributions takes seconds with hundreds of cases; "block" is
    O(n block_length).

    References
    ----------
    .. [1] Arcones & Giné (1992), On the bootstrap of U and V statistics.
       https://doi.org/10.1214/aos/1176348650
    .. [2] Widmann, Lindsten & Zachariah (2021), Calibration tests beyond classification.
       https://arxiv.org/abs/2210.13355

    Examples
    --------
    >>> test = hindcast.recal.skce_test(observations, "init", n_resamples=200)
    >>> (test["p_value"] < 0.05).values
    array([False,  True, False, False])
    """
    if test not in get_args(Test):
        raise ValueError(f"test is {test!r}; give one of {list(get_args(Test))}")
    if not is_whole(n_resamples) or n_resamples < 1:
        raise ValueError(f"n_resamples must be a whole number from 1 on, got {n_resamples!r}")
    if block_length is not None:
        _check_block_length(test, block_length)
    check_seed(seed)
    evidence = read_evidence(forecast, observations, dim, member_dim)
    result = _run(evidence, _Settings(test, n_resamples, block_length, augmented, seed))
    warn_of_dependence(result["status"], "test='serial'")
    return result


def skce_test_of(evidence: Evidence, block_length: int | None, seed: int) -> xr.Dataset:
    """The serial test of forecasts that are already paired with observations."""
    return _run(evidence, _Settings("serial", block_length=block_length, seed=seed))


def _check_block_length(test: str, block_length: int) -> None:
    if test not in ("serial", "wild", "block"):
        raise ValueError(
            f"block_length is for test='serial', 'wild' or 'block', not {test!r}, which takes "
            "cases as independent"
        )
    least = 2 if test == "block" else 1
    if not is_whole(block_length) or block_length < least:
        raise ValueError(
            f"block_length must be a whole number of cases from {least} on, got {block_length!r}"
        )


def _run(evidence: Evidence, settings: _Settings) -> xr.Dataset:
    """The error of each location, with its test if there is one."""
    if settings.augmented:
        require_plain(evidence.form, "augmented=True")
    evidence, note = evidence.by_quantiles(keep=evidence.form.traits.has_distances)
    form, serial = evidence.form, settings.test == "serial"
    _warn_of_sums(form)
    extras = []
    season = season_of(form, evidence.time) if evidence.time in form.dims else None
    if season is not None:
        extras.append(season)
        note += ", relative to the season where the status says so"
    simultaneous = evidence.simultaneous if serial else 1
    results = over_series(
        evidence,
        partial(_estimates, settings={**settings._asdict(), "simultaneous": simultaneous}),
        *extras,
        dims=evidence.dims_by_time if serial else evidence.dims,
        per_case=[False] * 5,
        dtypes=[form.loc.dtype, form.loc.dtype, np.int16, np.int64, np.int64],
        what="the calibration test",
    )
    variables = _described(results, settings, note)
    return evidence.result(variables, "squared kernel calibration error")


def _estimates(
    forecasts: Forecasts,
    observed: np.ndarray,
    numbers: np.ndarray,
    season: np.ndarray | None = None,
    *,
    settings: dict[str, Any],
) -> tuple[np.ndarray, ...]:
    """Errors, p-values, statuses, block lengths and numbers of cases (L,)."""
    from xrecal.arrays import SkceSettings, skce_locations
    from xrecal.arrays.calibration.skce import one_row_each

    estimates = skce_locations(
        forecasts, observed, SkceSettings(**settings), location_numbers=numbers, season=season
    )
    n_cases = ((verdicts(one_row_each(forecasts)) == VALID) & np.isfinite(observed)).sum(-1)
    return *estimates, n_cases


def _warn_of_sums(form: Form) -> None:
    """Warn about weights in memory that do not sum to one, with their sums."""
    from xrecal.arrays.calibration.expectations import SUM_TOLERANCE

    weights = form.weights
    if weights is None or not isinstance(weights.data, np.ndarray):
        return
    there = weights.notnull().any([form.member_dim]).to_numpy()
    sums = weights.sum([form.member_dim], dtype=np.float64).to_numpy()[there]
    wrong = sums[np.abs(sums - 1.0) > SUM_TOLERANCE]
    if wrong.size:
        ends = dict.fromkeys(f"{end:.8g}" for end in (wrong.min(), wrong.max()))
        warn(
            f"weights along {form.member_dim!r} do not sum to one in {wrong.size} of {sums.size} "
            f"sets of weights; their sum is {' to '.join(ends)}. Results that need them are NaN: "
            f"use weights / weights.sum({form.member_dim!r})"
        )


def _described(
    results: tuple[xr.DataArray, ...], settings: _Settings, note: str
) -> dict[str, xr.DataArray]:
    """Results of the task by name, with attributes."""
    value, p_value, status, length, n_cases = results
    pooled = ", observations pooled into their ensembles" if settings.augmented else ""
    variables = {
        "skce": value.assign_attrs(
            long_name="squared kernel calibration error",
            estimator="unbiased, energy distance kernel on forecasts, Laplace on observations"
            f"{pooled}{note}",
            units="1",
        )
    }
    if settings.test is not None:
        variables["p_value"] = p_value.assign_attrs(
            long_name=f"p-value of auto-calibration, {settings.description}", units="1"
        )
    if settings.test == "serial":
        variables["block_length"] = length.assign_attrs(long_name=BLOCK_TEXT)
    variables["n_cases"] = n_cases.assign_attrs(long_name="number of cases")
    return variables | {"status": with_meanings(status)}
