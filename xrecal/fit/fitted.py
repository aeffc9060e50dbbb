"""Fitted models: settings and state at every location. ``model.py`` adds methods for users."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import xarray as xr

from xrecal.chunks.labels import labels_along
from xrecal.chunks.progress import reported
from xrecal.inputs.dates import CaseAxis
from xrecal.inputs.forms import Form, Kind
from xrecal.inputs.leads import MatchedLeads
from xrecal.inputs.pool import Pool
from xrecal.methods import Method
from xrecal.methods.base import Parameter
from xrecal.methods.call_errors import explained
from xrecal.typing import Places

from .cases import COVARIATE, own_members, parameters_of

CASE = "calibration"
"""Dimension of the calibration cases in the state."""

CASE_MEMBER = "calibration_member"
"""Dimension of the members of the calibration cases in the state."""

MODEL, MODEL_PARTS = "calibration_model", ("model_weight", "model_offset")
"""Dimension of named models in the state, and names of the arrays along this dimension."""

SEEN, ABOUT = "seen", "covariates"
"""Name of the array with ranges of covariates in a shared fit, and name of the attribute of this
array that describes the covariates."""


def chunks_of(state: xr.Dataset) -> Mapping[Hashable, tuple[int, ...]]:
    """Return the chunks of the arrays of a state by dimension, and ignore the coordinates."""
    return state.drop_vars([n for n in state.coords if n not in state.xindexes]).chunksizes


@dataclass(frozen=True, eq=False, repr=False)
class FittedVariable:
    """One fitted variable: roles of dimensions, state, and facts for its description."""

    kind: Kind
    dim: Hashable
    member_dim: Hashable
    attrs: dict[Any, Any]
    axis: CaseAxis
    method: Method
    """Method with the settings that the fit used; see :meth:`Method.check`."""
    periods: Mapping[str, float | None]
    """Period of each covariate by name; None if it is not circular."""
    n_matched: int
    n_forecasts: int
    min_samples: int
    note: str | None
    state: xr.Dataset
    pool: Pool | None = None
    n_added: int = 0
    """Number of cases added by updates."""
    leads: MatchedLeads | None = None
    """Leads, and the number of cases with an observation at each lead; None without leads."""
    jointly: tuple[Hashable, ...] = ()
    """Names of the variables that are recalibrated jointly, including this variable."""
    selected: Places | None = None
    """Positions of the selected fits in the whole model, by dimension; None without a selection.

    Files with models do not have this field.
    """

    def __repr__(self) -> str:
        return f"<fitted variable along {self.dim!r}, {self.kind}: {self.method!r}>"

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Descriptions of those arrays of the state that hold choices or fitted parameters."""
        return parameters_of(self.method, self.periods)

    @property
    def members(self) -> str:
        """Name of the array with the members of the variable; a state may lack this array."""
        return own_members(self.method)

    @property
    def arrays(self) -> dict[str, xr.Variable]:
        """Arrays of the state by name, without labels, because tasks do not need labels."""
        return {str(name): self.state.variables[name] for name in self.state.data_vars}

    @property
    def covariates(self) -> Mapping[str, float | None]:
        """Period of each covariate of a forecast, including covariates that identify its place."""
        return {**self.periods, **dict.fromkeys(self.method.of_places)}

    @property
    def attrs_of_covariates(self) -> Mapping[str, Mapping[str, Any]]:
        """Attributes of the covariates of the fit, such as units, by name."""
        arrays = self.arrays
        if self.method.by_sums:  # a fit by sums stores no values of cases
            described: dict[str, dict[str, str]] = json.loads(arrays[SEEN].attrs.get(ABOUT, "{}"))
            return described
        return {n: arrays[COVARIATE + n].attrs for n in self.periods if COVARIATE + n in arrays}

    @property
    def observed(self) -> xr.DataArray:
        """Known observations (..., case) of each fit; of all places if the fit is shared."""
        observed = self.state["observations"]
        if not self.method.by_sums:
            return observed
        rest = [d for d in observed.dims if d not in self.locations]
        bare = observed.drop_vars(list(observed.coords))
        flat = bare.stack({CASE + "_": rest}, create_index=False)
        return flat.rename({CASE + "_": CASE}).assign_attrs(observed.attrs)

    @property
    def climatology(self) -> xr.DataArray:
        """Observations (..., case) that make up the climatology of each location.

        Places that share a fit also share the climatology. With windows, the climatology has no
        observations of neighbours. The result has no coordinates of the cases.
        """
        cases = slice(None) if self.pool is None else self.pool.own_cases
        own = self.observed.isel({CASE: cases})
        return own.drop_vars(set(own.coords) - labels_along(own, self.locations))

    @property
    def n_positions(self) -> int:
        """Number of cases per date in the state, equal to the number of pooled positions.

        A shared fit has one case per date.
        """
        return 1 if self.pool is None or self.method.by_sums else len(self.pool.taken)

    @property
    def locations(self) -> tuple[Hashable, ...]:
        """Dimensions along which each position has its own fit."""
        return self.state.variables["status"].dims


@dataclass(frozen=True, repr=False, eq=False)
class Fitted:
    """A fitted method, for one variable or several."""

    method: Method
    variables: Mapping[Hashable, FittedVariable]

    def __getitem__(self, name: Hashable) -> Self:
        """Return the model of one variable."""
        if name not in self.variables:
            raise KeyError(f"no variable {name!r}; fitted are {list(self.variables)}")
        return replace(self, variables={name: self.variables[name]})

    @property
    def state(self) -> xr.Dataset:
        """Fitted state of the only variable.

        Raises
        ------
        ValueError
            If the model has several variables.
        """
        if len(self.variables) != 1:
            raise ValueError(
                f"the model has several variables; use model[{next(iter(self.variables))!r}].state"
            )
        return next(iter(self.variables.values())).state

    @property
    def is_computed(self) -> bool:
        """True if the state is in memory, not a Dask graph."""
        return not any(fitted.state.chunks for fitted in self.variables.values())

    @explained("model.compute")
    def compute(self, *, progress: bool = True) -> Self:
        """Return a model whose state is in memory.

        One run of Dask computes all variables. ``progress`` works as in ``fit``.

        Examples
        --------
        >>> hindcast.chunk(location=1).recal.fit(observations).compute().is_computed
        True
        """
        from dask.base import compute

        with reported("xrecal fit", shown=progress):
            return self._with_states(compute(*(one.state for one in self.variables.values())))

    @explained("model.persist")
    def persist(self) -> Self:
        """Let Dask start to compute the state in the memory of its workers; return the model.

        Examples
        --------
        >>> hindcast.chunk(location=1).recal.fit(observations).persist().state["ridge"].shape
        (4,)
        """
        from dask.base import persist

        return self._with_states(persist(*(fitted.state for fitted in self.variables.values())))

    @explained("model.as_numpy")
    def as_numpy(self) -> Self:
        """Return a model with its state in NumPy arrays; copy a state from the GPU.

        Examples
        --------
        >>> type(model.as_numpy().state["ridge"].data)
        <class 'numpy.ndarray'>
        """
        return self._with_states(tuple(v.state.as_numpy() for v in self.variables.values()))

    @explained("model.load")
    def load(self, *, progress: bool = True) -> Self:
        """Do the same as :meth:`xrecal.Recalibrator.compute`, under the name that xarray uses."""
        return self.compute(progress=progress)

    def _with_states(self, states: tuple[xr.Dataset, ...]) -> Self:
        variables = {
            name: replace(fitted, state=state)
            for (name, fitted), state in zip(self.variables.items(), states, strict=True)
        }
        return replace(self, variables=variables)


def dtype_of_members(
    method: Method, form: Form, observations: xr.DataArray
) -> np.dtype[np.floating[Any]]:
    """Return the floating type of the members that a method issues for forecasts.

    Members that are past observations have the type of the observations. Other members have the
    precision of the less precise input.
    """
    if method.shares_members:
        return observations.dtype
    return min(form.loc.dtype, observations.dtype, key=lambda dtype: dtype.itemsize)
