"""Numbers that pages quote are those that the benchmarks have stored, as they are stored now."""

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks import daily
from benchmarks.record import FOLDER
from benchmarks.skill import choices, places
from benchmarks.skill.table import FEW, RATIOS, median_of_sources

DOCS = Path(__file__).parents[1] / "docs"


def stored(name):
    with (FOLDER / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def percent(share):
    hundredths = 100 * float(share)
    return f"{hundredths:.2g} %" if hundredths < 99.5 else "100 %"


def p_value(p):
    return "<0.001" if float(p) < 0.001 else f"{float(p):.2g}"


def line(*cells):
    return f"| {' | '.join(cells)} |".replace("|  ", "| ")


# skill --------------------------------------------------------------------------------------------

SHOWN = {
    "raw": "raw", "climatology": "climatology", "EMOS": "EMOS", "EMOS + season": "EMOS + season",
    "IDR": "IDR", "`CKME()` given the season": "CKME", "LinearPool": "LinearPool",
}  # fmt: skip
SETS = (
    "Innsbruck temperature", "Innsbruck rain", "Innsbruck 3-day rain", "Frankfurt rain",
    "Toulouse temperature 1", "GloFAS G0554 5 d", "GloFAS G0565 14 d", "MJO RMM1 1 d",
    "HEFS discharge", "CESM decadal SST 5 a",
)  # fmt: skip


def skill_lines():
    yield line("set", "cases", *SHOWN)
    rows = {row["set"]: row for row in stored("skill")}
    for name in SETS:
        row = rows[name]
        found = [float(row[column] or "nan") for column in SHOWN.values()]
        cells = ["–" if np.isnan(x) else f"{x:.4g}" for x in found]
        best = int(np.nanargmin(found))
        cells[best] = f"**{cells[best]}**"
        yield line(name, f"{row['cases']} + {row['scored']}", *cells)


def skill_words():
    rows = stored("skill")
    pool, before, ckme = (RATIOS[name] for name in ("pool", "before", "CKME"))
    many = [row for row in rows if float(row["cases"]) > FEW]
    few = [row for row in rows if float(row["cases"]) <= FEW]

    def middle(own, column=pool):
        return f"{median_of_sources(own, column):.3f}"

    def worst(own, column=pool):
        return f"{max(float(row[column]) for row in own):.3f}"

    n_sources = len({row["source"] for row in rows})
    return (
        f"each of the {n_sources} sources counts once: the median of their medians is "
        f"{middle(rows)} times the CRPS of the best of raw, climatology, EMOS, EMOS + season and "
        "IDR, where the best is picked on the test cases. It is "
        f"{middle(many)} where there are more than {FEW} cases, the worst of those {len(many)} "
        f"sets at {worst(many)}, and {middle(few)} where there are fewer, the worst of {len(few)} "
        f"at {worst(few)}. A pool of 14 components that was tuned on a third of these sets is at "
        f"{middle(rows, before)} and {worst(rows, before)} at the worst, `CKME()` given the season "
        f"at {middle(rows, ckme)} and {worst(rows, ckme)}."
    )


def choice_words():
    rows = stored("skill_choices")
    as_it_is, chosen, left_out, hindsight, halves = (
        f"{median_of_sources(rows, column):.3f}"
        for column in (choices.PRESENT, "chosen", "left out", choices.HINDSIGHT, choices.HALVES)
    )
    return (
        f"Of {len(choices.CHOICES)} pools, the one that is best on all sources has "
        f"{chosen} in the median over sources, those that are best on the other sources {left_out} "
        f"on the source left out, the pool as it is {as_it_is}: no change helps where it had no "
        "say, so none was taken. The best constant weights of an average of these methods, of the "
        f"baselines and of the pool have {hindsight} if they are chosen on the scored cases, as "
        f"only hindsight can, and {halves} if they are chosen on half of the scored cases "
        "for the other half"
    )


# streams ------------------------------------------------------------------------------------------

OVER = ("pool over best", "over best", "over pool", "over raw, late")


def over(name, rows, of=np.median):
    return f"{of([float(row[name]) for row in rows]):.3f}"


def stream_lines():
    rows = stored("streams")
    for source in dict.fromkeys(row["source"] for row in rows):
        own = [row for row in rows if row["source"] == source]
        middle = [over(name, own) for name in OVER]
        yield line(source, str(len(own)), *middle, over("over best", own, max))


def stream_words():
    rows = stored("streams")
    behind = sum(float(row["over pool"]) > 1 for row in rows)
    pool, worst_pool = (over("pool over best", rows, of) for of in (np.median, max))
    online, worst = (over("over best", rows, of) for of in (np.median, max))
    return (
        f"Over all {len(rows)} streams `LinearPool` has {pool} in the median and {worst_pool} at "
        f"the worst, `OnlinePool` {online} and {worst}. It is behind `LinearPool` on {behind} of "
        f"them, with at most {over('over pool', rows, max)} times its CRPS. Without the experts "
        "that are corrected by their last errors its average would have "
        f"{over('uncorrected over best', rows)} in the median; the best constant weights of all "
        "experts, which only hindsight knows, have "
        f"{over('best weights over best', rows)} in the median."
    )


def daily_words():
    *_, row = stored("daily")
    days, (update, issue) = (
        int(row["days"]),
        (float(row[f"{part} ms"]) for part in ("update", "issue")),
    )
    year = float(row["year s"])
    hours = daily.MANY / int(row["stations"]) * year / 3600
    return (
        f"At each of {row['stations']} stations in one process, with {days} cases of "
        f"{row['members']} members, an `OnlinePool` learns a day in {update:.0f} ms, issues the "
        f"next in {issue:.0f} ms and is fitted in {float(row['fit s']):.1f} s (`python -m "
        f"benchmarks.daily`). A year of these stations, fits included, is replayed in {year:.0f} s "
        f"on {daily.PROCESSES} cores; {daily.MANY} stations would take {hours:.1f} hours."
    )


# tests of calibration -----------------------------------------------------------------------------

DESIGNS = {
    "calibrated": "calibrated, independent cases",
    "observations spread 1.25 times as widely as forecast": "spread of the truth x 1.25",
    "bias of 0.3 standard deviations": "bias of 0.3 deviations",
    "too wide if wide, too narrow if narrow: flat PIT": "errors that cancel, flat PIT",
    "calibrated, cases with autocorrelation 0.8": "calibrated, autocorrelation 0.8",
}
AUTOCORRELATED = (
    ("0.0", 100),
    ("0.6", 100),
    ("0.6", 500),
    ("0.9", 200),
    ("0.9", 500),
    ("0.95", 500),
)
BESIDE_A_CYCLE = {
    "calibrated": "calibrated",
    "90 % intervals that hold half": "90 % intervals that hold half",
    "observations spread 1.5 times as widely": "spread of the truth x 1.5",
    "bias of 0.3 standard deviations": "bias of 0.3 deviations",
    "anomalies half as large as forecast": "anomalies half as large as forecast",
}


def rates(design, n, told=False):
    """Shares of rejections by test, or of samples that have a p-value."""
    kinds = ("told",) if told else ("size", "power", "season")
    for row in stored("calibration_tests"):
        if (row["design"], int(row["cases"])) == (design, n) and row["kind"] in kinds:
            return row
    return None


def power_lines():
    tests = ("PIT", "bootstrap", "wild", "PIT, serial", "SKCE, serial")
    for name, design in DESIGNS.items():
        found = rates(design, 200)
        yield line(name, *(percent(found[test]) if found[test] else "" for test in tests))


def size_lines():
    tests = ("PIT, serial", "SKCE, serial", "paired scores", "skill interval")
    for rho, n in AUTOCORRELATED:
        design = f"calibrated, autocorrelation {rho}"
        found, told = rates(design, n), rates(design, n, told=True)
        cells = [percent(found[test]) for test in tests]
        if told is not None:
            shares = [percent(told[test]) for test in tests]
            cells = [
                cell if share == "100 %" else f"{cell} ({share})"
                for cell, share in zip(cells, shares, strict=True)
            ]
        yield line(f"{float(rho):g}, {n}", *cells)


def season_lines():
    for name, design in BESIDE_A_CYCLE.items():
        none, cycle = (rates(f"{what}, {design}", 200) for what in ("no cycle", "annual cycle"))
        undated = percent(cycle["SKCE, undated"])
        yield line(
            name,
            percent(none["SKCE, serial"]),
            f"{percent(cycle['SKCE, serial'])} ({undated})",
        )


def places_words():
    rows = stored("skill_places")
    few = [row for row in rows if float(row["cases"]) < places.FEW]
    *names, last = (row["set"] for row in few)
    middle = np.median([float(row["shared / EMOS"]) for row in few])
    gains = [places.gain(row) for row in rows if row["LinearPool"] != "nan"]
    return (
        f"Where a place has fewer than {places.FEW} cases ({', '.join(names)} and {last}), what "
        f"is shared has {middle:.3f} of the CRPS of EMOS at each place, in the median; the pool "
        f"that has it as a component has {min(gains):.3f} to {max(gains):.3f} of the CRPS of the "
        "pool without."
    )


# costs of one location ----------------------------------------------------------------------------


def costs(table):
    """Values by row and column of a table of ``bench.csv``."""
    rows = (row for row in stored("bench") if row["table"] == table)
    return {(row["row"], row["column"]): row["value"] for row in rows}


def cost_lines():
    of = costs("Cost by the number of cases n, m = 50, seconds")
    for n, solver in ((250, "exact"), (1000, "low rank"), (10_000, "low rank")):
        found = (float(of[f"n={n} m=50", f"{what}, {solver}"]) for what in ("fit", "100"))
        yield line(
            f"{n:,}".replace(",", " ") if n > 1000 else str(n), *map("{:.2g} s".format, found)
        )


def cost_words():
    of = costs("Budgets")
    memory = float(of["fit n=10000 m=50: peak memory", "measured"])
    seconds = float(of["  fit n=100000 m=50", "measured"])
    megabytes = float(of["  fit n=100000 m=50", "absolute"].split(" MB")[0])
    pool = of["LinearPool fit / season fit, n=1000 m=50", "absolute"].split(" v ")[0]
    return (
        f"The last one takes {memory:.2g} GiB; 100 000 cases take {seconds:.0f} s and "
        f"{megabytes / 1000:.2g} GB.",
        f"`LinearPool()` fits 1000 cases in {pool}.",
    )


# calibration of real forecasts, and the monitor ---------------------------------------------------

HINDCASTS = (
    "Innsbruck temperature", "Innsbruck rain", "Frankfurt rain", "Toulouse temperature 1",
    "GloFAS G0554 5 d", "MJO RMM1 10 d",
)  # fmt: skip


def evidence_lines():
    for row in stored("evidence"):
        if row["set"] in HINDCASTS:
            first = (row["set"], row["cases"]) if row["forecast"] == "raw" else ("", "")
            held = (f"{100 * float(row[level]):.0f} %" for level in ("50 %", "90 %"))
            tests = (p_value(row[test]) for test in ("PIT p", "SKCE p", "SKCE p, serial"))
            yield line(*first, row["forecast"], *held, *tests)


def evidence_words():
    rows = stored("evidence")

    def rejected(forecast, test):
        return sum(float(row[test]) < 0.05 for row in rows if row["forecast"] == forecast)

    pit, skce, serial = (
        [rejected(forecast, test) for forecast in ("raw", "CKME")]
        for test in ("PIT p", "SKCE p", "SKCE p, serial")
    )
    return (
        f"Of all {len(rows) // 2} sets the PIT test rejects {pit[0]} before and {pit[1]} after, "
        f"the SKCE test {skce[0]} and {skce[1]}, or {serial[0]} and {serial[1]} where dependence "
        "of days that follow each other counts (serial)."
    )


def monitor_lines():
    shares = {(row["row"], row["column"]): row["value"] for row in stored("monitor")}
    for n in (100, 300, 1000):
        columns = (*(f"never anew, {k} years" for k in (1, 3, 10)), "anew each year, 10 years")
        found = (shares[f"learned from {n} cases", column] for column in columns)
        yield line(f"n = {n}", *(f"{100 * float(share):.0f} %" for share in found))


TABLES = (
    skill_lines,
    stream_lines,
    power_lines,
    size_lines,
    season_lines,
    evidence_lines,
    monitor_lines,
)


@pytest.mark.parametrize("lines", TABLES)
def test_tables_are_those_of_the_benchmarks(lines):
    page = (DOCS / "evidence.md").read_text()
    missing = [one for one in lines() if one not in page]
    assert not missing, "docs/evidence.md should have\n" + "\n".join(missing)


@pytest.mark.parametrize(
    "words", [skill_words, choice_words, stream_words, places_words, evidence_words]
)
def test_what_is_said_is_what_was_measured(words):
    page = " ".join((DOCS / "evidence.md").read_text().split())
    assert words() in page, f"docs/evidence.md should say: {words()}"


def test_a_location_costs_what_was_measured():
    page = (DOCS / "scale.md").read_text()
    missing = [one for one in cost_lines() if one not in page]
    missing += [words for words in cost_words() if words not in " ".join(page.split())]
    assert not missing, "docs/scale.md should have\n" + "\n".join(missing)


def test_a_day_costs_what_was_measured():
    page = " ".join((DOCS / "cycle.md").read_text().split())
    assert daily_words() in page, f"docs/cycle.md should say: {daily_words()}"
