"""Calls of every public array function, for the laws that all of them share.

The first axis of most arrays holds ``L`` places; no other axis has that length.
"""

from functools import cache

import numpy as np

from xrecal import arrays
from xrecal.arrays import Features, Forecasts, Settings, SkceSettings, Vectors
from xrecal.arrays.distributions.forms import Censored, Empirical, Normal

L, N, T, M, D = 7, 30, 5, 6, 2
rng = np.random.default_rng(5)


def normal(*shape):
    """Numbers that single precision holds as well."""
    return rng.normal(size=shape).astype(np.float32).astype(np.float64)


def uniform(*shape):
    return rng.integers(1, 1023, shape) / 1024


def shares(*shape):
    """Weights that sum to one."""
    parts = np.full(shape, 1 / 64)
    parts[..., :2] += (1 - shape[-1] / 64) / 2
    return parts


q, y, members, weights = uniform(4), normal(L, N), normal(L, N, M), shares(L, N, M)
scale, index, steps = uniform(L, N, M), np.arange(N), np.arange(N) // 2
plain, gaussian = Forecasts(members), Forecasts(members, scale)
weighted, mixture = Forecasts(members, None, weights), Forecasts(members, scale, weights)
first = Forecasts(members[0]), Forecasts(members[0], scale[0], weights[0])
shared = Forecasts(normal(M), None, shares(N, M))
several, new = Features(normal(L, N, D), np.array([False, True])), Forecasts(normal(L, T, M))
new_features = Features(normal(L, T, D), several.circular)
vectors, observed = Vectors(normal(L, N, D, M), weights), normal(L, N, D)
new_vectors, periods = Vectors(normal(L, T, D, M), shares(L, T, M)), (None, 4.0)
conditioned = Settings(
    supports=("regression", "mean"), kernels=((1.0, 0.0), (1.0, 1.0)), projection="energy"
)
exact, low_rank = Settings(kernel="laplace", ridge=0.1), Settings(solver="lowrank")
together = Settings(loss="energy")
known = {"features": several, "days": index.astype(float), "half_life": 20.0, "step": steps}
numbers = np.broadcast_to(index, (L, N)).copy()
usable = np.ones((L, N), bool)
ascending = np.sort(normal(L, N, 3))
three, chances = normal(3), np.sort(uniform(L, N, 3))[..., ::-1].copy()


# Arguments that a test computes, not the collection of tests.


@cache
def distances():
    return arrays.pairwise_distances(plain)


@cache
def square():
    return arrays.case_matrix(first[0], y[0])


@cache
def fitted():
    return arrays.fit_ckme(mixture, y, conditioned, **known)


@cache
def by_landmarks():
    return arrays.fit_ckme(plain, y, low_rank)


def beside():
    centre = np.tile([0.5, 1.0, 1.0, 0.0], (L, 1))
    return by_landmarks()._replace(beside=np.ones(L, np.int8), beside_centre=centre)


@cache
def fitted_vectors():
    return arrays.fit_vector_ckme(vectors, observed, periods, together, step=steps)


def call(*given, **named):
    return given, named


CALLS = {
    "adjusted_p_values": [call(uniform(L, N))],
    "anomaly_correlation": [call(y, normal(L, N)), call(y, normal(L, N), False)],
    "block_p_value": [call(y[0])],
    "brier_score": [call(y, chances, three), call(y, chances, ascending, np.full((L, N), 4.0))],
    "calibration_changes": [call(np.clip(chances, 0, 1), 60, 2)],
    "calibration_e_values": [call(np.clip(chances, 0, 1), 2)],
    "case_matrix": [call(first[0], y[0], augmented=True), call(first[1], y[0]), call(shared, y[0])],
    "category_probabilities": [call(chances, ascending)],
    "censored_normal_crps": [call(y, members[..., 0], scale[..., 0], y - 2, y + 2)],
    "censored_normal_exceedance": [call(ascending, y, scale[..., 0], y - 1, y + 1)],
    "censored_normal_log_score": [call(y, y + 1, scale[..., 0], y - 2, y + 2)],
    "censored_normal_mean_std": [call(y, scale[..., 0], y - 1, y + 1)],
    "censored_normal_quantile": [call(q, y, scale[..., 0], y - 1, y + 1)],
    "censored_normal_skewness": [call(y, scale[..., 0], y - 1, y + 1)],
    "censored_threshold_crps": [call(y, y + 1, scale[..., 0], y - 1, y + 2, lower=y, upper=y + 1)],
    "circular_crps": [call(y, members, period=4.0), call(y, members[:, 0], weights, period=4.0)],
    "circular_mean": [call(members, weights, period=4.0), call(members[:, 0], weights, period=4.0)],
    "circular_members": [call(members, None, 4, period=4.0), call(members, weights, 4, period=4.0)],
    "circular_std": [call(members, weights, period=4.0), call(members[:, 0], weights, period=4.0)],
    "ckme_novelty": [call(new, plain, y, by_landmarks)],
    "ckme_weights": [
        call(
            Forecasts(new.loc, scale[:, :T], weights[:, :T]), mixture, y, fitted,
            projection="energy", features=several, new_features=new_features, days=known["days"],
            own_members=True,
        ),
        call(new, plain, y, by_landmarks),
        call(new, plain, y, by_landmarks, squared=distances, across=lambda: distances()[:, :T]),
    ],
    "ckme_weights_of_both": [call(new, plain, y, beside)],
    "climatology_quantiles": [
        call(y, q),
        call(y, q, season=uniform(N), new_season=uniform(T), window=90.0),
    ],
    "climatology_weights": [
        call(y, T),
        call(y, T, features=several, new_features=new_features),
    ],
    "conformal_levels": [call(uniform(L, N), 0.2)],
    "conformal_margins": [
        call(normal(L, N), 0.2),
        call(normal(L, N), 0.2, weights=uniform(L, 3, N)),
    ],
    "corp": [call(uniform(L, N), np.round(uniform(L, N)))],
    "crps": [call(y, members), call(y, members, weights), call(y, members[:, 0], weights)],
    "decompose": [call(y + 9, y + 8, uniform(L, N))],
    "diebold_mariano": [call(y, 2)],
    "economic_value": [call(chances[..., 0], np.round(uniform(L, N)), uniform(4))],
    "energy_score": [
        call(observed, normal(L, N, D, M)),
        call(observed, normal(L, N, D, M), weights),
    ],
    "equal_members": [call(members, 4), call(members[:, 0], 4, weights)],
    "error_spread": [call(y, y + 1, scale[..., 0], normal(L, N))],
    "fair_crps": [call(y, members)],
    "features": [call(several.values, periods)],
    "find_bounds": [call(np.maximum(y, 0))],
    "choose_ckme": [call(mixture, y, conditioned, **known), call(plain, y, low_rank)],
    "choose_vector_ckme": [call(vectors, observed, periods, together, step=steps)],
    "fit_ckme": [
        call(mixture, y, conditioned, **known, groups=steps, blocks=0),
        call(weighted, y, exact, squared=distances),
        call(plain, y, low_rank, squared=distances),
        call(gaussian, y, low_rank),
        call(plain, y, Settings(shapes=True, supports=("mean",))),
    ],
    "fit_ckme_family": [
        call(plain, y, conditioned._replace(projection="euclidean"), n_quantiles=4, **known)
    ],
    "fit_emos": [
        call(y, scale[..., 0], y + normal(L, N)),
        call(y, scale[..., 0], y + normal(L, N), several.values, lower=np.arange(L) - 99),
        call(y, scale[..., 0], y + normal(L, N), several.values[0]),
    ],
    "fit_index": [call(y, y + normal(L, N), several.values)],
    "fit_vector_ckme": [
        call(vectors, observed, periods, together, features=several, step=steps),
        call(Vectors(vectors.members), observed, periods, low_rank._replace(loss="energy")),
    ],
    "flatness_test": [call(uniform(L, N))],
    "generalised_discrimination": [call(y, members), call(y, members, weights)],
    "half_squared_distance": [
        call(q, Empirical(y, shares(L, N, N)))
        for q in (
            Empirical(members), Normal(members, scale, weights), Normal(members, scale),
            Censored(y[..., None], scale[..., :1], y[..., None] - 1, y[..., None] + 1),
        )
    ],
    "hash_uniform": [call(3, np.arange(L), N)],
    "idr_weights": [call(normal(L, T), y, y + normal(L, N))],
    "in_window": [call(shares(L, T, N), uniform(L, N), uniform(L, T), 90.0)],
    "index_of": [call(normal(L, 4), y, several.values)],
    "interval_coverage": [call(y, y - uniform(L, N), y + uniform(L, N))],
    "interval_score": [call(y, y - uniform(L, N), y + uniform(L, N), 0.8)],
    "laplace_expectations": [call(one, y[0], 0.5) for one in (*first, shared)],
    "log_score": [
        call(y, members), call(y, members, weights), call(y, members[:, 0], weights),
    ],
    "median_bandwidth": [call(lambda: distances()[0]), call(lambda: distances()[0], "laplace")],
    "montecarlo_test": [call(one, y[0], n_resamples=20) for one in (*first, shared)],
    "normal_crps": [
        call(y, y + 1, scale[..., 0]), call(y, members, scale, weights), call(y, members, scale),
    ],
    "normal_exceedance": [call(ascending, members, scale, weights)],
    "normal_log_score": [
        call(y, y + 1, scale[..., 0]), call(y, members, scale, weights), call(y, members, scale),
    ],
    "normal_mean_std": [call(members, scale, weights)],
    "normal_quantile": [call(q, members, scale, weights), call(q, y, scale[..., 0])],
    "normal_skewness": [call(members, scale, weights), call(y, scale[..., 0])],
    "normal_squared_energy_distance": [
        call(members[0], scale[0], x_weights=weights[0]),
        call(members[0], scale[0], members[1], scale[1], y_weights=weights[1]),
        call(y[0], scale[0, :, 0]),
    ],
    "normal_threshold_crps": [
        call(y, members, scale, weights, lower=y - 1, upper=y + 1),
        call(y, members, scale, weights, lower=0.5),
    ],
    "observation_ranks": [call(y, members, uniform(L, N))],
    "on_circle": [call(members, 4.0)],
    "pairwise_distances": [call(one) for one in (plain, weighted, gaussian, mixture)],
    "pit_counts": [call(uniform(L, N))],
    "pit_values": [call(one, y, uniform(L, N)) for one in (plain, weighted, mixture)],
    "pool_weights": [call(np.sort(normal(L, 2, 3, N, 4)), y)],
    "predict_emos": [
        call(normal(L, 4 + 2 * D), y, scale[..., 0], several.values),
        call(normal(L, 4 + 2 * D), y, scale[..., 0], several.values[0]),
    ],
    "project_energy": [call(members[0], normal(M)), call(y[0], y[1])],
    "project_simplex": [call(members[0]), call(y[0])],
    "quantile_log_score": [call(y, members, uniform(M))],
    "quantile_pit": [call(members, uniform(M), y, uniform(L, N))],
    "quantile_reliability": [call(y, y + normal(L, N), 0.5), call(y[0], y[1], 0.5)],
    "quantile_score": [call(y, ascending, uniform(3))],
    "quantile_weighted_crps": [call(y, members), call(y, members[:, 0], weights)],
    "rank_counts": [call(np.floor(4 * uniform(L, N)), 4)],
    "ranked_probability_score": [call(y, chances, ascending)],
    "recalibrated_members": [call(one, uniform(L, 4)) for one in (weighted, mixture)],
    "reordered_members": [call(members, normal(L, N, M), 3, numbers)],
    "ridge_losses": [call(plain, y, exact._replace(ridge=None), **known)],
    "roc_area": [call(uniform(L, N), np.round(uniform(L, N)))],
    "roc_curve": [call(uniform(L, N), np.round(uniform(L, N)), uniform(4))],
    "score_e_values": [call(y / 9, np.abs(y), 2)],
    "shuffled_members": [call(members, 3, numbers, numbers)],
    "similarity": [call(lambda: distances()[0], 0.5, "laplace")],
    "serial_uniform_test": [call(uniform(L, N)), call(uniform(L, N), 2)],
    "skce_biased": [call(square)],
    "skce_block_length": [call(square)],
    "skce_blocks": [call(one, y[0], 5) for one in (*first, shared)],
    "skce_locations": [
        call(one, y, SkceSettings(test, 20), location_numbers=np.arange(L))
        for one, test in (
            (plain, "block"),
            (mixture, "montecarlo"),
            (weighted, "bootstrap"),
            (plain, "serial"),
        )
    ],
    "skce_matrix": [call(square, *(lambda step=step: square() + step for step in (1, 2, 3)))],
    "skce_test": [call(square, test, n_resamples=20) for test in ("bootstrap", "wild", "serial")],
    "skce_unbiased": [call(square)],
    "skill_score": [call(y + 9, y + 8)],
    "splits": [call(N, "year", year=steps)],
    "spread_of_observations": [call(normal(D, N)), call(normal(D, N), 4.0)],
    "spread_skill": [call(y, uniform(L, N), normal(L, N), 3, np.full((L, N), 4.0))],
    "squared_energy_distance": [
        call(members[0], x_weights=weights[0]),
        call(members[0], normal(T, 3), y_weights=uniform(T, 3)),
    ],
    "standard_error": [call(y)],
    "systematic_draws": [call(np.arange(L * N * M).reshape(L, N, M), 4, 3, numbers)],
    "target_bandwidth": [call(y[0])],
    "threshold_weighted_crps": [
        call(y, members, weights, lower=y - 1, upper=y + 1),
        call(y, members[:, 0], weights, lower=y - 1, upper=y + 1),
    ],
    "uniform_at": [call(3, numbers, numbers)],
    "uniform_test": [call(uniform(L, N))],
    "variogram_score": [call(observed, normal(L, N, D, M), weights)],
    "vector_ckme_weights": [
        call(
            new_vectors, vectors, usable, lambda: fitted_vectors()[0],
            lambda: fitted_vectors()[1], periods,
        ),
    ],
    "vector_energy_distance": [
        call(normal(N, D, M), x_weights=weights[0]),
        call(normal(N, D, M), normal(T, D, 3), y_weights=uniform(T, 3)),
    ],
    "weighted_cdf": [call(members, three, weights), call(members[:, 0], three, weights)],
    "weighted_exceedance": [
        call(members, three, weights), call(members[:, 0], ascending, weights),
    ],
    "weighted_interval_score": [call(y, ascending, np.array([0.25, 0.5, 0.75]))],
    "weighted_mean": [call(members, weights), call(members[:, 0], weights)],
    "weighted_quantile": [call(members, q), call(members[:, 0], q, weights)],
    "weighted_skewness": [call(members, weights), call(members[:, 0], weights)],
    "weighted_std": [call(members, weights), call(members[:, 0], weights)],
    "whole_weights": [call(weights)],
}  # fmt: skip
