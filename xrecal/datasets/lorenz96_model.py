"""Lorenz-96 systems: the two-scale truth and the one-scale model that forecasts it.

The truth [1]_ has slow variables X_k, k = 1..K, on a ring; J fast variables Y_j drive each slow
variable. The fast variables form a second ring. The forecast model [2]_ knows only X. The effect of
the fast variables on X_k is the subgrid tendency. The model replaces it by a polynomial in X_k,
fitted to a part of the truth. So forecasts from perfect initial states have errors, too. Variables
are dimensionless; one time unit corresponds to five days of the atmosphere.

References
----------
.. [1] Lorenz, E. N. (1996): Predictability: a problem partly solved. Proceedings of the Seminar on
   Predictability, ECMWF, Reading, volume 1, 1-18.
.. [2] Wilks, D. S. (2005): Effects of stochastic parametrizations in the Lorenz '96 system.
   Quarterly Journal of the Royal Meteorological Society 131, 389-407. doi:10.1256/qj.04.03
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xrecal.arrays.compiled import (
    Indices,
    Matrix,
    OutCube,
    OutVector,
    Vector,
    copy,
    kernel,
)
from xrecal.typing import FloatArray, IntArray

_STAGES = ((2.0, 0.5), (2.0, 0.5), (1.0, 1.0))  # weight and offset of Runge-Kutta stages 2 to 4


class TwoScale(NamedTuple):
    """Parameters of the two-scale system, all dimensionless."""

    forcing: float
    """F, the constant forcing of the slow variables."""
    coupling: float
    """h, the strength with which the two scales drive each other."""
    amplitude_ratio: float
    """b, how many times smaller the fast variables are than the slow variables."""
    time_ratio: float
    """c, how many times faster the fast variables fluctuate than the slow variables."""


WILKS_2005 = TwoScale(forcing=20.0, coupling=1.0, amplitude_ratio=10.0, time_ratio=10.0)
"""Parameters of Wilks (2005) with the stronger forcing; that paper has K = 8 and J = 32."""


class Trajectory(NamedTuple):
    """States at n saved times: X in `slow`, shape (n, K), and Y in `fast`, shape (n, K J)."""

    slow: FloatArray
    fast: FloatArray


@kernel
def two_scale_tendency(state: Vector, arguments: tuple[int, TwoScale], out: OutVector) -> None:
    r"""Write into `out` the derivatives of a two-scale state: X, then Y, shape (K + K J,).

    `arguments` are K, at least 4, and the parameters F, h, b and c as floats [1]_, [2]_:

    .. math::

        \dot X_k &= -X_{k-1} (X_{k-2} - X_{k+1}) - X_k + F - \frac{hc}{b} \sum_{j \in k} Y_j \\
        \dot Y_j &= -c b\, Y_{j+1} (Y_{j+2} - Y_{j-1}) - c\, Y_j + \frac{hc}{b} X_{k(j)} ,

    where the J values ``Y[k * J : (k + 1) * J]`` belong to ``X[k]``.
    """
    n_slow, p = arguments
    slow, fast = state[:n_slow], state[n_slow:]
    slow_out, fast_out = out[:n_slow], out[n_slow:]
    n_fast = fast.size // n_slow
    factor = p.coupling * p.time_ratio / p.amplitude_ratio
    for k in range(-1, n_slow - 1):  # negative indices close the ring
        slow_out[k] = slow[k - 1] * (slow[k + 1] - slow[k - 2]) - slow[k] + p.forcing
    # The few that reach the end of the ring are separate: the others are computed side by side.
    for j in (-2, -1, 0):
        advection = p.amplitude_ratio * fast[j + 1] * (fast[j - 1] - fast[j + 2])
        fast_out[j] = p.time_ratio * (advection - fast[j])
    for i in range(fast.size - 3):
        advection = p.amplitude_ratio * fast[i + 2] * (fast[i] - fast[i + 3])
        fast_out[i + 1] = p.time_ratio * (advection - fast[i + 1])
    for j in range(n_fast):
        for k in range(n_slow):
            slow_out[k] -= factor * fast[k * n_fast + j]
    for k in range(n_slow):
        for j in range(n_fast):
            fast_out[k * n_fast + j] += factor * slow[k]


@kernel
def one_scale_tendency(
    state: Vector, arguments: tuple[Vector, float, float, float], out: OutVector
) -> None:
    r"""Write into `out` the derivative of a one-scale state X, shape (K,).

    `arguments` are the coefficients of the polynomial P, with the constant first; F; and the lowest
    and the highest X at which P is evaluated. K is at least 4. The equation is from [2]_, but has
    no stochastic term:

    .. math:: \dot X_k = -X_{k-1} (X_{k-2} - X_{k+1}) - X_k + F - P(X_k) .
    """
    coefficients, forcing, low, high = arguments
    for k in range(-1, state.size - 1):
        within, subgrid = min(max(state[k], low), high), 0.0
        for coefficient in coefficients[::-1]:
            subgrid = subgrid * within + coefficient
        advection = state[k - 1] * (state[k + 1] - state[k - 2])
        out[k] = advection - state[k] + forcing - subgrid


def integrate_two_scale(
    slow: FloatArray,
    fast: FloatArray,
    steps: IntArray,
    *,
    step: float,
    parameters: TwoScale = WILKS_2005,
) -> Trajectory:
    """Integrate the two-scale system by the classical fourth-order Runge-Kutta scheme.

    Parameters
    ----------
    slow : array, shape (K,)
        Initial X; K is at least 4.
    fast : array, shape (K J,)
        Initial Y, ordered as in `two_scale_tendency`.
    steps : array of int, shape (n,)
        Numbers of steps after which the state is saved: ascending, 0 or more.
    step : float
        Length of a step in time units, greater than 0.
    parameters : TwoScale
        Forcing, coupling and the two ratios.

    Returns
    -------
    Trajectory
        `slow`, shape (n, K), and `fast`, shape (n, K J).

    Raises
    ------
    ValueError
        If an argument does not have the shape or range above, or the integration diverges.

    Notes
    -----
    Cost O(steps[-1] K J). The default system is stable up to a step of about 0.01.
    """
    if slow.ndim != 1 or fast.ndim != 1 or not slow.size or not fast.size or fast.size % slow.size:
        raise ValueError(
            f"slow has shape {slow.shape} and fast {fast.shape}; give (K,) and (K * J,)"
        )
    arguments = (slow.size, TwoScale(*map(float, parameters)))
    start = np.concatenate([slow, fast], dtype=np.float64)
    saved = _integrate(_two_scale, arguments, start[np.newaxis], slow.size, steps, step)
    return Trajectory(saved[0, :, : slow.size], saved[0, :, slow.size :])


def integrate_one_scale(
    slow: FloatArray,
    coefficients: FloatArray,
    steps: IntArray,
    *,
    step: float,
    forcing: float = WILKS_2005.forcing,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> FloatArray:
    """Integrate the one-scale system from many initial states, by the Runge-Kutta scheme.

    Parameters
    ----------
    slow : array, shape (..., K)
        Initial X; K is at least 4.
    coefficients : array, shape (degree + 1,)
        Coefficients of the polynomial for the subgrid tendency; the constant comes first.
    steps : array of int, shape (n,)
        Numbers of steps after which the state is saved: ascending, 0 or more.
    step : float
        Length of a step in time units, greater than 0.
    forcing : float
        F, the constant forcing.
    limits : tuple of float
        Lowest and highest X in the stretch of truth that the polynomial is fitted to. Beyond a
        limit, the polynomial keeps its value at this limit. Otherwise its highest power could
        outgrow the damping, so that the model diverges.

    Returns
    -------
    array, shape (..., n, K)
        X at the saved times.

    Raises
    ------
    ValueError
        If an argument does not have the shape or range above, or the integration diverges.

    Notes
    -----
    Cost O(steps[-1] K degree) per initial state.
    """
    low, high = map(float, limits)
    arguments = (np.array(coefficients, dtype=np.float64), float(forcing), low, high)
    start = np.array(slow, dtype=np.float64, order="C").reshape(-1, slow.shape[-1])
    saved = _integrate(_one_scale, arguments, start, slow.shape[-1], steps, step)
    return saved.reshape(*slow.shape[:-1], *saved.shape[1:])


def subgrid_tendency(
    fast: FloatArray, n_slow: int, parameters: TwoScale = WILKS_2005
) -> FloatArray:
    """Return U = (h c / b) sum Y_j, by which the fast variables reduce each slow tendency.

    `fast` is Y, shape (..., K J), and `n_slow` is K. U has shape (..., K), and is per
    time unit: dX/dt = ... - U.
    """
    factor = parameters.coupling * parameters.time_ratio / parameters.amplitude_ratio
    total: FloatArray = fast.reshape(*fast.shape[:-1], n_slow, -1).sum(axis=-1)
    return factor * total


def fit_subgrid_polynomial(slow: FloatArray, subgrid: FloatArray, *, degree: int) -> FloatArray:
    """Fit, by least squares, the subgrid tendency as a polynomial of the slow variable, as in [2]_.

    Parameters
    ----------
    slow, subgrid : array, any shape
        X and U, at the same times and places, from a stretch of the truth.
    degree : int
        Degree of the polynomial, at least 0; 4 in [2]_.

    Returns
    -------
    array, shape (degree + 1,)
        Coefficients; the constant comes first.

    Raises
    ------
    ValueError
        If the shapes differ, or X has fewer than ``degree + 1`` different values.
    """
    if slow.shape != subgrid.shape:
        raise ValueError(
            f"slow has shape {slow.shape} but subgrid {subgrid.shape}; give equal shapes"
        )
    n_values = np.unique(slow).size
    if not 0 <= degree < n_values:
        raise ValueError(
            f"degree is {degree} and slow has {n_values} different values; "
            "give a degree of at least 0 and more values than the degree"
        )
    scale = np.abs(slow).max() or 1.0  # powers of X / scale stay in [-1, 1]: well conditioned
    powers = np.arange(degree + 1)
    design = (slow.reshape(-1, 1) / scale) ** powers
    coefficients: FloatArray = np.linalg.lstsq(design, subgrid.ravel(), rcond=None)[0]
    return coefficients / scale**powers


def _integrate(
    fill: Callable[..., None],
    arguments: tuple[Any, ...],
    start: FloatArray,
    n_slow: int,
    steps: IntArray,
    step: float,
) -> FloatArray:
    if n_slow < 4:
        raise ValueError(f"slow has {n_slow} variables; the Lorenz-96 ring needs at least 4")
    steps = np.asarray(steps)
    if steps.ndim != 1 or steps.dtype.kind != "i" or np.any(np.diff(steps, prepend=0) < 0):
        raise ValueError(f"steps is {steps}; give whole numbers in ascending order from 0")
    if not step > 0:
        raise ValueError(f"step is {step}; give a length in time units greater than 0")
    saved = np.empty((start.shape[0], steps.size, start.shape[1]))
    fill(arguments, start, steps.astype(np.int64), float(step), saved)
    if not np.isfinite(saved).all():
        raise ValueError(f"the integration with step={step} diverged; give a shorter step")
    return saved


def _trajectories_by(tendency: Any) -> Any:
    """Compile the function that integrates a system with this tendency from initial states."""
    arguments_of = tendency.__annotations__["arguments"]

    def fill_trajectories(
        arguments: Any, start: Matrix, steps: Indices, step: float, saved: OutCube
    ) -> None:
        """Compute states (cases, saved times, variables) from initial states (cases, variables)."""
        state, stage = np.empty(start.shape[1]), np.empty(start.shape[1])
        slope, total = np.empty_like(state), np.empty_like(state)
        for case in range(start.shape[0]):
            copy(start[case], state)
            done = 0
            for save in range(steps.size):
                for _ in range(steps[save] - done):
                    tendency(state, arguments, slope)
                    copy(slope, total)
                    for weight, offset in _STAGES:
                        for i in range(state.size):
                            stage[i] = state[i] + offset * step * slope[i]
                        tendency(stage, arguments, slope)
                        for i in range(state.size):
                            total[i] += weight * slope[i]
                    for i in range(state.size):
                        state[i] += step / 6.0 * total[i]
                done = steps[save]
                copy(state, saved[case, save])

    fill_trajectories.__annotations__["arguments"] = arguments_of
    return kernel(fill_trajectories)


_two_scale, _one_scale = _trajectories_by(two_scale_tendency), _trajectories_by(one_scale_tendency)
