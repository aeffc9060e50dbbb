"""Members from past dates, drawn for whole fields by the mean weight of a date over locations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from xrecal.arrays.distributions.forms import Empirical
from xrecal.chunks.blockwise import work_on
from xrecal.chunks.run import Named, run, total
from xrecal.fit.fitted import CASE, FittedVariable
from xrecal.inputs.forms import numbers_of
from xrecal.typing import FloatArray, IntArray

from .apply import weights_of
from .recalibrated import SLOT, PredictTask, Recalibrated, taken_labels
from .reductions import on_circle
from .schaake_dates import PICK, past_observations, require_own_cases
from .source import reduce


@on_circle
def observations_of(
    distribution: Empirical, slots: IntArray, observations: FloatArray
) -> tuple[FloatArray, ...]:
    """Select n of the N past observations (L, T, N), those at the positions ``slots`` (L, T, n).

    The result is NaN for the position -1 and where the weights of the distribution are missing.
    """
    assert distribution.weights is not None
    selected = np.take_along_axis(observations, np.maximum(slots, 0), axis=-1)
    unknown = np.isnan(distribution.weights).any(-1, keepdims=True)
    return (np.where(unknown | (slots < 0), np.nan, selected),)


@dataclass(frozen=True)
class Drawn:
    """Calibration cases drawn as members of forecasts."""

    slots: xr.DataArray
    """Positions of the drawn cases among the calibration cases: along the dimension ``PICK``
    and, if there are several forecasts, along the dimension of the forecasts."""
    fitted: FittedVariable

    def labels(self, member: Hashable) -> dict[str, xr.DataArray]:
        """Coordinate with the label of each drawn case; empty if cases have no labels."""
        name = f"calibration_{self.fitted.dim}"
        if name not in self.fitted.state.coords:
            return {}
        coordinate = self.fitted.state[name]
        labels = coordinate.to_index().to_numpy()
        if labels.dtype.kind in "iub":
            labels = labels.astype(np.float64)  # a type with missing values, whatever is drawn
        dated = xr.apply_ufunc(
            partial(taken_labels, labels),
            self.slots,
            dask="parallelized",
            output_dtypes=[labels.dtype],
            keep_attrs=False,
        )
        return {name: dated.rename({PICK: member}).assign_attrs(coordinate.attrs)}


def draw_dates(variables: Mapping[Hashable, Recalibrated], n: int, seed: int) -> Drawn:
    """Draw n past dates for each case, the same at all locations and for all variables.

    All locations, lead times and variables have the same influence, except those without a forecast
    or a fit. The function sums up weights as integers, so the sums do not depend on chunks of
    locations. Dask keeps in memory the weights of one block of locations at a time, and the sum of
    the weights for each case and past date.
    """
    for source in variables.values():
        _require_dates(source.fitted)
    first, *others = variables.values()
    for name, other in list(variables.items())[1:]:
        _require_same_cases(name, first, other)
    totals = _totals(first)
    for other in others:
        totals = totals + _totals(other)
    numbers = numbers_of(first.form, first.dim)[0]
    drawn = run(
        partial(_draws, n=n, seed=seed),
        {"given": {"totals": (totals, (SLOT,)), "cases": (numbers, ())}},
        {"slots": ({PICK: n}, np.int64)},
        what="the draw of dates",
    )
    return Drawn(drawn["slots"], first.fitted)


def of_dates(source: Recalibrated, dates: Drawn) -> xr.DataArray:
    """Observations of the drawn dates.

    Values are NaN where the observation, the forecast or the fit is missing.
    """
    member = source.form.member_dim_of_results
    extras = [dates.slots, past_observations(source.fitted)]
    result = reduce(source, observations_of, {member: dates.slots.sizes[PICK]}, extras)
    return result.assign_coords(dates.labels(member))


class TotalTask(PredictTask):
    """Task that adds up the weights of past cases (L, T, n) over the L locations of a chunk.

    Weights are integer multiples of a small unit, so their sums do not depend on chunks. The task
    computes the weights of one block of locations at a time.
    """

    @property
    def on_device(self) -> bool:
        """False, because the task adds whole numbers, and does this on the processor."""
        return False

    @property
    def description(self) -> str:
        """Name of the product, for messages."""
        return f", total weights after {type(self.method).__name__},"

    def __call__(self, **given: Named) -> Named:
        """Totals (1, T, n), int64."""
        from xrecal.arrays.distributions.members import whole_weights

        total = sum(whole_weights(weights).sum(0) for (weights,) in self.blocks(**given))
        return {None: np.asarray(total)[np.newaxis]}


def _totals(source: Recalibrated) -> xr.DataArray:
    """Weights of the past cases for each new case, added up over all locations."""
    form, fitted = source.form, source.fitted
    return total(
        TotalTask(fitted, weights_of),
        source.task_arguments(),
        {SLOT: fitted.state.sizes[CASE]},
        over=[d for d in form.dims if d != fitted.dim],
        what=work_on("the weights of past dates", form.name),
        each=source.each,
    )


def _draws(given: Named, *, n: int, seed: int) -> Named:
    """Draw n of N past dates for each of T cases, by total weights (T, N); return positions."""
    from xrecal.arrays.distributions.members import systematic_draws

    return {"slots": systematic_draws(given["totals"], n, seed, given["cases"])}


def _require_dates(fitted: FittedVariable) -> None:
    require_own_cases(fitted, "dates")
    if not fitted.method.shares_members:
        raise ValueError(
            f"coherence='dates' draws past observations, but {fitted.method} issues other values; "
            "take coherence='ecc' or 'schaake', or fit CKME(support='observations'), IDR() or "
            "Climatology()"
        )


def _require_same_cases(name: Hashable, first: Recalibrated, other: Recalibrated) -> None:
    """Raise ValueError unless two variables have the same past dates and the same cases."""
    pair = (first, other)
    past = [_labels(s.fitted.state, f"calibration_{s.dim}", CASE) for s in pair]
    cases = [_labels(s.form.broadcast().loc, first.dim, first.dim) for s in pair]
    if not (past[0].equals(past[1]) and cases[0].equals(cases[1])):
        raise ValueError(
            f"coherence='dates' draws the same past dates for all variables, but {name!r} has "
            f"other cases than {first.form.name!r}; draw members of each variable alone: "
            f"model[{name!r}].members(forecast[{name!r}], ...)"
        )


def _labels(obj: xr.DataArray | xr.Dataset, coordinate: Hashable, dim: Hashable) -> Any:
    """Labels along a dimension, or else positions; empty if ``obj`` lacks the dimension."""
    if coordinate in obj.coords and obj.coords[coordinate].dims == (dim,):
        return obj.coords[coordinate].to_index()
    return xr.DataArray(np.arange(obj.sizes.get(dim, 0)), dims=[dim]).to_index()
