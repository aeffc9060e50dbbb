"""GP-Beta: a Beta link on each forecast's distribution function, varying with the forecast.

With F the forecast of a case and u = F(y) the PIT of its observation, the recalibrated distribution
function is C(F(y)) with the Beta link

    C(u) = σ(a log u - b log(1 - u) + c),   σ(t) = 1 / (1 + exp(-t)),   a, b > 0,

the identity for a = b = 1, c = 0. The recalibrated density is that of F times the derivative,

    log C'(u) = log σ(t) + log σ(-t) + log(a / u + b / (1 - u)),   t = a log u - b log(1 - u) + c.

The parameters are those of a process over forecasts: θ = (log a, log b, c) = δ + B g(F), where g
are three independent Gaussian processes that share the expected kernel of two forecasts,

    k(F, G) = E exp(-(X - Y)² / 2ℓ²), X ~ F, Y ~ G independent, which for normals (μ, s), (ν, t) is
    ℓ / (ℓ² + s² + t²)^½ exp(-(μ - ν)² / 2(ℓ² + s² + t²)); mixtures and members: over all pairs.

B is lower triangular, so outputs have the covariance B Bᵀ at one forecast (coregionalisation). The
posterior of g at some forecasts of the calibration set (inducing points) is approximated by one
normal distribution for each process, whitened: g = L v, K = L Lᵀ, v ~ N(m, S). Adam maximises the
evidence bound Σ E log C'(uᵢ; θᵢ) - KL(N(m, S) ‖ N(0, I)) in m, S, δ and B for each of some ℓ, of
which the best is kept; expectations by Gauss and Hermite. The forecast is the mean over the
posterior of the distribution functions C(F(y)).

Source: Song, Diethe, Kull and Flach (2019), Distribution calibration for regression, ICML.
https://arxiv.org/abs/1905.06023. Written from the formulas. Differences from it: inducing points
are calibration forecasts and stay where they are; ℓ is from a grid, so that kernels of mixtures are
computed but once; quadrature in place of random draws; other steps of the optimiser. The paper
behind CKME gives it normal distributions with the first two moments of the forecast, which
``normal_of`` makes; mixtures and members may stay what they are here.
"""

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.special import expit, log_ndtr, logsumexp, ndtri_exp

from xrecal import arrays

from .forecasts import Forecasted, Forecasts, as_arrays

N_INDUCING, N_STEPS, LEARNING_RATE = 32, 500, 0.03
LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""ℓ that are tried, in standard deviations of the targets."""

FULL_UP_TO, BATCH = 1500, 500
"""Calibration cases that each step takes all of; of more, as many at random."""

FARTHEST = 30.0
"""Log-odds of PIT stay within ± this, 1e-13 from 0 and 1."""

FARTHEST_OF_MEMBERS = float(np.log(999.0))
"""So far for members, beyond which there is nothing to bend: 1/1000 from 0 and 1."""

STEP_OF_GRID = 0.25  # in log-odds
TO_FIT, TO_PREDICT = 3, 5  # nodes along each of the three parameters
JITTER = 1e-6


class Link(NamedTuple):
    """What is fitted: forecasts to induce from, length of the kernel, and the parameters."""

    inducing: Forecasts
    length: float
    parameters: dict[str, jax.Array]


def link_log_odds(s: jax.Array, log_a: jax.Array, log_b: jax.Array, c: jax.Array) -> jax.Array:
    """Log-odds of C(u), from those of u."""
    return jnp.exp(log_b) * jax.nn.softplus(s) - jnp.exp(log_a) * jax.nn.softplus(-s) + c


def link_log_density(s: jax.Array, log_a: jax.Array, log_b: jax.Array, c: jax.Array) -> jax.Array:
    """log C'(u), from the log-odds of u."""
    t = link_log_odds(s, log_a, log_b, c)
    slope = jnp.logaddexp(log_a + jax.nn.softplus(-s), log_b + jax.nn.softplus(s))
    return slope - jax.nn.softplus(t) - jax.nn.softplus(-t)


@jax.jit
def similarity(p: Forecasts, q: Forecasts, length: float) -> jax.Array:
    """Expected Gaussian kernel (n, m) of forecasts of one form."""
    if p.scale is None:
        among = jnp.exp(-0.5 * ((p.loc[:, None] - q.loc) / length) ** 2)
        return p.weights @ among @ q.weights.T
    spread = length**2 + p.scale[:, None, :, None] ** 2 + q.scale[None, :, None, :] ** 2
    apart = (p.loc[:, None, :, None] - q.loc[None, :, None, :]) ** 2
    each = length / jnp.sqrt(spread) * jnp.exp(-0.5 * apart / spread)
    return jnp.einsum("nmij,ni,mj->nm", each, p.weights, q.weights)


@jax.jit
def own_similarity(p: Forecasts, length: float) -> jax.Array:
    """Expected kernel (n,) of each forecast with itself."""
    if p.scale is None:
        among = jnp.exp(-0.5 * ((p.loc[:, None] - p.loc) / length) ** 2)
        return ((p.weights @ among) * p.weights).sum(axis=1)
    spread = length**2 + p.scale[:, :, None] ** 2 + p.scale[:, None, :] ** 2
    apart = (p.loc[:, :, None] - p.loc[:, None, :]) ** 2
    each = length / jnp.sqrt(spread) * jnp.exp(-0.5 * apart / spread)
    return jnp.einsum("nij,ni,nj->n", each, p.weights, p.weights)


def induced(inducing: Forecasts, laws: Forecasts, length: float) -> tuple[jax.Array, jax.Array]:
    """L⁻¹ k (m, n) of some forecasts, and the variance (n,) of each process that it leaves."""
    among = similarity(inducing, inducing, length)
    lower = jnp.linalg.cholesky(among + JITTER * jnp.eye(len(among)))
    crossed = similarity(inducing, laws, length)
    whitened = jax.scipy.linalg.solve_triangular(lower, crossed, lower=True)
    left = own_similarity(laws, length) - (whitened**2).sum(axis=0)
    return whitened, jnp.maximum(left, 0.0)


def at_nodes(
    p: dict[str, jax.Array], whitened: jax.Array, left: jax.Array, per_axis: int
) -> tuple[jax.Array, np.ndarray]:
    """Parameters (3, n, nodes) of the link of each forecast, and weights (nodes,) of the nodes."""
    known = ((jnp.swapaxes(_factor(p), 1, 2) @ whitened) ** 2).sum(axis=1)
    sd = jnp.sqrt(left + known + 1e-12)
    nodes, weights = _product_nodes(per_axis)
    latent = (p["mean"] @ whitened)[..., None] + sd[..., None] * nodes[:, None, :]
    mixed = jnp.einsum("or,rnk->onk", jnp.tril(p["mixing"]), latent)
    return p["offset"][:, None, None] + mixed, weights


def _factor(p: dict[str, jax.Array]) -> jax.Array:
    """Lower triangles (3, m, m) of S, with a positive diagonal."""
    log_diagonal = jnp.diagonal(p["factor"], axis1=1, axis2=2)
    return jnp.tril(p["factor"], -1) + jax.vmap(jnp.diag)(jnp.exp(log_diagonal))


def _product_nodes(per_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (3, nodes) and weights (nodes,) of the standard normal in three dimensions."""
    points, weights = np.polynomial.hermite_e.hermegauss(per_axis)
    grid = np.stack(np.meshgrid(points, points, points, indexing="ij")).reshape(3, -1)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    return grid, mass / mass.sum()


def divergence(p: dict[str, jax.Array]) -> jax.Array:
    """Of the whitened posterior from its prior."""
    factor = _factor(p)
    log_diagonal = jnp.diagonal(p["factor"], axis1=1, axis2=2)
    n = p["mean"].size
    return 0.5 * ((factor**2).sum() + (p["mean"] ** 2).sum() - n) - log_diagonal.sum()


def _loss(p: dict[str, jax.Array], whitened, left, s, n):  # type: ignore[no-untyped-def]
    """Negative evidence bound of a case, from some of n cases."""
    theta, weights = at_nodes(p, whitened, left, TO_FIT)
    expected = link_log_density(s[:, None], *theta) @ weights
    return divergence(p) / n - expected.mean()


@jax.jit
def _optimise(start, whitened, left, s, key):  # type: ignore[no-untyped-def]
    """Parameters after all steps, and their loss of all cases."""
    optimiser = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, N_STEPS))
    n = len(s)

    def step(carry, key):  # type: ignore[no-untyped-def]
        p, state = carry
        rows = jax.random.randint(key, (BATCH,), 0, n) if n > FULL_UP_TO else slice(None)
        gradient = jax.grad(_loss)(p, whitened[:, rows], left[rows], s[rows], n)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(p, updates), state), None

    keys = jax.random.split(key, N_STEPS)
    found = jax.lax.scan(step, (start, optimiser.init(start)), keys)[0][0]
    return found, _loss(found, whitened, left, s, n)


def fit(laws: Forecasts, s: np.ndarray, seed: int = 0) -> Link:
    """The link that makes PIT with log-odds s (n,) uniform, given forecasts in units of order 1."""
    n = s.size
    some = np.sort(np.random.default_rng(seed).permutation(n)[:N_INDUCING])
    inducing = rows_of(laws, some)
    start = {
        "mean": np.zeros((3, some.size)),
        "factor": np.zeros((3, some.size, some.size)),
        "offset": np.zeros(3),
        "mixing": 0.3 * np.eye(3),
    }
    tried = {
        length: _optimise(start, *induced(inducing, laws, length), s, jax.random.key(seed))
        for length in LENGTHS
    }
    best = min(tried, key=lambda length: float(tried[length][1]))
    return Link(inducing, best, tried[best][0])


@partial(jax.jit, static_argnames="batch")
def _log_odds_on(grid, p, whitened, left, batch):  # type: ignore[no-untyped-def]
    """Log-odds (n, grid) of the mean over the posterior of C(u), for log-odds of u on a grid."""
    theta, weights = at_nodes(p, whitened, left, TO_PREDICT)

    def of_case(theta):  # type: ignore[no-untyped-def]
        t = link_log_odds(grid[:, None], *theta)
        above = jax.nn.logsumexp(-jax.nn.softplus(-t), axis=1, b=weights)
        return above - jax.nn.logsumexp(-jax.nn.softplus(t), axis=1, b=weights)

    return jax.lax.map(of_case, jnp.moveaxis(theta, 1, 0), batch_size=batch)


def quantile_log_odds(link: Link, laws: Forecasts, levels: np.ndarray) -> np.ndarray:
    """Log-odds (n, k) of the levels of F at which the recalibrated distribution has ``levels``."""
    grid = np.arange(-FARTHEST, FARTHEST + STEP_OF_GRID / 2, STEP_OF_GRID)
    known = induced(link.inducing, laws, link.length)
    found = np.asarray(_log_odds_on(grid, link.parameters, *known, 64))
    wanted = np.log(levels) - np.log1p(-levels)
    return np.stack([np.interp(wanted, there, grid) for there in found])


def recalibrated_members(
    forecasted: Forecasted, y: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Quantiles (test cases, k) at levels (k,), in the unit of the targets y; seconds they took."""
    start = time.perf_counter()
    centre, unit = y.mean(), y.std()
    cases, test = (_in_units(part, centre, unit) for part in forecasted)
    s = pit_log_odds(cases, (y - centre) / unit)
    with jax.enable_x64(True):
        link = fit(cases, s)
        middle = time.perf_counter()
        found = quantile_log_odds(link, test, levels)
    members = centre + unit * quantiles(test, found)
    return members, middle - start, time.perf_counter() - middle


def _in_units(laws: Forecasts, centre: float, unit: float) -> Forecasts:
    scale = None if laws.scale is None else laws.scale / unit
    return Forecasts((laws.loc - centre) / unit, scale, laws.weights)


def rows_of(laws: Forecasts, rows: np.ndarray) -> Forecasts:
    """The forecasts of some cases."""
    if laws.scale is None:
        return laws._replace(weights=laws.weights[rows])
    return Forecasts(laws.loc[rows], laws.scale[rows], laws.weights[rows])


def normal_of(laws: Forecasts) -> Forecasts:
    """Normal distributions with the means and variances of forecasts."""
    mean = (laws.weights * laws.loc).sum(axis=1, keepdims=True)
    within = 0.0 if laws.scale is None else laws.scale**2
    variance = (laws.weights * ((laws.loc - mean) ** 2 + within)).sum(axis=1, keepdims=True)
    return Forecasts(mean, np.sqrt(variance), np.ones_like(mean))


def pit_log_odds(laws: Forecasts, y: np.ndarray) -> np.ndarray:
    """Log-odds (n,) of the PIT of observations, randomised where F jumps."""
    if laws.scale is None:
        uniform = np.random.default_rng(0).uniform(size=(1, y.size))
        pit = arrays.pit_values(as_arrays(laws), y[np.newaxis], uniform)[0]
        limit = expit(-FARTHEST_OF_MEMBERS)
        pit = np.clip(pit, limit, 1 - limit)
        return np.log(pit) - np.log1p(-pit)
    z = (y[:, np.newaxis] - laws.loc) / laws.scale
    below, above = (logsumexp(log_ndtr(side), axis=1, b=laws.weights) for side in (z, -z))
    return np.clip(below - above, -FARTHEST, FARTHEST)


def quantiles(laws: Forecasts, s: np.ndarray) -> np.ndarray:
    """Quantiles (n, k) of forecasts at levels of their own, given by log-odds (n, k)."""
    if laws.scale is not None and laws.weights.shape[1] == 1:
        tail = -np.logaddexp(0.0, np.abs(s))  # log of the smaller of u and 1 - u
        return laws.loc - np.sign(s) * laws.scale * ndtri_exp(tail)
    rows = as_arrays(laws)
    each = type(rows)(*(None if part is None else part[0][:, np.newaxis] for part in rows))
    return arrays.recalibrated_members(each, expit(s))[:, 0]
