"""Array-level numerics: NumPy in, NumPy out; some also on a GPU, with CuPy in and out.

Imports neither xarray nor dask.

In the order of the data flow:

=================  ================================================================
forms              what a forecast is: points with weights, or normal distributions
cases              calibration cases as the solver takes them, and their folds
covariates         season and others -> coordinates for distances and regressions
circular           values on a circle, such as directions -> points; their CRPS, mean, members
distance           ensembles -> squared energy distances
vectors            ... of ensembles of vectors
normal             ... closed forms for Gaussian and Gaussian-mixture forecasts
kernel             distances -> similarities, median bandwidth
centre             past observations, or errors around a centre, as members
errors             ... and members from errors, exactly on bounds where observations were
columns            distances from single cases to all, where not all pairs are compared
lowrank            columns of landmarks -> factor of the kernel matrix
solvers            kernel matrix, or its factor, and ridge -> signed weights
tuning             folds, and what each of them trains on
recording          signed weights -> held-out forecasts
candidates         what may be chosen at a location, and what is best so far
minimum            where a loss is smallest between points of a grid
search             ... -> kernel, support and ridge with the smallest loss
ckme               cases -> fitted embedding at every location
vector_ckme        ... of ensembles of vectors, with weights for new ones
ridges             ... and how the loss depends on the ridge
weights            fitted embedding + new forecasts -> weighted ensembles
simplex            signed weights -> probabilities
pool               held-out forecasts of several methods -> weights of their mixture
weighted           probabilities + members -> statistics of a weighted ensemble
categories         probabilities of exceeding edges -> of the categories between them
draws              random numbers that depend on seed, location and case alone
members            equally likely members, in order or a random one
reordering         ... in the order of a template, so that places belong together
systematic         draws of items from weights that are whole numbers
scores             forecasts + observations -> CRPS, also fair or between thresholds
normal_thresholds  ... the latter in closed form, for normal distributions and their mixtures
quantile_scores    ... scores of quantiles, and the CRPS with more weight on some of them
event_scores       ... scores of probabilities of exceeding thresholds
multivariate       ... energy and variogram score of members that belong together
skill              two scores -> skill of one over the other
decomposition      scores + recalibrated forecast -> calibration error and the rest
significance       differences of scores -> standard errors, p-values
splitting          cases -> training and test, for honest evaluation
rows               arguments of the following: cases on the last axis, locations before it
uniformity         probability integral transforms -> histogram, test of uniformity
ranks              observations among members -> rank histogram, test of flatness
reliability        probabilities or quantiles -> reliability, miscalibration in a score
intervals          prediction intervals -> coverage, width, score
spread             spread and errors -> their ratio, by spread as well
dependence         distance correlation of two quantities
discovery          p-values of many locations -> false discovery rates
emos               Gaussian regression by minimum CRPS, censored at bounds
idr                isotonic distributional regression
expectations       the Laplace kernel between forecasts, and forecasts and observations
skce               ... -> matrix of calibration errors over pairs of cases, estimates
calibration_tests  matrix -> p-values of the hypothesis of calibration
montecarlo         ... by observations drawn from the forecasts
calibration        all of these at many locations, with a status
pit                probability integral transform, recalibrated and conformal levels
between_levels     ... of forecasts of which some quantiles alone are known
climatology        past observations, whatever the forecast
dispatch           which module serves NumPy and which CuPy
batched            what CuPy arrays are served by: many locations at once
=================  ================================================================

Importing this package is cheap: Numba and SciPy are loaded when a function is first used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from .dispatch import by_library

SMALLEST_RIDGE = 1e-12
"""With less, rounding decides how much each of several equal forecasts counts."""

_HOME = {
    "Forecasts": "forms",
    "circular_crps": "circular",
    "circular_mean": "circular",
    "circular_members": "circular",
    "circular_std": "circular",
    "on_circle": "circular",
    "squared_energy_distance": "distance",
    "spread_of_observations": "vectors",
    "vector_energy_distance": "vectors",
    "pairwise_distances": "pairwise",
    "normal_squared_energy_distance": "normal",
    "normal_crps": "normal",
    "normal_exceedance": "normal",
    "normal_mean_std": "normal",
    "normal_quantile": "normal",
    "median_bandwidth": "kernel",
    "similarity": "kernel",
    "FittedCKME": "embedding",
    "ckme_weights": "weights",
    "fit_ckme": "ckme",
    "fit_ckme_family": "ckme",
    "Vectors": "vector_ckme",
    "fit_vector_ckme": "vector_ckme",
    "vector_ckme_weights": "vector_ckme",
    "ridge_losses": "ridges",
    "Settings": "embedding",
    "project_energy": "simplex",
    "project_simplex": "simplex",
    "equal_members": "members",
    "shuffled_members": "members",
    "reordered_members": "reordering",
    "systematic_draws": "systematic",
    "whole_weights": "systematic",
    "weighted_cdf": "weighted",
    "weighted_exceedance": "weighted",
    "weighted_mean": "weighted",
    "weighted_quantile": "weighted",
    "weighted_std": "weighted",
    "crps": "scores",
    "fair_crps": "scores",
    "threshold_weighted_crps": "scores",
    "normal_threshold_crps": "normal_thresholds",
    "censored_threshold_crps": "normal_thresholds",
    "quantile_score": "quantile_scores",
    "quantile_weighted_crps": "quantile_scores",
    "brier_score": "event_scores",
    "ranked_probability_score": "event_scores",
    "energy_score": "multivariate",
    "variogram_score": "multivariate",
    "Skill": "skill",
    "skill_score": "skill",
    "Decomposition": "decomposition",
    "decompose": "decomposition",
    "half_squared_distance": "decomposition",
    "censored_normal_crps": "censored",
    "censored_normal_exceedance": "censored",
    "censored_normal_mean_std": "censored",
    "censored_normal_quantile": "censored",
    "category_probabilities": "categories",
    "climatology_quantiles": "climatology",
    "climatology_weights": "climatology",
    "in_window": "climatology",
    "fit_index": "idr",
    "idr_weights": "idr",
    "index_of": "idr",
    "laplace_expectations": "expectations",
    "target_bandwidth": "expectations",
    "case_matrix": "skce",
    "skce_biased": "skce",
    "skce_blocks": "skce",
    "skce_matrix": "skce",
    "skce_unbiased": "skce",
    "block_p_value": "calibration_tests",
    "skce_test": "calibration_tests",
    "montecarlo_test": "montecarlo",
    "skce_locations": "calibration",
    "conformal_levels": "pit",
    "hash_uniform": "draws",
    "uniform_at": "draws",
    "pit_values": "pit",
    "quantile_pit": "between_levels",
    "recalibrated_members": "pit",
    "find_bounds": "bounds",
    "Features": "covariates",
    "features": "covariates",
    "Split": "splitting",
    "splits": "splitting",
    "block_bootstrap_interval": "significance",
    "diebold_mariano": "significance",
    "standard_error": "significance",
    "pit_counts": "uniformity",
    "uniform_test": "uniformity",
    "flatness_test": "ranks",
    "observation_ranks": "ranks",
    "rank_counts": "ranks",
    "corp": "reliability",
    "quantile_reliability": "reliability",
    "interval_coverage": "intervals",
    "interval_score": "intervals",
    "spread_skill": "spread",
    "distance_correlation": "dependence",
    "adjusted_p_values": "discovery",
    "pool_weights": "pool",
    "fit_emos": "emos",
    "predict_emos": "emos",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _public(name)


@cache
def _public(name: str) -> Any:
    """A class, or a function that looks at the library of its arrays first."""
    found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return found if isinstance(found, type) else by_library(found)


def __dir__() -> list[str]:
    return __all__
