"""Compiled regression that minimises the CRPS, for the model in `emos`.

The order of the parameters is a, b, c, d, g_1..g_K, h_1..h_K for K regressors; `emos` defines them.
A simpler model has only the first 4 parameters, or only the first 4 + K. The code uses loops,
because array expressions would take seconds to compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xrecal.arrays.compiled import Matrix, OutMatrix, OutVector, Vector, inner, kernel
from xrecal.arrays.distributions.normal import SQRT_2, SQRT_2_PI
from xrecal.typing import FloatArray, IntArray

SQRT_PI = math.sqrt(math.pi)
CONSTANT = 1e-12  # deviations below this share of the largest value are rounding errors
SMALLEST = 1e-10  # least scale, in units of the residuals of least squares
FAR = 38.0  # standard deviations from a bound beyond which the normal density is 0
MAX_STEPS = 200
STATIONARY = 1e-9  # gradient of the mean CRPS per unit of standardised parameters
CONVERGED = 1e-5
CASES_PER_PARAMETER = 2  # with fewer cases, the fit leaves out regressors
LARGEST_EXPONENT = 300.0  # limit of the exponent of the spread's factor, against overflow
RIDGE = 1.0
"""Weight of the ridge (sum g² + sum h²) / n; the mean CRPS of n cases has the weight 1. The
regressors have the coefficients g in the mean and h in the spread. In the ridge, regressors and
residuals are scaled to standard deviation 1, and g is the difference from the least-squares
coefficients. In records of 20 to 60 cases, some cases may lie exactly on a line, or at a bound.
Without the ridge, g and h would then grow without limit. The second derivative of the mean CRPS by
h is 0.28. So the ridge reduces h by 20 % with n = 30, and by 0.7 % with n = 1000; the sampling
error of h is then 0.025.
"""


@inner
def _bounded_crps(w, alpha, omega):  # type: ignore[no-untyped-def]
    """Return the CRPS of N(mu, sigma²), censored to bounds, and derivatives by mu and sigma.

    The arguments are (y - mu) / sigma for the observation y, and the bounds alpha and omega on the
    same scale. The function returns CRPS / sigma and the derivatives of the CRPS by mu and by
    sigma. It also returns three second derivatives, each multiplied by sigma: by mu twice, by mu
    and sigma, and by sigma twice.
    """
    odds = math.erf(w / SQRT_2)  # 2 Phi(w) - 1
    density = 2.0 * math.exp(-0.5 * w * w) / SQRT_2_PI
    crps = w * odds + density - 1.0 / SQRT_PI
    by_loc, by_scale = -odds, density - 1.0 / SQRT_PI
    loc_loc, loc_scale, scale_scale = density, w * density, w * w * density
    for side in (1.0, -1.0):  # subtract the part of the integral beyond each bound
        z = alpha if side > 0.0 else -omega
        if z > -FAR:
            below = 0.5 * math.erfc(-z / SQRT_2)
            twice = 2.0 * below * math.exp(-0.5 * z * z) / SQRT_2_PI
            missing = twice - 0.5 * math.erfc(-z) / SQRT_PI
            crps -= z * below * below + missing
            by_loc += side * below * below
            by_scale -= missing
            loc_loc -= twice
            loc_scale -= side * z * twice
            scale_scale -= z * z * twice
    return crps, by_loc, by_scale, loc_loc, loc_scale, scale_scale


@kernel
def mean_crps(
    parameters: Vector, cases: Matrix, ridge: Vector, gradient: OutVector, hessian: OutMatrix
) -> Any:
    """Return the sum of mean CRPS and ridge for cases (n, 5 + K), and compute its derivatives.

    The columns of the cases are: observation y, variance v, distance of y above the lower bound,
    distance of y below the upper bound, ensemble mean x, and regressors r_1..r_K. `ridge` (K,) is
    an additional ridge for g and h of each regressor. The function overwrites `gradient` (p,) and
    `hessian` (p, p) with derivatives by the first p parameters. p is 4, 4 + K or 4 + 2K; all
    further parameters must be 0.
    """
    n, size, last = cases.shape[0], gradient.size, cases.shape[1] - 1  # h starts at `last`
    total, of_loc, of_scale = 0.0, np.zeros(size), np.zeros(size)  # their slopes by parameters
    gradient.fill(0.0)
    hessian.fill(0.0)
    for i in range(n):
        v, exponent = cases[i, 1], 0.0
        residual = cases[i, 0] - parameters[0] - parameters[1] * cases[i, 4]
        for k in range(4, last):
            residual -= parameters[k] * cases[i, k + 1]
            exponent += parameters[k + last - 4] * cases[i, k + 1]
        factor = math.exp(2.0 * exponent)
        c, d_v = parameters[2] * factor, parameters[3] * v * factor
        variance = c * parameters[2] + d_v * parameters[3]
        scale = math.sqrt(variance + SMALLEST * SMALLEST)
        w = residual / scale
        crps, by_loc, by_scale, loc_loc, loc_scale, scale_scale = _bounded_crps(
            w, w - cases[i, 2] / scale, w + cases[i, 3] / scale
        )
        total += scale * crps
        of_loc[0], of_loc[1], of_scale[2], of_scale[3] = 1.0, cases[i, 4], c / scale, d_v / scale
        for k in range(4, min(size, last)):
            of_loc[k] = cases[i, k + 1]
        for k in range(last, size):
            of_scale[k] = cases[i, k - last + 5] * variance / scale
        scale_scale -= by_scale  # with the halves of the second derivatives of scale² below
        for j in range(size):
            gradient[j] += of_loc[j] * by_loc + of_scale[j] * by_scale
            with_loc = (of_loc[j] * loc_loc + of_scale[j] * loc_scale) / scale
            with_scale = (of_loc[j] * loc_scale + of_scale[j] * scale_scale) / scale
            for k in range(j + 1):
                hessian[j, k] += of_loc[k] * with_loc + of_scale[k] * with_scale
        hessian[2, 2] += by_scale / scale * factor
        hessian[3, 3] += by_scale / scale * factor * v
        for j in range(last, size):
            by_h = 2.0 * by_scale / scale * cases[i, j - last + 5]
            hessian[j, 2] += by_h * c
            hessian[j, 3] += by_h * d_v
            for k in range(last, j + 1):
                hessian[j, k] += by_h * variance * cases[i, k - last + 5]
    for j in range(size):
        if j >= 4:
            weight = RIDGE + ridge[(j - 4) % ridge.size]
            total += weight * parameters[j] * parameters[j]
            gradient[j] += 2.0 * weight * parameters[j]
            hessian[j, j] += 2.0 * weight
        gradient[j] /= n
        for k in range(j + 1):
            hessian[j, k] /= n
            hessian[k, j] = hessian[j, k]
    return total / n


@inner
def _newton_step(hessian, gradient, damping, step):  # type: ignore[no-untyped-def]
    """Solve (H + damping I) step = -gradient for the step, where H is the Hessian.

    The function returns False if H + damping I is not positive definite.
    """
    size = gradient.size
    rows = np.empty((size, size + 1))
    for i in range(size):
        rows[i, size] = -gradient[i]
        for k in range(size):
            rows[i, k] = hessian[i, k] + (damping if i == k else 0.0)
    for j in range(size):
        if not rows[j, j] > 1e-14 * abs(hessian[j, j]):
            return False
        for i in range(j + 1, size):
            ratio = rows[i, j] / rows[j, j]
            for k in range(j, size + 1):
                rows[i, k] -= ratio * rows[j, k]
    for i in range(size - 1, -1, -1):
        step[i] = rows[i, size]
        for k in range(i + 1, size):
            step[i] -= rows[i, k] * step[k]
        step[i] /= rows[i, i]
    return True


@inner
def _minimise_crps(parameters, size, cases, ridge):  # type: ignore[no-untyped-def]
    """Minimise `mean_crps` over the first `size` parameters by damped Newton steps.

    The function overwrites the parameters. It returns the minimum, and True if the gradient at the
    minimum is nearly 0. The damping grows until a step lowers the CRPS by at least a small part of
    the reduction that the slope predicts. The damping is necessary because with bounds the CRPS is
    not convex, even in mu and sigma.
    """
    step, trial = np.zeros(size), parameters.copy()
    gradient, hessian = np.empty(size), np.empty((size, size))
    trial_gradient, trial_hessian = np.empty(size), np.empty((size, size))
    crps, promised, damping, steepest = np.inf, 0.0, 1e-3, np.inf
    for _ in range(MAX_STEPS):
        trial_crps = mean_crps(trial, cases, ridge, trial_gradient, trial_hessian)
        if trial_crps <= crps - promised:
            crps, damping, steepest = trial_crps, max(0.1 * damping, 1e-12), 0.0
            gradient, trial_gradient = trial_gradient, gradient
            hessian, trial_hessian = trial_hessian, hessian
            for k in range(size):
                parameters[k] = trial[k]
                steepest = max(steepest, abs(gradient[k]))
        else:
            damping *= 4.0
        if steepest <= STATIONARY:
            break
        while damping < 1e15 and not _newton_step(hessian, gradient, damping, step):
            damping *= 4.0
        promised = 0.0
        for k in range(size):
            trial[k] = parameters[k] + step[k]
            promised -= 1e-4 * gradient[k] * step[k]
        if damping >= 1e15:
            break
    return crps, steepest <= CONVERGED


@inner
def _moments(values):  # type: ignore[no-untyped-def]
    """Return mean and standard deviation; the deviation is 0 if values differ only by rounding."""
    mean, square, largest = 0.0, 0.0, 0.0
    for value in values:
        mean += value / values.size
        largest = max(largest, abs(value))
    for value in values:
        square += (value - mean) ** 2 / values.size
    return mean, math.sqrt(square) if square > (CONSTANT * largest) ** 2 else 0.0


@inner
def _subtract_line(cases, line, y_std):  # type: ignore[no-untyped-def]
    """Subtract a least-squares line from y; return the root mean square (RMS) of the residuals.

    The mean of y must be 0. The line depends on the first m of the variables x, r_1..r_K; the
    function writes the slopes to `line` (m,). The caller divides y by the RMS, so that all
    parameters of the model are about 1. The function fits one slope after another, again and again
    until no slope changes. This also works if two variables are equal. If the function stops too
    early, the later search for the minimum CRPS corrects the slopes.
    """
    line.fill(0.0)
    n, square = cases.shape[0], 0.0
    for _ in range(MAX_STEPS):
        largest = 0.0
        for k in range(line.size):
            step = 0.0
            for i in range(n):
                step += cases[i, 0] * cases[i, 4 + k] / n
            for i in range(n):
                cases[i, 0] -= step * cases[i, 4 + k]
            line[k] += step
            largest = max(largest, abs(step))
        if largest <= CONSTANT * y_std:
            break
    for i in range(n):
        square += cases[i, 0] * cases[i, 0] / n
    return math.sqrt(square)


@inner
def _standardise(x, v, r, v_mean):  # type: ignore[no-untyped-def]
    """Return cases (n, 5 + K) for `mean_crps`, and means and standard deviations of x and r.

    The cases contain v divided by its mean, and standardised x and r; the caller adds y and its
    distances from the bounds. Means and deviations have shape (1 + K,).
    """
    cases, column = np.zeros((x.size, 5 + r.shape[1])), np.empty(x.size)
    mean, std = np.empty(1 + r.shape[1]), np.empty(1 + r.shape[1])
    for k in range(mean.size):
        for i in range(x.size):
            column[i] = x[i] if k == 0 else r[i, k - 1]
        mean[k], std[k] = _moments(column)
        for i in range(x.size):
            cases[i, 1] = v[i] / v_mean if v_mean > 0.0 else 0.0
            cases[i, 4 + k] = (column[i] - mean[k]) / std[k] if std[k] > 0.0 else 0.0
    return cases, mean, std


@kernel
def fit_location(
    x: Vector,
    v: Vector,
    y: Vector,
    r: Matrix,
    ridge: Vector,
    lower: float,
    upper: float,
    in_spread: bool,
    coefficients: OutVector,
) -> bool:
    """Fit the model to complete cases x, v, y (n,) and r (n, K) of one location.

    Arrays are float64 and C-contiguous, with v >= 0 and without NaN; the function does not change
    them. The fit moves observations beyond a bound to the bound. If `in_spread` is False, all h are
    0. `ridge` (K,) is an additional ridge for each regressor; regressors with a positive ridge must
    come last. The function writes `coefficients` (4 + 2K,), and returns True if the search
    converged.
    """
    v_mean, v_std = _moments(v)
    # With one scale for all cases and without bounds, the CRPS is convex, so one start is enough.
    is_convex = v_std == 0.0 and lower == -np.inf and upper == np.inf
    # If the ensemble spread is constant, the cases cannot separate c from d, so d is 0.
    cases, mean, std = _standardise(x, v, r, v_mean if v_std > 0.0 else 0.0)
    bounded, parameters, trial = np.empty(y.size), coefficients.copy(), coefficients.copy()
    for i in range(y.size):
        bounded[i] = min(max(y[i], lower), upper)
    y_mean, y_std = _moments(bounded)
    n_free = (ridge == 0.0).sum()  # regressors without a ridge of their own
    size = coefficients.size if in_spread else 4 + r.shape[1]
    size = size if y.size >= CASES_PER_PARAMETER * (4 + (1 + in_spread) * n_free) else 4
    while True:
        for i in range(y.size):
            cases[i, 0] = bounded[i] - y_mean if y_std > 0.0 else 0.0
        line = np.zeros(std.size)
        unit = _subtract_line(cases, line[: 1 if size == 4 else 1 + n_free], y_std)
        converged, smallest = True, np.inf
        parameters.fill(0.0)
        if unit > CONSTANT * (abs(y_mean) + y_std):
            for i in range(y.size):
                cases[i, 0] /= unit
                cases[i, 2], cases[i, 3] = (bounded[i] - lower) / unit, (upper - bounded[i]) / unit
            for start in range(2):  # in rare cases, the two searches find different minima
                trial.fill(0.0)
                trial[2 + start], trial[3 - start] = 0.5, 0.1
                crps, at_minimum = _minimise_crps(trial, size, cases, ridge)
                if crps < smallest:
                    smallest, converged = crps, at_minimum
                    parameters, trial = trial, parameters
                if at_minimum and is_convex and size <= 3 + std.size:
                    break
        exponent = _in_units(parameters, line, mean, std, unit, coefficients)
        if abs(exponent) <= LARGEST_EXPONENT or size < coefficients.size:
            break
        size = 3 + std.size  # no h for nearly constant regressors: it would overflow
    coefficients[0] += y_mean
    coefficients[2] *= math.exp(exponent)
    coefficients[3] *= math.exp(exponent) / math.sqrt(v_mean) if v_std > 0.0 else 0.0
    return converged


def fit_varying(
    x: FloatArray,
    v: FloatArray,
    y: FloatArray,
    r: FloatArray,
    lower: float,
    upper: float,
    in_spread: bool,
    coefficients: FloatArray,
    ridge: FloatArray | None = None,
) -> bool:
    """Call :func:`fit_location` with the columns of regressors r (n, K) that are not constant.

    Constant regressors get the coefficient 0. They do not count when the fit compares the number of
    cases with the number of coefficients. ``ridge`` (K,) shrinks the coefficients of each regressor
    in mu and sigma.
    """
    ridge = np.zeros(r.shape[1]) if ridge is None else ridge
    varies = (r != r[:1]).any(0).nonzero()[0]
    varies = varies[np.argsort(ridge[varies] > 0, kind="stable")]
    some, own = np.ascontiguousarray(r[:, varies]), np.zeros(4 + 2 * varies.size)
    converged = fit_location(x, v, y, some, ridge[varies], lower, upper, in_spread, own)
    place_coefficients(own, varies, coefficients)
    return bool(converged)


def place_coefficients(own: FloatArray, columns: IntArray, coefficients: FloatArray) -> None:
    """Write coefficients (4 + 2K,) of all K regressors, from a fit that used some of them.

    ``columns`` are the positions of the regressors that the fit used; all other regressors get 0.
    """
    k = coefficients.size // 2 - 2
    coefficients[:] = 0.0
    coefficients[:4] = own[:4]
    coefficients[4 + columns] = own[4 : 4 + columns.size]
    coefficients[4 + k + columns] = own[4 + columns.size :]


@inner
def _in_units(parameters, line, mean, std, unit, coefficients):  # type: ignore[no-untyped-def]
    """Convert parameters of the scaled data to coefficients in the unit of y.

    The function returns an exponent e; the caller must still multiply c and d by exp(e).
    """
    coefficients.fill(0.0)
    coefficients[0], exponent = unit * parameters[0], 0.0
    coefficients[2], coefficients[3] = unit * abs(parameters[2]), unit * abs(parameters[3])
    for k in range(line.size):
        g, h = 1 if k == 0 else 3 + k, 2 + std.size + k
        if std[k] > 0.0:
            coefficients[g] = (line[k] + unit * parameters[g]) / std[k]
            coefficients[0] -= coefficients[g] * mean[k]
        if std[k] > 0.0 and k > 0:
            coefficients[h] = parameters[h] / std[k]
            exponent -= coefficients[h] * mean[k]
    return exponent


@inner
def predict_case(coefficients, x, v, r):  # type: ignore[no-untyped-def]
    """Return mu and sigma for ensemble mean x, variance v and regressors r (K,)."""
    loc, exponent = coefficients[0] + coefficients[1] * x, 0.0
    for k in range(r.size):
        loc += coefficients[4 + k] * r[k]
        exponent += coefficients[4 + r.size + k] * r[k]
    exponent = min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    return loc, math.hypot(coefficients[2], coefficients[3] * math.sqrt(v)) * math.exp(exponent)
