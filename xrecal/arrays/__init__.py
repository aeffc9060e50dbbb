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
device             what CuPy arrays are served by: many locations at once
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
    "Forecasts": "distributions.forms",
    "circular_crps": "distributions.circular",
    "circular_mean": "distributions.circular",
    "circular_members": "distributions.circular",
    "circular_std": "distributions.circular",
    "on_circle": "distributions.circular",
    "squared_energy_distance": "distributions.distance",
    "spread_of_observations": "distributions.vectors",
    "vector_energy_distance": "distributions.vectors",
    "pairwise_distances": "distributions.distance",
    "normal_squared_energy_distance": "distributions.normal",
    "normal_crps": "distributions.normal",
    "normal_exceedance": "distributions.normal",
    "normal_mean_std": "distributions.normal",
    "normal_quantile": "distributions.normal",
    "median_bandwidth": "kernels.kernel",
    "similarity": "kernels.kernel",
    "FittedCKME": "ckme.embedding",
    "ckme_weights": "ckme.weights",
    "fit_ckme": "ckme.ckme",
    "fit_ckme_family": "ckme.ckme",
    "Vectors": "ckme.vector_ckme",
    "fit_vector_ckme": "ckme.vector_ckme",
    "vector_ckme_weights": "ckme.vector_ckme",
    "ridge_losses": "ckme.ridges",
    "Settings": "ckme.embedding",
    "project_energy": "ckme.simplex",
    "project_simplex": "ckme.simplex",
    "equal_members": "distributions.members",
    "shuffled_members": "distributions.members",
    "reordered_members": "distributions.members",
    "systematic_draws": "distributions.members",
    "whole_weights": "distributions.members",
    "weighted_cdf": "distributions.weighted",
    "weighted_exceedance": "distributions.weighted",
    "weighted_mean": "distributions.weighted",
    "weighted_quantile": "distributions.weighted",
    "weighted_std": "distributions.weighted",
    "crps": "scores.crps",
    "fair_crps": "scores.crps",
    "threshold_weighted_crps": "scores.crps",
    "normal_threshold_crps": "distributions.normal_thresholds",
    "censored_threshold_crps": "distributions.normal_thresholds",
    "quantile_score": "scores.quantile_scores",
    "quantile_weighted_crps": "scores.quantile_scores",
    "brier_score": "scores.event_scores",
    "ranked_probability_score": "scores.event_scores",
    "energy_score": "scores.multivariate",
    "variogram_score": "scores.multivariate",
    "Skill": "scores.significance",
    "skill_score": "scores.significance",
    "Decomposition": "scores.decomposition",
    "decompose": "scores.decomposition",
    "half_squared_distance": "scores.decomposition",
    "censored_normal_crps": "distributions.censored",
    "censored_normal_exceedance": "distributions.censored",
    "censored_normal_mean_std": "distributions.censored",
    "censored_normal_quantile": "distributions.censored",
    "category_probabilities": "distributions.weighted",
    "climatology_quantiles": "baselines.climatology",
    "climatology_weights": "baselines.climatology",
    "in_window": "baselines.climatology",
    "fit_index": "baselines.idr",
    "idr_weights": "baselines.idr",
    "index_of": "baselines.idr",
    "laplace_expectations": "calibration.expectations",
    "target_bandwidth": "calibration.expectations",
    "case_matrix": "calibration.skce",
    "skce_biased": "calibration.skce",
    "skce_blocks": "calibration.skce",
    "skce_matrix": "calibration.skce",
    "skce_unbiased": "calibration.skce",
    "block_p_value": "calibration.skce",
    "skce_test": "calibration.skce",
    "montecarlo_test": "calibration.montecarlo",
    "skce_locations": "calibration.skce_locations",
    "conformal_levels": "baselines.pit_recalibration",
    "hash_uniform": "distributions.draws",
    "uniform_at": "distributions.draws",
    "pit_values": "baselines.pit_recalibration",
    "quantile_pit": "distributions.between_levels",
    "recalibrated_members": "baselines.pit_recalibration",
    "find_bounds": "distributions.forms",
    "Features": "kernels.covariates",
    "features": "kernels.covariates",
    "Split": "splitting",
    "splits": "splitting",
    "block_bootstrap_interval": "scores.significance",
    "diebold_mariano": "scores.significance",
    "standard_error": "scores.significance",
    "pit_counts": "calibration.uniformity",
    "uniform_test": "calibration.uniformity",
    "flatness_test": "calibration.ranks",
    "observation_ranks": "calibration.ranks",
    "rank_counts": "calibration.ranks",
    "corp": "calibration.reliability",
    "quantile_reliability": "calibration.reliability",
    "interval_coverage": "scores.intervals",
    "interval_score": "scores.intervals",
    "spread_skill": "scores.spread",
    "distance_correlation": "calibration.dependence",
    "adjusted_p_values": "scores.significance",
    "pool_weights": "distributions.pool",
    "fit_emos": "baselines.emos",
    "predict_emos": "baselines.emos",
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
