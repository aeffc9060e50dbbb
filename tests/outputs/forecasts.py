"""What is said of forecasts as they were issued, and of methods side by side."""

from collections.abc import Callable
from typing import Any

import xarray as xr

import xrecal

from .cases import (
    LEVELS,
    Cases,
    Output,
    leads_with_index,
    pair,
    rain,
    temperature,
)
from .methods import METHODS
from .models import made


def issued(cases: Cases, middle: float) -> Output:
    """All that is told of forecasts as they were issued."""
    x, seen = cases.hindcast.recal, cases.observed
    edges = [middle - 2, middle + 1.5]
    calls: dict[str, Callable[[], Any]] = {
        "mean": lambda: x.mean(),
        "std": lambda: x.std(),
        "quantile": lambda: x.quantile(LEVELS),
        "exceedance": lambda: x.exceedance([0.0, middle]),
        "cdf": lambda: x.cdf(middle),
        "categories": lambda: x.categories(edges),
        "members": lambda: x.members(7, seed=3),
        "crps": lambda: x.crps(seen),
        "crps_mean": lambda: x.crps(seen, dim="time"),
        "crps_fair": lambda: x.crps(seen, "time", fair=True),
        "crps_above": lambda: x.crps(seen, "time", lower=middle),
        "crps_between": lambda: x.crps(seen, "time", lower=middle - 2, upper=middle),
        "crps_tails": lambda: x.quantile_weighted_crps(seen, "time"),
        "crps_centre": lambda: x.quantile_weighted_crps(seen, "time", emphasis="center"),
        "log_score": lambda: x.log_score(seen),
        "brier_score": lambda: x.brier_score(seen, middle, "time"),
        "brier_score_fair": lambda: x.brier_score(seen, middle, "time", fair=True),
        "ranked_probability_score": lambda: x.ranked_probability_score(seen, edges, "time"),
        "quantile_score": lambda: x.quantile_score(seen, LEVELS, "time"),
        "energy_score": lambda: x.energy_score(seen, "station"),
        "variogram_score": lambda: x.variogram_score(seen, "station"),
        "pit": lambda: x.pit(seen, seed=3),
        "pit_augmented": lambda: x.pit(seen, augmented=True, seed=3),
        "pit_histogram": lambda: x.pit_histogram(seen),
        "pit_test": lambda: x.pit_test(seen),
        "rank_histogram": lambda: x.rank_histogram(seen),
        "reliability": lambda: x.reliability(seen, middle),
        "quantile_reliability": lambda: x.quantile_reliability(seen, LEVELS),
        "coverage": lambda: x.coverage(seen),
        "spread_skill": lambda: x.spread_skill(seen),
        "skce": lambda: x.skce(seen),
        "skce_augmented": lambda: x.skce(seen, augmented=True),
        "skce_test": lambda: x.skce_test(seen, n_resamples=200),
        "skce_test_wild": lambda: x.skce_test(seen, test="wild", n_resamples=200, block_length=4),
        "skce_test_montecarlo": lambda: x.skce_test(seen, test="montecarlo", n_resamples=20),
        "decompose": lambda: x.decompose(seen),
        "ridge_curve": lambda: x.ridge_curve(seen),
        "summary": lambda: x.summary(seen, n_resamples=200),
    }
    for name, call in calls.items():
        yield name, made(call)


def skill() -> Output:
    """Scores against those of a reference, and tests of many places."""
    cases = temperature()
    scores = cases.hindcast.recal.crps(cases.observed)
    reference = (cases.observed - cases.observed.mean("time")).__abs__()
    yield "skill", xrecal.skill(scores, reference, "time")
    tested = cases.hindcast.recal.pit_test(cases.observed)
    for method in ("bh", "by"):
        yield (
            f"adjusted_p_values.{method}",
            made(lambda m=method: xrecal.diagnostics.adjusted_p_values(tested.p_value, method=m)),
        )


def compared() -> Output:
    """Tables of methods, without their seconds."""
    methods = [xrecal.CKME(support="observations"), xrecal.EMOS(), xrecal.IDR()]
    for of, cases in (("t2m", temperature()), ("rain", rain())):
        table = xrecal.compare(cases.hindcast, cases.observed, methods, gap=1)
        yield f"{of}.held_out", timeless(table)
    cases = temperature()
    table = xrecal.compare(
        cases.hindcast,
        cases.observed,
        {"ours": xrecal.CKME(support="errors")},
        forecast=cases.hindcast.isel(time=slice(30, None)),
        verification=cases.observed,
        condition_on="season",
    )
    yield "later", timeless(table)


def timeless(table: Any) -> dict[str, xr.DataArray]:
    return {str(k): v for k, v in table.data_vars.items() if not str(k).endswith("seconds")}


def judged(cases: Cases, middle: float) -> Output:
    """Further scores, evidence and options of forecasts as they were issued."""
    x, seen = cases.hindcast.recal, cases.observed
    edges = [middle - 2, middle + 1.5]
    climate = seen.groupby("time.month").mean()
    calls: dict[str, Callable[[], Any]] = {
        "rps_fair": lambda: x.rps(seen, edges, "time", fair=True),
        "rpss": lambda: x.rpss(seen, edges),
        "rpss_of_shares": lambda: x.rpss(seen, edges, reference=[0.3, 0.3, 0.4]),
        "brier_skill_score": lambda: x.brier_skill_score(seen, edges),
        "brier_skill_score_of_raw": lambda: x.brier_skill_score(
            seen, middle, reference=cases.hindcast
        ),
        "anomaly_correlation": lambda: x.anomaly_correlation(seen),
        "anomaly_correlation_of_months": lambda: x.anomaly_correlation(seen, climate),
        "anomaly_correlation_of_patterns": lambda: x.anomaly_correlation(
            seen, middle, "station", centred=False
        ),
        "economic_value": lambda: x.economic_value(seen, middle),
        "error_spread": lambda: x.error_spread(seen),
        "error_spread_mean": lambda: x.error_spread(seen, "time"),
        "generalised_discrimination": lambda: x.generalised_discrimination(seen),
        "roc": lambda: x.roc(seen, edges),
        "roc_of_levels": lambda: x.roc(seen, middle, levels=[0.211, 0.511]),
        "tercile_summary": lambda: x.tercile_summary(seen),
        "tercile_summary_fair": lambda: x.tercile_summary(seen, edges=edges, fair=True),
        "tercile_summary_of_edges": lambda: x.tercile_summary(seen, edges=edges),
        "wis": lambda: x.wis(seen),
        "wis_of_levels": lambda: x.wis(seen, "time", levels=[0.1, 0.5, 0.9]),
        "variogram_score_of_order": lambda: x.variogram_score(seen, "station", "time", order=1.0),
        "energy_score_mean": lambda: x.energy_score(seen, "station", "time"),
        "monitor": lambda: x.monitor(seen),
        "monitor_without_restart": lambda: x.monitor(
            seen, alpha=0.1, run_length=50, restart=None, lag=2, seed=5
        ),
        "monitor_augmented": lambda: x.monitor(seen, augmented=True),
        "coverage_of_places": lambda: x.coverage(seen, ("time", "station"), level=0.7, seed=5),
        "crps_of_places": lambda: x.crps(seen, ("time", "station")),
        "pit_histogram_of_places": lambda: x.pit_histogram(seen, ("time", "station"), bins=6),
        "pit_test_in_blocks": lambda: x.pit_test(seen, block_length=3),
        "rank_histogram_seeded": lambda: x.rank_histogram(seen, "time", seed=5),
        "reliability_of_places": lambda: x.reliability(seen, edges, ("time", "station")),
        "spread_skill_in_bins": lambda: x.spread_skill(seen, "time", bins=3),
        "summary_in_blocks": lambda: x.summary(seen, n_resamples=50, block_length=2),
    }
    for name, call in calls.items():
        yield name, made(call)


def judged_together() -> Output:
    """Temperature and rain as vectors, and as recalibrated with each other."""
    cases = pair()
    names = ("t2m", "rain")
    spread = cases.observed.std("time")
    x = cases.hindcast.recal
    yield "energy_score", x.energy_score(cases.observed, jointly=names, scale=spread)
    yield "fields", x.energy_score(cases.observed, "station", jointly=names, scale=spread)
    yield "mean", x.energy_score(cases.observed, dim="time", jointly=names, scale=spread)
    model = cases.hindcast.recal.fit(cases.observed, METHODS["ckme"], jointly=names)
    issued = model.apply(cases.forecast).recal
    yield "issued", issued.energy_score(cases.verified, jointly=names, scale=spread)


def explained() -> Output:
    """Where a method gains, and how its loss depends on the ridge, by other settings."""
    cases = temperature()
    x, seen = cases.hindcast.recal, cases.observed
    options = {"by": "retrospective", "blocks": 3, "gap": 1}
    for name in ("emos", "ckme_season", "climatology"):
        yield f"decompose.{name}", made(lambda m=METHODS[name]: x.decompose(seen, m, **options))
    for name in ("ckme_errors", "ckme_season", "ckme_lowrank", "ckme_half_life"):
        yield f"ridge_curve.{name}", made(lambda m=METHODS[name]: x.ridge_curve(seen, m))


def compared_otherwise() -> Output:
    """Tables of methods by other splits, pooled, with covariates, and with sequential evidence."""
    methods = {"emos": xrecal.EMOS(), "ckme": xrecal.CKME(support="errors")}
    rolling = {"by": "rolling", "blocks": 2, "every": 10}
    ways: dict[str, tuple[Cases, dict[str, Any]]] = {
        "pooled": (temperature(), {"pool": "station", "by": "year", "cluster": "year"}),
        "replayed": (rain(), {**rolling, "refit": 20}),
        "sequential": (temperature(), {**rolling, "sequential": True, "block_length": 2}),
        "of_leads": (leads_with_index(), {"condition_on": "index", "gap": "93D"}),
    }
    for name, (cases, options) in ways.items():
        table = xrecal.compare(cases.hindcast, cases.observed, methods, **options)
        yield name, timeless(table)
        yield f"{name}.pairs", table.pairs()


def drawn() -> Output:
    """Data sets that come with the package."""
    yield "sinus", xrecal.datasets.sinus(50, seed=3)
    yield "lorenz96", xrecal.datasets.lorenz96(4, 3, 4, (1, 2), seed=3)
