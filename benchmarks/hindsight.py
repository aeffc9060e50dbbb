"""How far weights could take an average of forecasts, if the observations were known."""

import numpy as np
from scipy.optimize import minimize

MOST_STEPS, TOLERANCE = 200, 1e-9


def best_weights(quantiles: np.ndarray, observations: np.ndarray) -> tuple[np.ndarray, float]:
    """Constant weights of the average of quantiles with the smallest CRPS, and this CRPS.

    No rule that learns weights from past cases does better with an average, so the CRPS tells what
    is left to be gained by learning them, and what only other forecasts can give.

    Parameters
    ----------
    quantiles : array of float, shape (n, K, J)
        Of n cases by K forecasts, ascending, at the levels (j - ½) / J.
    observations : array of float, shape (n,)
        What verified.

    Returns
    -------
    weights : array of float64, shape (K,)
        Not negative; their sum is one.
    crps : float
        Mean over the cases.
    """
    n_forecasts, n_levels = quantiles.shape[1:]
    levels = (np.arange(n_levels) + 0.5) / n_levels
    y, by_forecast = observations[:, np.newaxis], np.moveaxis(quantiles, 1, 0)

    def crps(weights: np.ndarray) -> tuple[float, np.ndarray]:
        """CRPS of weights and its slopes, which a convex function has nearly everywhere."""
        over = np.tensordot(weights, by_forecast, 1) - y
        slopes = 2 * ((over > 0) - levels) / over.size
        return float((slopes * over).sum()), np.tensordot(by_forecast, slopes, 2)

    equal = np.full(n_forecasts, 1 / n_forecasts)
    unit = crps(equal)[0] or 1.0
    found = minimize(
        lambda weights: tuple(part / unit for part in crps(weights)),
        equal,
        jac=True,
        bounds=[(0, 1)] * n_forecasts,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"maxiter": MOST_STEPS, "ftol": TOLERANCE},
    )
    weights = np.maximum(found.x, 0) / np.maximum(found.x, 0).sum()
    return weights, crps(weights)[0]
