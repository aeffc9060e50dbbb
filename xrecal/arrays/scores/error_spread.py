"""Error-spread score: how well the mean, spread and skewness of a forecast predict its error."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray


def error_spread(
    observations: npt.ArrayLike,
    mean: npt.ArrayLike,
    std: npt.ArrayLike,
    skewness: npt.ArrayLike,
) -> FloatArray:
    r"""Compute the error-spread score of forecasts, from their first three moments.

    Parameters
    ----------
    observations : array_like, shape (...)
        Observations, in the unit u of the mean.
    mean, std : array_like, broadcast with ``observations``
        Mean and standard deviation (>= 0) of each forecast distribution, in u.
    skewness : array_like, broadcast with ``observations``
        Third moment about the mean, divided by the cube of the standard deviation, without a unit.

    Returns
    -------
    array of float64, shape (...)
        :math:`(s^2 - e^2 - e s g)^2 \ge 0` with the error e (mean minus observation), the standard
        deviation s and the skewness g; smaller is better. The unit is u⁴. The score is NaN if an
        input is NaN or the observation is infinite.

    Raises
    ------
    ValueError
        If shapes do not fit or a standard deviation is negative.

    Notes
    -----
    The score is proper [1]_. It is the squared difference between the squared error and its value
    predicted from the moments. The score contains the fourth power of the error, so a single large
    error can dominate a mean over few cases.

    References
    ----------
    .. [1] Christensen, Moroz & Palmer (2015), Evaluation of ensemble forecast uncertainty using a
       new proper score. https://doi.org/10.1002/qj.2375

    Examples
    --------
    >>> error_spread(np.array([1.0, 3.0]), 0.0, 1.0, 0.0)
    array([ 0., 64.])
    """
    arrays = (np.asarray(a, np.float64) for a in (observations, mean, std, skewness))
    y, m, s, g = arrays
    if (s < 0).any():
        raise ValueError(f"std must not be negative, found {s[s < 0].flat[0]:g}")
    shapes = [a.shape for a in (y, m, s, g)]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            "shapes do not fit: observations, mean, std and skewness have "
            f"{', '.join(map(str, shapes))}"
        ) from None
    e = m - np.where(np.isfinite(y), y, np.nan)
    return np.asarray((s**2 - e**2 - e * s * g) ** 2)
