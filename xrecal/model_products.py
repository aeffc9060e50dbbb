"""Calls of a fitted model that make products of forecasts; see :class:`xrecal.Recalibrator`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from .covariates import Given
from .forms import Labelled

if TYPE_CHECKING:
    from .coherence import Coherence
    from .pairing import Observations
    from .plans import Plan
    from .recalibrator import Recalibrator
    from .templates import Template
    from .thresholds import Threshold


class Products:
    """Part of a recalibrator: what it makes of forecasts besides weights, quantiles and scores."""

    def exceedance(
        self, forecast: Labelled, threshold: Threshold, *, covariates: Given = None
    ) -> Labelled:
        """``P(Y > threshold)``, strictly, of the recalibrated forecasts, chunk by chunk.

        Parameters
        ----------
        forecast, covariates
            As for :meth:`apply`.
        threshold : float, sequence of float or DataArray
            In the unit of the variable; as for :func:`xrecal.products.exceedance`, which tells
            how thresholds may differ by location, date or part of the year.

        Returns
        -------
        DataArray or Dataset
            Probabilities in [0, 1], with ``threshold`` or the new dimension of a DataArray in
            place of the members; without for a single number.

        Raises
        ------
        ValueError
            If dimensions, labels or units of the threshold do not fit, or as for :meth:`apply`.
        """
        from .predict_products import exceedance

        return exceedance(_model(self), forecast, threshold, covariates)

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
        """
        from .predict_products import cdf

        return cdf(_model(self), forecast, threshold, covariates)

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
        """
        from .predict_categories import categories

        return categories(_model(self), forecast, q, window, covariates)

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
        """
        if coherence is not None:
            from .coherence import coherent_members

            return coherent_members(
                _model(self), forecast, n, coherence, template, seed, covariates
            )
        from .predict_products import members

        return members(_model(self), forecast, n, template, seed, covariates)

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
        """
        from .predict_scores import pit

        return pit(_model(self), forecast, observations, seed, covariates)

    def mean(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Mean of the recalibrated forecasts, in the unit of the variable; as ``quantile``."""
        from .predict_products import mean

        return mean(_model(self), forecast, covariates)

    def std(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Standard deviation of the recalibrated forecasts; as ``quantile``."""
        from .predict_products import std

        return std(_model(self), forecast, covariates)

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
        """
        from .planning import plan_forecast

        return plan_forecast(_model(self), forecast, values, covariates, probe)


def _model(self: Products) -> Recalibrator:
    """The recalibrator that this is part of."""
    return cast("Recalibrator", self)
