"""EMOS: a normal distribution whose mean and spread follow by regression from the ensemble.

The forecast is N(mu, sigma²) with mu = a + b x + g'r and sigma² = (c² + d² v) exp(2 h'r). Here x is
the ensemble mean, v the ensemble variance, and r are regressors, such as sine and cosine of the
season. If the variable has a bound, the bound gets all probability of values beyond it. For
example, rain is 0 with probability Phi(-mu / sigma). The coefficients minimise the mean CRPS over
the calibration cases (Gneiting et al. 2005, doi:10.1175/MWR2904.1; for bounds Messner et al. 2016,
doi:10.32614/RJ-2016-012).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xrecal.typing import FloatArray, IntArray

from .crps_regression import LARGEST_EXPONENT
from .lines import NONE, fit_shrunk
from .robust import without_wild_errors


def fit_emos(
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    observations: npt.ArrayLike,
    regressors: npt.ArrayLike | None = None,
    *,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
    in_spread: bool = True,
    predictors: IntArray = NONE,
    min_samples: int = 20,
) -> tuple[FloatArray, IntArray, npt.NDArray[np.bool_]]:
    """Fit EMOS at each location by minimising the CRPS.

    Parameters
    ----------
    means, observations : array_like, shape (L, n)
        Ensemble means and observations, in the unit of the variable.
    variances : array_like, shape (L, n)
        Ensemble variances (>= 0), in the square of the unit.
    regressors : array_like, shape (L, n, K) or (n, K), optional
        Further variables on which mu and sigma depend, in any units; K = 0 by default.
    lower, upper : array_like, shape (L,) or (), optional
        Bounds of the variable, in its unit; infinite by default. The fit moves observations beyond
        a bound to the bound.
    in_spread : bool
        True if sigma depends on the regressors, too; otherwise all h are 0.
    predictors : array of int, optional
        Positions of the regressors whose coefficients cross-validation may shrink or set to 0; by
        default no regressors. Give the positions of all regressors except season and place.
    min_samples : int
        Least number of complete cases; locations with fewer cases get NaN coefficients.

    Returns
    -------
    coefficients : ndarray of float64, shape (L, 4 + 2K)
        Coefficients of N(a + b mean + g'r, (c² + d² variance) exp(2 h'r)), censored to the bounds,
        in the order a, b, c, d, g_1..g_K, h_1..h_K. c and d are not negative. a and c have the unit
        of the variable, b and d have no unit. g_k has the unit of the variable divided by the unit
        of the regressor, and h_k has the inverse unit of the regressor.
    n_cases : ndarray of int32, shape (L,)
        Number of complete cases; a NaN or infinite value in any input makes a case incomplete.
    converged : ndarray of bool, shape (L,)
        True if the search ended where the gradient is nearly 0.

    Raises
    ------
    ValueError
        If shapes do not match, a variance is negative, a lower bound exceeds the upper bound, or
        min_samples is below 1.

    Notes
    -----
    The search runs from two starting points, with 10 to 20 steps from each; a step costs O(n (4 +
    2K)²). Coefficients are 0 if the cases do not determine them: b if the ensemble mean is
    constant, d if the variance is constant, g_k and h_k if regressor k is constant, c and d if a
    line fits exactly, and g and h if there are fewer than two cases for each coefficient. h is also
    0 if the mean of a regressor is so large, compared with its standard deviation, that c and d
    would overflow. To prevent this, subtract a constant from the regressor. If two regressors are
    equal, the cases determine only the sum of their coefficients.

    If some cases lie on a line or at a bound, a ridge (sum g² + sum h²) / n keeps the forecast
    finite. In the ridge, regressors are scaled to standard deviation 1, the CRPS is in units of the
    least-squares residuals, and g is the difference from the least-squares coefficients. The ridge
    reduces h by 20 % with n = 30 and by 0.7 % with n = 1000. If new regressors lie outside the
    range of the past regressors, the spread can grow exponentially, in spite of the ridge. So if
    the season is a regressor, fit to cases from all seasons.

    The fit limits errors of the ensemble mean to 1000 typical deviations from the median error.
    With larger errors, rounding would hide all other errors.

    References
    ----------
    Gneiting et al. (2005), doi:10.1175/MWR2904.1; for bounds Messner et al. (2016),
    doi:10.32614/RJ-2016-012.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> means = rng.normal(size=(1, 200))
    >>> observations = 1.0 + 2.0 * means + 0.5 * rng.normal(size=(1, 200))
    >>> coefficients, n_cases, converged = fit_emos(means, np.ones((1, 200)), observations)
    >>> coefficients[0, :2].round(1), n_cases, converged
    (array([0.9, 1.9]), array([200], dtype=int32), array([ True]))
    """
    x, v, y = (np.asarray(a, np.float64) for a in (means, variances, observations))
    if x.ndim != 2 or x.shape != v.shape or x.shape != y.shape:
        raise ValueError(
            "means, variances and observations must all have shape (locations, cases), found "
            f"{x.shape}, {v.shape} and {y.shape}; give one location as means[np.newaxis]"
        )
    _check_variances(v)
    if min_samples < 1:
        raise ValueError(f"min_samples must be 1 or more, found {min_samples}")
    r = _as_regressors(regressors, x.shape)
    below, above = _as_bounds(lower, upper, len(x))
    complete = np.isfinite(x) & np.isfinite(v) & np.isfinite(y) & np.isfinite(r).all(axis=-1)
    n_cases = complete.sum(axis=-1).astype(np.int32)
    coefficients = np.full((len(x), 4 + 2 * r.shape[-1]), np.nan)
    converged = np.zeros(len(x), np.bool_)
    for i in (n_cases >= min_samples).nonzero()[0]:
        used, shared = complete[i], r[min(i, len(r) - 1)]
        converged[i] = fit_shrunk(
            x[i, used],
            v[i, used],
            without_wild_errors(x[i, used], y[i, used]),
            shared[used],
            predictors,
            below[i],
            above[i],
            in_spread,
            coefficients[i],
        )
    return coefficients, n_cases, converged


def predict_emos(
    coefficients: npt.ArrayLike,
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    regressors: npt.ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute mu and sigma of normal forecasts, before censoring, for new ensembles.

    Parameters
    ----------
    coefficients : array_like, shape (L, 4 + 2K)
        Result of `fit_emos`.
    means, variances : array_like, shape (L, T)
        Means (in the unit of the variable) and variances (in its square) of the new ensembles.
    regressors : array_like, shape (L, T, K) or (T, K), optional
        As in the fit, in the same order and units.

    Returns
    -------
    loc, scale : ndarray of float64, shape (L, T)
        Location mu and scale sigma >= 0 of the normal distribution before censoring to bounds, in
        the unit of the variable; NaN where an input is NaN or infinite.

    Raises
    ------
    ValueError
        If shapes do not match, or a variance is negative.

    Examples
    --------
    >>> loc, scale = predict_emos([[1.0, 2.0, 0.0, 0.5]], [[3.0, 4.0]], [[1.0, 4.0]])
    >>> loc, scale
    (array([[7., 9.]]), array([[0.5, 1. ]]))
    """
    p, x, v = (np.asarray(a, np.float64) for a in (coefficients, means, variances))
    if x.ndim != 2 or x.shape != v.shape:
        raise ValueError(
            f"means and variances must have shape (locations, cases), found {x.shape} and {v.shape}"
        )
    r = _as_regressors(regressors, x.shape)
    size = r.shape[-1]
    if p.shape != (len(x), 4 + 2 * size):
        raise ValueError(
            f"coefficients must have shape (locations, 4 + 2K), here {(len(x), 4 + 2 * size)} for "
            f"K = {size} regressors, found {p.shape}; give the regressors of the fit"
        )
    _check_variances(v)
    missing = ~(np.isfinite(x) & np.isfinite(v) & np.isfinite(r).all(axis=-1))
    a, b, c, d = p[:, :4].T[..., np.newaxis]
    g, h = p[:, np.newaxis, 4 : 4 + size], p[:, np.newaxis, 4 + size :]
    r = np.where(missing[..., np.newaxis], np.nan, r)
    x, v = np.where(missing, np.nan, x), np.where(missing, np.nan, v)
    factor = np.exp(np.clip(np.sum(h * r, axis=-1), -LARGEST_EXPONENT, LARGEST_EXPONENT))
    return a + b * x + np.sum(g * r, axis=-1), np.hypot(c, d * np.sqrt(v)) * factor


def _check_variances(variances: FloatArray) -> None:
    if np.any(variances < 0):
        raise ValueError(
            f"variances must not be negative, found {np.nanmin(variances):g}; give the ensemble's "
            "variance, such as ensemble.var(axis=-1, ddof=1)"
        )


def _as_regressors(regressors: npt.ArrayLike | None, shape: tuple[int, ...]) -> FloatArray:
    """Check regressors and copy them to float64 (L, n, K), or (1, n, K) if locations share them."""
    if regressors is None:
        return np.empty((1, shape[1], 0))
    r = np.array(regressors, np.float64, order="C")
    if r.ndim not in (2, 3) or r.shape[:-1] not in (shape, shape[1:]):
        raise ValueError(
            f"regressors must have shape {(*shape, 'K')} or {(*shape[1:], 'K')}, found {r.shape}; "
            "give a single regressor as regressor[..., np.newaxis]"
        )
    return r if r.ndim == 3 else r[np.newaxis]


def _as_bounds(
    lower: npt.ArrayLike | None, upper: npt.ArrayLike | None, size: int
) -> tuple[FloatArray, FloatArray]:
    """Check bounds and copy them to float64 (L,)."""
    bounds = []
    for name, values, default in (("lower", lower, -np.inf), ("upper", upper, np.inf)):
        bound = np.array(default if values is None else values, np.float64)
        if bound.shape not in ((), (size,)):
            raise ValueError(f"{name} must be a number or have shape {(size,)}, not {bound.shape}")
        bounds.append(np.broadcast_to(bound, size).copy())
    below, above = bounds
    if not np.all((below <= above) & (below < np.inf) & (above > -np.inf)):
        raise ValueError("lower must not exceed upper, nor be NaN; for no bound give -inf and inf")
    return below, above
