"""GP-Beta: the link, the kernel of forecasts, and known miscalibration that it must undo."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from benchmarks.paper.forecasts import Forecasted, Forecasts
from benchmarks.paper.recalibration import PIT_LEVELS
from xrecal.arrays import crps

jax = pytest.importorskip("jax", reason="GP-Beta is fitted in JAX, of the extra 'paper'")
pytest.importorskip("optax", reason="GP-Beta is fitted with optax, of the extra 'paper'")

from benchmarks.paper import gp_beta  # noqa: E402

N, NEW = 600, 500
LEVELS = (np.arange(PIT_LEVELS) + 0.5) / PIT_LEVELS
PARAMETERS = [(0.0, 0.0, 0.0), (0.7, -0.4, 0.5), (-1.0, 0.3, -2.0)]


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def normals(rng, n):
    return Forecasts(rng.normal(size=(n, 1)), rng.uniform(0.5, 1.5, (n, 1)), np.ones((n, 1)))


def drawn(rng, laws, *parameters):
    """Targets whose distribution function is C(F)."""
    s = gp_beta.FARTHEST * np.linspace(-1, 1, 4001)
    t = np.asarray(gp_beta.link_log_odds(s, *parameters))
    return gp_beta.quantiles(laws, np.interp(rng.logistic(size=(len(laws.weights), 1)), t, s))[:, 0]


def kolmogorov_p(members, y, rng):
    """p-value of uniform PIT of quantiles at equally spaced levels."""
    below = (members < y[:, np.newaxis]).sum(axis=1)
    return stats.kstest((below + rng.uniform(size=y.size)) / (members.shape[1] + 1), "uniform")[1]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_link_rises(parameters):
    s = np.linspace(-30, 30, 601)
    t = np.asarray(gp_beta.link_log_odds(s, *parameters))
    assert (np.diff(t) > 0).all()
    u = special.expit(s)
    a, b, c = np.exp(parameters[0]), np.exp(parameters[1]), parameters[2]
    inside = np.abs(s) < 15
    expected = a * np.log(u[inside]) - b * np.log1p(-u[inside]) + c
    np.testing.assert_allclose(t[inside], expected, atol=1e-5)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_density_integrates_to_one(parameters):
    def of_log_odds(s):  # du = u (1 - u) ds
        log_density = float(gp_beta.link_log_density(s, *parameters))
        return np.exp(log_density) * special.expit(s) * special.expit(-s)

    assert integrate.quad(of_log_odds, -60, 60, limit=400)[0] == pytest.approx(1, abs=1e-6)


def mixtures(rng, n, k):
    return Forecasts(
        rng.normal(size=(n, k)), rng.uniform(0.2, 1, (n, k)), rng.dirichlet(np.ones(k), n)
    )


def draws(rng, law, i, size):
    at = rng.choice(law.weights.shape[1], size, p=law.weights[i])
    if law.scale is None:
        return law.loc[at]
    return rng.normal(law.loc[i, at], law.scale[i, at])


@pytest.mark.parametrize("form", ["normals", "mixtures", "members"])
def test_kernel_is_the_mean_over_draws(rng, form):
    if form == "members":
        p, q = (Forecasts(np.linspace(-1, 2, 6), None, rng.dirichlet(np.ones(6), 2)) for _ in "pq")
    else:
        p, q = (mixtures(rng, 2, 1 if form == "normals" else 3) for _ in "pq")
    length, size = 0.7, 400_000
    found = np.asarray(gp_beta.similarity(p, q, length))
    for i in range(2):
        apart = draws(rng, p, i, size) - draws(rng, q, 1 - i, size)
        mean = np.exp(-0.5 * (apart / length) ** 2).mean()
        assert found[i, 1 - i] == pytest.approx(mean, abs=3e-3)
    own = np.diag(gp_beta.similarity(p, p, length))
    np.testing.assert_allclose(gp_beta.own_similarity(p, length), own, rtol=1e-12)


def test_quantiles_invert_the_pit(rng):
    for law in (normals(rng, 5), mixtures(rng, 5, 3)):
        s = rng.normal(size=(5, 1)) * 3
        again = gp_beta.pit_log_odds(law, gp_beta.quantiles(law, s)[:, 0])
        np.testing.assert_allclose(again, s[:, 0], atol=1e-6)
    far = gp_beta.quantiles(Forecasts(np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 1))), [[30.0]])
    assert far == pytest.approx(-stats.norm.ppf(special.expit(-30.0)))
    members = Forecasts(np.arange(4.0), None, np.full((2, 4), 0.25))
    found = gp_beta.quantiles(members, special.logit([[0.1, 0.9], [0.3, 0.6]]))
    np.testing.assert_array_equal(found, [[0, 3], [1, 2]])


def test_known_miscalibration_is_undone(rng):
    """Forecasts of two kinds, each with a Beta link of its own."""
    cases, test = normals(rng, N), normals(rng, NEW)
    for laws in (cases, test):
        laws.loc[:] = 0.1 * laws.loc + 3 * np.sign(laws.loc)
    kinds = [(0.9, 0.6, 0.4), (-0.5, -0.3, -0.6)]  # too wide and too high, too narrow and too low

    def of_kinds(laws):
        low, high = (drawn(rng, laws, *kind) for kind in kinds)
        return np.where(laws.loc[:, 0] < 0, low, high)

    y, y_test = of_kinds(cases), of_kinds(test)
    members = gp_beta.recalibrated_members(Forecasted(cases, test), y, LEVELS)[0]
    grid = np.linspace(-30, 30, 2001)
    links = (np.asarray(gp_beta.link_log_odds(grid, *kind)) for kind in kinds)
    low, high = (np.interp(special.logit(LEVELS), link, grid) for link in links)
    truth = gp_beta.quantiles(test, np.where(test.loc < 0, low, high))
    raw = gp_beta.quantiles(test, np.broadcast_to(special.logit(LEVELS), truth.shape))
    best, mine, before = (crps(y_test, x).mean() for x in (truth, members, raw))
    assert mine < best + 0.1 * (before - best)
    p_values = [kolmogorov_p(x[k], y_test[k], rng) for x in (members, raw) for k in of_each(test)]
    assert min(p_values[:2]) > 0.01
    assert max(p_values[2:]) < 1e-6


def of_each(laws):
    return laws.loc[:, 0] < 0, laws.loc[:, 0] > 0
