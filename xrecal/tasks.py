"""What one Dask task does to apply a model: predict a chunk of locations, reduce, forget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .dims import CaseAxis
from .methods import Method
from .methods.base import State
from .typing import FloatArray

if TYPE_CHECKING:
    from .arrays.distributions import Distribution, Empirical, Normal

Reduction: TypeAlias = Callable[..., tuple[FloatArray, ...]]
"""Distributions (L, T) and, where given, an array (L, T), to arrays (L, T, ...)."""

NEW_MEMBER = "new_member"
"""Dimension of the members of forecasts inside a task, where cases and results have their own."""


class PredictTask:
    """New forecasts and state of a chunk of locations in, arrays of a product out.

    Arguments of the call are the parts of the forecasts (..., T, p), further arrays (..., T), and
    the state arrays, in the order of the names given here; parts broadcast against each other.
    Without ``has_cases`` there is one forecast a location and no axis T.
    """

    def __init__(
        self,
        method: Method,
        axis: CaseAxis,
        reduction: Reduction,
        parts: tuple[str, ...],
        others: tuple[str, ...],
        state: tuple[str, ...],
        has_cases: bool,
    ) -> None:
        self.method, self.axis, self.reduction = method, axis, reduction
        self.parts, self.others, self.state = parts, others, state
        self.has_cases = has_cases

    def __call__(self, *args: FloatArray) -> FloatArray | tuple[FloatArray, ...]:
        """Run the task on one chunk."""
        fitted, args = args[: len(self.state)], args[len(self.state) :]
        parts, lead = together(args[: len(self.parts)])
        n_new = lead[-1] if self.has_cases else 1
        n_locations = math.prod(lead[:-1] if self.has_cases else lead)
        shape = n_locations, n_new
        new = {
            name: a.reshape(*shape, a.shape[-1]) for name, a in zip(self.parts, parts, strict=True)
        }
        rest = args[len(self.parts) :]
        others = dict(zip(self.others, rest, strict=True))
        season = others.get("season")
        if season is not None:
            season = np.atleast_1d(season).reshape(-1)
        extra = others.get("extra")
        if extra is not None:
            extra = np.broadcast_to(extra, lead).reshape(shape)
        state = {
            name: a.reshape(n_locations, *a.shape[a.ndim - self._core_axes(name) :])
            for name, a in zip(self.state, fitted, strict=True)
        }
        products = self._in_blocks(new, state, season, extra)
        results = tuple(p.reshape((*lead, *p.shape[2:])) for p in products)
        return results if len(results) > 1 else results[0]

    @staticmethod
    def _core_axes(name: str) -> int:
        return {"loc": 2, "scale": 2, "weights": 2, "observations": 1}.get(name, 0)

    def _in_blocks(
        self,
        new: dict[str, FloatArray],
        state: dict[str, FloatArray],
        season: FloatArray | None,
        extra: FloatArray | None,
    ) -> tuple[FloatArray, ...]:
        """Products (L, T, ...), from blocks of locations whose weights fit the workspace.

        Many forecasts at one location are cut too, into larger blocks, as each fits anew.
        """
        from .arrays.cases import WORKSPACE, location_blocks

        n_locations, n_new = new["loc"].shape[:2]
        row = 8 * state["observations"].shape[-1]
        step = max(1, 4 * WORKSPACE // max(row, 1))
        blocks = []
        for block in location_blocks(n_locations, row * min(n_new, step)):
            pieces = []
            for start in range(0, n_new, step):
                cases = slice(start, start + step)
                distribution = self._predict(
                    {name: a[block, cases] for name, a in new.items()},
                    {name: a[block] for name, a in state.items()},
                    season if season is None or not self.has_cases else season[cases],
                )
                products = self.reduction(
                    distribution, *([] if extra is None else [extra[block, cases]])
                )
                pieces.append([p.astype(new["loc"].dtype, copy=False) for p in products])
            blocks.append([np.concatenate(piece, axis=1) for piece in zip(*pieces, strict=True)])
        return tuple(np.concatenate(product) for product in zip(*blocks, strict=True))

    def _predict(
        self,
        new: dict[str, FloatArray],
        state: dict[str, FloatArray],
        season: FloatArray | None,
    ) -> Distribution:
        from .arrays.forms import Forecasts

        cases = {name: state[name] for name in ("loc", "scale", "weights") if name in state}
        return self.method.predict_locations(
            Forecasts(**new),
            State(state["observations"], Forecasts(**cases) if cases else None, state),
            self.axis,
            season,
        )


def together(parts: Sequence[FloatArray]) -> tuple[list[FloatArray], tuple[int, ...]]:
    """Arrays (..., m) broadcast over all axes but the last, and the shape of those axes.

    Done here, a chunk at a time: masses of quantiles or shared members repeated for every case of
    a large forecast would not fit into memory.
    """
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return [np.broadcast_to(part, (*lead, part.shape[-1])) for part in parts], lead


def weights_of(distribution: Empirical) -> tuple[FloatArray, ...]:
    """Weights (L, T, n) of a weighted ensemble."""
    assert distribution.weights is not None
    return (distribution.weights,)


def normal_parameters(distribution: Normal) -> tuple[FloatArray, ...]:
    """Location and scale (L, T) of normal distributions."""
    return distribution.loc[..., 0], distribution.scale[..., 0]


def quantiles_of(distribution: Distribution, levels: FloatArray) -> tuple[FloatArray, ...]:
    """Quantiles (L, T, k)."""
    return (distribution.quantile(levels),)


def crps_of(distribution: Distribution, observations: FloatArray) -> tuple[FloatArray, ...]:
    """CRPS (L, T)."""
    return (distribution.crps(observations),)


def mean_of(distribution: Distribution) -> tuple[FloatArray, ...]:
    """Means (L, T)."""
    return (distribution.mean(),)


def std_of(distribution: Distribution) -> tuple[FloatArray, ...]:
    """Standard deviations (L, T)."""
    return (distribution.std(),)


class StatisticTask:
    """Parts of forecasts (..., m) and perhaps an array (...) in, a reduction of them out.

    Parts broadcast against each other. The last ``n_shared`` axes before that of the members are
    those of forecasts that share members: there the values have length one.
    """

    def __init__(self, reduction: Reduction, parts: tuple[str, ...], n_shared: int) -> None:
        self.reduction, self.parts, self.n_shared = reduction, parts, n_shared

    def __call__(self, *args: FloatArray) -> FloatArray:
        """Run the task on one chunk."""
        from .arrays.distributions import Empirical, Normal
        from .arrays.forms import Forecasts, without_invalid

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
        loc, scale, weights = without_invalid(Forecasts(parts["loc"].reshape(*own, n), **flat))
        distribution: Distribution = Empirical(loc, weights)
        if scale is not None:
            distribution = Normal(loc, np.where(scale < 0, np.nan, scale), weights)
        extra = args[len(self.parts) :]
        (result,) = self.reduction(
            distribution, *(np.broadcast_to(a, lead).reshape(shape) for a in extra)
        )
        return result.reshape((*lead, *result.shape[len(shape) :])).astype(dtype, copy=False)
