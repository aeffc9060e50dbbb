"""Covariates as features, and their distances; see :mod:`xrecal.arrays.kernels.kernel`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import namespace
from xrecal.arrays.kernels.kernel import Features

from .kernel import positive_medians
from .namespace import doubled

__all__ = ["feature_distances", "feature_weights", "features", "no_features"]


def features(covariates: Any, periods: tuple[float | None, ...]) -> Features:
    """See :func:`xrecal.arrays.features`."""
    if covariates.ndim != 3 or covariates.shape[2] != len(periods):
        raise ValueError(
            f"covariates need shape (locations, cases, {len(periods)}), got "
            f"{tuple(covariates.shape)}"
        )
    xp = namespace(covariates)
    columns, circular = [], []
    for i, period in enumerate(periods):
        value = doubled(xp, covariates[..., i])
        value = xp.where(xp.isinf(value), float("nan"), value)
        if period is None:
            columns.append(value)
            circular.append(False)
            continue
        if not period > 0:
            raise ValueError(f"periods must be positive, got {period}")
        angle = 2 * math.pi * (value / float(period))
        columns += [xp.sin(angle), xp.cos(angle)]
        circular += [True, True]
    if not columns:
        return no_features(covariates, *covariates.shape[:2])
    return Features(xp.stack(columns, axis=-1), np.array(circular, dtype=np.bool_))


def no_features(like: Any, n_locations: int, n: int) -> Features:
    """Features of cases without covariates, of the library of an array."""
    xp = namespace(like)
    return Features(xp.zeros((n_locations, n, 0), dtype=xp.float64), np.zeros(0, dtype=np.bool_))


def feature_weights(of: Any, circular: npt.NDArray[np.bool_]) -> Any:
    """Weight (L, k) of each feature (L, n, k) in the squared distance of covariates."""
    xp = namespace(of)
    if circular.size == 0:
        return xp.zeros((of.shape[0], 0), dtype=xp.float64)
    weights = []
    for column, turns in enumerate(circular.tolist()):
        value = of[:, :, column]
        if turns:
            weights.append(xp.full((of.shape[0],), 0.5, dtype=xp.float64))
        else:
            weights.append(1.0 / positive_medians((value[:, :, None] - value[:, None, :]) ** 2))
    return xp.stack(weights, axis=-1)


def feature_distances(ones: Any, others: Any, precision: Any) -> Any:
    """Squared distances (L, q, n) of covariates (L, q, k) and (L, n, k), k > 0."""
    apart = 0.0
    for column in range(precision.shape[-1]):
        difference = ones[:, :, None, column] - others[:, None, :, column]
        apart = apart + precision[:, None, None, column] * difference**2
    return apart
