"""The fitted object: settings and state, and what it makes of new forecasts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from . import report
from .dims import CaseAxis
from .forms import Kind, Labelled
from .methods import Method
from .pairing import Observations

CASE = "calibration"
"""Dimension of the calibration cases in the state."""
CASE_MEMBER = "calibration_member"
"""Dimension of the members of the calibration cases in the state."""


@dataclass(frozen=True, eq=False)
class FittedVariable:
    """One fitted variable: roles of dimensions, state, and what is told about it."""

    kind: Kind
    dim: Hashable
    member_dim: Hashable
    attrs: dict[str, Any]
    axis: CaseAxis
    n_matched: int
    n_forecasts: int
    min_samples: int
    note: str | None
    state: xr.Dataset

    @property
    def locations(self) -> tuple[Hashable, ...]:
        """Dimensions with a fit of their own."""
        return self.state["status"].dims


@dataclass(frozen=True, repr=False, eq=False)
class Recalibrator:
    """A fitted method, for one variable or several. Made by ``hindcast.recal.fit``.

    Attributes
    ----------
    method : Method
        The settings.
    variables : mapping
        Fitted variables by name.
    """

    method: Method
    variables: Mapping[Hashable, FittedVariable]

    def __getitem__(self, name: Hashable) -> Recalibrator:
        """The recalibrator of one variable."""
        if name not in self.variables:
            raise KeyError(f"no variable {name!r}; fitted are {list(self.variables)}")
        return replace(self, variables={name: self.variables[name]})

    def __repr__(self) -> str:
        return report.describe_recalibrator(self)

    @property
    def state(self) -> xr.Dataset:
        """Fitted state of the only variable.

        Raises
        ------
        ValueError
            If several variables are fitted.
        """
        if len(self.variables) != 1:
            raise ValueError(
                f"the model has several variables; use model[{next(iter(self.variables))!r}].state"
            )
        return next(iter(self.variables.values())).state

    @property
    def is_computed(self) -> bool:
        """Whether the state is in memory rather than a Dask graph."""
        return not any(fitted.state.chunks for fitted in self.variables.values())

    def compute(self) -> Recalibrator:
        """A new recalibrator whose state is in memory; all variables in one run of Dask."""
        from dask.base import compute

        return self._with_states(compute(*self._states()))

    def persist(self) -> Recalibrator:
        """A new recalibrator whose state is, or is being, computed in the workers' memory."""
        from dask.base import persist

        return self._with_states(persist(*self._states()))

    def load(self) -> Recalibrator:
        """As :meth:`compute`."""
        return self.compute()

    def _states(self) -> list[xr.Dataset]:
        return [fitted.state for fitted in self.variables.values()]

    def _with_states(self, states: tuple[xr.Dataset, ...]) -> Recalibrator:
        variables = {
            name: replace(fitted, state=state)
            for (name, fitted), state in zip(self.variables.items(), states, strict=True)
        }
        return replace(self, variables=variables)

    def apply(self, forecast: Labelled) -> xr.Dataset:
        """Recalibrated forecasts as distributions.

        Parameters
        ----------
        forecast : DataArray or Dataset
            New forecasts of the kind the model was fitted on, at the same locations. The
            calibration dimension may be lacking (a single forecast) or chunked.

        Returns
        -------
        Dataset
            For each variable a weighted ensemble: ``NAME`` holds the past observations along
            the member dimension (``member`` for quantiles and normal distributions),
            ``NAME_weight`` their probabilities, and the coordinate
            ``calibration_<dim>`` the case each comes from. From EMOS ``NAME_loc`` and
            ``NAME_scale`` of normal distributions. NaN where the forecast or the fit is missing.

        Raises
        ------
        ValueError
            If dimensions, labels or units differ from the hindcast's.
        TypeError
            If the forecast is of another type.
        """
        from .predict import apply

        return apply(self, forecast)

    def quantile(self, forecast: Labelled, q: float | list[float] | np.ndarray) -> Labelled:
        """Quantiles of the recalibrated forecasts, computed chunk by chunk.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        q : float or sequence of float
            Levels in [0, 1].

        Returns
        -------
        DataArray or Dataset
            As the forecast, with dimension ``quantile`` in place of the members; without one
            for a single number. A quantile is the smallest value whose CDF reaches q.

        Raises
        ------
        ValueError
            If a level is outside [0, 1], or as for :meth:`apply`.
        """
        from .predict import quantile

        return quantile(self, forecast, q)

    def crps(
        self,
        forecast: Labelled,
        observations: Observations,
        dim: Hashable | list[Hashable] | None = None,
    ) -> Labelled:
        """CRPS of the recalibrated forecasts, computed chunk by chunk.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        observations : DataArray, Dataset or dict
            What verified, matched by label.
        dim : hashable or list, optional
            Dimensions to average over; missing scores are left out.

        Returns
        -------
        DataArray or Dataset
            As the forecast, in the unit of the variable.

        Raises
        ------
        ValueError
            As for :meth:`apply`, or if observations do not pair.
        """
        from .predict import crps

        return crps(self, forecast, observations, dim)
