"""Tables of the benchmarks for the pages, from ``benchmarks/results`` when a page is built."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import Markdown

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
FEW = 100
"""Cases up to which a set counts as small"""


def results(name: str) -> pd.DataFrame:
    """Read the file of a benchmark."""
    return pd.read_csv(RESULTS / f"{name}.csv")


def one_of(name: str, title: str) -> pd.Series:
    """Values of one of the tables of a file, by row and column."""
    found = results(name)
    return found[found["table"] == title].set_index(["row", "column"])["value"]


def part(frame: pd.DataFrame, rows: dict[str, str], columns: dict[str, str]) -> pd.DataFrame:
    """Some rows and columns of a frame, by the names that the page gives them."""
    found = frame.loc[list(rows.values()), list(columns.values())]
    return found.set_axis(list(rows)).set_axis(list(columns), axis=1)


def show(texts: pd.DataFrame, corner: str = "", rule: str = "---:") -> Markdown:
    """Show texts as a table, with the index in the first column."""
    head = [corner, *texts.columns]
    rules = ["---", *[rule] * texts.shape[1]]
    lines = [head, rules, *texts.itertuples(name=None)]
    return Markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


def digits(number: float, n: int) -> str:
    """A number to ``n`` digits; a dash where there is none."""
    if np.isnan(number):
        return "–"
    rounded = float(f"{number:.{n}g}")
    return f"{rounded:,g}".replace(",", " ") if rounded >= 10_000 else f"{rounded:g}"


def four(number: float) -> str:
    return digits(number, 4)


def three(number: float) -> str:
    return digits(number, 3)


def two(number: float) -> str:
    return digits(number, 2)


def ratio(number: float) -> str:
    return "–" if np.isnan(number) else f"{number:.3f}"


def percent(share: float) -> str:
    """A share to two digits; an empty cell where there is none."""
    if np.isnan(share):
        return ""
    return "100 %" if share >= 0.995 else f"{100 * share:.2g} %"


def cases(number: float) -> str:
    return "never" if np.isinf(number) else f"{number:.0f}"


def p_value(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.2g}"


# tests of calibration -----------------------------------------------------------------------------


def shares(n: int, *, defined: bool = False) -> pd.DataFrame:
    """Shares of samples of ``n`` cases that each test rejects, or has a p-value of, by design."""
    found = results("calibration_tests")
    found = found[(found["cases"] == n) & ((found["kind"] == "told") == defined)]
    return found.set_index("design").drop(columns=["kind", "cases"])


def rejected() -> Markdown:
    """Rejections of forecasts whose faults are known."""
    designs = {
        "calibrated": "calibrated, independent cases",
        "observations spread 1.25 times as widely as forecast": "spread of the truth x 1.25",
        "bias of 0.3 standard deviations": "bias of 0.3 deviations",
        "too wide if wide, too narrow if narrow: flat PIT": "errors that cancel, flat PIT",
        "calibrated, cases with autocorrelation 0.8": "calibrated, autocorrelation 0.8",
    }
    tests = {
        "PIT": "PIT",
        "SKCE, bootstrap": "bootstrap",
        "SKCE, wild": "wild",
        "PIT, serial": "PIT, serial",
        "SKCE, serial": "SKCE, serial",
    }
    return show(part(shares(200), designs, tests).map(percent), "forecasts")


def rejected_of_dependent() -> Markdown:
    """Rejections of calibrated forecasts by autocorrelation; in brackets those with a p-value."""
    tests = {
        "PIT": "PIT",
        "SKCE, bootstrap": "bootstrap",
        "PIT, serial": "PIT, serial",
        "SKCE, serial": "SKCE, serial",
        "paired scores": "paired scores",
        "skill outside its interval": "skill interval",
    }
    sizes = {100: (0.0, 0.6), 200: (0.8, 0.9), 500: (0.6, 0.9, 0.95)}
    found = []
    for n, correlations in sizes.items():
        rows = {f"{rho:g}, {n}": f"calibrated, autocorrelation {rho}" for rho in correlations}
        defined = shares(n, defined=True).reindex(list(rows.values()), fill_value=1.0)
        brackets = part(defined, rows, tests).map(percent)
        texts = part(shares(n), rows, tests).map(percent)
        found.append(texts + (" (" + brackets + ")").replace([" (100 %)", " ()"], ""))
    return show(pd.concat(found).sort_index(), "autocorrelation, cases")


def rejected_in_seasons() -> Markdown:
    """Rejections by the SKCE test; in brackets without dates."""
    designs = {
        "calibrated": "calibrated",
        "90 % intervals that hold half": "90 % intervals that hold half",
        "observations spread 1.5 times as widely": "spread of the truth x 1.5",
        "bias of 0.3 standard deviations": "bias of 0.3 deviations",
        "anomalies half as large as forecast": "anomalies half as large as forecast",
    }
    columns = {}
    for cycle, n in (("no cycle", 200), ("annual cycle", 50), ("annual cycle", 200)):
        found = shares(n).loc[[f"{cycle}, {design}" for design in designs.values()]].map(percent)
        columns[f"{cycle}, {n} cases"] = [
            f"{dated} ({undated})" if cycle == "annual cycle" else dated
            for dated, undated in zip(found["SKCE, serial"], found["SKCE, undated"], strict=True)
        ]
    return show(pd.DataFrame(columns, list(designs)), "forecasts")


def rejected_of_left_out() -> Markdown:
    """Rejections of cross-validated forecasts by the SKCE test, by the number of years."""
    designs = {
        "regression on the other years, no correlation": (
            "regression on the other years, correlation 0"
        ),
        "the same, correlation 0.5": "regression on the other years, correlation 0.5",
        "the same, correlation 0.8": "regression on the other years, correlation 0.8",
        "climatology of the other years": "climatology of the other years",
        "climatology of earlier years": "climatology of earlier years",
    }
    found = {f"{n} years": shares(n)["bootstrap"] for n in (20, 50, 100)}
    columns = {name: name for name in found}
    return show(part(pd.DataFrame(found), designs, columns).map(percent), "forecasts")


def calibration() -> Markdown:
    """Intervals and p-values of some real hindcasts before and after recalibration."""
    sets = (
        "Innsbruck temperature", "Innsbruck rain", "Frankfurt rain", "Toulouse temperature 1",
        "GloFAS G0554 5 d", "MJO RMM1 10 d",
    )  # fmt: skip
    found = results("evidence").set_index("set").loc[list(sets)]
    raw = found["forecast"] == "raw"
    inside, tests = ["50 %", "90 %"], ["PIT p", "SKCE p", "SKCE p, serial"]
    texts = pd.concat([found[inside].map(percent), found[tests].map(p_value)], axis=1)
    texts = texts.rename(columns={level: f"in the central {level}" for level in inside})
    texts.insert(0, "forecast", found["forecast"])
    texts.insert(0, "cases", found["cases"].astype(str).where(raw, ""))
    return show(texts.set_axis(found.index.where(raw, "")), "hindcast")


def calibration_of_all() -> Markdown:
    """Numbers of all real hindcasts that tests reject before and after recalibration."""
    found = results("evidence").set_index("forecast")[["PIT p", "SKCE p", "SKCE p, serial"]]
    counts = (found < 0.05).groupby(level=0, sort=False).sum().map(str)
    return show(
        counts.rename(columns=lambda name: name.replace(" p", "")), f"of {len(found) // 2} sets"
    )


# monitor ------------------------------------------------------------------------------------------


def delays() -> Markdown:
    """Cases until the monitor finds a fault, by lead."""
    found = one_of("monitor", "wrong forecasts, medians of 1000 runs").astype(float).unstack()
    faults = {
        "spread too small by a factor of 1.5": "spread of the truth x 1.5",
        "spread too large by a factor of 1/0.7": "spread of the truth x 0.7",
        "bias of 0.5 standard deviations": "bias of 0.5 deviations",
        "two humps": "two humps",
    }
    events = {"alarm": "cases to an alarm", "change": "cases to a change"}
    leads = [
        part(
            found,
            {name: f"{fault}, lead {lead}" for name, fault in faults.items()},
            {f"{event}, lead {lead}": column for event, column in events.items()},
        )
        for lead in (1, 5)
    ]
    return show(pd.concat(leads, axis=1).map(cases), "fault")


def false_alarms() -> Markdown:
    """False alarms of forecasts that are exactly calibrated."""
    titles = {
        "calibrated forecasts, 1000 runs of 10000 cases": "10 000",
        "lags that are not told, 1000 runs of 1000 cases": "1000",
    }
    found = pd.concat(
        [
            one_of("monitor", title).astype(float).unstack().assign(n=n)
            for title, n in titles.items()
        ]
    )
    rows = {
        "lead 1": "calibrated, lead 1",
        "lead 5": "calibrated, lead 5",
        "lead 5, with `lag=1`": "lead 5 taken for lead 1",
    }
    names = ("cases a run", "runs with an alarm", "cases to a false change")
    texts = part(found, rows, dict(zip(names, ("n", *names[1:]), strict=True)))
    texts[names[1]] = texts[names[1]].map(percent)
    texts[names[2]] = texts[names[2]].map(two)
    return show(texts, "calibrated forecasts")


def alarms_of_fitted() -> Markdown:
    """Alarms of forecasts that were fitted to few cases."""
    found = (
        one_of("monitor", "fitted forecasts, share of 1000 runs with an alarm")
        .astype(float)
        .unstack()
    )
    rows = {f"{n} cases": f"learned from {n} cases" for n in (100, 300, 1000)}
    columns = {
        "1 year": "never anew, 1 years",
        "3 years": "never anew, 3 years",
        "10 years": "never anew, 10 years",
        "10 years, anew each year": "anew each year, 10 years",
    }
    return show(part(found, rows, columns).map(percent), "learned from")


def quiet_years() -> Markdown:
    """False alarms and changes in simulated years of a cycle in which nothing is wrong."""
    found = one_of("monitor", "quiet years, 200 of a cycle").astype(float).unstack()
    years, changes = found["years with an alarm"], found["changes a year"]
    texts = pd.DataFrame({"years with an alarm": years.map(percent), "changes a year": changes})
    texts.loc["all"] = [percent(years.mean()), changes.mean()]
    texts["changes a year"] = texts["changes a year"].map(three)
    return show(texts.rename(index={"all": "mean"}), "lead")


def morning() -> Markdown:
    """Time of a morning of a cycle, and sizes of what its folder holds."""
    found = results("morning")
    texts = found["value"].map(three) + " " + found["unit"]
    return show(texts.to_frame("measured").set_axis(found["row"]), "")


def better_method() -> Markdown:
    """Cases until the e-value of a score difference finds the better method."""
    found = one_of("monitor", "e-values of score differences, 1000 runs").astype(float).unstack()
    texts = {
        "runs with an alarm": found["runs with an alarm"].map(percent),
        "cases to an alarm": found["cases to an alarm"].map(cases),
    }
    return show(pd.DataFrame(texts), "forecasts")


# skill on real forecasts --------------------------------------------------------------------------


def skill() -> Markdown:
    """CRPS of methods on some of the sets; the smallest is bold."""
    sets = (
        "Innsbruck temperature", "Innsbruck rain", "Innsbruck 3-day rain", "Frankfurt rain",
        "Toulouse temperature 1", "GloFAS G0554 5 d", "GloFAS G0565 14 d", "MJO RMM1 1 d",
        "HEFS discharge", "CESM decadal SST 5 a",
    )  # fmt: skip
    methods = ["raw", "climatology", "EMOS", "EMOS + season", "IDR", "CKME", "LinearPool"]
    found = results("skill").set_index("set").loc[list(sets)]
    texts = found[methods].map(four)
    for name, best in found[methods].idxmin(axis=1).items():
        texts.loc[name, best] = f"**{texts.loc[name, best]}**"
    numbers = found[["cases", "scored"]].astype(str)
    texts.insert(0, "cases", numbers["cases"] + " + " + numbers["scored"])
    return show(
        texts.rename(columns={"CKME": "`CKME()` given the season", "LinearPool": "`LinearPool()`"}),
        "set",
    )


MEASURES = {
    "geometric mean": lambda ratios: np.exp(np.log(ratios).mean()),
    "median": lambda ratios: ratios.median(),
    "worst": lambda ratios: ratios.max(),
}
"""Of the sources, each of which counts once."""


def of_sources(rows: pd.DataFrame) -> pd.DataFrame:
    """Measures of the geometric means of the sources, by column."""
    logarithms = np.log(rows.set_index("source").select_dtypes("number"))
    each = np.exp(logarithms.groupby("source").mean())
    return pd.DataFrame({name: measure(each) for name, measure in MEASURES.items()})


def skill_of_all() -> Markdown:
    """CRPS of methods over that of others on each set."""
    rows = results("skill")
    parts = {
        "the best, all": (rows, "best"),
        f"the best, more than {FEW} cases": (rows[rows["cases"] > FEW], "best"),
        f"the best, at most {FEW} cases": (rows[rows["cases"] <= FEW], "best"),
        "EMOS, with season where there is one": (rows, "EMOS"),
        "a fit of each place alone": (rows[rows["places"] > 1], "each"),
    }
    found = {}
    for name, (own, other) in parts.items():
        column = f"LinearPool/{other}"
        label = f"{name} ({own['source'].nunique()} sources, {len(own)} sets)"
        found[label] = of_sources(own[["source", column]]).map(ratio).loc[column]
    return show(pd.DataFrame(found).T, "`LinearPool()` over")


def shared() -> Markdown:
    """CRPS of one fit for many places, and of pools with and without it."""
    found = results("skill_places").set_index("set")
    found["with shared / LinearPool"] = found["with shared"] / found["LinearPool"]
    scores = ["EMOS", "1500 cases", "shared", "LinearPool", "with shared"]
    ratios = ["shared / EMOS", "with shared / LinearPool"]
    numbers = [
        found[["places", "cases"]].map(str),
        found[scores].map(four),
        found[ratios].map(ratio),
    ]
    return show(pd.concat(numbers, axis=1), "set")


def predictors() -> Markdown:
    """CRPS of what takes predictors, over EMOS with season of each place; the smallest is bold."""
    found = results("skill_predictors").set_index("set")
    methods = {
        "EMOS, predictors": "EMOS with all",
        "forest": "forest",
        "`LinearPool()`": "pool without",
        "`CKME`, predictors": "CKME with all",
        "`LinearPool`, predictors": "pool with",
    }
    over = found[list(methods.values())].div(found["EMOS + season"], axis=0)
    texts = over.map(ratio)
    for name, best in over.idxmin(axis=1).items():
        texts.loc[name, best] = f"**{texts.loc[name, best]}**"
    texts = texts.set_axis(list(methods), axis=1)
    texts["over the best other"] = [
        f"{one:.3f} ± {error:.3f}"
        for one, error in zip(found["with / best"], found["best error"], strict=True)
    ]
    for column in ("cases", "predictors", "places"):
        texts.insert(0, column, found[column].map(str))
    return show(texts, "set")


def predictors_of_all() -> Markdown:
    """CRPS of the pool with predictors over that of others, over sources."""
    found = of_sources(results("skill_predictors")[["source", "with / reference", "with / best"]])
    names = {"EMOS with season": "with / reference", "the best other": "with / best"}
    texts = found.map(ratio).loc[list(names.values())].set_axis(list(names))
    return show(texts, "`LinearPool` with predictors over")


def named_members() -> Markdown:
    """CRPS with weights for each model over that with exchangeable members."""
    found = results("skill_named").set_index("set")
    ratios = found[["EMOS ratio", "pool ratio"]]
    of_emos, of_pool = ratios.loc["Toulouse"]
    others = ratios[(found["cases"] >= 40) & (ratios.index != "Toulouse")]
    short = ratios[found["cases"] < 40].to_numpy()
    return Markdown(
        f"Measured (`python -m benchmarks.skill.named`, CRPS over that with exchangeable members): "
        f"five centres at Toulouse {of_emos:.3f} with EMOS and {of_pool:.3f} with `LinearPool`, "
        f"{len(others)} markets of electricity {others.to_numpy().min():.3f} to "
        f"{others.to_numpy().max():.3f}, records of 15 to 30 cases at most {short.max():.3f}."
    )


def choices() -> Markdown:
    """CRPS of other pools over that of the best baseline, over sources."""
    names = {
        "chosen": "the best of these pools on all sources",
        "left out": "the best of these pools on the other sources",
        "best weights in hindsight": "best constant weights, chosen on the scored cases",
        "best weights of the other half": "best constant weights, chosen on the other half of them",
    }
    found = of_sources(results("skill_choices"))
    found = found.loc[[*found.index.drop(list(names)), *names]].rename(names)
    return show(found.map(ratio), "pool")


# streams ------------------------------------------------------------------------------------------


def streams() -> Markdown:
    """CRPS of pools on the streams of each source."""
    columns = {
        "`LinearPool`": "pool over best",
        "`OnlinePool`": "over best",
        "over `LinearPool`": "over pool",
        "over raw": "over raw, late",
    }
    own = results("streams").groupby("source", sort=False)
    texts = own[list(columns.values())].median().map(ratio).set_axis(list(columns), axis=1)
    texts.insert(0, "streams", own.size().map(str))
    texts["worst"] = own["over best"].max().map(ratio)
    return show(texts, "source")


def all_streams() -> Markdown:
    """CRPS of pools over all streams."""
    names = {
        "pool over best": "`LinearPool` over the best simple expert",
        "over best": "`OnlinePool` over the best simple expert",
        "over pool": "`OnlinePool` over `LinearPool`",
        "uncorrected over best": "its average without the experts corrected by their last errors",
        "best weights over best": "the best constant weights of all experts, in hindsight",
    }
    found = results("streams")[list(names)].rename(columns=names)
    texts = {
        "median": found.median().map(ratio),
        "worst": found.max().map(ratio),
        "streams above 1": (found > 1).sum().map(str),
    }
    return show(pd.DataFrame(texts), f"{len(found)} streams")


# costs --------------------------------------------------------------------------------------------


def days() -> Markdown:
    """Time that ``OnlinePool`` takes for a day and for a year, by the number of stations."""
    found = results("daily").set_index("stations")
    found["hours"] = 1000 / found.index * found["year s"] / 3600
    columns = {
        "days": "cases", "members": "members", "fit s": "fit (s)", "update ms": "learn a day (ms)",
        "issue ms": "issue the next (ms)", "year s": "a year (s)",
        "hours": "a year of 1000 stations (h)",
    }  # fmt: skip
    texts = found[list(columns)].map(three).rename(columns=columns)
    return show(texts.set_axis(found.index.map(str)), "stations")


def costs() -> Markdown:
    """Seconds and memory that one location takes."""
    found = one_of("bench", "Cost by the number of cases n, m = 50, seconds").astype(float)
    budgets = one_of("bench", "Budgets")
    rows = []
    for n, solver in ((250, "exact"), (1000, "low rank"), (10_000, "low rank")):
        seconds = (found[f"n={n} m=50", f"{part}, {solver}"] for part in ("fit", "100"))
        rows.append([digits(n, 6), *(f"{two(s)} s" for s in seconds), ""])
    rows[-1][-1] = f"{two(float(budgets['fit n=10000 m=50: peak memory', 'measured']))} GiB"
    largest = budgets["  fit n=100000 m=50"]
    memory = float(largest["absolute"].split(" MB")[0]) * 1e6 / 2**30
    rows.append(["100 000", f"{two(float(largest['measured']))} s", "", f"{two(memory)} GiB"])
    columns = ["cases", "fit", "100 forecasts", "memory of the fit"]
    return show(pd.DataFrame(rows, columns=columns).set_index("cases"), "cases")


def other_costs() -> Markdown:
    """Size of stored models, and the time of a fit of the pool."""
    found = one_of("bench", "Budgets")
    stored = "stored model / hindcast, "
    texts = {
        name: two(float(value))
        for (name, column), value in found.items()
        if name.startswith(stored) and column == "measured"
    }
    pool = found["LinearPool fit / season fit, n=1000 m=50", "absolute"].split(" v ")[0]
    texts["fit of `LinearPool()`, n=1000 m=50"] = pool
    return show(pd.Series(texts).to_frame("measured"), "n cases of m members")


MATRIX = Path(__file__).parents[1] / "tests" / "matrix"


def device() -> Markdown:
    """Seconds on a CUDA device, and on the processor beside it."""
    rows = results("gpu")
    times = {
        "device": "device_s",
        "one core": "cpu_core_s",
        "all cores": "cpu_all_s",
        "device at its limit": "floor_s",
    }
    texts = rows[list(times.values())].map(two).set_axis(list(times), axis=1)
    texts.index = [
        f"{row.work}: {row.locations} × {row.n} cases of {row.m} members"
        for row in rows.itertuples()
    ]
    return show(texts)


def together() -> Markdown:
    """Show which methods work with which features; refusals have the numbers of the page."""
    found = pd.read_csv(MATRIX / "found.csv").pivot(
        index="feature", columns="method", values="outcome"
    )
    order = pd.read_csv(MATRIX / "found.csv")
    cells = found.loc[order["feature"].unique(), order["method"].unique()].map(_cell)
    refused = int(cells.map(str.isdigit).to_numpy().sum())
    # Names may break before an inner capital, so that the table fits the page.
    cells.columns = [re.sub("(?<=[a-zT])(?=[A-Z][a-z])", "\N{ZERO WIDTH SPACE}", n) for n in cells]
    table = show(cells, "feature", ":---:").data
    return Markdown(f"{refused} of {cells.size} pairs are refused.\n\n{table}")


REFUSALS = (
    "new place",
    "place beyond a pool",
    "pool in chunks",
    "Raw with predictors",
    "days of a network",
    "refit of sums",
    "refit of its own",
)
"""In the order in which the page explains them."""


def _cell(outcome: str) -> str:
    """A tick, a dash or the number of a refusal."""
    known = {"works": "✓", "no such setting": "–"}
    return known[outcome] if outcome in known else str(REFUSALS.index(outcome) + 1)
