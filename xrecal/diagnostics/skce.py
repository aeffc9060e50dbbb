"""The squared kernel calibration error: whether forecasts are calibrated given themselves."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import require_one_chunk, run_blockwise
from xrecal.fit.state import NEW_MEMBER
from xrecal.inputs.dims import Dims
from xrecal.inputs.forms import Form, Labelled, numbers_of, require_plain, task_parts
from xrecal.inputs.pairing import Observations
from xrecal.methods.base import is_whole
from xrecal.products.source import check_seed

from .evidence import (
    Evidence,
    as_dataset,
    by_quantiles,
    counted,
    read_evidence,
    task_name,
    with_meanings,
)

N_RESAMPLES = 1000

_TESTS = {
    "bootstrap": "bootstrap of Arcones and Giné",
    "wild": "wild bootstrap",
    "montecarlo": "observations drawn from the forecasts",
    "block": "normal approximation of block estimates",
}


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
        As for :func:`skce_test`, which has notes too.

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
    evidence = _read(forecast, observations, dim, member_dim, augmented)
    return _run(evidence, augmented, None, {"n_resamples": 1, "seed": 0, "block_length": None})


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
    r"""Test of auto-calibration: whether what is forecast comes true, given the forecast.

    Parameters
    ----------
    forecast : DataArray or Dataset
        In any of the four forms, one variable.
    observations : DataArray, Dataset or dict
        What verified, in the same units; matched by label along the dimension of the cases.
    dim : hashable or sequence of hashable, optional
        Dimensions of the cases; the calibration dimension (time, init, ...) if not given.
    test : {"bootstrap", "wild", "montecarlo", "block"}
        Where the distribution of the error of calibrated forecasts comes from: resampled cases
        [1]_; random signs, closer to its level below 100 cases; observations drawn from the
        forecasts themselves, right for any number of cases; or the normal approximation of the
        mean of estimates from blocks of cases, for very many.
    n_resamples : int
        Number of resamples; not for "block".
    block_length : int, optional
        For "wild" the number of successive cases that share a sign, as they depend on each other
        (1 if not given); for "block" that of the cases of an estimate (the root of the number of
        cases if not given).
    augmented : bool
        Pool each observation into its own ensemble: exact for members that are exchangeable with
        the observation. Only for plain ensembles, whose empirical distribution with m members is
        not calibrated even if they are.
    seed : int
        Of the random numbers.
    member_dim : hashable, optional
        The member dimension. Recognised by CF standard name or name (member, number, ...).

    Returns
    -------
    Dataset
        Over locations: ``skce``, unbiased and therefore possibly negative, without unit;
        ``p_value`` (right-tailed, small if forecasts are not calibrated); ``n_cases``; ``status``,
        flags: fewer than 2 cases, or observations that are all the same, have NaN; fewer than 10
        are flagged; identical forecasts are compared without regard to them; weights that are
        negative or do not sum to one are refused, NaN. Lazy if an input is; cases must be in one
        chunk.

    Raises
    ------
    ValueError
        If ``augmented`` is asked of other forms than plain ensembles, an argument is out of range,
        or dimensions, labels or units do not fit.

    Notes
    -----
    With the Energy Distance Kernel k on forecasts and a Laplace kernel l on observations, the
    mean over pairs of :math:`k(P_i, P_j) (l(y_i, y_j) - E l(Z_i, y_j) - E l(y_i, Z_j) +
    E l(Z_i, Z_j))` with :math:`Z_i \sim P_i` [2]_; bandwidths are medians, that of "montecarlo"
    of observations drawn from the forecasts. All but "wild" with blocks take cases as independent:
    with serial dependence they reject too often, "block" most of all, as it compares neighbours.
    "wild" needs ten blocks or more (fewer are flagged). Censored normal distributions are tested
    by 200 quantiles of them.
    A forecast that is given as quantiles is judged as the distribution that has these values
    alone: few of them are rejected although they are exact, unlike by :func:`pit_test`. Test many
    levels, the weighted ensemble that they came from, or ``cross_validate(..., output="pit")``.

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
    evidence = _read(forecast, observations, dim, member_dim, augmented)
    options = {"n_resamples": n_resamples, "seed": seed, "block_length": block_length}
    return _run(evidence, augmented, test, options)


def skce_test_of(evidence: Evidence, *, seed: int) -> xr.Dataset:
    """The test as it is by default, of forecasts that are paired with observations."""
    options = {"n_resamples": N_RESAMPLES, "seed": seed, "block_length": None}
    return _run(evidence, False, "bootstrap", options)


def _check_block_length(test: str, block_length: int) -> None:
    if test not in ("wild", "block"):
        raise ValueError(
            f"block_length is for test='wild' or 'block', not {test!r}, which takes cases as "
            "independent"
        )
    least = 1 if test == "wild" else 2
    if not is_whole(block_length) or block_length < least:
        raise ValueError(
            f"block_length must be a whole number of cases from {least} on, got {block_length!r}"
        )


def _read(
    forecast: Labelled,
    observations: Observations,
    dim: Dims,
    member_dim: Hashable | None,
    augmented: bool,
) -> Evidence:
    evidence = read_evidence(forecast, observations, dim, member_dim)
    if augmented:
        require_plain(evidence.form, "augmented=True")
    return evidence


def _run(
    evidence: Evidence, augmented: bool, test: Test | None, options: Mapping[str, Any]
) -> xr.Dataset:
    evidence, note = by_quantiles(evidence)
    form, dims = evidence.form, evidence.dims
    shared = form.kind == "weighted" and not set(dims) & set(form.loc.dims)
    loops = [d for d in form.dims if d not in dims]
    cases = {d: f"case_{i}" for i, d in enumerate(dims)}
    parts = case_parts(form, loops, cases, shared)
    observed = evidence.observations
    for part in form.parts.values():
        require_one_chunk(part, [*dims, form.member_dim], name="forecast")
    require_one_chunk(observed, dims, name="observations")
    observed = over_cases_last(observed, form, loops, cases)
    places = place_numbers(form, dims)
    axes = tuple(cases.values())
    core = [(NEW_MEMBER,) if shared and name == "loc" else (*axes, NEW_MEMBER) for name in parts]
    core += [axes, *[()] * len(places)]
    lengths = [(len(set(c) - {NEW_MEMBER}), int(NEW_MEMBER in c)) for c in core]
    results = run_blockwise(
        SkceTask(tuple(parts), lengths, augmented, test, options),
        *parts.values(),
        observed,
        *places,
        core=core,
        out=[(), (), ()],
        dtypes=[form.loc.dtype, form.loc.dtype, np.int16],
        sizes={},
        what=task_name("the calibration test", evidence),
    )
    value, p_value, status = (r.transpose(*[d for d in loops if d in r.dims]) for r in results)
    variables = {
        "skce": value.assign_attrs(
            long_name="squared kernel calibration error",
            estimator="unbiased, energy distance kernel on forecasts, Laplace on observations"
            + (", observations pooled into their ensembles" if augmented else "")
            + note,
            units="1",
        )
    }
    if test is not None:
        told = _TESTS[test]
        if test in ("wild", "block") and options["block_length"] is not None:
            told += f", {options['block_length']} cases a block"
        if test != "block":
            told += f", {options['n_resamples']} resamples"
        variables["p_value"] = p_value.assign_attrs(
            long_name=f"p-value of auto-calibration, {told}", units="1"
        )
    known = evidence.reduce(_is_known).astype(bool) & (abs(evidence.observations) < np.inf)
    variables["n_cases"] = counted(known, dims)["n_cases"]
    variables["status"] = with_meanings(status)
    return as_dataset(evidence, variables, "squared kernel calibration error")


def _is_known(distribution: Any) -> tuple[npt.NDArray[Any], ...]:
    """1 where there is a forecast."""
    return (np.isfinite(distribution.mean()) * 1.0,)


Test: TypeAlias = Literal["bootstrap", "wild", "montecarlo", "block"]


def case_parts(
    form: Form, loops: list[Hashable], cases: Mapping[Hashable, str], shared: bool
) -> dict[str, xr.DataArray]:
    """Parts with cases and members last; shared members without cases."""
    if not shared:
        return task_parts(form, loops, {**cases, form.member_dim: NEW_MEMBER})
    alone = Form(form.name, form.kind, form.member_dim, form.loc)
    loc = task_parts(alone, loops, {form.member_dim: NEW_MEMBER})["loc"]
    weights = form.parts["weights"]
    own = Form(form.name, form.kind, form.member_dim, weights)
    core = {**cases, form.member_dim: NEW_MEMBER}
    return {"loc": loc, "weights": task_parts(own, loops, core)["loc"]}


def place_numbers(form: Form, dims: tuple[Hashable, ...]) -> list[xr.DataArray]:
    """Arrays that sum up to the number of the location."""
    parts = {
        name: part.isel({d: 0 for d in dims if d in part.dims}, drop=True)
        for name, part in form.parts.items()
    }
    return numbers_of(form.with_parts(parts), None)[1:]


def over_cases_last(
    observations: xr.DataArray, form: Form, loops: list[Hashable], cases: Mapping[Hashable, str]
) -> xr.DataArray:
    """Observations with all dimensions of the cases, last and renamed."""
    sizes = {d: n for part in form.parts.values() for d, n in part.sizes.items()}
    lacking = {d: sizes[d] for d in cases if d not in observations.dims}
    bare = observations.drop_vars([c for c in observations.coords if c not in loops])
    whole = bare.expand_dims(lacking)
    return whole.transpose(*[d for d in loops if d in whole.dims], *cases).rename(cases)


class SkceTask:
    """Parts of forecasts, observations and numbers of locations in; error, p-value, status out.

    ``core`` has for each argument the number of its last axes that are cases, and members.
    """

    def __init__(
        self,
        parts: tuple[str, ...],
        core: list[tuple[int, int]],
        augmented: bool,
        test: Test | None,
        options: Mapping[str, Any],
    ) -> None:
        self.parts, self.core = parts, core
        self.augmented, self.test, self.options = augmented, test, dict(options)

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Run the task on one chunk."""
        from xrecal.arrays import skce_locations
        from xrecal.arrays.distributions.forms import Forecasts

        lead = np.broadcast_shapes(
            *(a.shape[: a.ndim - sum(n)] for a, n in zip(args, self.core, strict=True))
        )
        *parts, observed = (
            _rows(a, lead, *n) for a, n in zip(args, self.core, strict=True) if sum(n)
        )
        numbers = np.zeros(lead, np.int64)
        for place in args[len(parts) + 1 :]:
            numbers = numbers + place
        found = skce_locations(
            Forecasts(**dict(zip(self.parts, parts, strict=True))),
            observed,
            test=self.test,
            location_numbers=numbers.reshape(-1),
            augmented=self.augmented,
            **self.options,
        )
        types = args[0].dtype, args[0].dtype, np.int16
        return tuple(a.reshape(lead).astype(t) for a, t in zip(found, types, strict=True))


def _rows(
    array: npt.NDArray[Any], lead: tuple[int, ...], n_case_axes: int, n_member_axes: int
) -> npt.NDArray[Any]:
    """Locations as one axis, cases as one axis, and members, of those that the array has."""
    core = array.shape[array.ndim - n_case_axes - n_member_axes :]
    cases = (math.prod(core[:n_case_axes]),) if n_case_axes else ()
    whole = np.broadcast_to(array, (*lead, *core))
    return whole.reshape(math.prod(lead), *cases, *core[n_case_axes:])
