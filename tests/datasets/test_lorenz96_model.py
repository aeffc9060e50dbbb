import numpy as np
import pytest
from scipy.integrate import solve_ivp

from xrecal.datasets import lorenz96_model as lorenz96
from xrecal.datasets.lorenz96_model import WILKS_2005, TwoScale

K, J = 6, 4
COEFFICIENTS = np.array([0.3, 1.4, -0.01, -0.007, 0.0003])


def two_scale_reference(state, n_slow, forcing, h, b, c):
    """dX/dt and dY/dt as written in Wilks (2005), with np.roll for the rings."""
    X, Y = state[:n_slow], state[n_slow:]
    n_fast = Y.size // n_slow
    coupling = h * c / b
    sums = np.array([Y[k * n_fast : (k + 1) * n_fast].sum() for k in range(n_slow)])
    dX = -np.roll(X, 1) * (np.roll(X, 2) - np.roll(X, -1)) - X + forcing - coupling * sums
    dY = -c * b * np.roll(Y, -1) * (np.roll(Y, -2) - np.roll(Y, 1)) - c * Y
    dY += coupling * np.repeat(X, n_fast)
    return np.concatenate([dX, dY])


def one_scale_reference(X, coefficients, forcing):
    subgrid = np.polynomial.Polynomial(coefficients)(X)
    return -np.roll(X, 1) * (np.roll(X, 2) - np.roll(X, -1)) - X + forcing - subgrid


def tendency(function, state, *arguments):
    state.flags.writeable = False
    out = np.full_like(state, np.nan)
    function(state, arguments, out)
    return out


@pytest.fixture
def slow(rng):
    return rng.normal(4.0, 5.0, K)


@pytest.fixture
def fast(rng):
    return rng.normal(0.0, 0.3, K * J)


@pytest.mark.parametrize("n_slow", [4, 5, 8])
@pytest.mark.parametrize("n_fast", [1, 3, 32])
def test_two_scale_tendency_equals_formula(rng, n_slow, n_fast):
    state = rng.normal(0.0, 3.0, n_slow * (1 + n_fast))
    parameters = TwoScale(18.0, 0.7, 9.0, 4.0)
    np.testing.assert_allclose(
        tendency(lorenz96.two_scale_tendency, state, n_slow, parameters),
        two_scale_reference(state, n_slow, *parameters),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("n_slow", [4, 5, 8])
def test_one_scale_tendency_equals_formula(rng, n_slow):
    state = rng.normal(4.0, 5.0, n_slow)
    np.testing.assert_allclose(
        tendency(lorenz96.one_scale_tendency, state, COEFFICIENTS, 20.0, -np.inf, np.inf),
        one_scale_reference(state, COEFFICIENTS, 20.0),
        rtol=1e-12,
    )


def test_polynomial_is_constant_beyond_limits():
    state = np.array([-30.0, -5.0, 1.0, 30.0, 2.0])
    subgrid = np.polynomial.Polynomial(COEFFICIENTS)(np.clip(state, -4.0, 12.0))
    expected = one_scale_reference(state, [0.0], 20.0) - subgrid
    actual = tendency(lorenz96.one_scale_tendency, state, COEFFICIENTS, 20.0, -4.0, 12.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_two_scale_agrees_with_scipy(slow, fast):
    times = np.array([0.0, 0.02, 0.05])
    actual = lorenz96.integrate_two_scale(slow, fast, np.array([0, 40, 100]), step=0.0005)
    expected = solve_ivp(
        lambda _, state: two_scale_reference(state, K, *WILKS_2005),
        (0.0, times[-1]),
        np.concatenate([slow, fast]),
        method="DOP853",
        t_eval=times,
        rtol=1e-11,
        atol=1e-12,
    ).y.T
    np.testing.assert_allclose(np.hstack(actual), expected, atol=2e-8)


def test_one_scale_agrees_with_scipy(slow):
    actual = lorenz96.integrate_one_scale(
        slow, COEFFICIENTS, np.array([100, 500]), step=0.001, forcing=20.0
    )
    expected = solve_ivp(
        lambda _, state: one_scale_reference(state, COEFFICIENTS, 20.0),
        (0.0, 0.5),
        slow,
        method="DOP853",
        t_eval=[0.1, 0.5],
        rtol=1e-11,
        atol=1e-12,
    ).y.T
    np.testing.assert_allclose(actual, expected, atol=1e-7)


def test_trajectory_can_be_resumed_bit_for_bit(slow, fast):
    whole = lorenz96.integrate_two_scale(slow, fast, np.array([0, 10, 10, 25]), step=0.001)
    assert whole.slow.shape == (4, K)
    assert whole.fast.shape == (4, K * J)
    np.testing.assert_array_equal(whole.slow[0], slow)
    np.testing.assert_array_equal(whole.fast[1], whole.fast[2])
    rest = lorenz96.integrate_two_scale(whole.slow[1], whole.fast[1], np.array([15]), step=0.001)
    np.testing.assert_array_equal(rest.slow[0], whole.slow[3])


def test_batch_equals_single_states_and_leaves_input(rng):
    states = rng.normal(4.0, 5.0, (2, 3, K))
    states.flags.writeable = False
    steps = np.array([5, 20])
    batch = lorenz96.integrate_one_scale(states, COEFFICIENTS, steps, step=0.005)
    assert batch.shape == (2, 3, 2, K)
    single = lorenz96.integrate_one_scale(states[1, 2], COEFFICIENTS, steps, step=0.005)
    np.testing.assert_array_equal(batch[1, 2], single)


def test_subgrid_tendency_closes_the_slow_equation(slow, fast):
    state = np.concatenate([slow, fast])
    full = tendency(lorenz96.two_scale_tendency, state, K, WILKS_2005)[:K]
    resolved = one_scale_reference(slow, [0.0], WILKS_2005.forcing)
    np.testing.assert_allclose(
        lorenz96.subgrid_tendency(fast[np.newaxis], K)[0], resolved - full, atol=1e-12
    )


@pytest.mark.parametrize("degree", [0, 3, 4])
def test_polynomial_fit_equals_numpy(rng, degree):
    X = rng.normal(4.0, 5.0, (50, K))
    U = np.polynomial.Polynomial(COEFFICIENTS)(X) + rng.normal(size=X.shape)
    np.testing.assert_allclose(
        lorenz96.fit_subgrid_polynomial(X, U, degree=degree),
        np.polyfit(X.ravel(), U.ravel(), degree)[::-1],
        rtol=1e-8,
    )


def test_fit_errors():
    with pytest.raises(ValueError, match=r"slow has shape \(3,\) but subgrid \(2,\); give equal"):
        lorenz96.fit_subgrid_polynomial(np.arange(3.0), np.arange(2.0), degree=1)
    with pytest.raises(ValueError, match="degree is 2 and slow has 2 different values"):
        lorenz96.fit_subgrid_polynomial(np.array([1.0, 2.0, 2.0]), np.zeros(3), degree=2)
    with pytest.raises(ValueError, match=r"degree is -1 .* give a degree of at least 0"):
        lorenz96.fit_subgrid_polynomial(np.arange(3.0), np.zeros(3), degree=-1)


@pytest.mark.parametrize("steps", [[0.5], [3, 2], [-1, 2], [[1, 2]]])
def test_steps_error(slow, steps):
    with pytest.raises(ValueError, match="give whole numbers in ascending order from 0"):
        lorenz96.integrate_one_scale(slow, COEFFICIENTS, np.array(steps), step=0.01)


@pytest.mark.parametrize("step", [0.0, -0.1, np.nan])
def test_step_error(slow, step):
    with pytest.raises(ValueError, match=r"step is .*; give a length in time units greater than 0"):
        lorenz96.integrate_one_scale(slow, COEFFICIENTS, np.array([1]), step=step)


def test_ring_errors(slow, fast):
    with pytest.raises(ValueError, match=r"slow has 3 variables; .* needs at least 4"):
        lorenz96.integrate_one_scale(slow[:3], COEFFICIENTS, np.array([1]), step=0.01)
    with pytest.raises(ValueError, match=r"slow has 3 variables; .* needs at least 4"):
        lorenz96.integrate_two_scale(slow[:3], fast, np.array([1]), step=0.001)
    for wrong in (fast[1:], fast[:0], fast.reshape(K, J)):
        with pytest.raises(ValueError, match=r"slow has shape \(6,\) and fast .*give \(K,\) and"):
            lorenz96.integrate_two_scale(slow, wrong, np.array([1]), step=0.001)


@np.errstate(all="ignore")
def test_too_long_a_step_is_an_error(slow, fast):
    with pytest.raises(ValueError, match=r"step=0\.2 diverged; give a shorter step"):
        lorenz96.integrate_two_scale(slow, fast, np.array([200]), step=0.2)
