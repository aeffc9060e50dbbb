"""What one Dask task does to apply a model: predict a chunk of locations, reduce, forget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xrecal.fit.state import COVARIATE, covariates_of, forecasts_of, is_part
from xrecal.inputs.dates import CaseAxis
from xrecal.methods import Method
from xrecal.methods.base import Cases, NewCases, method_on_device
from xrecal.typing import FloatArray

from .reductions import Reduction, name_of, reduction_on_device

if TYPE_CHECKING:
    from xrecal.arrays.distributions.forms import Distribution, Normal


class PredictTask:
    """New forecasts and state of a chunk of locations in, arrays of a product out.

    Arguments of the call are the state arrays, with the number of their last axes that are not
    locations, the parts of the forecasts (..., T, p), and further arrays (..., T), with the number
    of their axes after T, in the order of the names given here; parts broadcast against each other.
    Covariates are those further arrays whose name begins so, the reduction gets the rest. There may
    be any number of axes T, ``n_axes``, all of whose forecasts share a fit; without one there is
    one forecast a location.
    """

    def __init__(
        self,
        method: Method,
        axis: CaseAxis,
        periods: Mapping[str, float | None],
        reduction: Reduction,
        parts: tuple[str, ...],
        others: Mapping[str, int],
        state: Mapping[str, int],
        n_axes: int,
    ) -> None:
        self.method, self.axis, self.periods, self.reduction = method, axis, periods, reduction
        self.parts, self.others, self.state = parts, others, state
        self.n_axes = n_axes

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return method_on_device(self.method) and reduction_on_device(self.reduction)

    @property
    def description(self) -> str:
        """What it makes, for messages."""
        return f", {name_of(self.reduction)} after {type(self.method).__name__},"

    def __call__(self, *args: FloatArray) -> FloatArray | tuple[FloatArray, ...]:
        """Run the task on one chunk."""
        fitted, args = args[: len(self.state)], args[len(self.state) :]
        given, rest = args[: len(self.parts)], args[len(self.parts) :]
        lead = np.broadcast_shapes(
            *(part.shape[:-1] for part in given),
            *(a.shape[: a.ndim - n] for a, n in zip(rest, self.others.values(), strict=True)),
        )
        places = lead[: len(lead) - self.n_axes]
        n_new = math.prod(lead[len(places) :])
        n_locations = math.prod(places)
        shape = n_locations, n_new
        new = {
            name: np.broadcast_to(a, (*lead, a.shape[-1])).reshape(*shape, a.shape[-1])
            for name, a in zip(self.parts, given, strict=True)
        }
        others = {
            name: _spread(a, n_core, lead, shape)
            for (name, n_core), a in zip(self.others.items(), rest, strict=True)
        }
        state = {}
        for (name, n_core), a in zip(self.state.items(), fitted, strict=True):
            lead_of_state, core = a.shape[: a.ndim - n_core], a.shape[a.ndim - n_core :]
            if lead_of_state:  # xarray has put an axis of length one for each T
                a = a.reshape((*lead_of_state[: len(lead_of_state) - self.n_axes], *core))
            state[name] = np.broadcast_to(a, (*places, *core)).reshape(n_locations, *core)
        return self.gather(self._in_blocks(new, state, others), places, lead[len(places) :])

    def gather(
        self, blocks: Iterator[list[FloatArray]], places: tuple[int, ...], axes: tuple[int, ...]
    ) -> FloatArray | tuple[FloatArray, ...]:
        """Results (*places, *axes, ...) from products (l, T, ...) of blocks of locations."""
        products = (np.concatenate(product) for product in zip(*blocks, strict=True))
        results = tuple(p.reshape((*places, *axes, *p.shape[2:])) for p in products)
        return results if len(results) > 1 else results[0]

    def _in_blocks(
        self,
        new: dict[str, FloatArray],
        state: dict[str, FloatArray],
        others: dict[str, FloatArray],
    ) -> Iterator[list[FloatArray]]:
        """Products (l, T, ...) of blocks of locations whose weights fit the workspace.

        Many forecasts at one location are cut too, into larger blocks, as each fits anew.
        """
        from xrecal.arrays.rows import WORKSPACE, location_blocks

        first = next(iter(new.values()))
        n_locations, n_new = first.shape[:2]
        n_slots = self.method.slots(state["observations"].shape[-1])[0].size
        row = 8 * n_slots * (1 if self.method.shares_members else 2)
        step = max(1, 4 * WORKSPACE // max(row, 1))
        for block in location_blocks(n_locations, row * min(n_new, step)):
            pieces = []
            for start in range(0, n_new, step):
                at = block, slice(start, start + step)
                forecasts = {name: a[at] for name, a in new.items()}
                extra = {name: a[at] for name, a in others.items()}
                distribution = self._predict(
                    forecasts, {name: a[block] for name, a in state.items()}, extra
                )
                products = self.reduction(
                    distribution,
                    *(a for name, a in extra.items() if not name.startswith(COVARIATE)),
                )
                pieces.append([p.astype(first.dtype, copy=False) for p in products])
            yield [np.concatenate(piece, axis=1) for piece in zip(*pieces, strict=True)]

    def _predict(
        self,
        new: dict[str, FloatArray],
        state: dict[str, FloatArray],
        others: dict[str, FloatArray],
    ) -> Distribution:
        parts = {name: a for name, a in state.items() if is_part(name)}
        observed = state["observations"]
        known = [state[COVARIATE + name] for name in self.periods]
        cases = Cases(
            forecasts_of(parts) if parts else None,
            observed,
            covariates_of(known, self.periods, observed),
            self.axis,
        )
        values = [others[COVARIATE + name] for name in self.periods]
        forecasts = forecasts_of(new)
        covariates = covariates_of(values, self.periods, forecasts.loc[..., 0])
        return self.method.predict_locations(NewCases(forecasts, covariates), cases, state)


class TotalTask(PredictTask):
    """Weights of past cases (..., T, n), added up over the locations of a chunk.

    Whole multiples of a small unit, so that sums have one value whatever the chunks. The axes of
    the locations have length one. Weights exist for a block of locations at a time.
    """

    @property
    def on_device(self) -> bool:
        """Whole numbers are made on the host alone."""
        return False

    @property
    def description(self) -> str:
        """What it makes, for messages."""
        return f", total weights after {type(self.method).__name__},"

    def gather(
        self, blocks: Iterator[list[FloatArray]], places: tuple[int, ...], axes: tuple[int, ...]
    ) -> FloatArray:
        """Totals (1, ..., 1, *axes, n), int64."""
        from xrecal.arrays.distributions.members import whole_weights

        total = sum(whole_weights(weights).sum(0) for (weights,) in blocks)
        return np.reshape(total, (*[1] * len(places), *axes, -1))


def together(parts: Sequence[FloatArray]) -> tuple[list[FloatArray], tuple[int, ...]]:
    """Arrays (..., m) broadcast over all axes but the last, and the shape of those axes.

    Done here, a chunk at a time: masses of quantiles or shared members repeated for every case of
    a large forecast would not fit into memory.
    """
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return [np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], lead


def _spread(
    array: FloatArray, n_core: int, lead: tuple[int, ...], shape: tuple[int, ...]
) -> FloatArray:
    """An array with ``n_core`` last axes, over all the axes before them, as ``shape``."""
    core = array.shape[array.ndim - n_core :]
    return np.broadcast_to(array, (*lead, *core)).reshape(*shape, *core)


class StatisticTask:
    """Parts of forecasts (..., m) and perhaps further arrays (...) in, a reduction of them out.

    Parts broadcast against each other. The last ``n_shared`` axes before that of the members are
    those of forecasts that share members: there the values have length one. Further arrays have
    ``n_core`` axes more, none by default.
    """

    def __init__(
        self,
        reduction: Reduction,
        parts: tuple[str, ...],
        n_shared: int,
        n_core: tuple[int, ...] = (),
    ) -> None:
        self.reduction, self.parts, self.n_shared = reduction, parts, n_shared
        self.n_core = n_core

    @property
    def on_device(self) -> bool:
        """Whether it takes CuPy arrays."""
        return reduction_on_device(self.reduction) and not {"scale", "lower"} & set(self.parts)

    @property
    def description(self) -> str:
        """What it makes, for messages."""
        return f", {name_of(self.reduction)},"

    def __call__(self, *args: FloatArray) -> FloatArray:
        """Run the task on one chunk."""
        from xrecal.arrays.distributions.forms import Forecasts, distribution_of

        given = args[: len(self.parts)]
        whole, lead = together(given)
        parts = dict(zip(self.parts, given if self.n_shared else whole, strict=True))
        n, dtype = parts["loc"].shape[-1], parts["loc"].dtype
        locations = lead[: len(lead) - self.n_shared]
        shape: tuple[int, ...] = (math.prod(locations),)
        if self.n_shared:
            shape = (*shape, math.prod(lead[len(locations) :]))
        flat = {name: a.reshape(*shape, n) for name, a in parts.items() if name != "loc"}
        own = shape[:1] if self.n_shared else shape
        lower, upper = flat.pop("lower", None), flat.pop("upper", None)
        distribution = distribution_of(Forecasts(parts["loc"].reshape(*own, n), **flat))
        if lower is not None or upper is not None:
            distribution = _censored(distribution, lower, upper)  # type: ignore[arg-type]
        extra = args[len(self.parts) :]
        n_core = self.n_core or (0,) * len(extra)
        (result,) = self.reduction(
            distribution,
            *(_spread(a, k, lead, shape) for a, k in zip(extra, n_core, strict=True)),
        )
        return result.reshape((*lead, *result.shape[len(shape) :])).astype(dtype, copy=False)


def _censored(normal: Normal, lower: FloatArray | None, upper: FloatArray | None) -> Distribution:
    """Single normal distributions (..., 1) with bounds; NaN where these leave no values."""
    from xrecal.arrays.distributions.forms import Censored

    below = np.full_like(normal.loc, -np.inf) if lower is None else lower
    above = np.full_like(normal.loc, np.inf) if upper is None else upper
    empty = (below > above) | (below == np.inf) | (above == -np.inf)
    below, above = (np.where(empty, np.nan, bound) for bound in (below, above))
    return Censored(normal.loc, normal.scale, below, above)
