"""Evidence: how good a forecast is, with its observations, and whether it can be trusted.

============================  =====================================================================
crps, quantile_weighted_crps  scores of whole distributions, or of parts of them
log_score                     minus the log of the density at what verified
wis                           median and central intervals, as forecast hubs score quantiles
brier_score, ...              scores of probabilities, categories and quantiles
energy_score, ...             scores of fields, whose places belong together
skill                         scores against those of a reference
pit, pit_histogram, pit_test  where observations fall within their forecasts
rank_histogram                ... among the members of plain ensembles
reliability, ...              what happens, given the probability or quantile that was issued
coverage                      central intervals: share of observations, width
spread_skill                  bias, error and spread
skce, skce_test               whether forecasts are calibrated given themselves
adjusted_p_values             many tests at once, as on a map
monitor                       evidence after each new case, and when calibration has changed
decompose                     what recalibration would gain
ridge_curve                   held-out loss of a CKME with each ridge
summary                       the most telling of these together
============================  =====================================================================
"""

from xrecal.products.log_score import log_score
from xrecal.products.scores import crps

from .decompose import decompose
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
from .spread import spread_skill
from .summary import summary
from .wis import wis

__all__ = [
    "adjusted_p_values",
    "brier_score",
    "coverage",
    "crps",
    "decompose",
    "energy_score",
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
    "skce",
    "skce_test",
    "skill",
    "spread_skill",
    "summary",
    "variogram_score",
    "wis",
]
