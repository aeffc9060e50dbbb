"""The fitted object: what was fitted, and what it makes of new forecasts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import Literal, ParamSpec

import numpy as np
import xarray as xr

from .fit import fit_hindcast as recalibrate
from .fit import report
from .fit import report as report_html
from .fit import update as updating
from .fit.fitted import Fitted
from .inputs.covariates import Given
from .inputs.forms import Labelled
from .inputs.pairing import Observations
from .inputs.thresholds import Threshold
from .methods.call_errors import explain_calls
from .plan import planning
from .plan.plans import Plan
from .products import (
    predict,
    predict_categories,
    predict_distributions,
    predict_products,
    predict_scores,
)
from .products.coherence import Coherence, coherent_members
from .products.schaake_dates import Template
from .storage import storage, stored

P = ParamSpec("P")


@dataclass(frozen=True, repr=False, eq=False)
class Recalibrator(Fitted):
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

    def __repr__(self) -> str:
        return report.describe_recalibrator(self)

    def _repr_html_(self) -> str:
        return report_html.model_html(self)

    def to_dataset(self) -> xr.Dataset:
        """State and settings as one Dataset, lazy if the model is.

        Settings are JSON in attributes. Several variables have their name, and a dot, before the
        names of their arrays and dimensions.

        Examples
        --------
        >>> "ridge" in model.to_dataset()
        True
        """
        return stored.to_dataset(self)

    def save(
        self,
        path: str | PathLike[str],
        *,
        overwrite: bool = False,
        zarr_format: Literal[2, 3] | None = None,
    ) -> None:
        """Write the model to a file or Zarr store; see :func:`xrecal.storage.storage.save`."""
        storage.save(self, path, overwrite=overwrite, zarr_format=zarr_format)

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
        return predict_distributions.apply(self, forecast, covariates)

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
        return updating.update(self, hindcast, observations, covariates)

    def mean(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Mean of the recalibrated forecasts, in the unit of the variable; as ``quantile``.

        Examples
        --------
        >>> model.mean(forecast).isel(init=0).round(1).values
        array([ 8.2, -2.3,  4. ,  8.7])
        """
        return predict_products.mean(self, forecast, covariates)

    def std(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Standard deviation of the recalibrated forecasts; as ``quantile``.

        Examples
        --------
        >>> model.std(forecast).isel(init=0).round(1).values
        array([1.6, 1. , 0.8, 2.3])
        """
        return predict_products.std(self, forecast, covariates)

    def quantile(
        self,
        forecast: Labelled,
        q: float | list[float] | np.ndarray,
        *,
        covariates: Given = None,
    ) -> Labelled:
        """Quantiles of the recalibrated forecasts, computed chunk by chunk.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        q : float or sequence of float
            Levels in [0, 1], each once, in any order.
        covariates
            As for :meth:`apply`.

        Returns
        -------
        DataArray or Dataset
            As the forecast, with dimension ``quantile`` in place of the members; without one
            for a single number. A quantile is the smallest value whose CDF reaches q.

        Raises
        ------
        ValueError
            If a level is outside [0, 1] or given twice, or as for :meth:`apply`.

        Examples
        --------
        >>> model.quantile(forecast, [0.1, 0.5, 0.9]).mean(["init", "location"]).round(1).values
        array([3.2, 3.9, 4.7])
        """
        return predict.quantile(self, forecast, q, covariates)

    def members(
        self,
        forecast: Labelled,
        n: int | None = None,
        *,
        coherence: Coherence | None = None,
        template: Template = None,
        seed: int = 0,
        covariates: Given = None,
    ) -> Labelled:
        """Equally likely members of the recalibrated forecasts, computed chunk by chunk.

        Parameters
        ----------
        forecast, covariates
            As for :meth:`apply`.
        n : int, optional
            How many, at least 1. Needed unless the raw ensemble or ``template`` tells it.
        coherence : {"ecc", "schaake", "dates"}, optional
            What makes member k one field over all locations, lead times and variables of a case.
            None: nothing, each location and case has an order of its own.
        template : sequence of labels, optional
            Dates for ``"schaake"``, labels of the hindcast's calibration dimension, one for each
            member. By default the n nearest in season to each forecast (the latest of equally near
            ones, and where there are no dates).
        seed : int
            Of whatever is drawn: orders, the order of ties, dates.

        Returns
        -------
        DataArray or Dataset
            A plain ensemble of n members, see :func:`xrecal.products.products.members`. With
            ``"schaake"`` and ``"dates"`` ``calibration_<dim>`` says which past date each member
            follows, or is.

        Raises
        ------
        ValueError
            If ``n`` is not a positive whole number, does not fit the raw members or the template,
            a template date is unknown, the form or method has no such order or members, or as for
            :meth:`apply`.

        Notes
        -----
        None, ``"ecc"`` and ``"schaake"`` give each location quantiles at the levels (i - ½)/n, and
        differ in their order only:

        - ``"ecc"``, ensemble copula coupling [1]_: the order of the raw members there. Only for
          plain ensembles, n is the number of raw members.
        - ``"schaake"``, the Schaake shuffle [2]_: the order of the observations there at n past
          dates. For every method and form.

        Without coherence, each member of variables that were fitted jointly is one past case, the
        same for all of them, drawn by its weight at each location.

        Ties (dry members) have one random order a case, the same everywhere. A raw member or past
        observation that is missing at a place gets a rank at random, the same level everywhere.

        ``"dates"``: each member is the field observed at one past date, n dates drawn for each case
        from the weights of the method averaged over its locations, by systematic sampling. All
        locations count equally, whatever their area. Fields are consistent as observed ones are,
        but the distribution at a single location is no longer the one :meth:`apply` issues. Only
        where members are past observations (``CKME(support="observations")``, ``IDR``,
        ``Climatology``); NaN where a drawn date has no observation. Forecasts are weighed twice.
        Where Dask cuts forecasts along their own dimension, weights differ by rounding, which
        may rarely move a draw to another date; other chunks make no difference.

        Leads of a part of the forecast have the members that they have in the whole, in the same
        order; but ``"dates"`` averages weights over the leads that there are, and members of a
        model with ``pool="lead"`` have an order by the places of the leads among those given.

        References
        ----------
        .. [1] Schefzik, Thorarinsdottir & Gneiting (2013), Uncertainty quantification in complex
           simulation models using ensemble copula coupling. https://doi.org/10.1214/13-STS443
        .. [2] Clark et al. (2004), The Schaake shuffle.
           https://doi.org/10.1175/1525-7541(2004)005<0243:TSSAMF>2.0.CO;2

        Examples
        --------
        >>> model.members(forecast, 20).sizes["member"]
        20
        >>> model.members(forecast, coherence="ecc").sizes["member"]
        8
        """
        if coherence is not None:
            return coherent_members(self, forecast, n, coherence, template, seed, covariates)
        return predict_products.members(self, forecast, n, template, seed, covariates)

    def plan(
        self,
        forecast: Labelled,
        *,
        values: int | None = 1,
        covariates: Given = None,
        probe: bool = True,
    ) -> Plan:
        """What a product of forecasts will take: tasks, memory, time, told before any work.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`. Its values are never read.
        values : int, optional
            Numbers wanted of each forecast, such as quantiles, thresholds or members; None for
            all the weights that :meth:`apply` returns.
        covariates
            As for :meth:`apply`.
        probe : bool
            Whether to time the method on synthetic cases; see :func:`xrecal.plan`.

        Returns
        -------
        Plan
            Prints as a table.

        Raises
        ------
        ValueError
            As for :meth:`apply`.

        Examples
        --------
        >>> model.plan(forecast, probe=False).fits
        True
        """
        return planning.plan_forecast(self, forecast, values, covariates, probe)

    def exceedance(
        self, forecast: Labelled, threshold: Threshold, *, covariates: Given = None
    ) -> Labelled:
        """``P(Y > threshold)``, strictly, of the recalibrated forecasts, chunk by chunk.

        Parameters
        ----------
        forecast, covariates
            As for :meth:`apply`.
        threshold : float, sequence of float or DataArray
            In the unit of the variable; as for :func:`xrecal.products.products.exceedance`, which
            tells how thresholds may differ by location, date or part of the year.

        Returns
        -------
        DataArray or Dataset
            Probabilities in [0, 1], with ``threshold`` or the new dimension of a DataArray in
            place of the members; without for a single number.

        Raises
        ------
        ValueError
            If dimensions, labels or units of the threshold do not fit, or as for :meth:`apply`.

        Examples
        --------
        >>> model.exceedance(forecast, 5.0).mean().round(2).item()
        0.34
        """
        return predict_products.exceedance(self, forecast, threshold, covariates)

    def cdf(
        self, forecast: Labelled, threshold: Threshold, *, covariates: Given = None
    ) -> Labelled:
        """``P(Y <= threshold)`` of the recalibrated forecasts, chunk by chunk.

        Parameters
        ----------
        forecast, threshold, covariates
            As for :meth:`exceedance`.

        Returns
        -------
        DataArray or Dataset
            Probabilities in [0, 1], one minus :meth:`exceedance`, not decreasing in the threshold.

        Raises
        ------
        ValueError
            As for :meth:`exceedance`.

        Examples
        --------
        >>> model.cdf(forecast, [0.0, 5.0]).mean(["init", "location"]).round(2).values
        array([0.32, 0.66])
        """
        return predict_products.cdf(self, forecast, threshold, covariates)

    def categories(
        self,
        forecast: Labelled,
        q: float | Sequence[float] | np.ndarray = (1 / 3, 2 / 3),
        *,
        window: float | None = None,
        covariates: Given = None,
    ) -> Labelled:
        """Probabilities of categories of the calibration climatology, chunk by chunk.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        q : float or sequence of float
            Levels between the categories, increasing, ends excluded; terciles if not given.
        window : float, optional
            Width in days of the part of the year around each forecast's date whose observations
            make up the climatology; all cases do if not given. Needed where cases are of several
            seasons, not with one start date a year.
        covariates
            As for :meth:`apply`.

        Returns
        -------
        DataArray or Dataset
            Probabilities >= 0 that sum to one, with ``category`` in place of the members: of
            below_normal, normal and above_normal for terciles. Coordinates ``lower_edge`` and
            ``upper_edge`` (NAME_lower_edge, ... in a Dataset): a value y is in the category if
            ``lower_edge < y <= upper_edge``. NaN where the forecast or the fit is missing, or no
            case lies within the window.

        Raises
        ------
        ValueError
            If levels are no such, the window needs dates that are not known, or as for
            :meth:`apply`.

        Notes
        -----
        Edges are quantiles of the observations that the fit has used, at each location: the
        smallest observation with a share of at least q at or below it. All count equally, whatever
        the method's half-life; those of a pooled fit are of the pooled cases. Where many
        observations are equal (no rain) edges may be too, with probability 0 between them.

        Examples
        --------
        >>> model.categories(forecast).mean(["init", "location"]).round(2).values
        array([0.35, 0.33, 0.32])
        """
        return predict_categories.categories(self, forecast, q, window, covariates)

    def crps(
        self,
        forecast: Labelled,
        observations: Observations,
        dim: Hashable | list[Hashable] | None = None,
        *,
        covariates: Given = None,
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
        covariates
            As for :meth:`apply`.

        Returns
        -------
        DataArray or Dataset
            As the forecast, in the unit of the variable.

        Raises
        ------
        ValueError
            As for :meth:`apply`, or if observations do not pair.

        Examples
        --------
        >>> model.crps(forecast, observations, dim=["init", "location"]).round(2).item()
        0.38
        >>> forecast.recal.crps(observations, dim=["init", "location"]).round(2).item()
        0.39
        """
        return predict_scores.crps(self, forecast, observations, dim, covariates)

    def pit(
        self,
        forecast: Labelled,
        observations: Observations,
        *,
        seed: int = 0,
        covariates: Given = None,
    ) -> Labelled:
        """Probability integral transform of observations in the recalibrated forecasts.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        observations : DataArray, Dataset or dict
            What verified, matched by label.
        seed : int
            Of the random numbers that place an observation within a jump of the CDF.
        covariates
            As for :meth:`apply`.

        Returns
        -------
        DataArray or Dataset
            In [0, 1], uniform for calibrated forecasts; see :func:`xrecal.diagnostics.pit`. As the
            forecast, without the members, computed chunk by chunk.

        Raises
        ------
        ValueError
            As for :meth:`apply`, or if observations do not pair.

        Examples
        --------
        >>> model.pit(forecast, observations).mean().round(2).item()
        0.51
        """
        return predict_scores.pit(self, forecast, observations, seed, covariates)


explain_calls(Recalibrator)


def _as_recalibrator(function: Callable[P, Fitted]) -> Callable[P, Recalibrator]:
    """The function, whose result can be asked for forecasts."""

    @wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> Recalibrator:
        fitted = function(*args, **given)
        return Recalibrator(fitted.method, fitted.variables)

    return called


fit = _as_recalibrator(recalibrate.fit)
open_recalibrator = _as_recalibrator(storage.open_fitted)
