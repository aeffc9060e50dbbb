"""Compute the squared kernel calibration error (SKCE), and test auto-calibration by it."""

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
    "serial": "slow cosine waves, which allow for serial dependence",
    "bootstrap": "bootstrap of Arcones and Giné",
    "wild": "wild bootstrap",
    "montecarlo": "observations drawn from the forecasts",
    "block": "normal approximation of block estimates",
}
"""Descriptions of the tests, for attributes of results."""


class _Settings(NamedTuple):
    """Settings of the SKCE and its test; see :class:`xrecal.arrays.SkceSettings`."""

    test: Test | None = None
    """Name of the test; None computes the SKCE alone."""
    n_resamples: int = N_RESAMPLES
    block_length: int | None = None
    augmented: bool = False
    seed: int = 0

    @property
    def description(self) -> str:
        """Description of the test, for attributes of results."""
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
    """Compute the SKCE: 0 on average if forecasts are auto-calibrated.

    Parameters
    ----------
    forecast, observations, dim, augmented, member_dim
        See :func:`skce_test` for these parameters, and for notes.

    Returns
    -------
    Dataset
        Over locations: ``skce``, the squared kernel calibration error, without a unit (an unbiased
        estimate, which may be negative); ``n_cases`` and ``status``.

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
    r"""Test calibration given the forecast (auto-calibration) by the SKCE.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts of one variable: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    test : {"bootstrap", "wild", "serial", "montecarlo", "block"}
        Method that estimates the distribution of the SKCE for calibrated forecasts. "bootstrap"
        resamples cases [1]_. "wild" gives cases random signs; with fewer than 100 cases, its share
        of false rejections is closer to the level of the test than the share of "bootstrap" is.
        "serial" is for cases that depend on each other: the slow cosine waves in the series of
        cases show how uncertain the mean over the cases is. "montecarlo" draws observations from
        the forecasts; it is right for any number of cases. "block" is for very many cases: it
        computes an estimate for each block of cases, and assumes that the mean of these estimates
        is normally distributed.
    n_resamples : int
        Number of resamples; "block" ignores it.
    block_length : int, optional
        For "serial": number of successive cases that count as one, or of successive dates if a date
        has several cases; estimated from the data if not given. For "wild": number of successive
        cases that share a random sign; 1 if not given. For "block": number of cases of each block;
        the square root of the number of cases if not given.
    augmented : bool
        True adds each observation to the ensemble of its case. The test is then exact if members
        and observation are exchangeable. This is only for plain ensembles. With False, the test
        treats the members as the only possible values, so it rejects small ensembles even if
        members and observation are exchangeable.
    seed : int
        Seed of the random numbers.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    Dataset
        Over locations: ``skce``, the squared kernel calibration error, without a unit (an unbiased
        estimate, which may be negative); ``p_value``, of a right-tailed test (small if forecasts
        are not calibrated); ``block_length``, only for "serial"; ``n_cases``; ``status``.
        The status reports: fewer than 2 cases, or observations that are all equal (results are
        NaN); fewer than 10 cases; forecasts that are all equal, so the test compares observations
        alone; weights that are negative or do not sum to one (results are NaN); cases that depend
        on each other although the test assumes independence; for "serial", too few cases, where
        dependent cases count as fewer (the p-value is NaN); forecasts that the test compared
        relative to their season. The result is lazy if an input is lazy; a lazy input must have all
        cases in one chunk.

    Raises
    ------
    ValueError
        If ``augmented=True`` and the forecast is not a plain ensemble, if an argument is out of
        range, or if dimensions, labels or units of the inputs do not match.

    Notes
    -----
    With the Energy Distance Kernel k on forecasts and a Laplace kernel l on observations, the SKCE
    is the mean over pairs of cases of :math:`k(P_i, P_j) (l(y_i, y_j) - E l(Z_i, y_j) - E l(y_i,
    Z_j) + E l(Z_i, Z_j))` [2]_. Here, :math:`P_i` is the forecast of case i, :math:`y_i` is its
    observation, and :math:`Z_i` is a random draw from :math:`P_i`. Bandwidths are median distances;
    "montecarlo" takes the median distance of observations drawn from the forecasts.

    All tests assume independent cases, except "serial", and "wild" with a ``block_length`` above 1.
    If successive cases depend on each other, tests that assume independence reject too often, and a
    warning reports this. "block" then rejects most often, because it compares neighbouring cases.
    "wild" needs at least ten blocks of ``block_length`` cases; the status marks results from fewer
    blocks. If ``dim`` has several dimensions, "serial" allows for any dependence among the cases of
    one date.

    If 20 or more forecasts have dates, the test fits two harmonics of the annual cycle to the
    forecast means. If the harmonics explain more than half of the variance of the means, the test
    removes the harmonics from forecasts and observations. Otherwise the annual cycle would make
    both kernels so wide that the test could not detect other errors.

    The test replaces each censored normal distribution by 200 quantiles. If a forecast consists of
    quantiles, the test treats the quantiles as the only possible values. So the test rejects
    forecasts of few quantiles even if the quantiles are exact; :func:`pit_test` does not reject
    them. For such forecasts, test many levels, or the weighted ensemble from which the quantiles
    were computed, or the output of ``cross_validate(..., output="pit")``. At each location with n
    cases, the SKCE costs O(n²) distances and memory for n² numbers. The test costs O(n_resamples
    n²) operations; "montecarlo" takes seconds for hundreds of normal distributions. The cost of
    "block" is O(n block_length).

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
        raise ValueError(f"n_resamples must be a whole number, at least 1, got {n_resamples!r}")
    if block_length is not None:
        _check_block_length(test, block_length)
    check_seed(seed)
    evidence = read_evidence(forecast, observations, dim, member_dim)
    result = _run(evidence, _Settings(test, n_resamples, block_length, augmented, seed))
    warn_of_dependence(result["status"], "test='serial'")
    return result


def skce_test_of(evidence: Evidence, block_length: int | None, seed: int) -> xr.Dataset:
    """Run the serial test on forecasts that are already paired with observations."""
    return _run(evidence, _Settings("serial", block_length=block_length, seed=seed))


def _check_block_length(test: str, block_length: int) -> None:
    if test not in ("serial", "wild", "block"):
        raise ValueError(
            f"block_length is for test='serial', 'wild' or 'block', not {test!r}, which assumes "
            "independent cases"
        )
    least = 2 if test == "block" else 1
    if not is_whole(block_length) or block_length < least:
        raise ValueError(
            f"block_length must be a whole number of cases, at least {least}, got {block_length!r}"
        )


def _run(evidence: Evidence, settings: _Settings) -> xr.Dataset:
    """Compute the SKCE of each location, and run the test if the settings name one."""
    if settings.augmented:
        require_plain(evidence.form, "augmented=True")
    evidence, note = evidence.by_quantiles(keep=evidence.form.traits.has_distances)
    form, serial = evidence.form, settings.test == "serial"
    _warn_of_sums(form)
    extras = []
    season = season_of(form, evidence.time) if evidence.time in form.dims else None
    if season is not None:
        extras.append(season)
        note += ", relative to the season where the status reports it"
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
    """Return SKCE, p-values, statuses, block lengths and numbers of cases, each (L,)."""
    from xrecal.arrays import SkceSettings, skce_locations
    from xrecal.arrays.calibration.skce import one_row_each

    estimates = skce_locations(
        forecasts, observed, SkceSettings(**settings), location_numbers=numbers, season=season
    )
    n_cases = ((verdicts(one_row_each(forecasts)) == VALID) & np.isfinite(observed)).sum(-1)
    return *estimates, n_cases


def _warn_of_sums(form: Form) -> None:
    """Warn if weights do not sum to one, and show the sums; skip lazy weights."""
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
    """Return the results of the task by name, with attributes."""
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
