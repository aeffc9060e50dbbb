"""Calls of a fitted model that make products of forecasts; see :class:`xrecal.Recalibrator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .covariates import Given
from .forms import Labelled

if TYPE_CHECKING:
    from .pairing import Observations
    from .plans import Plan
    from .products import Threshold
    from .recalibrator import Recalibrator


class Products:
    """Part of a recalibrator: what it makes of forecasts besides weights, quantiles and scores."""

    def exceedance(
        self, forecast: Labelled, threshold: Threshold, *, covariates: Given = None
    ) -> Labelled:
        """``P(Y > threshold)``, strictly, of the recalibrated forecasts, chunk by chunk.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        threshold : float, sequence of float or DataArray
            In the unit of the variable; as for :func:`xrecal.products.exceedance`.
        covariates
            As for :meth:`apply`.

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

    def members(
        self, forecast: Labelled, n: int, *, seed: int = 0, covariates: Given = None
    ) -> Labelled:
        """Equally likely members of the recalibrated forecasts, computed chunk by chunk.

        Parameters
        ----------
        forecast : DataArray or Dataset
            As for :meth:`apply`.
        n : int
            How many, at least 1.
        seed : int
            Of the order of the members, which is drawn for each location and case.
        covariates
            As for :meth:`apply`.

        Returns
        -------
        DataArray or Dataset
            A plain ensemble of n members: quantiles at the levels (i - ½)/n; see
            :func:`xrecal.products.members`.

        Raises
        ------
        ValueError
            If ``n`` is not a positive whole number, or as for :meth:`apply`.
        """
        from .predict_products import members

        return members(_model(self), forecast, n, seed, covariates)

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
        """Mean of the recalibrated forecasts, in the unit of the variable; as :meth:`quantile`."""
        from .predict_products import mean

        return mean(_model(self), forecast, covariates)

    def std(self, forecast: Labelled, *, covariates: Given = None) -> Labelled:
        """Standard deviation of the recalibrated forecasts; as :meth:`quantile`."""
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
