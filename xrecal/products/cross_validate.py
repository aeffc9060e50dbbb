"""Cross-validation: a hindcast in which every case is predicted by a fit that has not seen it."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import xarray as xr

from xrecal.fit.fit_hindcast import DEFAULT, checked
from xrecal.fit.held_out import Score, crps_from, pit_from, quantiles_from
from xrecal.fit.unseen import By, predict_unseen
from xrecal.inputs.covariates import Given
from xrecal.inputs.dims import level_coordinate, read_levels
from xrecal.inputs.forms import Form, Labelled
from xrecal.inputs.metadata import describing, history_line
from xrecal.inputs.pairing import Observations, pair_variables
from xrecal.inputs.pool import PoolOver
from xrecal.methods import Method

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
    pool: PoolOver = None,
    min_samples: int = 20,
) -> Labelled:
    """Predict every case of a hindcast by fits that have not seen it.

    Parameters
    ----------
    hindcast, observations, method, dim, member_dim, condition_on, covariates
        As for :func:`xrecal.fit.fit_hindcast.fit`.
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
    pool : str, tuple of str or dict, optional
        Location dimensions whose cases each fit learns from together, as for ``fit``. A date is
        predicted at all locations by fits that know it at none.
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
    changes rounding only; where only the past counts, or cases are pooled, each split computes its
    own. Each fit has at most 1500 pooled cases, of positions that depend on its number of dates
    alone.

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
    method = checked(method, condition_on, min_samples, "hindcast.recal.cross_validate")
    score, size = _score(output, q)
    options = {"gap": gap, "blocks": blocks, "window": window, "every": every}
    told = told_of(by, {**options, "pool": pool})
    results = {}
    for name, (form, observed) in pair_variables(
        hindcast, observations, member_dim, name="hindcast"
    ).items():
        result = predict_unseen(
            form, observed, method, score, size, dim, by, options, covariates, min_samples, pool
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


def _score(output: str, q: float | Sequence[float] | np.ndarray) -> tuple[Score, int | None]:
    """What is made of predictions, and the size of its last axis if it has one."""
    if output == "quantile":
        levels = read_levels(q)
        return partial(quantiles_from, levels=levels), levels.size
    if output not in get_args(OutputOf):
        raise ValueError(f"output is {output!r}; give one of {list(get_args(OutputOf))}")
    return (crps_from if output == "crps" else pit_from), None


def _plain(value: object) -> str:
    """A length of time as 10 days, anything else as it would be typed."""
    length = isinstance(value, (datetime.timedelta, np.generic))
    return str(value) if length else repr(value)


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
