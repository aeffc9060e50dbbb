"""Methods that recalibrate the forecasts of a base model, by the label they have in the tables."""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr

import xrecal
from xrecal import arrays

from .forecasts import Forecasted, as_arrays, labelled, observed
from .ridges import FLOOR, smaller_ridge

ALPHA = 0.05  # of the intervals
EXACT_UP_TO, EXACT_LAPLACE_UP_TO = 1500, 2500
"""Calibration cases that are solved for exactly; more through landmarks."""

SEARCHED_UP_TO = 4000
"""Calibration cases up to which smaller ridges are tried, exactly, where the search ends at its
smallest one."""

PIT_LEVELS = 500
"""Members of a recalibrated distribution function, where there are more calibration cases."""


class GPBeta(NamedTuple):
    """A Beta link that varies with the forecast, of the forecast or of its first two moments."""

    normal: bool


PRINTED = xrecal.CKME(support="observations", loss="laplace", folds="random", solver="exact")
"""As the paper prints the method."""

METHODS = {
    "none": None,
    "none_tc": None,
    "ckme": PRINTED,
    "ckme_laplace": replace(PRINTED, kernel="laplace"),
    "pit": xrecal.PITRecalibration(),
    "conformal": xrecal.ConformalPrediction(alpha=ALPHA),
    "energy": replace(PRINTED, projection="energy"),
    "lowrank": replace(PRINTED, solver="lowrank"),
    "default": xrecal.CKME(folds="block", support="observations"),
    "errors": xrecal.CKME(folds="block", support="errors"),
    "auto": xrecal.CKME(folds="block", support="auto"),
    "wide": xrecal.CKME(folds="block", support="auto", bandwidth="cv"),
    "pool": xrecal.LinearPool(condition_on=()),
    "gp_beta": GPBeta(normal=True),
    "gp_beta_whole": GPBeta(normal=False),
}
"""none_tc: the base model trained on training and calibration cases together."""

MEANINGS = {
    "none": "base model, trained on the training part",
    "none_tc": "base model, trained on the training and calibration parts",
    "ckme": "CKME as the paper prints it: exp(-D²/s), random folds, loss of the Laplace kernel",
    "ckme_laplace": "the same with exp(-D/s), which the figures of the paper rest on",
    "pit": "PIT recalibration (Kuleshov et al.)",
    "conformal": "split conformal intervals (Chernozhukov et al.)",
    "energy": "ckme with the exact projection for the energy kernel",
    "lowrank": "ckme with landmarks",
    "default": "CKME(support='observations'): ridge by the held-out CRPS",
    "errors": "CKME(support='errors'): errors around a centre of the forecast",
    "auto": "CKME(support='auto'): observations or errors, by the held-out CRPS",
    "wide": "CKME(support='auto', bandwidth='cv'): also 4 and 16 times the median bandwidth",
    "pool": "LinearPool(): a mixture of methods by cross-validated weights",
    "gp_beta": "GP-Beta (Song et al.) of the normal with the forecast's first two moments, as the "
    "paper runs it",
    "gp_beta_whole": "GP-Beta of the forecast itself: mixtures and members stay what they are",
}
CORE = ("none", "none_tc", "ckme", "pit", "conformal", "auto")
LAPLACE = ("ckme_laplace",)
GP_BETA = ("gp_beta", "gp_beta_whole")
EXTENSIONS = ("energy", "lowrank", "default", "errors", "wide", "pool")


class Recalibrated(NamedTuple):
    """A forecast of the test cases, how it was chosen, and the seconds it took."""

    forecast: xr.Dataset
    chosen: dict[str, object]
    seconds_fit: float
    seconds_apply: float
    shared: bool
    """Whether all cases have the same members."""


def settings(name: str, n_calibration: int) -> object:
    """The method, with landmarks where an exact solution would take too long."""
    method = METHODS[name]
    if isinstance(method, xrecal.CKME) and method.solver == "exact":
        limit = EXACT_LAPLACE_UP_TO if method.kernel == "laplace" else EXACT_UP_TO
        if n_calibration > limit:
            return replace(method, solver="lowrank")
    return method


def recalibrate(name: str, forecasted: Forecasted, y: np.ndarray) -> Recalibrated:
    """Fit a method to the calibration cases with targets y, and apply it to those of the test."""
    if METHODS[name] is None:
        return Recalibrated(labelled(forecasted.test), {}, 0.0, 0.0, shared=True)
    if name == "pit" and y.size > PIT_LEVELS:
        return _pit(forecasted, y)
    if isinstance(METHODS[name], GPBeta):
        return _gp_beta(forecasted, y, normal=METHODS[name].normal)
    cases, test, targets = labelled(forecasted.calibration), labelled(forecasted.test), observed(y)
    method = settings(name, y.size)
    start = time.perf_counter()
    model = cases.recal.fit(targets, method, dim="case").compute()
    if name == "ckme" and float(model.state["ridge"]) <= FLOOR and y.size <= SEARCHED_UP_TO:
        # The paper's search has no such end.
        ridge = smaller_ridge(forecasted.calibration, y, float(model.state["bandwidth"]))
        method = replace(method, ridge=ridge, solver="exact")
        model = cases.recal.fit(targets, method, dim="case").compute()
    middle = time.perf_counter()
    found = model.apply(test).compute()
    seconds = middle - start, time.perf_counter() - middle
    return Recalibrated(found, _chosen(method, model.state), *seconds, _has_shared_members(found))


def _chosen(method: object, state: xr.Dataset) -> dict[str, object]:
    """Ridge, bandwidth, support and solver of a fit."""
    found: dict[str, object] = {
        name: float(state[name])
        for name in ("ridge", "bandwidth")
        if name in state and not state[name].ndim
    }
    if "support" in state and not state["support"].ndim:
        codes = list(np.atleast_1d(state["support"].attrs["flag_values"]))
        meanings = state["support"].attrs["flag_meanings"].split()
        found["support"] = meanings[codes.index(int(state["support"]))]
    return found | {"solver": getattr(method, "solver", "")}


def _has_shared_members(found: xr.Dataset) -> bool:
    return "case" not in found["y"].dims if "y" in found else True


def _pit(forecasted: Forecasted, y: np.ndarray) -> Recalibrated:
    """Quantiles at 500 levels of past PIT, instead of at as many as there are cases."""
    start = time.perf_counter()
    uniform = np.random.default_rng(0).uniform(size=(1, y.size))
    pit = arrays.pit_values(as_arrays(forecasted.calibration), y[np.newaxis], uniform)
    middle = time.perf_counter()
    levels = np.quantile(pit, (np.arange(PIT_LEVELS) + 0.5) / PIT_LEVELS)
    members = arrays.recalibrated_members(as_arrays(forecasted.test), levels[np.newaxis])
    seconds = middle - start, time.perf_counter() - middle
    return Recalibrated(_equally_weighted(members[0]), {}, *seconds, shared=False)


def _gp_beta(forecasted: Forecasted, y: np.ndarray, *, normal: bool) -> Recalibrated:
    """Quantiles at 500 levels; the fit needs JAX, which few of the methods do."""
    from . import gp_beta

    if normal:
        forecasted = Forecasted(*map(gp_beta.normal_of, forecasted))
    levels = (np.arange(PIT_LEVELS) + 0.5) / PIT_LEVELS
    members, *seconds = gp_beta.recalibrated_members(forecasted, y, levels)
    return Recalibrated(_equally_weighted(members), {}, *seconds, shared=False)


def _equally_weighted(members: np.ndarray) -> xr.Dataset:
    """A forecast of members (n, k) of their own for each case."""
    values = xr.DataArray(members, dims=("case", "member"), name="y")
    return xrecal.weighted(values, xr.full_like(values, 1 / values.sizes["member"]).rename(None))
