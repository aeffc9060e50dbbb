"""What is in the pool, and what else could be: chosen on other sources than it is judged by.

``python -m benchmarks.skill.choices [SOURCE ...]``; a part of ``make skill``.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import xarray as xr
from scipy.optimize import nnls

import xrecal
from benchmarks import record
from benchmarks.hindsight import best_weights
from benchmarks.left_out import choose, each_source, of_sources
from xrecal.arrays import quantile_score

from .scoring import BASELINES, LEVELS, Row, best, means, methods, predict, variable_of
from .sets import Set, at
from .sources import SOURCES
from .table import MEASURES

RESULTS = record.FOLDER / "skill_choices.csv"
PRESENT = "as it is"
NAMED = "weights of named members"
CHOICES: dict[str, Callable[[xrecal.LinearPool], xrecal.LinearPool]] = {
    PRESENT: lambda pool: pool,
    "mixture alone": lambda pool: replace(pool, average=None),
    "without shapes": lambda pool: without(pool, lambda m: getattr(m, "compare", "") == "shapes"),
    "without IDR": lambda pool: without(pool, lambda m: isinstance(m, xrecal.IDR)),
    "without climatology": lambda pool: without(pool, lambda m: isinstance(m, xrecal.Climatology)),
    "without raw": lambda pool: without(pool, lambda m: isinstance(m, xrecal.Raw)),
    "with EMOS": lambda pool: with_emos(pool),
    "regression given the season": lambda pool: supported(pool, "standardised", "regression"),
    "standardised without the season": lambda pool: supported(pool, "regression", "standardised"),
    NAMED: lambda pool: pool,
}
"""Other pools, by what they do differently; the first is that of the package."""

HINDSIGHT, HALVES = "best weights in hindsight", "best weights of the other half"
"""Of the baselines, the methods in the pool and the pool itself: for the scored cases what no rule
can beat that learns weights for averages of them; of every other tenth of them for the rest, what
as many cases of the same years can teach."""

COLUMNS = ("set", "source", *CHOICES, HINDSIGHT, HALVES, "chosen", "left out")
AS_EQUAL = 50  # cases whose members' differences from their mean hold weights to be equal


def without(
    pool: xrecal.LinearPool, dropped: Callable[[xrecal.methods.base.Method], bool]
) -> xrecal.LinearPool:
    """The pool of all methods but some."""
    kept = tuple(method for method in pool.mixed if not dropped(method))
    return replace(pool, methods=kept, condition_on=None)


def with_emos(pool: xrecal.LinearPool) -> xrecal.LinearPool:
    """The pool with EMOS beside its methods."""
    emos = xrecal.EMOS(condition_on=pool.covariates or None)
    return replace(pool, methods=(*pool.mixed, emos), condition_on=None)


def supported(pool: xrecal.LinearPool, given: str, other: str) -> xrecal.LinearPool:
    """The pool with other errors in the CKME of whole forecasts that has the given ones."""

    def changed(method: xrecal.methods.base.Method) -> xrecal.methods.base.Method:
        if isinstance(method, xrecal.CKME) and method.compare == "forecasts":
            return replace(method, support=other) if method.support == given else method
        return method

    return replace(pool, methods=tuple(map(changed, pool.mixed)), condition_on=None)


def run_set(source: str, i: int) -> list[Row]:
    """Ratios of all choices to the best baseline on a set of a source."""
    warnings.filterwarnings("ignore", "season learned from")
    warnings.filterwarnings("ignore", ".* neighbour within a week")
    return score_set(next(islice(SOURCES[source](), i, None)), source)


def score_set(one: Set, source: str) -> list[Row]:
    """The rows of the table of one set: CRPS of each choice over that of the best baseline."""
    compared = methods(one.condition_on)
    given = {name: (one, method) for name, method in compared.items() if name in BASELINES}
    pool = xrecal.LinearPool(condition_on=one.condition_on)
    for name, changed in CHOICES.items():
        given[name] = one, changed(pool)
    given[PRESENT] = one, compared["LinearPool"]
    if one.named and not one.leave_out:
        given[NAMED] = weighted(one), compared["LinearPool"]
    else:
        del given[NAMED]  # without names it is the pool as it is
    quantiles = {"raw": variable_of(one.forecast.recal.quantile(LEVELS))}
    scores = {"raw": variable_of(one.forecast.recal.crps(one.observations))}
    for name, (data, method) in given.items():
        quantiles[name] = predict(data, method, LEVELS).quantiles
        scores[name] = quantiles[name].recal.crps(one.observations)
    averaged = [q for name, q in quantiles.items() if name in (*BASELINES, PRESENT)]
    own = [m for m in pool.mixed if m not in (*compared.values(), xrecal.Raw())]
    averaged += [predict(one, method, LEVELS).quantiles for method in own]
    found = []
    for name, position in one.rows.items():
        mean, _ = means({label: at(score, position) for label, score in scores.items()})
        ratios = {label: mean.get(label, mean[PRESENT]) / best(mean) for label in CHOICES}
        issued = [at(q, position) for q in averaged]
        whole, halves = in_hindsight(issued, at(one.observations, position), one.case_dim)
        ratios |= {HINDSIGHT: whole / best(mean), HALVES: halves / best(mean)}
        found.append({"set": name, "source": source, **ratios})
    return found


def in_hindsight(
    forecasts: Sequence[xr.DataArray], observations: xr.DataArray, dim: str
) -> tuple[float, float]:
    """CRPS of averages of forecasts with the best weights: of all cases, and of the other half."""
    together = xr.concat(forecasts, "forecast", coords="minimal", compat="override")
    together, observed = xr.align(together, observations)
    dims = [dim, *(d for d in observed.dims if d != dim)]
    quantiles = together.transpose(*dims, "forecast", "quantile").values.astype(np.float64)
    y = observed.transpose(*dims).values.astype(np.float64)
    known = np.isfinite(y) & np.isfinite(quantiles).all((-2, -1))
    tenths = np.arange(y.shape[0]) * 10 // y.shape[0] % 2
    half = np.broadcast_to(tenths.reshape(-1, *[1] * (y.ndim - 1)), y.shape)[known]
    quantiles, y = quantiles[known], y[known]
    crossed = np.empty(y.size)
    for own in (0, 1):
        weights, _ = best_weights(quantiles[half != own], y[half != own])
        issued = np.tensordot(quantiles[half == own], weights, (1, 0))
        crossed[half == own] = 2 * quantile_score(y[half == own], issued, LEVELS).mean(-1)
    return best_weights(quantiles, y)[1], float(crossed.mean())


def weighted(one: Set) -> Set:
    """The set with members moved, by as much as weights by name move their mean."""
    weights = weights_by_name(one.hindcast, one.observations)

    def moved(given: xr.DataArray) -> xr.DataArray:
        return given + (given * weights).sum("member") - weights.sum() * given.mean("member")

    return one._replace(hindcast=moved(one.hindcast), forecast=moved(one.forecast))


def weights_by_name(hindcast: xr.DataArray, observations: xr.DataArray) -> xr.DataArray:
    """Weights of the members, not negative, of least squares drawn to equal ones."""
    members, observed = xr.align(hindcast, observations, join="inner")
    others = [d for d in members.dims if d != "member"]
    x = members.stack(case=others).transpose("case", "member").values
    y = observed.stack(case=others).values
    known = np.isfinite(y) & np.isfinite(x).all(1)
    x, y = x[known], y[known]
    n_members = x.shape[1]
    apart = np.sqrt(AS_EQUAL * ((x - x.mean(1, keepdims=True)) ** 2).mean())
    rows = np.concatenate([x - x.mean(0), apart * np.eye(n_members)])
    targets = np.concatenate([y - y.mean(), np.full(n_members, apart / n_members)])
    found, _ = nnls(rows, targets)
    return xr.DataArray(found, dims="member", coords={"member": hindcast["member"]})


def with_left_out(rows: Sequence[Row]) -> list[Row]:
    """Rows with the choice that is best on the other sources, and what it gives here."""
    ratios = np.array([[float(row[name]) for row in rows] for name in CHOICES])
    sources = [str(row["source"]) for row in rows]
    chosen = choose(ratios, sources, of_sources)
    within = list(CHOICES)[chosen.within]
    return [
        {**row, "chosen": float(row[within]), "left out": ratio}
        for row, ratio in zip(rows, chosen.left_out.tolist(), strict=True)
    ]


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of the table of all sources, and of each choice over all of them."""
    names = (*CHOICES, HINDSIGHT, HALVES, "chosen", "left out")
    ratios = np.array([[float(row[name]) for row in rows] for name in names])
    each = each_source(ratios, np.array([str(row["source"]) for row in rows]))
    columns = [names.index(name) for name in (PRESENT, "chosen", "left out")]
    heads = [names[column] for column in columns]
    yield f"{'pool over the best baseline':<34}" + "".join(f"{head:>12}" for head in heads)
    for source, own in zip(dict.fromkeys(str(row["source"]) for row in rows), each, strict=True):
        yield _line(source, own[columns])
    yield f"{'of all sources':<34}" + "".join(f"{label:>16}" for label in MEASURES)
    for name, of_name in zip(names, each.T, strict=True):
        numbers = (measure(of_name.tolist()) for measure in MEASURES.values())
        yield _line(name, numbers, 16)


def _line(label: str, numbers: Iterable[float], width: int = 12) -> str:
    return f"{label:<34}" + "".join(f"{number:>{width}.4f}" for number in numbers)


def report(rows: Sequence[Row]) -> None:
    """Print the table, and store it."""
    judged = with_left_out(rows)
    record.store(
        RESULTS,
        COLUMNS,
        (
            [row[c] if isinstance(row[c], str) else f"{row[c]:.5g}" for c in COLUMNS]
            for row in judged
        ),
    )
    print("\n".join(lines(judged)))


def main(sources: Sequence[str] = tuple(SOURCES)) -> None:
    """Run the sources, all if none is named; only all of them are stored."""
    start = time.perf_counter()
    each = [(source, i) for source in sources for i, _ in enumerate(SOURCES[source]())]
    with record.one_process_a_core() as workers:
        order = each[::-1]  # the last ones take longest
        found = dict(zip(order, workers.map(run_set, *zip(*order, strict=True)), strict=True))
    rows = [row for one in each for row in found[one]]
    if {*sources} == {*SOURCES}:
        report(rows)
    else:
        print("\n".join(lines(with_left_out(rows))))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(SOURCES))
