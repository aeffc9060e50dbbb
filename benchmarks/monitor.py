"""False alarms and delays of the monitor of calibration: python -m benchmarks.monitor.

Errors of standard normal forecasts. Those of a lead of h steps are sums of h independent parts, one
of which each has in common with its neighbours h - 1 cases away, as errors of forecasts that know
nothing of the last h - 1 cases.
"""

import time

import numpy as np
import xarray as xr
from scipy.special import ndtr

from benchmarks.record import FOLDER, store
from xrecal import arrays
from xrecal.runs.watching import Watch, watched

RESULTS = FOLDER / "monitor.csv"
RUNS, STEPS, YEAR, YEARS = 1000, 10_000, 365, 200
ALPHA, RUN_LENGTH = 0.01, 3650
LEADS = (1, 5)
WRONG = {
    "spread of the truth x 1.5": lambda z: 1.5 * z,
    "bias of 0.5 deviations": lambda z: z + 0.5,
    "spread of the truth x 0.7": lambda z: 0.7 * z,
    "two humps": lambda z: np.sign(z) * np.sqrt(0.6 * z**2 + 0.4),
}
BUDGETS = {"spread of the truth x 1.5": 45, "bias of 0.5 deviations": 65}
"""Cases at a lead of one step after which half of the runs have an alarm."""

CHANGED = 2 * YEAR
"""Calibrated cases before a change."""


def errors(rng, runs, steps, lead):
    """Standard normal errors (r, t), independent from a distance of ``lead`` on."""
    parts = rng.normal(size=(runs, steps + lead - 1))
    return sum(parts[:, i : i + steps] for i in range(lead)) / np.sqrt(lead)


def e_values(z, lead, stretch=None):
    """E-values (r, t) of errors."""
    return arrays.calibration_e_values(ndtr(z)[:, np.newaxis], lead, stretch)


def changes(z, lead):
    """Whether a change is detected (r, t), and since when, of errors."""
    statistic, since = arrays.calibration_changes(ndtr(z)[:, np.newaxis], RUN_LENGTH, lead)
    return statistic >= RUN_LENGTH, since


def first(reached):
    """Cases up to the first one (r,) that reaches something; infinite without any."""
    return np.where(reached.any(-1), reached.argmax(-1) + 1.0, np.inf)


def false_alarms(rng, runs, steps):
    """Calibrated forecasts: share of runs with an alarm, cases to a false change."""
    for lead in LEADS:
        z = errors(rng, runs, steps, lead)
        found = int(changes(z, lead)[0].sum())
        yield (
            f"calibrated, lead {lead}",
            {
                "runs with an alarm": (e_values(z, lead) >= 1 / ALPHA).any(-1).mean(),
                "cases to a false change": z.size / max(found, 1),
            },
        )


def mistaken(rng, runs, steps):
    """Calibrated forecasts of the longest lead, whose errors are taken for new ones each time."""
    alarms = e_values(errors(rng, runs, steps, LEADS[-1]), 1) >= 1 / ALPHA
    yield f"lead {LEADS[-1]} taken for lead 1", {"runs with an alarm": alarms.any(-1).mean()}


def delays(rng, runs, steps):
    """Wrong forecasts: median of the cases to an alarm, and of those from a change to its call."""
    for design, make in WRONG.items():
        for lead in LEADS:
            z = make(errors(rng, runs, steps, lead))
            calm = errors(rng, runs, CHANGED, lead)
            found, since = changes(np.concatenate([calm, z], axis=-1), lead)
            at = first(found[:, CHANGED:])
            known = np.isfinite(at)
            begun = since[known, CHANGED - 1 + at[known].astype(int)] - CHANGED
            often = known.mean() > 0.5
            yield (
                f"{design}, lead {lead}",
                {
                    "cases to an alarm": np.median(first(e_values(z, lead) >= 1 / ALPHA)),
                    "cases to a change": np.median(at),
                    "since, after the change": np.median(begun) if often else np.nan,
                },
            )


def fitted(rng, runs, years):
    """Forecasts whose mean and spread were learned from n cases: share of runs with an alarm."""
    for n in (100, 300, 1000):
        learned = rng.normal(size=(runs, n))
        mean, std = learned.mean(-1, keepdims=True), learned.std(-1, ddof=1, keepdims=True)
        z = (rng.normal(size=(runs, max(years) * YEAR)) - mean) / std
        never = first(e_values(z, 1) >= 1 / ALPHA)
        stretch = np.arange(z.shape[1]) // YEAR
        yearly = first(e_values(z, 1, stretch) >= 1 / ALPHA)
        changed = first(changes(z, 1)[0])
        found = {"never anew": never, "anew each year": yearly, "change": changed}
        within = [(name, at, k) for name, at in found.items() for k in years]
        yield (
            f"learned from {n} cases",
            {f"{name}, {k} years": (at <= k * YEAR).mean() for name, at, k in within},
        )


def compared(rng, runs, steps):
    """Normal forecasts against one that is too high by 0.3: as bad, and better."""
    y = rng.normal(size=(runs, steps))
    score = {loc: arrays.normal_crps(y, loc, np.ones(())) for loc in (-0.3, 0.0, 0.3)}
    for name, loc in (("as good as the reference", -0.3), ("better by a bias of 0.3", 0.0)):
        bound = np.full(y.shape, 2 * (0.3 - loc))
        reached = arrays.score_e_values(score[0.3] - score[loc], bound) >= 1 / ALPHA
        yield (
            name,
            {
                "runs with an alarm": reached.any(-1).mean(),
                "cases to an alarm": np.median(first(reached)),
            },
        )


def quiet_years(rng, years):
    """Years of a cycle of five leads in which nothing is wrong: alarms, and changes a year."""
    leads = np.arange(1, 6)
    z = np.stack([errors(rng, years, YEAR, lead).T for lead in leads], axis=1)
    starts = np.datetime64("2021-01-01", "ns") + np.arange(YEAR) * np.timedelta64(1, "D")
    coords = {"init": starts, "lead": ("lead", 24 * leads, {"units": "hours"})}
    pit = xr.DataArray(ndtr(z), coords, ("init", "lead", "year"))
    valid = pit["init"] + pit["lead"].drop_attrs() * np.timedelta64(1, "h")
    scores = xr.Dataset({"t_pit": pit, "t_valid_time": valid})
    seen = watched(scores, ["t"], "init", Watch(ALPHA, RUN_LENGTH, "year"))
    for i, lead in enumerate(leads):
        one = seen.isel(lead=i)
        yield (
            f"{lead} day{'s' if lead > 1 else ''}",
            {
                "years with an alarm": float(one["t_alarm"].any("init").mean()),
                "changes a year": float(one["t_change"].sum("init").mean()),
            },
        )


def verdict(tables, runs):
    """Whether false alarms are as rare as promised, and errors found in time."""
    calibrated, _, found, _, compared_, years = tables
    most = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / runs)
    shares = [row["runs with an alarm"] for row in calibrated.values()]
    shares.append(compared_["as good as the reference"]["runs with an alarm"])
    of_years = np.mean([row["years with an alarm"] for row in years.values()])
    changes_a_year = np.mean([row["changes a year"] for row in years.values()])
    between = [row["cases to a false change"] for row in calibrated.values()]
    medians = {name: found[f"{name}, lead 1"]["cases to an alarm"] for name in BUDGETS}
    holds = (
        max(shares) <= most
        and min(between) >= RUN_LENGTH
        and of_years <= most
        and changes_a_year <= YEAR / RUN_LENGTH
        and all(medians[name] <= budget for name, budget in BUDGETS.items())
    )
    told = ", ".join(f"{name} in {medians[name]:.0f} (<= {BUDGETS[name]})" for name in BUDGETS)
    return (
        f"budget {'holds' if holds else 'MISSED'}: alarms in {max(shares):.1%} of calibrated runs "
        f"at most (<= {most:.1%}, three standard errors above {ALPHA:.0%}), {min(between):.0f} "
        f"cases to a false change (>= {RUN_LENGTH}), alarms in {of_years:.1%} of quiet years and "
        f"{changes_a_year:.3f} changes a year (<= {YEAR / RUN_LENGTH:g}), found in the median: "
        f"{told}"
    )


def main(quick=False):
    """Print the tables, and store them."""
    runs, steps, years = (20, 400, (1,)) if quick else (RUNS, STEPS, (1, 3, 10))
    rng, start = np.random.default_rng(0), time.perf_counter()
    tables = {
        f"calibrated forecasts, {runs} runs of {steps} cases": false_alarms(rng, runs, steps),
        f"lags that are not told, {runs} runs of 1000 cases": mistaken(rng, runs, 1000),
        f"wrong forecasts, medians of {runs} runs": delays(rng, runs, min(steps, 1500)),
        f"fitted forecasts, share of {runs} runs with an alarm": fitted(rng, runs, years),
        f"e-values of score differences, {runs} runs": compared(rng, runs, min(steps, 3000)),
        f"quiet years, {YEARS} of a cycle": quiet_years(rng, YEARS),
    }
    rows = []
    for table, made in tables.items():
        print(f"\n{table}")
        tables[table] = dict(made)
        for row, values in tables[table].items():
            cells = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
            print(f"  {row:<34}{cells}", flush=True)
            rows += [(table, row, name, f"{value:.4g}") for name, value in values.items()]
    if not quick:
        store(RESULTS, ["table", "row", "column", "value"], rows)
    print(f"{time.perf_counter() - start:.0f} s")
    print(verdict(tables.values(), runs))


if __name__ == "__main__":
    main()
