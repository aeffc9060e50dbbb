"""Evaluate forecasts against their observations: scores, and tests of calibration.

============================  =====================================================================
crps, quantile_weighted_crps  scores of whole distributions, or of parts of them
log_score                     minus the log of the density at the observation
wis                           weighted interval score, by which forecast hubs score quantiles
brier_score, ...              scores of probabilities, categories and quantiles
energy_score, ...             scores of fields, with all their places together
error_spread                  score of forecast mean, spread and skewness
skill                         share of the CRPS of a reference that the forecast saves
brier_skill_score, rpss       skill of probabilities of events, or of categories
roc, economic_value           hit rates, false alarm rates; value of forecasts for decisions
generalised_discrimination    share of pairs of cases that forecasts order correctly
anomaly_correlation           correlation of the forecast mean with observations
tercile_summary               probabilities of terciles; their skill, discrimination, reliability
pit, pit_histogram, pit_test  probability that a forecast gives to values up to its observation
rank_histogram                rank of the observation among the members of a plain ensemble
reliability, ...              frequency of events for each issued probability or quantile
coverage                      share of observations in central intervals, and their width
spread_skill                  bias, error and spread of forecasts
skce, skce_test               error and test of calibration given the forecast
adjusted_p_values             p-values of many tests, adjusted for the number of tests
monitor                       evidence against calibration after each new case, with alarms
decompose                     part of the CRPS that recalibration can remove
ridge_curve                   held-out loss of a CKME for each of several ridges
summary                       the main diagnostics together
============================  =====================================================================

To add a score, write its function with the decorator ``score_entry``, which adds the score to the
table ``SCORES``. ``--score`` of the command accepts the scores in this table; ``output=`` of
``cross_validate`` accepts only scores that have a value for each case. Then add the function to the
imports and to ``Doors``, the methods of forecasts. To make the score a method of fitted models, add
the function to ``Verbs`` too.
"""

from xrecal.methods.doors import Accessor, door, verb
from xrecal.products.log_score import log_score
from xrecal.products.of_model import of_model
from xrecal.products.scores import SCORES as SCORES
from xrecal.products.scores import crps, model_pit

from .correlation import anomaly_correlation
from .decompose import decompose
from .discrimination import economic_value, generalised_discrimination, roc
from .error_spread import error_spread
from .intervals import coverage
from .monitor import monitor
from .multivariate import energy_score, variogram_score
from .p_values import adjusted_p_values
from .pit import pit, pit_histogram, pit_test
from .probability_scores import brier_score, quantile_score, ranked_probability_score
from .ranks import rank_histogram
from .reliability import quantile_reliability, reliability
from .ridge import ridge_curve
from .scores import quantile_weighted_crps
from .skce import skce, skce_test
from .skill import skill
from .skill_scores import brier_skill_score, rpss
from .spread import spread_skill
from .summary import summary
from .terciles import tercile_summary
from .wis import wis

rps = ranked_probability_score

__all__ = [
    "adjusted_p_values",
    "anomaly_correlation",
    "brier_score",
    "brier_skill_score",
    "coverage",
    "crps",
    "decompose",
    "economic_value",
    "energy_score",
    "error_spread",
    "generalised_discrimination",
    "log_score",
    "monitor",
    "pit",
    "pit_histogram",
    "pit_test",
    "quantile_reliability",
    "quantile_score",
    "quantile_weighted_crps",
    "rank_histogram",
    "ranked_probability_score",
    "reliability",
    "ridge_curve",
    "roc",
    "rps",
    "rpss",
    "skce",
    "skce_test",
    "skill",
    "spread_skill",
    "summary",
    "tercile_summary",
    "variogram_score",
    "wis",
]


class Doors(Accessor):
    """Scores and tests as methods of forecasts."""

    crps = door(crps)
    quantile_weighted_crps = door(quantile_weighted_crps)
    log_score = door(log_score)
    brier_score = door(brier_score)
    ranked_probability_score = door(ranked_probability_score)
    rps = ranked_probability_score
    quantile_score = door(quantile_score)
    wis = door(wis)
    error_spread = door(error_spread)
    energy_score = door(energy_score)
    variogram_score = door(variogram_score)

    brier_skill_score = door(brier_skill_score)
    rpss = door(rpss)
    roc = door(roc)
    economic_value = door(economic_value)
    generalised_discrimination = door(generalised_discrimination)
    anomaly_correlation = door(anomaly_correlation)
    tercile_summary = door(tercile_summary)

    pit = door(pit)
    pit_histogram = door(pit_histogram)
    pit_test = door(pit_test)
    rank_histogram = door(rank_histogram)
    reliability = door(reliability)
    quantile_reliability = door(quantile_reliability)
    coverage = door(coverage)
    spread_skill = door(spread_skill)
    skce = door(skce)
    skce_test = door(skce_test)
    monitor = door(monitor)
    decompose = door(decompose)
    ridge_curve = door(ridge_curve)
    summary = door(summary)


class Verbs:
    """Scores as methods of a fitted model."""

    crps = of_model(crps, "fair", "lower", "upper")
    log_score = of_model(log_score)
    brier_score = of_model(brier_score, "fair")
    ranked_probability_score = of_model(ranked_probability_score, "fair")
    rps = ranked_probability_score
    quantile_score = of_model(quantile_score)
    wis = of_model(wis)
    error_spread = of_model(error_spread)
    pit = verb(model_pit, "pit")
