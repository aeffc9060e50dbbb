"""Calls of a fitted model that score forecasts; see :class:`xrecal.Recalibrator`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, cast

from .covariates import Given
from .forms import Labelled
from .pairing import Observations

if TYPE_CHECKING:
    from .recalibrator import Recalibrator


class ModelScores:
    """Part of a recalibrator: what verified, against the forecasts that it makes."""

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
        from .predict_scores import crps

        return crps(cast("Recalibrator", self), forecast, observations, dim, covariates)

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
        from .predict_scores import pit

        return pit(cast("Recalibrator", self), forecast, observations, seed, covariates)
