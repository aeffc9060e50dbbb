"""Compute the PIT (probability integral transform), its histogram and its test."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import numpy as np
import xarray as xr

from xrecal import arrays
from xrecal.arrays.distributions.forms import Empirical
from xrecal.arrays.rows import is_whole
from xrecal.arrays.status import DEPENDENT, NOT_TOLD
from xrecal.chunks.blockwise import require_free
from xrecal.chunks.over_cases import over_cases
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Labelled, levels_of, numbers_of, require_plain, with_named_cases
from xrecal.inputs.metadata import history_only, joined
from xrecal.inputs.pairing import Observations, known_pairs, pair_cases, pair_variables
from xrecal.methods.call_errors import explained
from xrecal.products.reductions import Reduction
from xrecal.products.scores import pit_of, uniform_of
from xrecal.products.source import check_seed
from xrecal.typing import FloatArray, IntArray

from .evidence import (
    NO_UNIT,
    Evidence,
    by_name,
    counted,
    described,
    in_time,
    read_evidence,
    warn_of_dependence,
    with_meanings,
)

ATTRS = {"long_name": "probability integral transform of the observations", "units": "1"}
BIN = "pit_bin"
_STATISTIC = "Kolmogorov-Smirnov distance of the PIT from uniform"
P_TEXTS = {
    True: "p-value of a uniform PIT: Kolmogorov-Smirnov test that allows for serial dependence, "
    "by slow cosine waves",
    False: "p-value of a uniform PIT, exact Kolmogorov-Smirnov test for independent cases",
}
"""Long names of the p-value, by whether the test allows for dependence between cases."""

BLOCK_TEXT = "number of successive dates that count as one"


@explained("xrecal.diagnostics.pit")
def pit(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> Labelled:
    r"""Compute the PIT of observations: it is uniform on (0, 1) if forecasts are calibrated.

    Parameters
    ----------
    forecast : DataArray or Dataset
        Forecasts: ensembles, quantiles, normal distributions or mixtures.
    observations : DataArray, Dataset or dict
        Observations in the units of the forecasts. xrecal matches observations to forecasts by
        their labels along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimension of the cases; by default, the calibration dimension (time, init, ...).
    augmented : bool
        True adds each observation to the ensemble of its case. The PIT is then uniform if members
        and observation are exchangeable, even with few members. This is only for plain ensembles.
    seed : int
        Seed of the random numbers that place an observation within a jump of the forecast's CDF, or
        between the levels of quantiles.
    member_dim : hashable, optional
        The member dimension. If not given, xrecal recognises it by its CF standard name or its name
        (member, number, ...).

    Returns
    -------
    DataArray or Dataset
        :math:`F(y-) + u (F(y) - F(y-))` in [0, 1] for each case, where F is the CDF of the
        forecast, y is the observation, and u is a random number that depends on seed, location and
        case. The result is lazy if an input is lazy. It is NaN where the observation or forecast is
        missing.

    Raises
    ------
    ValueError
        If dimensions, labels or units of the inputs do not match, or the seed is not a whole
        number.

    Notes
    -----
    The cost is O(m) for each forecast of m members. Without the random number, a forecast with a
    point mass, such as the probability of a dry day, would not have a uniform PIT. An observation
    outside the range of the members has a PIT of 0 or 1, so a small ensemble fails the test even if
    its members are exchangeable with the observation: see ``augmented``. For a forecast of
    quantiles, the PIT is a random number between the two levels whose quantiles enclose the
    observation. If the observation is below all quantiles, the lower level is 0; if it is above all
    quantiles, the upper level is 1. So the PIT of exact quantiles is uniform, even with few levels.

    References
    ----------
    .. [1] Czado, Gneiting & Held (2009), Predictive model assessment for count data.
       https://doi.org/10.1111/j.1541-0420.2009.01191.x

    Examples
    --------
    >>> pit = forecast.recal.pit(observations)
    >>> pit.dims, bool(pit.min() >= 0), bool(pit.max() <= 1)
    (('init', 'location'), True, True)
    """
    check_seed(seed)
    transforms, remark = {}, None
    for name, (form, observed) in pair_variables(
        forecast, observations, member_dim, name="forecast"
    ).items():
        form = with_named_cases(form, dim)
        pairs = known_pairs(pair_cases(form, observed, name="forecast", require_dim=False))
        remark = remark or pairs.by_position
        values = pit_of_cases(Evidence(pairs, (pairs.dim,)), seed, augmented)
        transforms[name] = values.assign_attrs(ATTRS)
    line = joined(f"probability integral transform, seed {seed}", remark)
    history = history_only(forecast.attrs, line)
    if isinstance(forecast, xr.DataArray) or isinstance(observations, xr.DataArray):
        return next(iter(transforms.values())).rename("pit").assign_attrs(history)
    return xr.Dataset(transforms, attrs=history)


@explained("xrecal.diagnostics.pit_histogram")
def pit_histogram(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    bins: int = 10,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Compute the histogram of the PIT.

    Parameters
    ----------
    forecast, observations, augmented, seed, member_dim
        See :func:`pit`; one variable.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; by default, the calibration dimension (time, init, ...).
    bins : int
        Number of bins of equal width, at least 2.

    Returns
    -------
    Dataset
        Over ``pit_bin`` (the middle of each bin) and locations: ``n_in_bin``, the number of cases
        in the bin; ``frequency``, this number divided by the number in a bin of a flat histogram.
        The frequency is about 1 in all bins for calibrated forecasts. It is largest in the middle
        if forecasts are too wide, and largest at both ends if they are too narrow. Over locations:
        ``n_cases`` and ``status``.

    Raises
    ------
    ValueError
        See :func:`pit`; also if there is more than one variable or no dimension of cases.

    Examples
    --------
    >>> histogram = hindcast.recal.pit_histogram(observations, ["init", "location"], bins=5)
    >>> histogram["n_in_bin"].values
    array([75., 18.,  7., 17., 83.])
    """
    if not is_whole(bins) or bins < 2:
        raise ValueError(f"bins must be a whole number of at least 2, got {bins!r}")
    check_seed(seed)
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    require_free(evidence.form.dims, [BIN])
    values = pit_of_cases(evidence, seed, augmented)
    (count,) = evidence.over_cases(
        by_name("pit_counts", bins=int(bins)),
        values,
        out=[(BIN,)],
        sizes={BIN: int(bins)},
        dtypes=[np.float64],
        what="the PIT histogram",
    )
    counts = counted(values.notnull(), evidence.dims)
    n = counts["n_cases"]
    middle = (np.arange(bins) + 0.5) / bins
    variables = {
        "n_in_bin": count.assign_attrs(long_name="number of cases"),
        "frequency": (count * bins / n.where(n > 0))
        .astype(values.dtype)
        .assign_attrs(long_name="frequency relative to a flat histogram", units="1"),
        **counts,
    }
    along = {BIN: (middle, ATTRS)}
    return evidence.result(variables, "PIT histogram", along=along, bins=int(bins))


@explained("xrecal.diagnostics.pit_test")
def pit_test(
    forecast: Labelled,
    observations: Observations,
    dim: Dims = None,
    *,
    block_length: int | None = 1,
    augmented: bool = False,
    seed: int = 0,
    member_dim: Hashable | None = None,
) -> xr.Dataset:
    """Test whether the PIT is uniform, by the Kolmogorov-Smirnov distance.

    Parameters
    ----------
    forecast, observations, dim, augmented, seed, member_dim
        See :func:`pit_histogram`.
    block_length : int, optional
        Number of successive cases that count as one, or of successive dates if a date has several
        cases. With 1, all cases count as independent. With None, the test estimates the number from
        the data.

    Returns
    -------
    Dataset
        Over locations: ``statistic`` in [0, 1], the largest distance between the distribution of
        the PIT and the uniform distribution; ``p_value``, exact for independent cases;
        ``block_length``, the number of successive cases that counted as one (not present if you fix
        it to 1); ``n_cases`` and ``status``. Results are NaN with fewer than 2 cases. The p-value
        is also NaN if there are too few cases (dependent cases count as fewer); the status reports
        this.

    Raises
    ------
    ValueError
        See :func:`pit_histogram`; also if the block length is not a whole number of at least 1.

    Notes
    -----
    The test finds only errors of calibration on average over all cases. Forecasts that are too wide
    on some days and too narrow on others pass this test, but :func:`skce_test` rejects them. If
    successive cases depend on each other, the test with ``block_length=1`` rejects too often; the
    status and a warning report this. See :func:`xrecal.arrays.serial_uniform_test` for the test
    that allows for dependence.

    Examples
    --------
    >>> test = hindcast.recal.pit_test(observations, "init", block_length=None)
    >>> (test["p_value"] < 0.05).values
    array([ True,  True,  True,  True])
    """
    check_seed(seed)
    if block_length is not None and (not is_whole(block_length) or block_length < 1):
        raise ValueError(
            f"block_length must be a whole number of cases, at least 1, or None, got "
            f"{block_length!r}"
        )
    evidence = read_evidence(forecast, observations, dim, member_dim, ordered=False)
    result = tested_pit(evidence, pit_of_cases(evidence, seed, augmented), block_length, seed)
    if block_length == 1:
        warn_of_dependence(result["status"], "block_length=None")
    return result


def tested_pit(
    evidence: Evidence, values: xr.DataArray, block_length: int | None, seed: int
) -> xr.Dataset:
    """Test the PIT of all cases; see :func:`pit_test`."""
    values = values.isel(in_time(values, [evidence.time]))
    simultaneous = 1 if block_length == 1 else evidence.simultaneous
    test = partial(_tested, block_length=block_length, simultaneous=simultaneous, seed=seed)
    statistic, p_value, length, bits = over_cases(
        test,
        values,
        dims=evidence.dims_by_time,
        out=[()] * 4,
        dtypes=[values.dtype, values.dtype, np.int64, np.int16],
        what=evidence.work("the PIT test"),
    )
    serial = block_length != 1
    texts = {"statistic": _STATISTIC, "p_value": P_TEXTS[serial]}
    variables = described([statistic, p_value], texts, NO_UNIT)
    if serial:
        variables["block_length"] = length.assign_attrs(long_name=BLOCK_TEXT)
    variables |= counted(values.notnull(), evidence.dims)
    variables["status"] = with_meanings(variables["status"] | bits)
    return evidence.result(variables, "test of a uniform PIT")


def _tested(
    pit: np.ndarray, block_length: int | None, simultaneous: int, seed: int
) -> tuple[np.ndarray, ...]:
    """Return statistic, p-value, block length and bits of the status for PIT values (..., n)."""
    from xrecal.arrays import serial_uniform_test

    found = serial_uniform_test(pit, block_length, simultaneous=simultaneous, seed=seed)
    unknown = np.isnan(found.p_value) & ~np.isnan(found.statistic)
    bits = found.dependent * DEPENDENT if block_length == 1 else unknown * NOT_TOLD
    return found.statistic, found.p_value, found.block_length, bits


def pit_of_cases(evidence: Evidence, seed: int, augmented: bool = False) -> xr.DataArray:
    """Return the PIT of each case.

    The random number of a case depends on the positions of case and location, not on chunks.
    """
    if augmented:
        require_plain(evidence.form, "augmented=True")
    numbers = numbers_of(evidence.form, evidence.pairs.dim)
    transform: Reduction = partial(pit_of, seed=seed, augmented=augmented)
    if evidence.form.kind == "quantile":
        transform = partial(quantile_pit_of, levels=levels_of(evidence.form), seed=seed)
    return evidence.reduce(transform, [evidence.observations, *numbers])


def quantile_pit_of(
    distribution: Empirical,
    observations: FloatArray,
    cases: IntArray,
    *location: IntArray,
    levels: FloatArray,
    seed: int,
) -> tuple[FloatArray, ...]:
    """Return the PIT (L, T) of quantiles at levels (m,), with the random numbers of ``pit_of``."""
    uniform = uniform_of(seed, cases, location)
    return (arrays.quantile_pit(distribution.members, levels, observations, uniform),)
