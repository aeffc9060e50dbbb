"""Figures of forecasts and of results of :mod:`xrecal.diagnostics`, on matplotlib Axes.

=================================  =================================================================
fan                                quantiles over dates or leads, observations, raw ensembles
cdf, density                       one forecast, and the past cases with the most weight
pit, rank_histogram                histograms, with the band of calibrated forecasts
reliability, quantile_reliability  observed frequency or quantile against the forecast
roc, performance                   hit rate against false alarm rate or success ratio
coverage                           central intervals: share of observations inside
spread_skill                       error of the mean against spread of the forecasts
monitor                            evidence against calibration over time
skill_by_lead                      skill over lead times
skill_map, p_value_map             maps of skill and of p-values; dots mark significant results
tercile_map                        map of the likeliest tercile of one forecast
ridge_curve                        held-out loss of a CKME with each ridge
report                             one page with the main figures
=================================  =================================================================

Each function draws on the Axes ``ax`` and returns them; without ``ax``, it makes a new figure. Only
``report`` computes scores and tests; the other functions draw results that you pass. No function
changes settings of matplotlib. All functions compute inputs that are Dask arrays. The methods of
``forecast.recal.plot`` compute scores and tests first, and then draw them.
"""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("figures need matplotlib: pip install 'xrecal[plot]'") from error

from .case import cdf, density
from .coverage import coverage
from .discrimination import performance, roc
from .fan import fan
from .histograms import pit, rank_histogram
from .leads import skill_by_lead
from .maps import p_value_map, skill_map, tercile_map
from .monitor import monitor
from .page import report
from .reliability import quantile_reliability, reliability
from .ridge import ridge_curve
from .spread import spread_skill

__all__ = [
    "cdf",
    "coverage",
    "density",
    "fan",
    "monitor",
    "p_value_map",
    "performance",
    "pit",
    "quantile_reliability",
    "rank_histogram",
    "reliability",
    "report",
    "ridge_curve",
    "roc",
    "skill_by_lead",
    "skill_map",
    "spread_skill",
    "tercile_map",
]
