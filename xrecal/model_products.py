"""Calls of a fitted model that make products of forecasts; see :class:`xrecal.Recalibrator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from .covariates import Given
from .forms import Labelled

if TYPE_CHECKING:
    from .coherence import Coherence
    from .plans import Plan
    from .recalibrator import Recalibrator
    from .templates import Template


class Products:
    """Part of a recalibrator: values of the variable that it makes of forecasts."""

    def mean(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Mean of the recalibrated forecasts, in the unit of the variable; as ``quantile``.

        Examples
        --------
        >>> model.mean(forecast).isel(init=0).round(1).values
        array([ 8.2, -2.3,  4. ,  8.7])
        """
        from .predict_products import mean

        return mean(cast("Recalibrator", self), forecast, covariates)

    def std(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Standard deviation of the recalibrated forecasts; as ``quantile``.

        Examples
        --------
        >>> model.std(forecast).isel(init=0).round(1).values
        array([1.6, 1. , 0.8, 2.3])
        """
        from .predict_products import std

        return std(cast("Recalibrator", self), forecast, covariates)

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
        from .predict import quantile

        return quantile(cast("Recalibrator", self), forecast, q, covariates)

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
            A plain ensemble of n members, see :func:`xrecal.products.members`. With ``"schaake"``
            and ``"dates"`` ``calibration_<dim>`` says which past date each member follows, or is.

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
            from .coherence import coherent_members

            return coherent_members(
                cast("Recalibrator", self), forecast, n, coherence, template, seed, covariates
            )
        from .predict_products import members

        return members(cast("Recalibrator", self), forecast, n, template, seed, covariates)

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
        from .planning import plan_forecast

        return plan_forecast(cast("Recalibrator", self), forecast, values, covariates, probe)
