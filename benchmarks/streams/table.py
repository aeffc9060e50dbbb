"""The rows of all streams as tables and a file, and what they are to be."""

import numpy as np

from benchmarks import record
from benchmarks.left_out import choose, of_all

from .experts import SIMPLE

RESULTS = record.FOLDER / "streams.csv"
COLUMNS = (
    "stream", "source", "hindcast", "scored", *SIMPLE, "static pool", "aggregate", "OnlinePool",
    "best",
    "over best", "pool over best", "over pool", "uncorrected over best", "best weights over best",
    "over raw, late", "WIS over best",
)  # fmt: skip
SHOWN = COLUMNS[-7:]
MEDIAN, WORST, OVER_POOL, OVER_RAW = 0.964, 1.005, 1.005, 0.99
"""Of the CRPS of the pool: over the best simple expert in hindsight, median and worst; over
the static pool; and over raw from the 61st scored case on."""


NOTES = """\
Streams of a source are positions of one call of the pool, which share regrets; aggregate does not.
Of flusight the observations are final ones, not those known on the day: this flatters what learns.
Of glofas, with two cases a week, what is not fitted every day is fitted every 365 days, not 90."""


def store(rows):
    """Write the rows to a file."""
    record.store(RESULTS, COLUMNS, ([_cell(row[name]) for name in COLUMNS] for row in rows))


def _cell(value):
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.5g}"


def by_stream(rows):
    """Lines of the table of all streams."""
    yield f"{'CRPS of OnlinePool':<26}{'scored':>7}{'best':>15}" + "".join(
        f"{name:>24}" for name in SHOWN
    )
    for row in rows:
        yield f"{row['stream']:<26}{row['scored']:>7}{row['best']:>15}" + _numbers(row, SHOWN)


def by_source(rows):
    """Lines of the median, and the worst, of each source."""
    yield f"{'by source':<26}{'streams':>7}{'worst':>15}" + "".join(f"{name:>24}" for name in SHOWN)
    for source in dict.fromkeys(row["source"] for row in rows):
        own = [row for row in rows if row["source"] == source]
        middle = {name: float(np.median([row[name] for row in own])) for name in SHOWN}
        worst = max(row["over best"] for row in own)
        yield f"{source:<26}{len(own):>7}{worst:>15.3f}" + _numbers(middle, SHOWN)


def _numbers(row, names):
    return "".join(f"{'-' if np.isnan(row[n]) else format(row[n], '.3f'):>24}" for n in names)


def of_choices(compared, sources):
    """Lines of what each candidate of each constant gives, and what choosing it elsewhere does."""
    for constant, candidates in compared.items():
        ratios = np.array(list(candidates.values()))
        chosen, left_out = choose(ratios, sources, of_all)
        told = ", ".join(
            f"{name} {np.median(values):.4f}/{values.max():.3f}"
            for name, values in candidates.items()
        )
        yield (
            f"{constant}: as it is {np.median(ratios[0]):.4f}, chosen within "
            f"{np.median(ratios[chosen]):.4f} ({list(candidates)[chosen]}), chosen on other "
            f"sources {np.median(left_out):.4f}; median/worst of {told}"
        )


def verdicts(rows):
    """Lines of what is to hold, and whether it does."""
    median = float(np.median([row["over best"] for row in rows]))
    yield _verdict("median over the best simple expert", median, MEDIAN)
    for column, told, limit in (
        ("over best", "the best simple expert", WORST),
        ("over pool", "the static pool", OVER_POOL),
        ("over raw, late", "raw, late", OVER_RAW),
    ):
        some = [row for row in rows if not np.isnan(row[column])]
        if some:
            worst = max(some, key=lambda row: row[column])
            yield _verdict(f"worst over {told}, {worst['stream']}", worst[column], limit)


def _verdict(told, value, limit):
    return f"budget {'holds' if value <= limit else 'MISSED'}: {told}: {value:.4f} (<= {limit})"
