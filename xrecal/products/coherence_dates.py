"""Members that are past dates, drawn for whole fields from weights averaged over the locations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise, total_blockwise, work_on
from xrecal.fit.fitted import CASE, FittedVariable
from xrecal.inputs.covariates import Given
from xrecal.inputs.forms import Form
from xrecal.typing import IntArray

from .predict import SLOT, run_on_forecasts, taken_labels, task_arguments
from .products import numbers_of
from .reductions import observations_of, weights_of
from .schaake_dates import PICK, past_observations, require_own_cases
from .tasks import TotalTask


@dataclass(frozen=True)
class Drawn:
    """Calibration cases that were chosen for the members of forecasts."""

    slots: xr.DataArray
    """Over the cases, if there are any, and ``PICK``."""
    fitted: FittedVariable

    def labels(self, member: Hashable) -> dict[str, xr.DataArray]:
        """Coordinate with the label of each, if the cases have labels."""
        name = f"calibration_{self.fitted.dim}"
        if name not in self.fitted.state.coords:
            return {}
        coordinate = self.fitted.state[name]
        labels = coordinate.to_index().to_numpy()
        if labels.dtype.kind in "iub":
            labels = labels.astype(np.float64)  # a type that knows missing ones, whatever is drawn
        found = xr.apply_ufunc(
            partial(taken_labels, labels),
            self.slots,
            dask="parallelized",
            output_dtypes=[labels.dtype],
            keep_attrs=False,
        )
        return {name: found.rename({PICK: member}).assign_attrs(coordinate.attrs)}


def draw_dates(
    matched: Mapping[Hashable, tuple[Form, FittedVariable]],
    n: int,
    seed: int,
    covariates: Given,
) -> Drawn:
    """Draw n past dates for each case, the same at all locations and for all variables.

    Every location, lead time and variable counts equally; those without a forecast or fit do not.
    Sums are of whole numbers, so that chunks of locations make no difference. Dask needs the
    weights of one block of locations at a time, and then one number for each case and date.
    """
    for form, fitted in matched.values():
        _require_dates(form, fitted)
    (form, fitted), *others = matched.values()
    for name, (other, again) in list(matched.items())[1:]:
        _require_same_cases(name, (form, fitted), (other, again))
    totals = _totals(form, fitted, covariates)
    for other, again in others:
        totals = totals + _totals(other, again, covariates)
    (slots,) = run_blockwise(
        partial(_draws, n=n, seed=seed),
        totals,
        numbers_of(form, fitted.dim)[0],
        core=[(SLOT,), ()],
        out=[(PICK,)],
        dtypes=[np.int64],
        sizes={PICK: n},
        what="the draw of dates",
    )
    return Drawn(slots, fitted)


def of_dates(
    form: Form, fitted: FittedVariable, dates: Drawn, covariates: Given = None
) -> xr.DataArray:
    """Observations of the drawn dates; NaN where they, the forecast or the fit are missing."""
    member = form.member_dim_of_results
    (values,) = run_on_forecasts(
        form,
        fitted,
        observations_of,
        [(member,)],
        {member: dates.slots.sizes[PICK]},
        extras=[dates.slots, past_observations(fitted)],
        covariates=covariates,
    )
    return values.assign_coords(dates.labels(member))


def _totals(form: Form, fitted: FittedVariable, covariates: Given) -> xr.DataArray:
    """Weights of the past cases, added up over all locations of each case."""
    given = task_arguments(form, fitted, [], covariates)
    return total_blockwise(
        given.task(TotalTask, fitted, weights_of),
        *given.values,
        core=given.core,
        over=[d for d in form.dims if d != fitted.dim],
        out=SLOT,
        size=fitted.state.sizes[CASE],
        what=work_on("the weights of past dates", form.name),
    )


def _draws(totals: IntArray, cases: IntArray, *, n: int, seed: int) -> IntArray:
    """Draws (T, n) from totals (T, N), where a task may get the cases with axes left out."""
    from xrecal.arrays.distributions.members import systematic_draws

    return systematic_draws(totals, n, seed, np.broadcast_to(cases, totals.shape[:-1]))


def _require_dates(form: Form, fitted: FittedVariable) -> None:
    require_own_cases(fitted, "dates")
    if not fitted.method.shares_members:
        raise ValueError(
            f"coherence='dates' draws past observations, but {fitted.method} issues other values; "
            "take coherence='ecc' or 'schaake', or fit CKME(support='observations'), IDR() or "
            "Climatology()"
        )


def _require_same_cases(
    name: Hashable, first: tuple[Form, FittedVariable], second: tuple[Form, FittedVariable]
) -> None:
    """Raise ValueError unless two variables have the same past dates and the same cases."""
    (form, fitted), (other, again) = first, second
    past = [_labels(f.state, f"calibration_{f.dim}", CASE) for f in (fitted, again)]
    cases = [_labels(f.broadcast().loc, fitted.dim, fitted.dim) for f in (form, other)]
    if not (past[0].equals(past[1]) and cases[0].equals(cases[1])):
        raise ValueError(
            f"coherence='dates' draws the same past dates for all variables, but {name!r} has "
            f"other cases than {form.name!r}; take one by one: "
            f"model[{name!r}].members(forecast[{name!r}], ...)"
        )


def _labels(obj: xr.DataArray | xr.Dataset, coordinate: Hashable, dim: Hashable) -> Any:
    """Labels along a dimension; positions without labels, none without the dimension."""
    if coordinate in obj.coords and obj.coords[coordinate].dims == (dim,):
        return obj.coords[coordinate].to_index()
    return xr.DataArray(np.arange(obj.sizes.get(dim, 0)), dims=[dim]).to_index()
