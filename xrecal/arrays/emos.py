"""EMOS, the Gaussian baseline: nonhomogeneous regression on the ensemble's mean and variance.

The forecast is N(a + b x, c² + d² v) for an ensemble of mean x and variance v; a, b, c and d
minimise the mean CRPS over the calibration cases (Gneiting et al. 2005, doi:10.1175/MWR2904.1).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from xrecal.typing import FloatArray, IntArray

SQRT_PI = math.sqrt(math.pi)
SQRT_2 = math.sqrt(2.0)
SQRT_2_PI = math.sqrt(2.0 * math.pi)
CONSTANT = 1e-12  # deviations below this fraction of the largest value are rounding of a constant
SMALLEST = 1e-10  # scale that keeps 1/scale finite, in units of the residuals of least squares
MAX_STEPS = 200
STATIONARY = 1e-9  # gradient of the mean CRPS per unit of standardised parameters
CONVERGED = 1e-5


@njit(nogil=True)
def mean_crps(parameters, x, v, y, gradient, hessian):  # type: ignore[no-untyped-def]
    """Mean CRPS of N(a + b x, c² + d² v) over cases (n,), with derivatives by (a, b, c, d).

    `gradient` (4,) and `hessian` (4, 4) are overwritten. The CRPS is convex in location and scale:
    its Hessian there is 2 phi(z) / scale times the outer product of (1, z) with itself.
    """
    a, b, c, d = parameters
    total = 0.0
    gradient.fill(0.0)
    hessian.fill(0.0)
    slope = np.empty(4)  # of location + z scale by the parameters, z held fixed
    for i in range(x.size):
        scale = math.sqrt(c * c + d * d * v[i] + SMALLEST * SMALLEST)
        z = (y[i] - a - b * x[i]) / scale
        odds = math.erf(z / SQRT_2)  # 2 Phi(z) - 1
        density = math.exp(-0.5 * z * z) / SQRT_2_PI
        total += scale * (z * odds + 2.0 * density - 1.0 / SQRT_PI)
        by_scale = 2.0 * density - 1.0 / SQRT_PI
        u_c, u_d = c / scale, d * v[i] / scale
        gradient[0] -= odds
        gradient[1] -= odds * x[i]
        gradient[2] += by_scale * u_c
        gradient[3] += by_scale * u_d
        slope[0], slope[1], slope[2], slope[3] = 1.0, x[i], z * u_c, z * u_d
        for j in range(4):
            for k in range(4):
                hessian[j, k] += 2.0 * density / scale * slope[j] * slope[k]
        hessian[2, 2] += by_scale * (1.0 - u_c * u_c) / scale
        hessian[3, 3] += by_scale * (v[i] - u_d * u_d) / scale
        hessian[2, 3] -= by_scale * u_c * u_d / scale
        hessian[3, 2] -= by_scale * u_c * u_d / scale
    for j in range(4):
        gradient[j] /= x.size
        for k in range(4):
            hessian[j, k] /= x.size
    return total / x.size


@njit(nogil=True)
def _newton_step(hessian, gradient, damping, step):  # type: ignore[no-untyped-def]
    """Solve (H + damping I) step = -gradient by Cholesky; False unless positive definite."""
    factor = np.zeros((4, 4))
    for j in range(4):
        for i in range(j, 4):
            value = hessian[i, j] + (damping if i == j else 0.0)
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = value / factor[j, j]
            elif value > 1e-14 * abs(hessian[j, j]):
                factor[j, j] = math.sqrt(value)
            else:
                return False
    for i in range(4):
        step[i] = -gradient[i]
        for k in range(i):
            step[i] -= factor[i, k] * step[k]
        step[i] /= factor[i, i]
    for i in range(3, -1, -1):
        for k in range(i + 1, 4):
            step[i] -= factor[k, i] * step[k]
        step[i] /= factor[i, i]
    return True


@njit(nogil=True)
def minimise_crps(parameters, x, v, y):  # type: ignore[no-untyped-def]
    """Minimise `mean_crps` from `parameters` (4,), overwritten, by damped Newton steps.

    Returns the CRPS and whether its gradient vanished. The damping grows until a step lowers the
    CRPS by part of what its slope promises, and shrinks after each success. Loops, not array
    expressions: these take seconds to compile.
    """
    step, trial = np.zeros(4), parameters.copy()
    gradient, hessian = np.empty(4), np.empty((4, 4))
    trial_gradient, trial_hessian = np.empty(4), np.empty((4, 4))
    crps, promised, damping, steepest = np.inf, 0.0, 1e-3, np.inf
    for _ in range(MAX_STEPS):
        trial_crps = mean_crps(trial, x, v, y, trial_gradient, trial_hessian)
        if trial_crps <= crps - promised:
            crps, damping, steepest = trial_crps, max(0.1 * damping, 1e-12), 0.0
            gradient, trial_gradient = trial_gradient, gradient
            hessian, trial_hessian = trial_hessian, hessian
            for k in range(4):
                parameters[k] = trial[k]
                steepest = max(steepest, abs(gradient[k]))
        else:
            damping *= 4.0
        if steepest <= STATIONARY:
            break
        while damping < 1e15 and not _newton_step(hessian, gradient, damping, step):
            damping *= 4.0
        promised = 0.0
        for k in range(4):
            trial[k] = parameters[k] + step[k]
            promised -= 1e-4 * gradient[k] * step[k]
        if damping >= 1e15:
            break
    return crps, steepest <= CONVERGED


@njit(nogil=True)
def _standardise(values):  # type: ignore[no-untyped-def]
    """Mean and standard deviation; the latter is 0 for values that differ by rounding only."""
    mean, square, largest = 0.0, 0.0, 0.0
    for value in values:
        mean += value / values.size
        largest = max(largest, abs(value))
    for value in values:
        square += (value - mean) ** 2 / values.size
    return mean, math.sqrt(square) if square > (CONSTANT * largest) ** 2 else 0.0


@njit(nogil=True)
def _fit_location(x, v, y, coefficients):  # type: ignore[no-untyped-def]
    """Fit one location from complete cases (n,), overwritten: least squares, then minimum CRPS."""
    x_mean, x_std = _standardise(x)
    y_mean, y_std = _standardise(y)
    v_mean, v_std = _standardise(v)
    slope, square = 0.0, 0.0
    for i in range(x.size):
        x[i] = (x[i] - x_mean) / x_std if x_std > 0.0 else 0.0
        # A constant spread tells c and d apart no more than none does: leave it all to c.
        v[i] = v[i] / v_mean if v_std > 0.0 else 0.0
        slope += x[i] * (y[i] - y_mean) / x.size if y_std > 0.0 else 0.0
    for i in range(x.size):
        y[i] -= y_mean + slope * x[i]
        square += y[i] * y[i] / x.size
    unit = math.sqrt(square)  # of what the line leaves, which makes all parameters about 1
    parameters, trial = np.zeros(4), np.empty(4)
    converged, smallest = True, np.inf
    if unit > CONSTANT * (abs(y_mean) + y_std):
        for i in range(y.size):
            y[i] /= unit
        for c, d in ((0.5, 0.1), (0.1, 0.5)):  # rarely, each start ends in its own minimum
            trial[:] = 0.0
            trial[2], trial[3] = c, d
            crps, at_minimum = minimise_crps(trial, x, v, y)
            if crps < smallest:
                smallest, converged = crps, at_minimum
                parameters, trial = trial, parameters
    coefficients[1] = (slope + unit * parameters[1]) / x_std if x_std > 0.0 else 0.0
    coefficients[0] = y_mean + unit * parameters[0] - coefficients[1] * x_mean
    coefficients[2] = unit * abs(parameters[2])
    coefficients[3] = unit * abs(parameters[3]) / math.sqrt(v_mean) if v_std > 0.0 else 0.0
    return converged


@njit(nogil=True)
def fill_emos(means, variances, observations, min_samples, coefficients, n_cases, converged):  # type: ignore[no-untyped-def]
    """Fit every location of (L, n) into the last three arrays (L, 4), (L,), (L,). Compiled."""
    x, v, y = np.empty(means.shape[1]), np.empty(means.shape[1]), np.empty(means.shape[1])
    for i in range(means.shape[0]):
        n = 0
        for j in range(means.shape[1]):
            if math.isfinite(means[i, j] + variances[i, j] + observations[i, j]):
                x[n], v[n], y[n] = means[i, j], variances[i, j], observations[i, j]
                n += 1
        n_cases[i] = n
        converged[i] = n >= min_samples
        coefficients[i].fill(np.nan)
        if converged[i]:
            converged[i] = _fit_location(x[:n], v[:n], y[:n], coefficients[i])


def fit_emos(
    means: npt.ArrayLike,
    variances: npt.ArrayLike,
    observations: npt.ArrayLike,
    min_samples: int = 20,
) -> tuple[FloatArray, IntArray, npt.NDArray[np.bool_]]:
    """Fit EMOS at each location by minimum CRPS.

    Parameters
    ----------
    means, observations : array_like, shape (L, n)
        Ensemble means and observations, in the unit of the variable.
    variances : array_like, shape (L, n)
        Ensemble variances (>= 0), in its square.
    min_samples : int
        Locations with fewer complete cases get NaN coefficients.

    Returns
    -------
    coefficients : ndarray of float64, shape (L, 4)
        a (unit of the variable), b (1), c >= 0 (unit of the variable) and d >= 0 (1) of
        N(a + b mean, c² + d² variance).
    n_cases : ndarray of int32, shape (L,)
        Complete cases: a NaN or infinite value in any of the three drops the case.
    converged : ndarray of bool, shape (L,)
        Whether the search ended where the gradient vanishes.

    Raises
    ------
    ValueError
        For arrays not 2-D or of different shapes, a negative variance, or min_samples below 1.

    Notes
    -----
    O(n) a step, 10 to 20 steps from each of two starts. What the cases do not identify is 0: b
    where the ensemble mean is constant, d where the variance is, c and d where a line fits exactly.

    References
    ----------
    Gneiting et al. (2005), doi:10.1175/MWR2904.1.
    """
    x, v, y = (np.array(a, np.float64, order="C") for a in (means, variances, observations))
    if x.ndim != 2 or x.shape != v.shape or x.shape != y.shape:
        raise ValueError(
            "means, variances and observations must all have shape (locations, cases), found "
            f"{x.shape}, {v.shape} and {y.shape}; one location is means[np.newaxis]"
        )
    _check_variances(v)
    if min_samples < 1:
        raise ValueError(f"min_samples must be 1 or more, found {min_samples}")
    coefficients = np.empty((len(x), 4))
    n_cases = np.empty(len(x), np.int32)
    converged = np.empty(len(x), np.bool_)
    fill_emos(x, v, y, int(min_samples), coefficients, n_cases, converged)
    return coefficients, n_cases, converged


def predict_emos(
    coefficients: npt.ArrayLike, means: npt.ArrayLike, variances: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Location and scale of the Gaussian forecasts for new ensembles.

    Parameters
    ----------
    coefficients : array_like, shape (L, 4)
        From `fit_emos`.
    means, variances : array_like, shape (L, T)
        Of the new ensembles, in the unit of the variable and its square.

    Returns
    -------
    loc, scale : ndarray of float64, shape (L, T)
        In the unit of the variable, scale >= 0; NaN where an input is NaN or infinite.

    Raises
    ------
    ValueError
        For shapes that do not match, or a negative variance.
    """
    p, x, v = (np.asarray(a, np.float64) for a in (coefficients, means, variances))
    if x.ndim != 2 or x.shape != v.shape or p.shape != (len(x), 4):
        raise ValueError(
            "coefficients must have shape (locations, 4), means and variances (locations, cases), "
            f"found {p.shape}, {x.shape} and {v.shape}"
        )
    _check_variances(v)
    missing = ~np.isfinite(x + v)
    x, v = np.where(missing, np.nan, x), np.where(missing, np.nan, v)
    a, b, c, d = p.T[..., np.newaxis]
    return a + b * x, np.sqrt(c**2 + d**2 * v)


def _check_variances(variances: FloatArray) -> None:
    if np.any(variances < 0):
        raise ValueError(
            f"variances must not be negative, found {np.nanmin(variances):g}; give the ensemble's "
            "variance, such as ensemble.var(axis=-1, ddof=1)"
        )
