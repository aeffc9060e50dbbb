"""Training of small networks in JAX: standardised data, Adam, early stopping."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.paper.data import Part

HIDDEN = (50, 50)
LEARNING_RATE = 1e-3
PATIENCE, MAX_EPOCHS = 50, 1000
SHARE_HELD_OUT = 0.2
MIN_SCALE = 1e-4  # of the target's standard deviation

Loss = Callable[[Any, jax.Array, jax.Array, jax.Array], jax.Array]
"""Parameters, features, targets and a random key to the mean loss."""


class Scaling(NamedTuple):
    """Mean and standard deviation of features and of the target."""

    x_mean: np.ndarray
    x_std: np.ndarray
    y_mean: float
    y_std: float

    @classmethod
    def of(cls, rows: Part) -> "Scaling":
        std = rows.x.std(axis=0)
        return cls(rows.x.mean(0), np.where(std > 0, std, 1.0), rows.y.mean(), rows.y.std())

    def features(self, x: np.ndarray) -> np.ndarray:
        return ((x - self.x_mean) / self.x_std).astype(np.float32)

    def targets(self, y: np.ndarray) -> np.ndarray:
        return ((y - self.y_mean) / self.y_std).astype(np.float32)


def dense_layers(key: jax.Array, sizes: tuple[int, ...]) -> list[dict[str, jax.Array]]:
    """Weights and biases, uniform within one over the root of the number of inputs."""
    layers = []
    for n_in, n_out in itertools.pairwise(sizes):
        key, first, second = jax.random.split(key, 3)
        bound = 1 / np.sqrt(n_in)
        w = jax.random.uniform(first, (n_in, n_out), minval=-bound, maxval=bound)
        b = jax.random.uniform(second, (n_out,), minval=-bound, maxval=bound)
        layers.append({"w": w, "b": b})
    return layers


def apply_layers(layers: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def components(output: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Means, standard deviations and logarithms of weights (n, k) of the mixtures."""
    loc, raw, logits = jnp.split(output, 3, axis=-1)
    return loc, jax.nn.softplus(raw) + MIN_SCALE, jax.nn.log_softmax(logits)


def negative_log_likelihood(output: jax.Array, y: jax.Array) -> jax.Array:
    loc, scale, log_weights = components(output)
    z = (y[:, None] - loc) / scale
    each = log_weights - 0.5 * z**2 - jnp.log(scale)
    return -jax.nn.logsumexp(each, axis=-1).mean()


@partial(jax.jit, static_argnames=("loss", "optimizer", "batch"))
def _epoch(parameters, state, x, y, key, *, loss, optimizer, batch):
    """One pass over the rows in random order."""
    order_key, step_key = jax.random.split(key)
    n_steps = len(y) // batch
    order = jax.random.permutation(order_key, len(y))[: n_steps * batch].reshape(n_steps, batch)

    def step(carry, inputs):
        parameters, state = carry
        rows, key = inputs
        gradient = jax.grad(loss)(parameters, x[rows], y[rows], key)
        updates, state = optimizer.update(gradient, state, parameters)
        return (optax.apply_updates(parameters, updates), state), None

    keys = jax.random.split(step_key, n_steps)
    return jax.lax.scan(step, (parameters, state), (order, keys))[0]


def train(
    rows: Part,
    scaling: Scaling,
    start: Any,
    loss: Loss,
    held_out: Loss,
    seed: int,
    patience: int = PATIENCE,
) -> tuple[Any, int]:
    """Parameters with the smallest loss of the held-out fifth, and the number of epochs."""
    cut = int((1 - SHARE_HELD_OUT) * rows.y.size)
    x, y = jnp.asarray(scaling.features(rows.x)), jnp.asarray(scaling.targets(rows.y))
    optimizer = _adam(1e-4 if rows.y.size < 2000 else 1e-6)
    batch = max(int(np.sqrt(cut) - 5), 8)
    state, parameters, key = optimizer.init(start), start, jax.random.key(seed)
    judge = jax.jit(held_out)
    judge_key = jax.random.key(seed + 1)
    best, best_loss, best_epoch = parameters, np.inf, 0
    for epoch in range(1, MAX_EPOCHS + 1):
        key, now = jax.random.split(key)
        parameters, state = _epoch(
            parameters, state, x[:cut], y[:cut], now, loss=loss, optimizer=optimizer, batch=batch
        )
        found = float(judge(parameters, x[cut:], y[cut:], judge_key))
        if found < best_loss:
            best, best_loss, best_epoch = parameters, found, epoch
        elif epoch - best_epoch >= patience or not np.isfinite(found):
            break
    return best, best_epoch


_OPTIMIZERS: dict[float, optax.GradientTransformation] = {}


def _adam(decay: float) -> optax.GradientTransformation:
    """One and the same object for each decay, for which compiled code is kept."""
    if decay not in _OPTIMIZERS:
        parts = optax.add_decayed_weights(decay), optax.adam(LEARNING_RATE)
        _OPTIMIZERS[decay] = optax.chain(optax.clip_by_global_norm(10.0), *parts)
    return _OPTIMIZERS[decay]
