"""Forecasts to be judged, and every diagnostic as a call of them and the observations."""

import numpy as np
import xarray as xr

import xrecal
from tests.strategies import FORMS as RECALIBRATED
from tests.strategies import ensemble_and_truth


def hindcast(n=12, m=5, seed=0, step=None, dtype=np.float64):
    """Ensemble (time, member, lat, lon) somewhat too warm and too narrow, and the truth.

    Values are rounded to multiples of ``step``, so that there are ties.
    """
    ensemble, truth = ensemble_and_truth(n=n, m=m, seed=seed)
    rng = np.random.default_rng(seed + 100)
    signal = 280 + 2 * rng.normal(size=truth.shape)
    values = signal + rng.normal(size=truth.shape)
    members = 0.3 + signal[:, np.newaxis] + 0.8 * rng.normal(size=ensemble.shape)
    if step is not None:
        values, members = (step * np.round(array / step) for array in (values, members))
    return ensemble.copy(data=members).astype(dtype), truth.copy(data=values).astype(dtype)


def _censored(ensemble):
    loc, scale = (getattr(ensemble, f)("member", keep_attrs=True) for f in ("mean", "std"))
    return xrecal.gaussian(loc, scale, lower=278.0, upper=283.0)


FORMS = {**RECALIBRATED, "censored": _censored}
MEMBERS = ("ensemble", "weighted", "shared", "quantile", "percentile")

THRESHOLDS = [279.0, 281.5]

EVIDENCE = {
    "pit_histogram": lambda f, y, *dim, **options: f.recal.pit_histogram(
        y, *dim, bins=7, **options
    ),
    "pit_test": lambda f, y, *dim, **options: f.recal.pit_test(y, *dim, **options),
    "rank_histogram": lambda f, y, *dim, **options: f.recal.rank_histogram(y, *dim, **options),
    "reliability": lambda f, y, *dim, **options: f.recal.reliability(
        y, THRESHOLDS, *dim, **options
    ),
    "quantile_reliability": lambda f, y, *dim, **options: f.recal.quantile_reliability(
        y, [0.35, 0.85], *dim, **options
    ),
    "coverage": lambda f, y, *dim, **options: f.recal.coverage(y, *dim, **options),
    "roc": lambda f, y, *dim, **options: f.recal.roc(
        y, THRESHOLDS, *dim, levels=[0.0, 0.35, 0.95], **options
    ),
    "economic_value": lambda f, y, *dim, **options: f.recal.economic_value(
        y, THRESHOLDS, *dim, cost_loss=[0.3, 0.7], **options
    ),
    "brier_skill_score": lambda f, y, *dim, **options: f.recal.brier_skill_score(
        y, THRESHOLDS, *dim, **options
    ),
    "rpss": lambda f, y, *dim, **options: f.recal.rpss(y, THRESHOLDS, *dim, **options),
    "anomaly_correlation": lambda f, y, *dim, **options: f.recal.anomaly_correlation(
        y, None, *dim, **options
    ),
    "tercile_summary": lambda f, y, *dim, **options: f.recal.tercile_summary(
        y, *dim, edges=THRESHOLDS, **options
    ),
    "spread_skill": lambda f, y, *dim, **options: f.recal.spread_skill(y, *dim, bins=3, **options),
}
"""Datasets over locations of one variable; dimensions of cases may follow."""

SCORES = {
    "crps": lambda f, y, *dim: f.recal.crps(y, *dim),
    "fair_crps": lambda f, y, *dim: f.recal.crps(y, *dim, fair=True),
    "crps_between": lambda f, y, *dim: f.recal.crps(y, *dim, lower=279.0, upper=281.0),
    "quantile_weighted_crps": lambda f, y, *dim: f.recal.quantile_weighted_crps(y, *dim),
    "log_score": lambda f, y, *dim: f.recal.log_score(y, *dim),
    "brier_score": lambda f, y, *dim: f.recal.brier_score(y, THRESHOLDS, *dim),
    "fair_brier_score": lambda f, y, *dim: f.recal.brier_score(y, THRESHOLDS, *dim, fair=True),
    "ranked_probability_score": lambda f, y, *dim: f.recal.ranked_probability_score(
        y, THRESHOLDS, *dim
    ),
    "quantile_score": lambda f, y, *dim: f.recal.quantile_score(y, [0.35, 0.85], *dim),
    "wis": lambda f, y, *dim: f.recal.wis(y, *dim, levels=[0.3, 0.5, 0.7]),
    "error_spread": lambda f, y, *dim: f.recal.error_spread(y, *dim),
}
"""Scores of each case; dimensions to average over may follow."""

WHOLE = {
    "skce_test": lambda f, y, *dim: f.recal.skce_test(y, *dim, n_resamples=20, seed=5),
    "generalised_discrimination": lambda f, y, *dim: f.recal.generalised_discrimination(y, *dim),
    "decompose": lambda f, y: f.recal.decompose(y, xrecal.Climatology()),
    "decompose by EMOS": lambda f, y: f.recal.decompose(y, xrecal.EMOS()),
    "ridge_curve": lambda f, y: f.recal.ridge_curve(y, min_samples=10),
    "monitor": lambda f, y, *dim: f.recal.monitor(y, *dim, restart=None),
}
"""Datasets of one variable that compare its cases with each other, in order of time."""

PIT = {"pit": lambda f, y: f.recal.pit(y)}


def accepts(name, form):
    """Whether a diagnostic is defined for a form."""
    if name.startswith("fair") or name == "rank_histogram":
        return form == "ensemble"
    return name != "wis" or form != "quantile"  # quantiles are those that were issued


FEW_FORMS = ("roc", "economic_value", "brier_skill_score", "rpss", "anomaly_correlation")
"""Diagnostics of probabilities or means, which are the same whatever the form."""


def pairs_of(calls):
    """Diagnostics with each form that they are defined for, or some of them."""
    some = dict.fromkeys((*FEW_FORMS, "tercile_summary"), ("weighted", "normal"))
    return [(name, form) for name in calls for form in some.get(name, FORMS) if accepts(name, form)]


def variables(result):
    """Arrays of a result, by name."""
    return dict(result.data_vars) if isinstance(result, xr.Dataset) else {result.name: result}
