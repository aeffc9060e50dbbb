"""Cross-validation: a hindcast in which every case is predicted by a fit that has not seen it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.distributions.forms import Distribution
from xrecal.chunks.blockwise import require_free
from xrecal.chunks.progress import counted, reporting
from xrecal.fit.conditioned import checked
from xrecal.fit.fit_hindcast import DEFAULT
from xrecal.fit.held_out import By, HeldOut, Splits, hold_out
from xrecal.fit.kinds import TOGETHER, Choose
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import read_inner_levels
from xrecal.inputs.forms import Labelled, of_cases
from xrecal.inputs.lengths import Span
from xrecal.inputs.metadata import history_line, joined, with_conventions
from xrecal.inputs.pairing import Observations, pair_variables
from xrecal.inputs.pool import PoolOver
from xrecal.inputs.thresholds import Threshold
from xrecal.methods import Method
from xrecal.methods.call_errors import unexplained
from xrecal.typing import FloatArray

from .categories import (
    CATEGORY,
    EDGE,
    categories_of,
    category_attributes,
    labels_of_levels,
    warn_of_pooled_edges,
    with_edges,
)
from .replayed import replayed, updates_as_it_goes
from .scores import PIT, SCORES, pit_of
from .table import PRODUCTS

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
SEED = 0
"""Of the random numbers that place an observation within a jump of the forecast's CDF."""

OF_SOME = ("threshold", "n", "seed")
"""Parameters that some outputs take, and others refuse."""


@reporting("xrecal cross_validate")
def cross_validate(
    hindcast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    by: By = "year",
    gap: Span | None = None,
    blocks: int = 5,
    window: Span | None = None,
    every: Span | None = None,
    refit: Span | None = None,
    year_start: str | int | None = None,
    output: str = "quantile",
    q: float | Sequence[float] | np.ndarray = QUANTILES,
    threshold: Threshold | None = None,
    n: int | None = None,
    seed: int = 0,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    pool: PoolOver = None,
    features: str | Sequence[str] = (),
    choose: Choose = TOGETHER,
    min_samples: int = 20,
    progress: bool = True,
) -> Labelled:
    """Predict every case of a hindcast by fits that have not seen it.

    Parameters
    ----------
    hindcast, observations, method, dim, member_dim, condition_on, covariates
        As for :func:`xrecal.fit.fit_hindcast.fit`.
    by : {"year", "block", "retrospective", "rolling"}
        What is predicted together: each year, from all others; each of ``blocks``
        contiguous parts, from all others; each part after the first, from the parts before it;
        or, as in operation, the cases up to the next refit from the last ``window``. The first two
        learn from the future too, which flatters where climate or forecast model drift; the
        others do not, with a ``gap`` of at least the lead time: earlier starts verify later.
    gap : int, timedelta or str, optional
        Cases, or length of time, left out of training next to those predicted: on both sides, or
        before them where only the past counts; ``"5D"`` is a length, too. Without one none are
        left out, and cases that depend on their neighbours give away the answer: give at least the
        lead time and the memory of the weather. Where a model is updated (``refit``) each forecast
        is learned, without a gap, once its own lead has verified and the ``delay`` of an OnlinePool
        has passed.
    blocks : int
        Number of parts; with ``"rolling"`` and no window, predictions start after the first.
    window, every : int, timedelta or str, optional
        Length of the past that a rolling fit sees (all of it if not given), and time between two
        fits; with ``refit`` between two updates. Only for ``by="rolling"``, which needs ``every``.
    refit : int, timedelta or str, optional
        Time between two fits of a model that is updated every ``every`` in between, as in
        operation: the loop of ``fit``, ``apply`` and ``model.update``, from the first prediction
        on. A method with a setting ``refit`` has its own, is fitted once and updated.
    year_start : str or int, optional
        Date on which years begin, such as "07-01", or a month. Without it they begin in the
        largest gap that the dates of all cases leave in the calendar, so that a winter is not cut
        in two; on 1 January where that gap holds it, or none is of 30 days or more.
    output : str
        Any product of forecasts: ``"quantile"``, ``"mean"``, ``"std"``, equally likely
        ``"members"``, or the probability ``"exceedance"`` of exceeding a threshold or ``"cdf"`` of
        not exceeding it. Or any score by case of the predictions, such as ``"crps"``, ``"wis"``,
        ``"log_score"``, ``"brier_score"`` or ``"rps"``. Or ``"pit"``, the probability integral
        transform of the observations: uniform on (0, 1) for calibrated predictions; where a
        predicted CDF jumps, it lies at random within the jump, the same place in every run and at
        every location. Or ``"categories"``, the probabilities between quantiles of the
        climatology, as a model makes them: of the observations that the fit of the case has
        learned from.
    q : float or sequence of float
        Levels of the quantiles in [0, 1], or of ``"quantile_score"``, each once, in any order. For
        categories the levels between them, increasing, ends excluded; terciles by default.
    threshold : float, sequence of float or DataArray, optional
        For probabilities and their scores, as for ``exceedance``; the edges of ``"rps"``.
    n, seed : int
        Number of members, and seed of their order: each case has that of its place in the hindcast.
    pool : str, tuple of str or dict, optional
        Location dimensions whose cases each fit learns from together, as for ``fit``. A date is
        predicted at all locations by fits that know it at none.
    features : str or sequence of str, optional
        Coordinates by which places are compared that share one law, as for ``fit``.
    choose : "together", "each", or name or names of dimensions
        As for ``fit``. Each fit chooses from its own training cases of all places; with leads
        without those nearer to the cases predicted than the longest lead, as the same observation
        verifies several of them. Pools with a component that places share choose along the pooled
        dimensions only, from all training cases.
    min_samples : int
        Fits with fewer complete cases predict NaN.
    progress : bool
        As for ``fit``. A lazy result shows none: it is computed later.

    Returns
    -------
    DataArray or Dataset
        As the hindcast, with a dimension ``quantile`` (for several levels) or none in place of the
        members, or with those of the product of a model; lazy if an input is. NaN for cases in no
        test, such as the first ones where only the past counts, and where the forecast or the fit
        is missing.

    Raises
    ------
    ValueError
        If splits cannot be made, no split leaves ``min_samples`` cases to learn from, a parameter
        belongs to another output, the method has a ``refit`` of its own, or as for ``fit``.
    TypeError
        As for ``fit``.

    Notes
    -----
    Each fit is the one that ``fit`` makes of the training cases alone, so everything it chooses
    (ridge, centres, bounds, half-life) is unknown to the cases predicted. As many fits a location
    as there are splits. By year or block energy distances are computed once for all of them, which
    changes rounding only; where only the past counts, or cases are pooled, each split computes its
    own. Each fit pools as ``fit`` does, by its number of dates; one that places share has all of
    its cases in memory.

    With ``refit`` a day is predicted by what had verified when it was issued, so n days cost n
    updates, and a fit each time that the first prediction after ``refit`` comes. A fit from fewer
    than ``min_samples`` cases is put off to the next update.

    Examples
    --------
    >>> crps = hindcast.recal.cross_validate(observations, xrecal.EMOS(), by="block", output="crps")
    >>> crps.sizes["init"], crps.mean().round(2).item()
    (50, 0.23)
    >>> few = hindcast.isel(init=slice(0, None, 5))
    >>> options = {"by": "block", "output": "crps", "pool": "location"}
    >>> few.recal.cross_validate(observations, xrecal.EMOS(), **options).mean().round(2).item()
    0.29
    """
    method = checked(method, condition_on, min_samples, "hindcast.recal.cross_validate", covariates)
    updates = updates_as_it_goes(by, refit, method)
    given = by, gap, blocks, window, every, pool, min_samples, year_start, refit, updates
    splits = Splits(*given, choose, features)
    source = replayed if updates else hold_out
    named = isinstance(hindcast, xr.Dataset)
    product = _product(output, q=q, threshold=threshold, n=n, seed=seed, named=named)
    results, remarks = {}, list[str | None]()
    paired = pair_variables(hindcast, observations, member_dim, name="hindcast")
    for name, (form, observed) in counted(paired.items()):
        replay = source(form, observed, method, splits, dim, covariates)
        remarks.append(replay.prepared.pairs.by_position)
        result = product(replay)
        issued = of_cases(form, dim) if result.name is None else {}
        results[name] = result.assign_attrs(cross_validation=str(splits), **issued)
    what = f"{output} of each case predicted by {method} fitted without it, {splits}"
    what = joined(what, *remarks)
    if isinstance(hindcast, xr.DataArray):
        (result,) = results.values()
        history = {k: v for k, v in hindcast.attrs.items() if k == "history"}
        result.attrs |= history_line(history, what)
        return result.rename(hindcast.name if result.name is None else output)
    attrs = {**hindcast.attrs, "cross_validation": str(splits)}
    return xr.Dataset(results, attrs=with_conventions(history_line(attrs, what)))


def _product(output: str, **given: Any) -> Callable[[HeldOut], xr.DataArray]:
    """The function that makes an output of held-out distributions of one variable.

    It returns a DataArray without a name if the output has that of the hindcast. ``given`` are the
    parameters of all outputs: each output takes those that its function has.
    """
    scores = {name: score.function for name, score in SCORES.items() if score.by_case}
    outputs = {**PRODUCTS, **_OWN, **scores}
    if output not in [*outputs]:
        raise ValueError(f"output is {output!r}; give one of {[*outputs]}")
    function = unexplained(outputs[output])
    given |= {"edges": given["threshold"], "observations": None}  # which the source knows
    own = {name: given[name] for name in inspect.signature(function).parameters if name in given}
    for name in OF_SOME:
        value = given[name] or None if name == "seed" else given[name]
        takers = [one for one in outputs if name in _taken_by(outputs[one])]
        if output not in takers and value is not None:
            belongs = " or ".join(map(repr, takers))
            raise ValueError(
                f"{name} belongs to output={belongs}, but output is {output!r}; leave it out"
            )
    if "threshold" in _taken_by(function) and given["threshold"] is None:
        raise ValueError(f"output={output!r} needs a threshold: threshold=...")
    return partial(function, **own)


def _taken_by(function: Callable[..., Any]) -> set[str]:
    """Names of the parameters of a function; edges are thresholds by another name."""
    names = inspect.signature(function).parameters
    return {"threshold" if name == "edges" else name for name in names}


def _pit(forecast: HeldOut) -> xr.DataArray:
    reduction = partial(pit_of, seed=SEED)
    (values,) = forecast.reduce(reduction, {}, extras=["observed", "cases"])
    return values.rename("pit").assign_attrs(long_name=PIT.long_name, units="1")


def _categories(
    forecast: HeldOut, q: float | Sequence[float] | np.ndarray, named: bool
) -> xr.DataArray:
    """Probabilities of the categories of the climatology that each fit has learned from.

    ``named`` puts the name of the variable before those of the edges of its categories.
    """
    levels = read_inner_levels((1 / 3, 2 / 3) if q is QUANTILES else q)
    require_free(forecast.form.dims, [CATEGORY])
    warn_of_pooled_edges(forecast.prepared.pairs.pool, forecast.prepared.pairs.dim)
    dtypes = forecast.form.loc.dtype, forecast.threshold_dtype
    values, edges = forecast.reduce(
        partial(climatological_categories_of, levels=levels, dtype=dtypes[1]),
        {CATEGORY: levels.size + 1},
        {EDGE: levels.size},
        extras=["observed", "learned"],
        dtypes=dtypes,
    )
    values = with_edges(values, edges, labels_of_levels(levels), forecast.form, named)
    return values.rename("categories").assign_attrs(category_attributes(forecast.attrs))


_OWN: dict[str, Callable[..., Any]] = {"categories": _categories, "pit": _pit}
"""Outputs that need what a fit has learned, or the numbers of the cases."""


def climatological_categories_of(
    distribution: Distribution,
    observations: FloatArray,
    learned: FloatArray,
    *,
    levels: FloatArray,
    dtype: npt.DTypeLike,
) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k + 1), and edges (L, T, k): quantiles of observations (L, N)."""
    from xrecal.arrays.baselines.climatology import climatology_quantiles

    edges = climatology_quantiles(learned, levels).astype(dtype)[:, np.newaxis]
    edges = np.broadcast_to(edges, (*observations.shape, levels.size))
    return (*categories_of(distribution, edges), edges)
