"""A synthetic network of stations whose errors are known: the truth that a shared fit is held to.

An observation is the mean of its ensemble, plus a bias and an error whose laws depend on the place
and on what the ensemble itself shows, and on nothing else. So the law of the observation given
forecast and place, the best that can be issued, is a mixture of normal distributions. A part of
bias and spread is explained by no feature of the place: who has no record of a place can at best
integrate over it, and the truth of a held-out place does.
"""

from typing import NamedTuple

import numpy as np

UNEXPLAINED = 0.2
"""Of the error's standard deviation: s.d. of what no feature explains of a place's bias, and of the
logarithm of its spread."""
SHARED_ERROR = 0.2
"""Correlation of the errors of one date at different places."""
SKEWED = 0.3
"""Probability of the rarer of two kinds of errors, which makes their law skewed."""
POWER = 0.7
"""Of the ensemble's spread in that of its errors."""
NODES = 7
"""Of the quadrature over the unexplained part of the spread; exact to 1e-7 of the CRPS."""


class Network(NamedTuple):
    """Places, arrays (P,)."""

    lat: np.ndarray
    """Degrees north"""
    lon: np.ndarray
    """Degrees east"""
    height: np.ndarray
    """Metres above the sea"""
    offset: np.ndarray
    """Unexplained part of the bias, in standard deviations of the explained error"""
    stretch: np.ndarray
    """Unexplained part of the logarithm of the spread"""

    def take(self, places) -> "Network":
        """Some of the places."""
        return Network(*(part[places] for part in self))

    @property
    def features(self) -> np.ndarray:
        """What is known of each place, (P, 3)."""
        return np.stack([self.lat, self.lon, self.height], axis=-1)

    @property
    def bias(self) -> np.ndarray:
        """Explained mean error, degrees."""
        waves = np.sin(0.5 * self.lat) + 0.8 * np.cos(0.4 * self.lon + 0.2 * self.lat)
        return 0.7 * waves - 1.2 * (self.height / 1000 - 0.5)

    @property
    def spread(self) -> np.ndarray:
        """Explained standard deviation of errors, degrees."""
        waves = 0.2 * np.sin(0.6 * self.lon) - 0.15 * np.cos(0.3 * self.lat)
        return 1.6 * np.exp(waves + 0.25 * self.height / 1000)


class Law(NamedTuple):
    """Mixtures of normal distributions, arrays (..., k)."""

    loc: np.ndarray
    scale: np.ndarray
    weights: np.ndarray


def draw_network(n: int, seed: int) -> Network:
    """Places over ten degrees of latitude and of longitude, most of them low."""
    rng = np.random.default_rng([seed, 0])
    lat, lon = 45 + 10 * rng.random(n), 5 + 10 * rng.random(n)
    height = np.minimum(rng.gamma(1.2, 400, n), 3000)
    return Network(lat, lon, height, *(UNEXPLAINED * rng.normal(size=(2, n))))


def draw_dates(network: Network, first: int, count: int, m: int, seed: int):
    """Ensembles (count, P, m) and observations (count, P) of some dates, in single precision.

    Each date has random numbers of its own, so that it is the same in whatever pieces dates come.
    """
    pieces = [_draw_date(network, date, m, seed) for date in range(first, first + count)]
    members, observations = zip(*pieces, strict=True)
    return np.stack(members), np.stack(observations)


def _draw_date(network: Network, date: int, m: int, seed: int):
    rng = np.random.default_rng([seed, 1, date])
    n = network.lat.size
    level = 12 - 10 * np.cos(2 * np.pi * date / 365.25) - 0.0065 * network.height
    centre = level + 4 * rng.normal() + 2 * rng.normal(size=n)
    scale = rng.gamma(6.0, 0.2, (n, 1))
    bend = rng.uniform(-0.4, 0.4, (n, 1))
    z = rng.normal(size=(n, m))
    members = centre[:, np.newaxis] + scale * (z + bend * (z**2 - 1))
    members = members.astype(np.float32)
    law = errors_of(members)
    kind = (rng.random(n) >= law.weights[:, 0]).astype(int)
    rows = np.arange(n)
    noise = np.sqrt(SHARED_ERROR) * rng.normal() + np.sqrt(1 - SHARED_ERROR) * rng.normal(size=n)
    error = law.loc[rows, kind] + law.scale[rows, kind] * noise
    bias = network.bias + network.spread * network.offset
    spread = network.spread * np.exp(network.stretch)
    observed = members.mean(-1, dtype=float) + bias + spread * error
    return members, observed.astype(np.float32)


def errors_of(members: np.ndarray) -> Law:
    """Law of errors, in units of a place's spread, of ensembles (..., m): skewed as they are.

    Its mean is 0, its standard deviation the ensemble's, relative to 1.3, to the power of 0.7.
    """
    x = np.asarray(members, float)
    deviation = x - x.mean(-1, keepdims=True)
    std = np.sqrt((deviation**2).mean(-1))
    skewness = np.tanh((deviation**3).mean(-1) / std**3)
    far = 1.2 * skewness
    near = -SKEWED / (1 - SKEWED) * far
    within = np.sqrt(1 - SKEWED * far**2 - (1 - SKEWED) * near**2)
    width = (std / 1.3) ** POWER
    loc = width[..., np.newaxis] * np.stack([far, near], -1)
    scale = np.broadcast_to((width * within)[..., np.newaxis], loc.shape)
    return Law(loc, scale, np.broadcast_to(np.array([SKEWED, 1 - SKEWED]), loc.shape))


def truth(network: Network, members: np.ndarray, *, known: bool) -> Law:
    """Law of observations given ensembles (..., P, m) and places, whose record is known or not.

    With a record, long enough, bias and spread of the place are known. Without one their
    unexplained parts are integrated over: of the bias in closed form, of the spread by Gauss and
    Hermite.
    """
    errors = errors_of(members)
    mean = np.asarray(members, float).mean(-1)[..., np.newaxis]
    column = (slice(None), np.newaxis)
    if known:
        loc = mean + (network.bias + network.spread * network.offset)[column]
        spread = (network.spread * np.exp(network.stretch))[column]
        return Law(loc + spread * errors.loc, spread * errors.scale, errors.weights)
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    shares = shares / shares.sum()
    stretch = np.exp(UNEXPLAINED * nodes)
    loc, scale, weights = [], [], []
    for factor, share in zip(stretch, shares, strict=True):
        spread = factor * network.spread[column]
        loc.append(mean + network.bias[column] + spread * errors.loc)
        scale.append(np.hypot(spread * errors.scale, UNEXPLAINED * network.spread[column]))
        weights.append(share * errors.weights)
    return Law(*(np.concatenate(parts, axis=-1) for parts in (loc, scale, weights)))
