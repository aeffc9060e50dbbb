"""Fit and score all methods on all sets, in a few processes; print and store the table."""

import csv
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import xarray as xr

import xrecal

from .agreement import agreements, report
from .sources import SOURCES

RESULTS = Path(__file__).parents[1] / "results" / "skill.csv"
BASELINES = ("raw", "climatology", "EMOS", "EMOS + season", "IDR")
VARYING = "EMOS + season 2"
"""EMOS whose spread depends on the season too: harder to beat, and told beside the others."""
CASES = ("time", "init")
FEWEST = 10  # cases that a fit learns from
LIMIT, WORST, GUARD = 0.98, 1.01, 1.02
AGREEMENT = ("innsbruck", "frankfurt", "toulouse", "glofas", "mjo")
"""Sources on which cross-validated skill is held against that of later years."""


def methods(given):
    """The methods that are compared, by label, conditioned on the covariates named."""
    conditioned = given or None
    found = {
        "climatology": xrecal.Climatology(),
        "EMOS": xrecal.EMOS(),
        "EMOS + season": xrecal.EMOS(condition_on=conditioned),
        VARYING: xrecal.EMOS(condition_on=conditioned, vary_spread=True),
        "IDR": xrecal.IDR(),
        "CKME auto": xrecal.CKME(support="auto", condition_on=conditioned),
        "LinearPool": xrecal.LinearPool(condition_on=None if given == ("season",) else given),
    }
    if not given:
        del found["EMOS + season"], found[VARYING]
    return found


def score_method(one, method):
    """CRPS of each case, and the weights if the method is a pool."""
    given = {name: v for name, v in (one.covariates or {}).items() if name in method.covariates}
    known = {"covariates": given} if given else {}
    dim = next(d for d in one.hindcast.dims if d in CASES)
    if one.leave_out:
        scores = one.hindcast.recal.cross_validate(
            one.observations, method, dim=dim, by="block", blocks=one.hindcast.sizes[dim],
            min_samples=FEWEST, output="crps", **known,
        )  # fmt: skip
        if not isinstance(method, xrecal.LinearPool):
            return scores, None
        rest = one.hindcast.isel({dim: slice(-1)})  # the weights of one of the fits
        model = rest.recal.fit(one.observations, method, dim=dim, min_samples=FEWEST, **known)
        return scores, model.state["pool_weight"]
    if one.pool is None:
        model = one.hindcast.recal.fit(one.observations, method, dim=dim, **known)
        scores = model.crps(one.forecast, one.observations, **known)
        return scores, model.state.get("pool_weight")
    options = {"by": "year", "pool": one.pool, "output": "crps"}
    scores = one.hindcast.recal.cross_validate(one.observations, method, **options)
    if not isinstance(method, xrecal.LinearPool):
        return scores, None
    rest = one.hindcast.isel(init=slice(-1))  # the weights of one of the fits
    return scores, rest.recal.fit(one.observations, method, pool=one.pool).state["pool_weight"]


def variable_of(scores):
    """The only variable of scores of forecasts that take several arrays."""
    return scores if isinstance(scores, xr.DataArray) else next(iter(scores.values()))


def score_set(one):
    """CRPS of each method on one set, its number of cases, and the weights of the pool."""
    warnings.filterwarnings("ignore", "season learned from")  # ten months at Toulouse
    raw = one.forecast.recal.crps(one.observations)
    scores, weights, start = {"raw": raw}, {}, time.perf_counter()
    for label, method in methods(one.condition_on).items():
        scores[label], weight = score_method(one, method)
        if weight is not None:
            weight = weight.mean([d for d in weight.dims if d != "component"])
            weights = dict(zip(weight["component"].values, weight.values, strict=True))
    scores = {label: variable_of(score) for label, score in scores.items()}
    every = xr.concat(list(scores.values()), "method").assign_coords(method=list(scores))
    common = every.notnull().all("method")
    means = every.where(common).mean([d for d in every.dims if d != "method"], dtype=np.float64)
    dim = next(d for d in one.hindcast.dims if d in CASES)
    return {
        "set": one.name,
        "guard": one.guard,
        "n_train": one.hindcast.sizes[dim] - (one.pool is not None or one.leave_out),
        "n_test": int(common.sum()),
        "seconds": time.perf_counter() - start,
        "weights": " ".join(f"{k}:{w:.2f}" for k, w in weights.items() if w >= 0.005),
        **dict(zip(scores, means.values.tolist(), strict=True)),
    }


def run_source(source, quick=False):
    """Results of the sets of one source; quick: of the first, on a part of its cases."""
    found = []
    for one in SOURCES[source]():
        if quick:
            dim = "time"
            one = one._replace(
                hindcast=one.hindcast.isel({dim: slice(0, None, 5)}),
                forecast=one.forecast.isel({dim: slice(50)}),
            )
        found.append(score_set(one))
        if quick:
            break
    return found


def ratio(result, label, *others):
    """CRPS over that of the best baseline; over the better of climatology and EMOS for a guard."""
    names = ("climatology", "EMOS") if result["guard"] else (*BASELINES, *others)
    return result[label] / min(result[name] for name in names if name in result)


def table(results):
    """Lines of the table."""
    labels = [*BASELINES, VARYING, "CKME auto", "LinearPool"]
    width = max(len(result["set"]) for result in results)
    yield (
        f"{'CRPS':<{width}}{'train':>7}{'test':>6}"
        + "".join(f"{n:>15}" for n in labels)
        + (f"{'CKME/best':>11}{'Pool/best':>11}{'s':>7}")
    )
    for result in results:
        yield (
            f"{result['set']:<{width}}{result['n_train']:>7}{result['n_test']:>6}"
            + "".join(f"{result[n]:>15.4f}" if n in result else f"{'-':>15}" for n in labels)
            + f"{ratio(result, 'CKME auto'):>11.3f}{ratio(result, 'LinearPool'):>11.3f}"
            + f"{result['seconds']:>7.0f}"
        )


def store(results):
    """Write the table to a file."""
    RESULTS.parent.mkdir(exist_ok=True)
    labels = [*BASELINES, VARYING, "CKME auto", "LinearPool"]
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["set", "guard", "n_train", "n_test", *labels, "pool_ratio", "pool_weights"]
        )
        for result in results:
            scores = [f"{result[label]:.5f}" if label in result else "" for label in labels]
            head = [result["set"], int(result["guard"]), result["n_train"], result["n_test"]]
            pool = f"{ratio(result, 'LinearPool'):.4f}"
            writer.writerow([*head, *scores, pool, result["weights"]])


def main(quick=False):
    """Run all sets."""
    if quick:
        results = run_source("toulouse", quick=True)
    else:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
            results = [result for found in workers.map(run_source, SOURCES) for result in found]
            agreed = [row for found in workers.map(agreements, AGREEMENT) for row in found]
        store(results)
        print("\n".join(report(agreed)))
    print("\n".join(table(results)))
    judged = [ratio(result, "LinearPool") for result in results if not result["guard"]]
    guards = [ratio(result, "LinearPool") for result in results if result["guard"]]
    middle, worst = float(np.median(judged)), max(judged)
    harder = [ratio(result, "LinearPool", VARYING) for result in results if not result["guard"]]
    single = [ratio(result, "CKME auto") for result in results if not result["guard"]]
    print(
        f"CKME auto over the best baseline: median {np.median(single):.3f}, worst "
        f"{max(single):.3f}. LinearPool with {VARYING!r} among the baselines: median "
        f"{np.median(harder):.3f}, worst {max(harder):.3f}"
    )
    holds = middle <= LIMIT and worst <= WORST and max(guards, default=0) <= GUARD
    print(
        f"budget {'holds' if holds else 'MISSED'}: LinearPool over the best baseline: median "
        f"{middle:.3f} (<= {LIMIT}), worst {worst:.3f} (<= {WORST}), guards over the better of "
        f"climatology and EMOS {max(guards, default=np.nan):.3f} (<= {GUARD})"
    )
