"""Covariates known when a forecast is issued: season, lead, indices of the flow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray

from .kernel import positive_median


class Features(NamedTuple):
    """Covariates as coordinates in which squared distances and regressions make sense."""

    values: FloatArray
    """(L, n, k); a circular covariate is a sine and a cosine, any other stands as it is."""
    circular: npt.NDArray[np.bool_]
    """(k,) whether a column is a sine or cosine."""

    def take(self, block: slice) -> Features:
        """Features of some locations."""
        return Features(self.values[block], self.circular)


def features(covariates: FloatArray, periods: tuple[float | None, ...]) -> Features:
    """Covariates to features.

    Parameters
    ----------
    covariates : array of float, shape (L, n, p)
        Values in any unit, NaN where unknown; infinite ones count as unknown.
    periods : tuple of float or None, length p
        Period of a circular covariate in its unit; None for one on the real line.

    Returns
    -------
    Features
        Float64, (L, n, k) with k = p plus the number of circular covariates.

    Raises
    ------
    ValueError
        If the number of periods is not that of the covariates, or one is not positive.

    Examples
    --------
    >>> values = np.array([[[0.0, 5.0], [90.0, 6.0]]])
    >>> features(values, (360.0, None)).values.shape
    (1, 2, 3)
    """
    if covariates.ndim != 3 or covariates.shape[2] != len(periods):
        raise ValueError(
            f"covariates need shape (locations, cases, {len(periods)}), got {covariates.shape}"
        )
    columns, circular = [], []
    for i, period in enumerate(periods):
        value = covariates[..., i].astype(np.float64)
        value = np.where(np.isinf(value), np.nan, value)
        if period is None:
            columns.append(value)
            circular.append(False)
            continue
        if not period > 0:
            raise ValueError(f"periods must be positive, got {period}")
        angle = 2 * np.pi * (value / period)
        columns += [np.sin(angle), np.cos(angle)]
        circular += [True, True]
    shape = (*covariates.shape[:2], len(columns))
    values = np.stack(columns, axis=-1) if columns else np.zeros(shape)
    return Features(values, np.array(circular, dtype=np.bool_))


def no_features(n_locations: int, n: int) -> Features:
    """Features (L, n, 0) of cases without covariates."""
    return Features(np.zeros((n_locations, n, 0)), np.zeros(0, dtype=np.bool_))


def feature_weights(of: FloatArray, circular: npt.NDArray[np.bool_]) -> FloatArray:
    r"""Weight of each feature in the squared distance of covariates.

    Parameters
    ----------
    of : array of float, shape (n, k)
        Features of the calibration cases at one location.
    circular : array of bool, shape (k,)
        Which are sines and cosines.

    Returns
    -------
    array of float64, shape (k,)
        ½ for sines and cosines, so that a circular covariate at distance d adds
        :math:`2 \sin^2(\pi d / P)`; otherwise one over the median squared difference of cases
        that differ, and 0 for a constant covariate.
    """
    weights = np.full(of.shape[1], 0.5)
    for column in np.flatnonzero(~circular):
        values = of[:, column].astype(np.float64)
        weights[column] = 1.0 / positive_median((values[:, np.newaxis] - values) ** 2)
    return weights
