"""The rows of all sets as a table and a file, by set and by source."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from benchmarks import record

from .scoring import JUDGED, LABELS, Row

RESULTS = record.FOLDER / "skill.csv"

RATIOS = ("LinearPool/best", "LinearPool/EMOS", "LinearPool/each", "CKME/best", "CKME/each")
"""CRPS over that of the best baseline, of EMOS with season where it has it, and of the same method
where each place chooses for itself."""
EACH, ERROR = "LinearPool/each", "LinearPool/each error"
MEASURES: Mapping[str, Callable[[Iterable[float]], float]] = {
    "geometric mean": lambda ratios: float(np.exp(np.mean(np.log(list(ratios))))),
    "median": lambda ratios: float(np.median(list(ratios))),
    "worst": max,
}
"""Of the sources, each of which counts once however many its sets."""
LIMITS = {
    "LinearPool/best": {"geometric mean": 0.978, "median": 0.99, "worst": 1.02},
    "LinearPool/EMOS": {"geometric mean": 0.955},
    "LinearPool/each": {"geometric mean": 0.985},
}
WORST = 1.004
"""Of any set with several places over the choices of each, unless within a standard error"""

CALIBRATION = ("PIT p", "SKCE p", "Brier of bound", "WIS")
COLUMNS = (
    "set", "source", "places", "cases", "scored", *LABELS, *RATIOS, ERROR, "fit s",
    *(f"{name} {what}" for name in JUDGED for what in CALIBRATION),
    "weights",
)  # fmt: skip
HEADS = ("pool/best", "/EMOS", "/each", "± error", "CKME/best", "/each", "fit s")
PRINTED = (*RATIOS[:3], ERROR, *RATIOS[3:], "fit s")


def store(rows: Iterable[Row]) -> None:
    """Write the table to a file; what a set does not have stays empty."""
    record.store(
        RESULTS, COLUMNS, ([_cell(row.get(name, np.nan)) for name in COLUMNS] for row in rows)
    )


def _cell(value: str | float) -> str | float:
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.5g}"


def by_set(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of the table of all sets."""
    rows = list(rows)
    width = max(len(str(row["set"])) for row in rows)
    yield (
        f"{'CRPS':<{width}}{'places':>7}{'train':>7}{'test':>6}"
        + "".join(f"{name:>16}" for name in LABELS)
        + "".join(f"{name:>10}" for name in (*HEADS, "PIT p", "SKCE p", "bound", "WIS"))
    )
    columns = (*PRINTED, *(f"LinearPool {name}" for name in CALIBRATION))
    for row in rows:
        yield (
            f"{row['set']:<{width}}{row['places']:>7}{row['cases']:>7}{row['scored']:>6}"
            + "".join(f"{_text(row.get(name, np.nan), 4):>16}" for name in LABELS)
            + "".join(f"{_text(row[name], 4):>10}" for name in columns)
        )


def by_source(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of the ratios of each source, and of all of them."""
    rows = list(rows)
    yield f"{'source':<24}{'sets':>5}" + "".join(f"{name:>17}" for name in RATIOS)
    found = {name: ratios_of_sources(rows, name) for name in RATIOS}
    for source in dict.fromkeys(str(row["source"]) for row in rows):
        n_sets = sum(row["source"] == source for row in rows)
        yield _line(source, n_sets, [found[name].get(source, np.nan) for name in RATIOS])
    for label, measure in MEASURES.items():
        own = [measure(each.values()) if each else np.nan for each in found.values()]
        yield _line(label, len(rows), own)


def ratios_of_sources(rows: Iterable[Row], column: str) -> dict[str, float]:
    """Geometric mean of the ratios of the sets of each source.

    Over the choices of each place: of the sets that have several, and the sources that have such.
    """
    found: dict[str, list[float]] = {}
    for row in rows:
        if not column.endswith("/each") or float(row["places"]) > 1:
            found.setdefault(str(row["source"]), []).append(float(row[column]))
    return {source: MEASURES["geometric mean"](ratios) for source, ratios in found.items()}


def rejected(rows: Iterable[Row]) -> Iterator[str]:
    """Lines of how many sets each test of calibration rejects."""
    rows = list(rows)
    for name in JUDGED:
        counts = [
            sum(float(row[f"{name} {p}"]) < 0.05 for row in rows) for p in ("PIT p", "SKCE p")
        ]
        yield f"{name}: PIT rejected at 5 % in {counts[0]}, SKCE in {counts[1]} of {len(rows)} sets"


def verdicts(rows: Iterable[Row]) -> Iterator[str]:
    """Lines that say whether the pool is as good as it is to be, by sources and by sets."""
    rows = list(rows)
    for column, limits in LIMITS.items():
        ratios = ratios_of_sources(rows, column).values()
        for label, limit in limits.items() if ratios else ():
            found = MEASURES[label](ratios)
            yield f"{_held(found <= limit)}: {column}, {label} of sources {found:.4f} (<= {limit})"
    several = [row for row in rows if float(row["places"]) > 1]
    if several:
        worst = max(several, key=lambda row: float(row[EACH]))
        above = [str(row["set"]) for row in several if _is_above(row)]
        yield (
            f"{_held(not above)}: {EACH} at most {float(worst[EACH]):.4f} ({worst['set']}), above "
            f"{WORST} by more than a standard error: {', '.join(above) or 'nowhere'}"
        )


def _is_above(row: Row) -> bool:
    ratio = float(row[EACH])
    return ratio > WORST and ratio - 1 > float(row[ERROR])


def _held(holds: bool) -> str:
    return f"budget {'holds' if holds else 'MISSED'}"


def _line(label: str, n_sets: int, ratios: Iterable[float]) -> str:
    return f"{label:<24}{n_sets:>5}" + "".join(f"{_text(ratio, 4):>17}" for ratio in ratios)


def _text(value: str | float, digits: int) -> str:
    return "-" if np.isnan(float(value)) else f"{float(value):.{digits}f}"
