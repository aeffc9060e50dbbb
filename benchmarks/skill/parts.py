"""What the parts of the pool with predictors are worth: each is left out once.

``python -m benchmarks.skill.parts [SOURCE ...]``, of the sets of :mod:`.predictors` that have a fit
at each place.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

import xrecal
from benchmarks import record
from benchmarks.left_out import choose, of_sources
from xrecal.methods import Forest, Method

from .predictor_sets import SOURCES
from .predictors import REFERENCE, Fit, Row, methods, scores_of
from .scoring import in_common
from .sets import Set

RESULTS = record.FOLDER / "skill_parts.csv"
PRESENT = "as it is"


def is_given(method: Method) -> bool:
    """Whether a method is a CKME with a kernel on the predictors."""
    return isinstance(method, xrecal.CKME) and bool(method.covariates)


def of(pool: xrecal.LinearPool, methods: Iterable[Method]) -> xrecal.LinearPool:
    """The pool of other methods."""
    return replace(pool, methods=tuple(methods), condition_on=None, forest="auto")


def around(pool: xrecal.LinearPool, support: str) -> xrecal.LinearPool:
    """The pool whose kernels on the predictors weigh errors around one centre alone."""
    return of(pool, (replace(m, support=support) if is_given(m) else m for m in pool.mixed))


def without(pool: xrecal.LinearPool, dropped: Callable[[Method], bool]) -> xrecal.LinearPool:
    """The pool without some of its methods."""
    return of(pool, (method for method in pool.mixed if not dropped(method)))


PARTS: dict[str, Callable[[xrecal.LinearPool], xrecal.LinearPool]] = {
    PRESENT: lambda pool: pool,
    "without the forest": lambda pool: replace(pool, forest=False),
    "without the joint kernel": partial(without, dropped=is_given),
    "without the centre with predictors": partial(around, support="standardised_plain"),
    "without the centre without": partial(around, support="standardised"),
    "without IDR": partial(without, dropped=lambda method: isinstance(method, xrecal.IDR)),
}
"""Other pools, by the part that they lack"""
COLUMNS = ("set", "source", *PARTS, "forest")


def score_set(one: Set, source: str) -> Row:
    """CRPS of each pool over that of EMOS with season."""
    scores = {REFERENCE: scores_of(one, methods(one)[REFERENCE])}
    usual = xrecal.LinearPool(condition_on=one.condition_on)
    usual = usual.with_forest(one.hindcast.sizes[one.case_dim])
    for name, part in PARTS.items():
        scores[name] = scores_of(one, Fit(part(usual), True))
    mean = {name: float(score.mean()) for name, score in in_common(scores).items()}
    grown = any(isinstance(method, Forest) for method in usual.mixed)
    ratios = {name: mean[name] / mean[REFERENCE] for name in PARTS}
    return {"set": one.name, "source": source, **ratios, "forest": str(grown)}


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of each set, of all sources, and of the part that the other sources would leave out."""
    ratios = np.array([[float(row[name]) for row in rows] for name in PARTS])
    sources = np.array([str(row["source"]) for row in rows])
    chosen = choose(ratios, sources.tolist(), of_sources)
    every = np.vstack([ratios, chosen.left_out])
    yield f"{'pool with predictors over EMOS':<36}" + "".join(f"{row['set']:>24}" for row in rows)
    middle = of_sources(every, sources)
    for name, own, mean in zip((*PARTS, "chosen on other sources"), every, middle, strict=True):
        yield f"{name:<36}" + "".join(f"{one:>24.4f}" for one in own) + f"{mean:>10.4f}"


def main(sources: Iterable[str] = ()) -> None:
    """Run all sources, or some, and store the row of each set once it is scored."""
    warnings.simplefilter("ignore")
    record.commit()
    for source in list(sources) or SOURCES:
        for one in SOURCES[source]():
            if one.pool is None:
                record.store_set(RESULTS, COLUMNS, score_set(one, source), SOURCES)
    print("\n".join(lines(record.stored(RESULTS))))


if __name__ == "__main__":
    main(sys.argv[1:])
