"""Budget: the fit of one location against the dense reference, in time and in CRPS."""

from collections.abc import Iterator

import numpy as np

from xrecal.arrays import Forecasts, Settings, ckme_weights, crps, fit_ckme

from .data import TOLERANCE, Data, gram_of, make_data, rank_of, stations
from .dense import choose_ridge
from .tables import Line, Missing, seconds
from .timing import in_turn


def fit(data: Data, solver: str = "auto"):
    """Fit of one location, all from distances to the refined ridge; five contiguous folds."""
    return fit_ckme(Forecasts(data.x[np.newaxis]), data.y[np.newaxis], Settings(solver=solver))


def weights_of(data: Data, fitted, x_new: np.ndarray) -> np.ndarray:
    """Weights (T, n) of new forecasts (T, m)."""
    new, cases = Forecasts(x_new[np.newaxis]), Forecasts(data.x[np.newaxis])
    return ckme_weights(new, cases, data.y[np.newaxis], fitted)[1][0]


def score_new(data: Data, fitted) -> float:
    """Mean CRPS of the new forecasts."""
    return float(crps(data.y_new, data.y, weights_of(data, fitted, data.x_new)).mean())


def budgets(quick: bool) -> Iterator[Line | Missing]:
    n, m, repeats = (60, 5, 1) if quick else (1000, 50, 3)
    fit(make_data(40, m)), fit(make_data(40, m), "lowrank")  # compiles
    yield from lines(make_data(n, m), repeats, judged=True)
    found = stations(("Innsbruck temperature",) if quick else None)
    n_found = 0
    for data in found:
        n_found += 1
        part = data._replace(x=data.x[:n], y=data.y[:n]) if quick else data
        yield from lines(part, 1, judged=False)
    if n_found == 0:
        yield Missing("fit of real stations", "their data are not there; set XRECAL_DATA")


def lines(data: Data, repeats: int, *, judged: bool) -> Iterator[Line]:
    """Time and skill of the default solver and of the low-rank one."""
    gram, fits = gram_of(data.x), {}
    n, m = data.x.shape
    *ours, dense = in_turn(
        {
            "auto": lambda: fits.update(auto=fit(data)),
            "lowrank": lambda: fits.update(lowrank=fit(data, "lowrank")),
            "dense": lambda: choose_ridge(gram, data.y),
        },
        repeats,
        warm=False,
    )
    is_exact = (fits["auto"].landmark < 0).all()
    exact = score_new(data, fits["auto"] if is_exact else fit(data, "exact"))
    rank = f"rank {rank_of(gram)} at {TOLERANCE:g}"
    for (solver, found), taken in zip(fits.items(), ours, strict=True):
        budget = judged and solver == "auto"
        work = f'{"" if budget else "  "}fit n={n} m={m}, solver="{solver}"'
        if not judged:
            work = f"  {data.name} n={n} m={m}, {solver}"
        absolute = f"{seconds(taken)} v {seconds(dense)}; {rank}"
        share = dense / taken
        yield Line(f"{work}: dense / ours", share, "x", absolute, 20 if budget else None, True)
        score = score_new(data, found)
        absolute = f"{score:.5g} v {exact:.5g} of the exact solver"
        apart = 100 * abs(score / exact - 1)
        yield Line(f"{work}: CRPS off by", apart, "%", absolute, 0.2 if budget else None)
