"""The fitted object: settings and state, and what it makes of new forecasts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import xarray as xr

from . import report
from .covariates import Given
from .dims import CaseAxis
from .forms import Kind, Labelled
from .leads import MatchedLeads
from .methods import Method
from .misuse import explain_calls
from .model_probabilities import Probabilities
from .model_products import Products
from .model_scores import ModelScores
from .pairing import Observations
from .typing import Places

if TYPE_CHECKING:
    from .pooling import Pool

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
    method: Method
    """As it was used; see :meth:`Method.check`."""
    periods: Mapping[str, float | None]
    """Covariates, and the periods of circular ones."""
    n_matched: int
    n_forecasts: int
    min_samples: int
    note: str | None
    state: xr.Dataset
    pool: Pool | None = None
    n_added: int = 0
    """Cases that came by updates, after the fit."""
    leads: MatchedLeads | None = None
    """Cases at each lead that have an observation, where there are leads."""
    jointly: tuple[Hashable, ...] = ()
    """Variables that are recalibrated together, this one among them."""
    places: Places | None = None
    """Of the fits among all of the model, where they are a part of them; never stored."""

    @property
    def locations(self) -> tuple[Hashable, ...]:
        """Dimensions with a fit of their own."""
        return self.state["status"].dims


@dataclass(frozen=True, repr=False, eq=False)
class Recalibrator(Products, Probabilities, ModelScores):
    """A fitted method, for one variable or several. Made by ``hindcast.recal.fit``.

    Attributes
    ----------
    method : Method
        The settings.
    variables : mapping
        Fitted variables by name.

    Examples
    --------
    >>> model.is_computed, model.state["ridge"].dims
    (True, ('location',))
    >>> model["forecast"].method == model.method
    True
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

    def _repr_html_(self) -> str:
        from .report_html import model_html

        return model_html(self)

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
        """A new recalibrator whose state is in memory; all variables in one run of Dask.

        Examples
        --------
        >>> hindcast.chunk(location=1).recal.fit(observations).compute().is_computed
        True
        """
        from dask.base import compute

        return self._with_states(compute(*(fitted.state for fitted in self.variables.values())))

    def persist(self) -> Recalibrator:
        """A new recalibrator whose state is, or is being, computed in the workers' memory.

        Examples
        --------
        >>> hindcast.chunk(location=1).recal.fit(observations).persist().state["ridge"].shape
        (4,)
        """
        from dask.base import persist

        return self._with_states(persist(*(fitted.state for fitted in self.variables.values())))

    def as_numpy(self) -> Recalibrator:
        """A new recalibrator whose state is in NumPy arrays: a copy of one that is on a GPU.

        Examples
        --------
        >>> type(model.as_numpy().state["ridge"].data)
        <class 'numpy.ndarray'>
        """
        return self._with_states(tuple(v.state.as_numpy() for v in self.variables.values()))

    def load(self) -> Recalibrator:
        """As :meth:`xrecal.Recalibrator.compute`; the name that xarray has for it."""
        return self.compute()

    def _with_states(self, states: tuple[xr.Dataset, ...]) -> Recalibrator:
        variables = {
            name: replace(fitted, state=state)
            for (name, fitted), state in zip(self.variables.items(), states, strict=True)
        }
        return replace(self, variables=variables)

    def to_dataset(self) -> xr.Dataset:
        """State and settings as one Dataset, lazy if the model is.

        Settings are JSON in attributes. Several variables have their name, and a dot, before the
        names of their arrays and dimensions.

        Examples
        --------
        >>> "ridge" in model.to_dataset()
        True
        """
        from .stored import to_dataset

        return to_dataset(self)

    def save(
        self,
        path: str | PathLike[str],
        *,
        overwrite: bool = False,
        zarr_format: Literal[2, 3] | None = None,
    ) -> None:
        """Write the model to a netCDF file or Zarr store; see :func:`xrecal.storage.save`."""
        from .storage import save

        save(self, path, overwrite=overwrite, zarr_format=zarr_format)

    def apply(self, forecast: Labelled, *, covariates: Given = None) -> xr.Dataset:
        """Recalibrated forecasts as distributions.

        Parameters
        ----------
        forecast : DataArray or Dataset
            New forecasts of the kind the model was fitted on, at the same locations. Of the leads
            of the hindcast any part, in any order, or one as a scalar coordinate: each gets its
            own fit, told by its label. The calibration dimension may be lacking (a single
            forecast) or chunked.
        covariates : dict from str to DataArray, optional
            Values of the covariates that the model conditions on, where they are not
            coordinates of the forecast.

        Returns
        -------
        Dataset
            For each variable a weighted ensemble: ``NAME`` holds members along the member
            dimension (``member`` for quantiles and normal distributions), ``NAME_weight`` their
            probabilities, and the coordinate ``calibration_<dim>`` the case each comes from.
            Members that are past observations are the same for all forecasts. From EMOS
            ``NAME_loc`` and ``NAME_scale`` of normal distributions, censored at ``NAME_lower``
            and ``NAME_upper`` unless bounds are switched off. NaN where the forecast, a covariate
            or the fit is missing.

        Raises
        ------
        ValueError
            If dimensions, labels or units differ from the hindcast's, or a lead has no fit.
        TypeError
            If the forecast is of another type.

        Warns
        -----
        UserWarning
            If the forecast is at another place or lead than the hindcast, by the scalar coordinates
            of both; or its values are further from the range of the hindcast than that range is
            wide. Values are read once where forecast and model are in memory, never of lazy ones,
            and only by methods that keep the hindcast, :class:`CKME` and :class:`LinearPool`.

        Examples
        --------
        >>> calibrated = forecast.recal.apply(model)
        >>> calibrated["forecast_weight"].dims
        ('init', 'member', 'location')
        >>> calibrated.recal.mean()["forecast"].isel(init=0).round(1).values
        array([ 8.2, -2.3,  4. ,  8.7])
        """
        from .predict_distributions import apply

        return apply(self, forecast, covariates)

    def update(
        self, hindcast: Labelled, observations: Observations, *, covariates: Given = None
    ) -> Recalibrator:
        """The model with more cases, without a new fit.

        All that the fit has chosen stays: ridge, bandwidth, strength of covariates, support,
        centre, half-life, bounds, coefficients. The new cases join those that forecasts are
        compared with and made from; half-lives count from the newest. So it is cheap, and exact
        for given settings; fit anew from time to time, so that the choices learn from all cases.

        Parameters
        ----------
        hindcast : DataArray or Dataset
            Past forecasts that the model does not know, before, after or between the others, of
            the same kind, unit and locations. The number of members may differ.
        observations : DataArray, Dataset or dict
            What verified, as for the fit.
        covariates : dict from str to DataArray, optional
            As for the fit.

        Returns
        -------
        Recalibrator
            Cases by ascending label; lazy if the model or an input is. Locations without a fit
            stay without.

        Raises
        ------
        ValueError
            If the method keeps no cases (EMOS) or the model is pooled, labels are in it already,
            or kind, units, dimensions or labels differ.

        Examples
        --------
        >>> model = hindcast[:40].recal.fit(observations)
        >>> model.update(hindcast[40:], observations).state.sizes["calibration"]
        50
        """
        from .update import update

        return update(self, hindcast, observations, covariates)


explain_calls(Recalibrator)
