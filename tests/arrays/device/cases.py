"""Synthetic cases at a few locations."""

import numpy as np

from xrecal.arrays import Features, Forecasts, features


def forecasts_and_observations(rng, n_locations=3, n=50, m=5, *, rain=False):
    """Ensembles with skill, a bias and a spread that varies; rain has its mass at zero."""
    signal = rng.normal(size=(n_locations, n))
    spread = rng.gamma(2.0, 0.5, size=(n_locations, n, 1))
    members = signal[..., np.newaxis] + 0.5 * spread * rng.normal(size=(n_locations, n, m))
    observed = signal + 0.6 * rng.normal(size=signal.shape) + 0.3
    if rain:
        members, observed = np.maximum(members, 0.0), np.maximum(observed, 0.0)
    return Forecasts(members), observed


def season(n_locations, n, step=13.0) -> tuple[Features, np.ndarray]:
    """Season as features, and the days of the cases."""
    days = np.arange(n) * step
    of_year = np.broadcast_to((days / 365.25)[np.newaxis, :, np.newaxis], (n_locations, n, 1))
    return features(np.array(of_year), (1.0,)), days
