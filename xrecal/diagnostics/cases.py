"""Forecasts and observations as evidence takes them: one variable, its cases, values over cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import xarray as xr

from xrecal.arrays.status import EVIDENCE_MEANINGS, FEW, TOO_FEW
from xrecal.attributes import history_line
from xrecal.dims import CALIBRATION, candidates
from xrecal.ensembles import reduce_form
from xrecal.forms import Form, Labelled
from xrecal.pairing import Observations, Pairs, in_order, pair_cases, pair_variables
from xrecal.parallel import run_blockwise, work_on
from xrecal.reductions import Reduction

Dims: TypeAlias = Hashable | Sequence[Hashable] | None
"""One dimension, several, or the usual one."""


LEAST, FEW_CASES = 2, 10
"""Numbers of cases below which there is no result, and one that is not to be trusted."""


@dataclass(frozen=True)
class Evidence:
    """Forecasts of one variable and what verified, in the order of time."""

    pairs: Pairs
    dims: tuple[Hashable, ...]
    """Of the cases; the last one runs fastest where there are several."""

    @property
    def form(self) -> Form:
        """The forecasts."""
        return self.pairs.form

    @property
    def observations(self) -> xr.DataArray:
        """What verified, on the labels of the forecasts."""
        return self.pairs.observations

    @property
    def units(self) -> dict[str, Any]:
        """Attribute with the unit of the variable, if it has one."""
        return {k: v for k, v in self.form.loc.attrs.items() if k == "units"}

    def reduce(
        self,
        reduction: Reduction,
        extras: Sequence[xr.DataArray] = (),
        new: Mapping[Hashable, int] | None = None,
    ) -> xr.DataArray:
        """A number, or those along ``new``, of each forecast."""
        return reduce_form(self.form, reduction, new, extras)


def read_evidence(
    forecast: Labelled,
    observations: Observations,
    dim: Dims,
    member_dim: Hashable | None,
    *,
    ordered: bool = True,
) -> Evidence:
    """Pair the one variable of a forecast with observations, and name the dimensions of its cases.

    Raises
    ------
    ValueError
        If there are several variables, no dimension of cases, or labels or units do not fit.
    """
    paired = pair_variables(forecast, observations, member_dim, name="forecast")
    if len(paired) > 1:
        raise ValueError(
            f"evidence is on one variable, but the forecast has {list(paired)}; select one, such "
            f"as forecast[{next(iter(paired))!r}]"
        )
    ((form, observed),) = paired.values()
    named = list(form.dims) if dim is ... else [] if dim is None else listed(dim)
    unknown = [d for d in named if d not in form.dims]
    if unknown:
        raise ValueError(
            f"dim={dim!r}, but the forecast has no dimension {unknown[0]!r}; it has "
            f"{list(form.dims)} beside {form.member_dim!r} of its members"
        )
    along = named[0] if len(named) == 1 else None
    pairs = pair_cases(form, observed, along, name="forecast", require_dim=not named)
    if ordered:
        pairs = in_order(pairs)
    return Evidence(pairs, tuple(named) or (pairs.dim,))


def listed(dim: Hashable | Iterable[Hashable]) -> list[Hashable]:
    """Dimensions as a list."""
    return [dim] if isinstance(dim, str) or not isinstance(dim, Iterable) else list(dim)


def over_cases(
    function: Callable[..., Any],
    *values: xr.DataArray,
    dims: Sequence[Hashable],
    out: Sequence[Sequence[Hashable]] = ((),),
    sizes: Mapping[Hashable, int] | None = None,
    dtypes: Sequence[Any] | None = None,
    what: str = "a diagnostic",
) -> tuple[xr.DataArray, ...]:
    """Apply an array function to values over cases, which it gets as one last axis.

    Values are one number a case, so those that Dask has in several chunks along the cases are
    brought together. They may lack other dimensions. A result whose entry of ``out`` is ``dims``
    is again one of each case.
    """
    every = {d: n for value in values for d, n in value.sizes.items()}
    whole = [
        value.expand_dims({d: every[d] for d in dims if d not in value.dims}) for value in values
    ]
    whole = [v if v.chunks is None else v.chunk(dict.fromkeys(dims, -1)) for v in whole]
    dtypes = [values[0].dtype] * len(out) if dtypes is None else dtypes
    per_case = [tuple(o) == tuple(dims) for o in out]
    shape = tuple(every[d] for d in dims)
    return run_blockwise(
        _OverCases(function, shape, per_case, dtypes),
        *[v.drop_vars([c for c in v.coords if c not in v.indexes]) for v in whole],
        core=[tuple(dims)] * len(whole),
        out=out,
        dtypes=dtypes,
        sizes={**every, **(sizes or {})},
        what=what,
    )


class _OverCases:
    """A function of values (..., n), called with values (..., *shape)."""

    def __init__(
        self,
        function: Callable[..., Any],
        shape: tuple[int, ...],
        per_case: Sequence[bool],
        dtypes: Sequence[Any],
    ) -> None:
        self.function, self.shape = function, shape
        self.per_case, self.dtypes = per_case, dtypes

    def __call__(self, *values: npt.NDArray[Any]) -> Any:
        n_axes = len(self.shape)
        lead = np.broadcast_shapes(*(v.shape[: v.ndim - n_axes] for v in values))
        n = math.prod(self.shape)
        flat = [np.broadcast_to(v, (*lead, *self.shape)).reshape(*lead, n) for v in values]
        # The order of sums depends on the layout, which must not depend on chunks.
        found = self.function(*map(np.ascontiguousarray, flat))
        results = found if isinstance(found, tuple) else (found,)
        shaped = tuple(
            np.asarray(r.reshape(*lead, *self.shape) if own else r).astype(dtype, copy=False)
            for r, own, dtype in zip(results, self.per_case, self.dtypes, strict=True)
        )
        return shaped if len(shaped) > 1 else shaped[0]


def counted(known: xr.DataArray, dims: Sequence[Hashable]) -> dict[str, xr.DataArray]:
    """Number of cases, and the status that follows from it."""
    n = known.sum(list(dims)).assign_attrs(long_name="number of cases")
    status = (n < LEAST) * TOO_FEW + ((n >= LEAST) & (n < FEW_CASES)) * FEW
    return {"n_cases": n, "status": with_meanings(status)}


def with_meanings(status: xr.DataArray) -> xr.DataArray:
    """Status as CF flags."""
    return status.astype(np.int16).assign_attrs(
        long_name="status of the diagnostic",
        flag_masks=np.array(list(EVIDENCE_MEANINGS), dtype=np.int16),
        flag_meanings=" ".join(EVIDENCE_MEANINGS.values()),
    )


def stacked(parts: Sequence[xr.DataArray], dim: Hashable) -> xr.DataArray:
    """Results for several levels along a new dimension, of one chunk in Dask."""
    whole = xr.concat(list(parts), dim)
    return whole if whole.chunks is None else whole.chunk({dim: -1})


def as_dataset(
    evidence: Evidence, variables: Mapping[str, xr.DataArray], what: str, **attrs: Any
) -> xr.Dataset:
    """Results with a line of history, and what was told about them.

    Dimensions are in the order of the forecast, new ones last.
    """
    history = {k: v for k, v in evidence.form.loc.attrs.items() if k == "history"}
    named = " and ".join(map(repr, evidence.dims))
    told = history_line({**history, **attrs}, f"{what} over {named}")
    result = xr.Dataset(variables, attrs=told)
    given = [d for d in evidence.form.dims if d in result.dims]
    return result.transpose(*given, ...)


def task_name(what: str, evidence: Evidence) -> str:
    """What a task does, for messages."""
    return work_on(what, evidence.form.name)


def usual_dim(form: Form) -> Hashable | None:
    """The one dimension of cases by which positions are counted; None if that is not clear."""
    found = candidates(form.broadcast().loc, CALIBRATION)
    return found[0] if len(found) == 1 else None
