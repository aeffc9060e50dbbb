"""Calls of a fitted model that make probabilities; see :class:`xrecal.Recalibrator`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from .covariates import Given
from .forms import Labelled

if TYPE_CHECKING:
    from .recalibrator import Recalibrator
    from .thresholds import Threshold


class Probabilities:
    """Part of a recalibrator: probabilities of events that it makes of forecasts."""

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

        Examples
        --------
        >>> model.exceedance(forecast, 5.0).mean().round(2).item()
        0.34
        """
        from .predict_products import exceedance

        return exceedance(cast("Recalibrator", self), forecast, threshold, covariates)

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
        from .predict_products import cdf

        return cdf(cast("Recalibrator", self), forecast, threshold, covariates)

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
        from .predict_categories import categories

        return categories(cast("Recalibrator", self), forecast, q, window, covariates)
