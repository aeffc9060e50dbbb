"""Density networks: features to one normal distribution, or to a mixture of five."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.paper.data import Part
from benchmarks.paper.forecasts import Forecasts

from .networks import (
    HIDDEN,
    Scaling,
    apply_layers,
    components,
    dense_layers,
    negative_log_likelihood,
    train,
)

N_COMPONENTS = 5


def _loss(parameters, x, y, key):
    return negative_log_likelihood(apply_layers(parameters, x), y)


def density_network(
    train_rows: Part, features: list[np.ndarray], seed: int, n_components: int
) -> list[Forecasts]:
    """Mixtures of ``n_components`` normals, trained by maximum likelihood."""
    scaling = Scaling.of(train_rows)
    sizes = (train_rows.x.shape[1], *HIDDEN, 3 * n_components)
    start = dense_layers(jax.random.key(1000 + seed), sizes)
    best, _ = train(train_rows, scaling, start, _loss, _loss, seed)
    found = []
    for x in features:
        output = apply_layers(best, jnp.asarray(scaling.features(x)))
        loc, scale, log_weights = (np.asarray(a, np.float64) for a in components(output))
        weights = np.exp(log_weights)
        weights /= weights.sum(axis=1, keepdims=True)
        found.append(
            Forecasts(scaling.y_mean + scaling.y_std * loc, scaling.y_std * scale, weights)
        )
    return found


def gaussian(train_rows: Part, features: list[np.ndarray], seed: int) -> list[Forecasts]:
    return density_network(train_rows, features, seed, 1)


def mixture(train_rows: Part, features: list[np.ndarray], seed: int) -> list[Forecasts]:
    return density_network(train_rows, features, seed, N_COMPONENTS)
