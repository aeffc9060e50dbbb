"""Past dates as templates: their positions in the state, and the observations of these dates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.fit.fitted import CASE, FittedVariable
from xrecal.inputs.covariates import season_of
from xrecal.inputs.forms import Form, numbers_of
from xrecal.typing import FloatArray, IntArray

Template: TypeAlias = Sequence[Any] | npt.NDArray[Any] | xr.DataArray | None
"""Labels of calibration cases; None means the cases nearest in season."""

PAST = "xrecal_past"
"""Dimension of all past cases in a task, the computation for one chunk. The state of the model
has another dimension for these cases."""

PICK = "xrecal_pick"
"""Dimension of the past cases that give members their order."""


def past_observations(fitted: FittedVariable) -> xr.DataArray:
    """Observations of all calibration cases at each location, for tasks."""
    observed = fitted.state["observations"]
    kept = [c for c in observed.coords if c in observed.dims and c != CASE]
    return observed.drop_vars([c for c in observed.coords if c not in kept]).rename({CASE: PAST})


def require_own_cases(fitted: FittedVariable, coherence: str) -> None:
    """Raise ValueError for pooled models, because their cases come from several positions."""
    if fitted.pool is not None:
        raise ValueError(
            f"coherence={coherence!r} needs past observations of each location by date, but the "
            f"model is {fitted.pool}; take coherence='ecc', or fit without pool"
        )


def template_slots(template: Template, n: int, form: Form, fitted: FittedVariable) -> xr.DataArray:
    """Positions (..., n), in the state, of the n past cases whose order the members follow.

    ``template`` gives the labels of the cases. Without ``template``, the cases are the n dates
    nearest in season to each forecast, in the order of time. Distances between seasons are rounded
    to whole days. Among equally near dates, the function prefers later dates. If cases have no
    dates, it takes the last n cases.

    Raises
    ------
    ValueError
        If ``template`` has an unknown label or a label twice, or if there are fewer cases than
        members.
    """
    n_cases = fitted.state.sizes[CASE]
    if template is not None:
        return xr.DataArray(_positions(template, fitted), dims=[PICK])
    if n > n_cases:
        raise ValueError(
            f"coherence='schaake' needs a past date for each member, but n={n} and the model has "
            f"{n_cases} calibration cases; take n={n_cases} or fewer"
        )
    past, season = fitted.axis.season, season_of(form, fitted.dim)
    if past is None or season is None:  # all dates are equally near
        past, season = np.zeros(n_cases), 0 * numbers_of(form, fitted.dim)[0]
    slots = _nearest(season.to_numpy().reshape(-1), past, n)
    return xr.DataArray(slots.reshape(*season.shape, n), dims=[*season.dims, PICK])


def _nearest(seasons: FloatArray, past: FloatArray, n: int) -> IntArray:
    """Positions (T, n), ascending, of the n past cases nearest in season to each of T forecasts."""
    days, of = np.unique(np.rint(seasons * 365), return_inverse=True)
    apart = np.abs(days[:, np.newaxis] / 365 - past)
    distance = np.rint(np.minimum(apart, 1 - apart) * 365)
    latest = np.broadcast_to(-np.arange(past.size), distance.shape)
    chosen = np.lexsort((latest, distance), axis=-1)[:, :n]
    return np.asarray(np.sort(chosen, axis=-1)[of])


def _positions(template: Any, fitted: FittedVariable) -> IntArray:
    """Positions of the cases with these labels, in the order of ``template``."""
    coordinate = f"calibration_{fitted.dim}"
    if coordinate not in fitted.state.coords:
        raise ValueError(
            f"template names dates, but the hindcast had no labels along {fitted.dim!r}; leave "
            "template out, or fit on a hindcast with such labels"
        )
    index = fitted.state[coordinate].to_index()
    labels = np.asarray(template)
    wanted = xr.DataArray(_as_dates(labels, index), dims=[PICK]).to_index()
    _require_once(wanted, fitted)
    slots = np.asarray(index.get_indexer(wanted))
    missing = [str(label) for label in wanted[slots < 0]]
    if missing:
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise ValueError(
            f"template has dates that are not among the calibration cases along {fitted.dim!r}: "
            f"{', '.join(missing[:10])}{more}; the model knows {len(index)} from {index[0]} to "
            f"{index[-1]}"
        )
    return slots


def _as_dates(labels: npt.NDArray[Any], index: Any) -> npt.NDArray[Any]:
    """Labels, as datetime64 if the labels of the calibration cases are datetime64."""
    if index.dtype.kind != "M":
        return labels
    try:
        return labels.astype("datetime64[ns]")
    except (TypeError, ValueError):
        raise ValueError(
            f"template holds {str(labels[0])!r}, which is not a date; the calibration cases "
            f"have dates such as {str(index[0])!r}"
        ) from None


def _require_once(labels: Any, fitted: FittedVariable) -> None:
    twice = labels[labels.duplicated()].unique()
    if len(twice):
        raise ValueError(
            f"template names {', '.join(map(str, twice[:10]))} along {fitted.dim!r} more than "
            "once; give each member a date of its own"
        )
