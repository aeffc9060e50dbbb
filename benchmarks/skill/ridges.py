"""The rule for the ridge of predictors in EMOS: each constant chosen on other sources.

``python -m benchmarks.skill.ridges [SOURCE ...]``. The constants of the package were chosen with
the scored cases of some of these sources in view; a source that is left out had no say.
"""

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from unittest import mock

import numpy as np

from benchmarks.left_out import choose, each_source, of_sources
from xrecal.arrays.baselines import lines

from .predictor_sets import SOURCES
from .predictors import REFERENCE, Row, methods, scores_of
from .scoring import in_common
from .sets import Set

ALL = "EMOS with all"
PRESENT = "as it is"
CANDIDATES: Mapping[str, dict[str, object]] = {
    PRESENT: {},
    "the smallest loss": {"ERRORS_ABOVE": 0.0},
    "half a standard error": {"ERRORS_ABOVE": 0.5},
    "two standard errors": {"ERRORS_ABOVE": 2.0},
    "5 blocks": {"BLOCKS": 5},
    "10 blocks": {"BLOCKS": 10},
    "40 blocks": {"BLOCKS": 40},
    "down to 1e-2": {"RIDGES": lines.RIDGES[:-1]},
    "down to 1e-4": {"RIDGES": (*lines.RIDGES, 1e-4)},
    "always 1e-1": {"RIDGES": (1e-1,)},
    "always 1e-2": {"RIDGES": (1e-2,)},
    "always 1e-3": {"RIDGES": (1e-3,)},
}
"""Other rules, by the constants of :mod:`xrecal.arrays.baselines.lines` that differ."""


def run_source(source: str) -> list[Row]:
    """Rows of the sets of a source that have a fit at each place alone."""
    return [score_set(one, source) for one in SOURCES[source]() if one.pool is None]


def score_set(one: Set, source: str) -> Row:
    """CRPS of EMOS with predictors by each rule over that of EMOS with season alone."""
    given = methods(one)
    scores = {REFERENCE: scores_of(one, given[REFERENCE])}
    for name, constants in CANDIDATES.items():
        with mock.patch.dict(vars(lines), constants):
            scores[name] = scores_of(one, given[ALL])
    mean = {name: float(score.mean()) for name, score in in_common(scores).items()}
    ratios = {name: mean[name] / mean[REFERENCE] for name in CANDIDATES}
    return {"set": one.name, "source": source, **ratios}


def report(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of each source by each rule, and by the rule that is best on the other sources."""
    ratios = np.array([[float(row[name]) for row in rows] for name in CANDIDATES])
    sources = [str(row["source"]) for row in rows]
    chosen = choose(ratios, sources, of_sources)
    every = np.vstack([ratios, chosen.left_out])
    each = each_source(every, np.array(sources))
    names = list(dict.fromkeys(sources))
    middle = np.exp(np.log(each).mean(0))
    yield f"{'EMOS with all over EMOS':<26}" + "".join(f"{n:>13}" for n in (*names, "together"))
    for name, own, mean in zip((*CANDIDATES, "left out"), each.T, middle, strict=True):
        yield f"{name:<26}" + "".join(f"{ratio:>13.4f}" for ratio in (*own, mean))
    loss = middle[-1] / middle[0] - 1
    yield (
        f"best on all sources: {list(CANDIDATES)[chosen.within]}; the rule chosen on the other "
        f"sources is {abs(loss):.2%} {'worse' if loss > 0 else 'better'} than the one of xrecal"
    )


def main(sources: Iterable[str] = ()) -> None:
    """Print the table of all sources, or of some."""
    warnings.simplefilter("ignore")
    rows = [row for source in list(sources) or SOURCES for row in run_source(source)]
    print("\n".join(report(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
