"""Ridges below those that a CKME searches, for forecasts so precise that the smallest is chosen."""

from collections.abc import Sequence

import numpy as np

from benchmarks.speed import dense
from xrecal import arrays

from .forecasts import Forecasts

FLOOR = 1.001e-6
"""Where the search of the library ends (it refines to a third of that): as chosen, it binds."""

SMALLER = 10.0 ** np.arange(-12, -5.9, 0.5)
"""Ridges that are tried instead: from the smallest that the library takes to that end."""


def smaller_ridge(cases: Forecasts, y: np.ndarray, bandwidth: float) -> float:
    """Of SMALLER, the one with the least held-out loss in the space of a Laplace kernel.

    The kernel is exp(-D²/s) with the bandwidth s; the loss has the median distance of the targets
    y (n,) as its scale. O(n³) time, ten seconds for 2000 cases.
    """
    apart = np.abs(np.subtract.outer(y, y))
    targets = np.exp(-apart / np.median(apart[apart > 0]))
    gram = np.exp(-distances(cases, cases) / bandwidth)
    return float(SMALLER[held_out_losses(gram, targets, SMALLER).argmin()])


def held_out_losses(
    gram: np.ndarray, targets: np.ndarray, ridges: Sequence[float] | np.ndarray
) -> np.ndarray:
    """Mean loss of each ridge, from five folds of cases in random order.

    Half the squared distance of forecast and target in the space of a kernel whose Gram matrix of
    the targets is given: the CRPS for ``dense.energy_gram``.
    """
    total, n = np.zeros(len(ridges)), len(gram)
    for held in np.array_split(np.arange(n), dense.N_FOLDS):
        train = np.setdiff1d(np.arange(n), held)
        eigen = np.linalg.eigh(gram[np.ix_(train, train)])
        similar, matches = gram[np.ix_(train, held)], targets[np.ix_(train, held)]
        among, own = targets[np.ix_(train, train)], np.diag(targets)[held]
        for at, ridge in enumerate(ridges):
            weights = dense.project_simplex(dense.signed_weights(*eigen, similar, ridge))
            total[at] += dense.held_out_crps(weights, among, matches, own).sum()
    return total / n


def distances(a: Forecasts, b: Forecasts) -> np.ndarray:
    """Squared energy distances (n, q) of forecasts of one form."""
    if a.scale is not None:
        weights = {"x_weights": a.weights, "y_weights": b.weights}
        found = arrays.normal_squared_energy_distance(a.loc, a.scale, b.loc, b.scale, **weights)
    else:
        loc = (np.broadcast_to(f.loc, f.weights.shape) for f in (a, b))
        found = arrays.squared_energy_distance(*loc, x_weights=a.weights, y_weights=b.weights)
    return np.asarray(found)
