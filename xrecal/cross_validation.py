"""Cross-validation: a hindcast in which every case is predicted by a fit that has not seen it."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import xarray as xr

from .attributes import describing, history_line
from .covariates import Given, period_of
from .dims import CaseAxis
from .forms import Form, Labelled
from .labels import users_stacklevel
from .levels import level_coordinate, read_levels
from .methods import Method
from .pairing import Observations, pair_variables
from .parallel import run_blockwise, work_on
from .recalibrate import DEFAULT, Prepared, checked, prepare
from .recalibrator import CASE, CASE_MEMBER
from .state import task_arguments
from .tasks_cv import CrossValidationTask, Fold, Score, crps_from, pit_from, quantiles_from

By: TypeAlias = Literal["year", "block", "retrospective", "rolling"]
Span: TypeAlias = int | np.timedelta64 | datetime.timedelta
"""A length along the cases: a number of them, or a length of time."""
OutputOf: TypeAlias = Literal["quantile", "crps", "pit"]

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def cross_validate(
    hindcast: Labelled,
    observations: Observations,
    method: Method = DEFAULT,
    *,
    dim: Hashable | None = None,
    member_dim: Hashable | None = None,
    by: By = "year",
    gap: Span = 0,
    blocks: int = 5,
    window: Span | None = None,
    every: Span | None = None,
    output: OutputOf = "quantile",
    q: float | Sequence[float] | np.ndarray = QUANTILES,
    condition_on: str | tuple[str, ...] | None = None,
    covariates: Given = None,
    min_samples: int = 20,
) -> Labelled:
    """Predict every case of a hindcast by fits that have not seen it.

    Parameters
    ----------
    hindcast, observations, method, dim, member_dim, condition_on, covariates
        As for :func:`xrecal.recalibrate.fit`.
    by : {"year", "block", "retrospective", "rolling"}
        What is predicted together: each calendar year, from all others; each of ``blocks``
        contiguous parts, from all others; each part after the first, from the parts before it;
        or, as in operation, the cases up to the next refit from the last ``window``. The first two
        learn from the future too, which flatters where climate or forecast model drift; the
        others do not, with a ``gap`` of at least the lead time: earlier starts verify later.
    gap : int or timedelta
        Cases, or length of time, left out of training next to those predicted: on both sides, or
        before them where only the past counts. Without one, cases that depend on their neighbours
        give away the answer: give at least the lead time and the memory of the weather.
    blocks : int
        Number of parts; with ``"rolling"`` and no window, predictions start after the first.
    window, every : int or timedelta, optional
        Length of the past that a rolling fit sees (all of it if not given), and time between two
        fits. Only for ``by="rolling"``, which needs ``every``.
    output : {"quantile", "crps", "pit"}
        Quantiles of the predictions, their CRPS, or the probability integral transform of the
        observations: uniform on (0, 1) for calibrated predictions. Where a predicted CDF jumps, it
        lies at random within the jump, the same place in every run and at every location.
    q : float or sequence of float
        Levels of the quantiles in [0, 1], each once, in any order.
    min_samples : int
        Fits with fewer complete cases predict NaN.

    Returns
    -------
    DataArray or Dataset
        As the hindcast, with a dimension ``quantile`` (for several levels) or none in place of the
        members; lazy if an input is. NaN for cases in no test, such as the first ones where only
        the past counts, and where the forecast or the fit is missing.

    Raises
    ------
    ValueError
        If splits cannot be made, no split leaves ``min_samples`` cases to learn from, or as for
        ``fit``.
    TypeError
        As for ``fit``.

    Notes
    -----
    Each fit is the one that ``fit`` makes of the training cases alone, so everything it chooses
    (ridge, centres, bounds, half-life) is unknown to the cases predicted. As many fits a location
    as there are splits. By year or block energy distances are computed once for all of them, which
    changes rounding only; where only the past counts each split computes its own.

    Examples
    --------
    >>> crps = hindcast.recal.cross_validate(observations, xrecal.EMOS(), by="block", output="crps")
    >>> crps.sizes["init"], crps.mean().round(2).item()
    (50, 0.23)
    """
    method = checked(method, condition_on, min_samples)
    score, size = _score(output, q)
    options = {"gap": gap, "blocks": blocks, "window": window, "every": every}
    told = told_of(by, options)
    results = {}
    for name, (form, observed) in pair_variables(
        hindcast, observations, member_dim, name="hindcast"
    ).items():
        result = predict_unseen(
            form, observed, method, score, size, dim, by, options, covariates, min_samples
        )
        result.attrs = {**attributes_of(form, observed, output), "cross_validation": told}
        if output == "quantile":
            result = result.assign_coords(quantile=level_coordinate(read_levels(q)))
            result = result.isel(quantile=0) if np.ndim(q) == 0 else result
        results[name] = result
    what = f"{output} of each case predicted by {method} fitted without it, {told}"
    if isinstance(hindcast, xr.DataArray):
        (result,) = results.values()
        history = {k: v for k, v in hindcast.attrs.items() if k == "history"}
        result.attrs |= history_line(history, what)
        return result.rename(hindcast.name if output == "quantile" else output)
    attrs = {**hindcast.attrs, "cross_validation": told}
    return xr.Dataset(results, attrs=history_line(attrs, what))


def told_of(by: str, options: Mapping[str, Any]) -> str:
    """Splits in words, as they would be typed."""
    return f"by={by!r}" + "".join(
        f", {name}={_plain(value)}"
        for name, value in options.items()
        if value is not None and (name != "blocks" or (by != "year" and options["window"] is None))
    )


def predict_unseen(
    form: Form,
    observed: xr.DataArray,
    method: Method,
    score: Score,
    size: int | None,
    dim: Hashable | None,
    by: By,
    options: Mapping[str, Any],
    covariates: Given,
    min_samples: int,
) -> xr.DataArray:
    """What ``score`` makes of each case, predicted by fits that have not seen it.

    One number a case, or ``size`` of them along ``quantile`` in place of the members.
    """
    prepared = prepare(form, observed, method, dim, covariates, min_samples)
    folds = _folds(method, prepared, by, options, min_samples)
    result = _run(prepared, folds, score, size, min_samples, by)
    return _in_user_order(result, form, prepared)


def _score(output: str, q: float | Sequence[float] | np.ndarray) -> tuple[Score, int | None]:
    """What is made of predictions, and the size of its last axis if it has one."""
    if output == "quantile":
        levels = read_levels(q)
        return partial(quantiles_from, levels=levels), levels.size
    if output not in get_args(OutputOf):
        raise ValueError(f"output is {output!r}; give one of {list(get_args(OutputOf))}")
    return (crps_from if output == "crps" else pit_from), None


def _plain(span: object) -> str:
    """A length of time as 10 days, a number as it is."""
    if isinstance(span, datetime.timedelta):
        return str(span)
    return repr(span) if isinstance(span, int) else str(span)


def _folds(
    method: Method,
    prepared: Prepared,
    by: str,
    options: Mapping[str, Any],
    min_samples: int,
) -> list[Fold]:
    """Splits of the cases, each with the method as it can be used on its training cases."""
    from .arrays.splitting import splits

    axis = prepared.axis
    n = prepared.pairs.observations.sizes[prepared.pairs.dim]
    folds, notes = [], []
    for split in splits(n, by, year=axis.year, days=axis.days, **options):
        train, test = np.flatnonzero(split.train), np.flatnonzero(split.test)
        suited, note = _suited(method, axis.take(train), train.size, test)
        folds.append(Fold(suited, train, test))
        notes += [] if note is None else [note]
    few = sum(fold.train.size < min_samples for fold in folds)
    if few == len(folds):
        raise ValueError(
            f"every split leaves fewer than min_samples={min_samples} cases to learn from, "
            f"{max(fold.train.size for fold in folds)} at most; give a longer window, a smaller "
            "gap, or a smaller min_samples if so few are meant"
        )
    if few:
        warnings.warn(
            f"{few} of {len(folds)} splits leave fewer than min_samples={min_samples} cases to "
            "learn from; the cases they test are NaN",
            stacklevel=users_stacklevel(),
        )
    if notes and prepared.note is None:  # that on all cases has been told
        warnings.warn(
            f"{notes[0]} (in {len(notes)} of {len(folds)} splits)", stacklevel=users_stacklevel()
        )
    return folds


def _suited(
    method: Method, axis: CaseAxis, n_cases: int, test: np.ndarray
) -> tuple[Method, str | None]:
    try:
        return method.check(axis, n_cases)
    except ValueError as error:
        raise ValueError(
            f"{error} (learning from {n_cases} cases to predict cases {test[0]} to {test[-1]})"
        ) from error


def _run(
    prepared: Prepared,
    folds: list[Fold],
    score: Score,
    size: int | None,
    min_samples: int,
    by: By,
) -> xr.DataArray:
    """Predictions of the cases in order of time; one task for each chunk of locations."""
    parts, others = task_arguments(prepared.pairs, prepared.covariates)
    periods = {name: period_of(value) for name, value in prepared.covariates.items()}
    (result,) = run_blockwise(
        CrossValidationTask(
            folds,
            tuple(parts),
            prepared.axis,
            periods,
            score,
            size,
            min_samples,
            by in ("year", "block"),
        ),
        *parts.values(),
        *others.values(),
        core=[(CASE, CASE_MEMBER)] * len(parts) + [(CASE,)] * len(others),
        out=[(CASE,) if size is None else (CASE, "quantile")],
        dtypes=[parts["loc"].dtype],
        sizes={CASE: others["observations"].sizes[CASE], "quantile": size or 1},
        what=work_on("the cross-validation", prepared.pairs.form.name),
    )
    return result.rename({CASE: prepared.pairs.dim})


def _in_user_order(result: xr.DataArray, form: Form, prepared: Prepared) -> xr.DataArray:
    """Cases, dimensions and coordinates as in the hindcast."""
    dim = prepared.pairs.dim
    given = [part.indexes[dim] for part in form.parts.values() if dim in part.indexes]
    if given and not given[0].is_monotonic_increasing:
        result = result.isel({dim: np.argsort(given[0].argsort())})
    coords = {
        name: coordinate
        for part in form.parts.values()
        for name, coordinate in part.coords.items()
        if dim in coordinate.dims and form.member_dim not in coordinate.dims
    }
    new = ("quantile",) if "quantile" in result.dims else ()
    return result.assign_coords(coords).transpose(*form.order(new))


def attributes_of(form: Form, observed: xr.DataArray, output: OutputOf) -> dict[str, Any]:
    """What cross-validated values are, with their unit."""
    units = {k: v for array in (form.loc, observed) for k, v in array.attrs.items() if k == "units"}
    if output == "quantile":
        return describing({**form.loc.attrs, **units})
    if output == "crps":
        return {
            "long_name": "continuous ranked probability score",
            "estimator": "score of the issued distribution, not corrected for ensemble size",
            **units,
        }
    return {"long_name": "probability integral transform of the observations", "units": "1"}
