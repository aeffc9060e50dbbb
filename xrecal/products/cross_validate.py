"""Cross-validation: predictions of each case of a hindcast by fits without this case."""

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
"""Seed of the random numbers that place an observation within a jump of the forecast's CDF."""

OF_SOME = ("threshold", "n", "seed")
"""Parameters that only some outputs take."""


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
    """Predict every case of a hindcast by fits that have not learned from it.

    Parameters
    ----------
    hindcast, observations, method, dim, member_dim, condition_on, covariates
        As for :func:`xrecal.fit.fit_hindcast.fit`.
    by : {"year", "block", "retrospective", "rolling"}
        Cases that one fit predicts. "year": each fit predicts one year, and learns from all other
        years. "block": each fit predicts one of ``blocks`` contiguous parts, and learns from all
        other parts. "retrospective": each fit predicts one part, and learns from the parts before
        it; no fit predicts the first part. "rolling": as in operation, each fit predicts the cases
        up to the next fit, and learns from the cases of the last ``window``. With "year" and
        "block", fits also learn from the future, so results look too good if climate or forecast
        model drift. With "retrospective" and "rolling", fits learn from the past alone if ``gap``
        is at least the lead time; with a smaller gap, they also learn from forecasts that had not
        yet verified.
    gap : int, timedelta or str, optional
        Number of cases next to the predicted cases that the fit does not learn from, or a length of
        time such as ``"5D"``. The gap is on both sides of the predicted cases, or only before them
        if fits learn from the past alone. Without a gap, a fit may know the answer from nearby
        cases, which resemble the predicted cases. So give at least the lead time plus the memory of
        the weather. If ``refit`` is given and ``gap`` is not, the model learns from each forecast
        as soon as the forecast has verified and the ``delay`` of an OnlinePool has passed.
    blocks : int
        Number of parts. With ``"rolling"`` and no window, predictions start after the first part.
    window, every : int, timedelta or str, optional
        ``window`` is the length of the past that a rolling fit learns from, by default the whole
        past. ``every`` is the time between two fits, or between two updates if ``refit`` is given.
        Both are only for ``by="rolling"``, which needs ``every``.
    refit : int, timedelta or str, optional
        Time between two fits of a model that is also updated after each period ``every``, as in
        operation: xrecal repeats the loop of ``fit``, ``apply`` and ``model.update``. A method with
        a setting ``refit`` uses its own setting; xrecal fits such a method once and then updates
        it.
    year_start : str or int, optional
        Date at which years begin, such as "07-01", or a month. By default, years begin in the
        largest gap that the dates of all cases leave in the calendar, so no winter is cut in two.
        Years begin on 1 January if this gap contains 1 January, or if all gaps are shorter than 30
        days.
    output : str
        Result to compute. Products of forecasts are ``"quantile"``, ``"mean"``, ``"std"``, equally
        likely ``"members"``, ``"exceedance"`` (the probability of exceeding a threshold) and
        ``"cdf"`` (the probability of not exceeding it). Scores of each prediction are ``"crps"``,
        ``"wis"``, ``"log_score"``, ``"brier_score"``, ``"rps"`` and others. ``"pit"``: the
        probability integral transform of the observations, uniform on (0, 1) for calibrated
        predictions. If a predicted CDF jumps at the observation, the transform is a random number
        within the jump, the same in every run and at every location. ``"categories"``:
        probabilities of categories. Their edges are quantiles of the observations that the fit has
        learned from.
    q : float or sequence of float
        Levels of the quantiles or of ``"quantile_score"``: different numbers in [0, 1], in any
        order. For ``"categories"``, ``q`` has the increasing levels of the edges, above 0 and below
        1; the default is terciles.
    threshold : float, sequence of float or DataArray, optional
        Thresholds of probabilities and of their scores, as for ``exceedance``; for ``"rps"``, the
        edges between the categories.
    n, seed : int
        Number of members, and seed of the random order of the members. The order also depends on
        the position of the case in the hindcast.
    pool : str, tuple of str or dict, optional
        Location dimensions along which each fit learns from the cases of all positions, as for
        ``fit``. The fit that predicts a date has not learned from this date at any location.
    features : str or sequence of str, optional
        Coordinates by which a shared fit compares places, as for ``fit``.
    choose : "together", "each", or name or names of dimensions
        As for ``fit``. Each fit makes this choice from its own training cases, at all places. If
        there are leads, the choice leaves out the cases that are nearer to the predicted cases than
        the longest lead, because one observation verifies several leads. If a LinearPool has a
        shared fit as a component, only locations along the dimensions of ``pool=`` choose together,
        and the choice uses all training cases.
    min_samples : int
        Fits with fewer complete cases predict NaN.
    progress : bool
        As for ``fit``. A lazy result shows no progress, because Dask computes it later.

    Returns
    -------
    DataArray or Dataset
        Output along the dimensions of the hindcast, without the member dimension. Several levels
        add a dimension ``quantile``, and other products add their own dimensions. The result is
        lazy if an input is lazy. Values are NaN where the forecast or the fit is missing. They are
        also NaN for cases that no fit predicts, such as the first cases if fits learn from the past
        alone.

    Raises
    ------
    ValueError
        If splits are impossible, if no split leaves ``min_samples`` cases to learn from, if a
        parameter belongs to another output, if ``refit`` is given for a method with a ``refit`` of
        its own, or as for ``fit``.
    TypeError
        As for ``fit``.

    Notes
    -----
    Each fit equals the result of ``fit`` for the training cases alone, so no choice of the fit
    (ridge, centres, bounds, half-life) uses the predicted cases. A split divides the cases into
    predicted and training cases, and each location has one fit for each split. With "year" and
    "block", all splits share one computation of energy distances, which changes rounding only. If
    fits learn from the past alone or pool cases, each split computes its own distances. As for
    ``fit``, the number of training cases decides whether a pooled fit is a shared fit. A shared fit
    keeps all of its cases in memory.

    With ``refit``, the model predicts each case from the cases that had verified when the forecast
    was issued. So n days with ``every="1D"`` cost n updates, and one fit in each period ``refit``,
    before the first prediction of the period. If fewer than ``min_samples`` cases have verified,
    the fit waits for the next update.

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
    what = f"{output} of each case, predicted by {method} fitted without the case, {splits}"
    what = joined(what, *remarks)
    if isinstance(hindcast, xr.DataArray):
        (result,) = results.values()
        history = {k: v for k, v in hindcast.attrs.items() if k == "history"}
        result.attrs |= history_line(history, what)
        return result.rename(hindcast.name if result.name is None else output)
    attrs = {**hindcast.attrs, "cross_validation": str(splits)}
    return xr.Dataset(results, attrs=with_conventions(history_line(attrs, what)))


def _product(output: str, **given: Any) -> Callable[[HeldOut], xr.DataArray]:
    """Return the function that computes an output from held-out distributions of one variable.

    The function returns a DataArray without a name if the output keeps the name of the hindcast.
    ``given`` has the parameters of all outputs; each output uses the parameters of its function.
    """
    scores = {name: score.function for name, score in SCORES.items() if score.by_case}
    outputs = {**PRODUCTS, **_OWN, **scores}
    if output not in [*outputs]:
        raise ValueError(f"output is {output!r}; give one of {[*outputs]}")
    function = unexplained(outputs[output])
    given |= {"edges": given["threshold"], "observations": None}  # the source has these
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
    """Names of the parameters of a function, with "threshold" in place of "edges"."""
    names = inspect.signature(function).parameters
    return {"threshold" if name == "edges" else name for name in names}


def _pit(forecast: HeldOut) -> xr.DataArray:
    reduction = partial(pit_of, seed=SEED)
    (values,) = forecast.reduce(reduction, {}, extras=["observed", "cases"])
    return values.rename("pit").assign_attrs(long_name=PIT.long_name, units="1")


def _categories(
    forecast: HeldOut, q: float | Sequence[float] | np.ndarray, named: bool
) -> xr.DataArray:
    """Compute probabilities of categories; edges come from the training cases of each fit.

    If ``named`` is true, the names of the edges begin with the name of the variable.
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
"""Outputs that need the training observations, or the index of each case."""


def climatological_categories_of(
    distribution: Distribution,
    observations: FloatArray,
    learned: FloatArray,
    *,
    levels: FloatArray,
    dtype: npt.DTypeLike,
) -> tuple[FloatArray, ...]:
    """Probabilities (L, T, k + 1) of categories for T forecasts, and the edges (L, T, k).

    At each of L locations, the k edges are quantiles of the N observations ``learned`` (L, N).
    """
    from xrecal.arrays.baselines.climatology import climatology_quantiles

    edges = climatology_quantiles(learned, levels).astype(dtype)[:, np.newaxis]
    edges = np.broadcast_to(edges, (*observations.shape, levels.size))
    return (*categories_of(distribution, edges), edges)
