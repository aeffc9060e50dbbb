"""A density network with independent normal weights, fitted by variational inference.

Each draw of the weights gives a normal distribution; the forecast is the mixture over draws.
"""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.paper.data import Part
from benchmarks.paper.forecasts import Forecasts

from .networks import (
    HIDDEN,
    PATIENCE,
    Scaling,
    apply_layers,
    components,
    dense_layers,
    negative_log_likelihood,
    train,
)

N_DRAWS, FEW_DRAWS, MANY_ROWS = 10, 5, 2000
"""Draws of the weights; fewer where there are many rows, as distances cost their square."""
FEW_PATIENCE = 30  # epochs, where there are many rows

START_SCALE = -4.0  # softplus of it: about 0.02
PRIOR_SCALE = 1.0
TEMPERATURE = 0.1
"""Share of the divergence from the prior that counts: all of it leaves such networks flat."""


def _drawn(parameters, key):
    """Weights: means plus noise."""
    means, raw = parameters["mean"], parameters["raw"]
    leaves, tree = jax.tree.flatten(means)
    keys = jax.tree.unflatten(tree, list(jax.random.split(key, len(leaves))))
    return jax.tree.map(
        lambda m, r, k: m + jax.nn.softplus(r) * jax.random.normal(k, m.shape), means, raw, keys
    )


def _divergence(parameters):
    """Kullback-Leibler divergence from independent N(0, 1)."""

    def one(mean, raw):
        scale = jax.nn.softplus(raw)
        ratio = (scale**2 + mean**2) / PRIOR_SCALE**2
        return 0.5 * jnp.sum(ratio - 1 - 2 * jnp.log(scale / PRIOR_SCALE))

    return sum(jax.tree.leaves(jax.tree.map(one, parameters["mean"], parameters["raw"])))


def bayesian(train_rows: Part, features: list[np.ndarray], seed: int) -> list[Forecasts]:
    """Equal mixtures of the normals that some draws of the weights give."""
    scaling = Scaling.of(train_rows)
    means = dense_layers(jax.random.key(2000 + seed), (train_rows.x.shape[1], *HIDDEN, 3))
    start = {"mean": means, "raw": jax.tree.map(lambda m: jnp.full_like(m, START_SCALE), means)}
    n = train_rows.y.size
    n_draws, patience = (N_DRAWS, PATIENCE) if n <= MANY_ROWS else (FEW_DRAWS, FEW_PATIENCE)
    best, _ = train(train_rows, scaling, start, _loss_of(n), _held_out, seed, patience)
    keys = jax.random.split(jax.random.key(3000 + seed), n_draws)
    layers = [_drawn(best, key) for key in keys]
    found = []
    for x in features:
        scaled = jnp.asarray(scaling.features(x))
        drawn = [components(apply_layers(layer, scaled))[:2] for layer in layers]
        loc, scale = (
            np.concatenate(parts, axis=1, dtype=np.float64) for parts in zip(*drawn, strict=False)
        )
        weights = np.full(loc.shape, 1 / n_draws)
        found.append(
            Forecasts(scaling.y_mean + scaling.y_std * loc, scaling.y_std * scale, weights)
        )
    return found


_LOSSES = {}


def _loss_of(n):
    """Loss with n rows, one and the same function for each n."""
    if n not in _LOSSES:

        def loss(parameters, x, y, key):
            fit = negative_log_likelihood(apply_layers(_drawn(parameters, key), x), y)
            return fit + TEMPERATURE * _divergence(parameters) / n

        _LOSSES[n] = loss
    return _LOSSES[n]


def _held_out(parameters, x, y, key):
    """Of the mixture over draws."""
    logs = []
    for one in jax.random.split(key, N_DRAWS):
        loc, scale, _ = components(apply_layers(_drawn(parameters, one), x))
        logs.append(-0.5 * ((y - loc[:, 0]) / scale[:, 0]) ** 2 - jnp.log(scale[:, 0]))
    return -(jax.nn.logsumexp(jnp.stack(logs), axis=0) - jnp.log(N_DRAWS)).mean()
