"""Learning again: methods without choices to keep are fitted to all cases of an updated state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import xarray as xr

from xrecal.chunks.blockwise import run_blockwise

from .fitted import CASE, FittedVariable
from .state import at_locations, cases_of_state, without_labels


def learned_again(fitted: FittedVariable) -> list[str]:
    """Parameters of each case that are learned again, from forecasts that the method keeps."""
    if not (fitted.method.relearns and fitted.method.keeps_cases):
        return []
    return [name for name, parameter in fitted.parameters.items() if CASE in parameter.dims]


def relearn(fitted: FittedVariable, before: xr.Dataset) -> xr.Dataset:
    """The state of a method that learns again, with what all cases together teach it.

    ``fitted`` has the cases joined, ``before`` is its state as it was.
    """
    if not fitted.method.relearns:
        return fitted.state
    shared = [name for name, p in fitted.parameters.items() if p.of_all_places]
    state = without_labels(fitted.state.drop_vars(shared, errors="ignore"))
    locations = fitted.locations
    core = {n: tuple(d for d in v.dims if d not in locations) for n, v in state.items()}
    names = [n for n in ("n_cases", "status", *fitted.parameters) if n in before]
    names = [name for name in names if name not in shared]
    former = {name: before.variables[name] for name in names}
    dtypes = {name: variable.dtype for name, variable in former.items()}
    results = run_blockwise(
        _RelearnTask(fitted, {name: len(dims) for name, dims in core.items()}, dtypes),
        *state.values(),
        core=[*core.values()],
        out=[tuple(d for d in v.dims if d not in locations) for v in former.values()],
        dtypes=[*dtypes.values()],
        sizes={d: n for d, n in fitted.state.sizes.items() if d not in locations},
        what="the update",
    )
    learned = {name: result.variable for name, result in zip(names, results, strict=True)}
    for name, variable in learned.items():
        variable.attrs = dict(former[name].attrs)
    return fitted.state.assign(learned)[list(before)]


class _RelearnTask:
    """State of a chunk of locations in, with the cases of all; what they teach out."""

    def __init__(
        self, fitted: FittedVariable, state: Mapping[str, int], dtypes: Mapping[str, Any]
    ) -> None:
        self.method, self.periods, self.axis = fitted.method, fitted.periods, fitted.axis
        self.min_samples, self.state, self.dtypes = fitted.min_samples, state, dtypes

    def __call__(self, *args: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        from xrecal.arrays.status import FILL, INVALID

        lead, state = at_locations(self.state, args)
        cases = cases_of_state(state, self.periods, self.axis)
        learned = {**state, **self.method.relearn_locations(cases, state, self.min_samples)}
        learned["status"] = state["status"] & (INVALID | FILL) | learned["status"]
        return tuple(
            learned[name].astype(dtype, copy=False).reshape((*lead, *learned[name].shape[1:]))
            for name, dtype in self.dtypes.items()
        )
