"""Which module has which public function, for which array library: the one file that knows.

Functions are looked up by the library that their arrays come from, so CuPy is imported only once
one of its arrays has arrived. Nothing moves between host and device here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

DEVICE = "cupy"
"""The library of arrays on a GPU."""

HOME = {
    "Forecasts": "distributions.forms",
    "circular_crps": "distributions.circular",
    "circular_mean": "distributions.circular",
    "circular_members": "distributions.circular",
    "circular_std": "distributions.circular",
    "on_circle": "distributions.circular",
    "squared_energy_distance": "distributions.distance",
    "spread_of_observations": "distributions.vectors",
    "vector_energy_distance": "distributions.vectors",
    "pairwise_distances": "distributions.distance",
    "normal_squared_energy_distance": "distributions.normal",
    "normal_crps": "distributions.normal",
    "normal_exceedance": "distributions.normal",
    "normal_mean_std": "distributions.normal",
    "normal_quantile": "distributions.normal",
    "median_bandwidth": "kernels.kernel",
    "similarity": "kernels.kernel",
    "FittedCKME": "ckme.embedding",
    "ckme_weights": "ckme.weights",
    "fit_ckme": "ckme.ckme",
    "fit_ckme_family": "ckme.ckme",
    "Vectors": "ckme.vector_ckme",
    "fit_vector_ckme": "ckme.vector_ckme",
    "vector_ckme_weights": "ckme.vector_ckme",
    "ridge_losses": "ckme.ridges",
    "Settings": "ckme.embedding",
    "project_energy": "ckme.simplex",
    "project_simplex": "ckme.simplex",
    "equal_members": "distributions.members",
    "shuffled_members": "distributions.members",
    "reordered_members": "distributions.members",
    "systematic_draws": "distributions.members",
    "whole_weights": "distributions.members",
    "weighted_cdf": "distributions.weighted",
    "weighted_exceedance": "distributions.weighted",
    "weighted_mean": "distributions.weighted",
    "weighted_quantile": "distributions.weighted",
    "weighted_std": "distributions.weighted",
    "crps": "scores.crps",
    "fair_crps": "scores.crps",
    "threshold_weighted_crps": "scores.crps",
    "normal_threshold_crps": "distributions.normal_thresholds",
    "censored_threshold_crps": "distributions.normal_thresholds",
    "quantile_score": "scores.quantile_scores",
    "quantile_weighted_crps": "scores.quantile_scores",
    "brier_score": "scores.event_scores",
    "ranked_probability_score": "scores.event_scores",
    "energy_score": "scores.multivariate",
    "variogram_score": "scores.multivariate",
    "Skill": "scores.significance",
    "skill_score": "scores.significance",
    "Decomposition": "scores.decomposition",
    "decompose": "scores.decomposition",
    "half_squared_distance": "scores.decomposition",
    "censored_normal_crps": "distributions.censored",
    "censored_normal_exceedance": "distributions.censored",
    "censored_normal_mean_std": "distributions.censored",
    "censored_normal_quantile": "distributions.censored",
    "category_probabilities": "distributions.weighted",
    "climatology_quantiles": "baselines.climatology",
    "climatology_weights": "baselines.climatology",
    "in_window": "baselines.climatology",
    "fit_index": "baselines.idr",
    "idr_weights": "baselines.idr",
    "index_of": "baselines.idr",
    "laplace_expectations": "calibration.expectations",
    "target_bandwidth": "calibration.expectations",
    "case_matrix": "calibration.skce",
    "skce_biased": "calibration.skce",
    "skce_blocks": "calibration.skce",
    "skce_matrix": "calibration.skce",
    "skce_unbiased": "calibration.skce",
    "block_p_value": "calibration.skce",
    "skce_test": "calibration.skce",
    "montecarlo_test": "calibration.montecarlo",
    "skce_locations": "calibration.skce_locations",
    "conformal_levels": "baselines.pit_recalibration",
    "hash_uniform": "distributions.draws",
    "uniform_at": "distributions.draws",
    "pit_values": "baselines.pit_recalibration",
    "quantile_pit": "distributions.between_levels",
    "recalibrated_members": "baselines.pit_recalibration",
    "find_bounds": "distributions.forms",
    "Features": "kernels.kernel",
    "features": "kernels.kernel",
    "Split": "splitting",
    "splits": "splitting",
    "block_bootstrap_interval": "scores.significance",
    "diebold_mariano": "scores.significance",
    "standard_error": "scores.significance",
    "pit_counts": "calibration.uniformity",
    "uniform_test": "calibration.uniformity",
    "flatness_test": "calibration.ranks",
    "observation_ranks": "calibration.ranks",
    "rank_counts": "calibration.ranks",
    "corp": "calibration.reliability",
    "quantile_reliability": "calibration.reliability",
    "interval_coverage": "scores.intervals",
    "interval_score": "scores.intervals",
    "spread_skill": "scores.spread",
    "distance_correlation": "calibration.dependence",
    "adjusted_p_values": "scores.significance",
    "pool_weights": "distributions.pool",
    "fit_emos": "baselines.emos",
    "predict_emos": "baselines.emos",
}
"""Public names of :mod:`xrecal.arrays`, and the module that has each for NumPy arrays."""

ON_DEVICE = {
    "category_probabilities": "distributions.weighted",
    "ckme_weights": "device.weights",
    "crps": "device.scores",
    "features": "device.covariates",
    "mean_of_cases": "device.scores",
    "fit_ckme": "device.ckme",
    "median_bandwidth": "device.kernel",
    "pit_values": "device.scores",
    "project_energy": "device.simplex",
    "project_simplex": "device.simplex",
    "shuffled_members": "device.weighted",
    "quantile_pit": "distributions.between_levels",
    "similarity": "device.kernel",
    "squared_energy_distance": "device.distance",
    "uniform_at": "distributions.draws",
    "weighted_cdf": "device.weighted",
    "weighted_exceedance": "device.weighted",
    "weighted_mean": "device.weighted",
    "weighted_quantile": "device.weighted",
    "weighted_std": "device.weighted",
}
"""Functions that take arrays on a device, and the module that has them under that name.

A few small ones are the functions for NumPy themselves."""

DISTANCES = {DEVICE: "device.distance_cuda"}
"""Modules with loops over pairs of ensembles, for libraries that need their own; others compare
them by array expressions, in :mod:`xrecal.arrays.device.naive`."""

DESCRIBING = frozenset({"circular", "days", "groups", "q", "step"})
"""Arguments that describe cases rather than hold them, and stay on the host."""

Described = Iterator[tuple[str, bool]]


def is_on_device(array: object) -> bool:
    """Whether an array is one of CuPy's."""
    return type(array).__module__.partition(".")[0] == DEVICE


def namespace(array: object) -> Any:
    """The functions of the library that an array comes from."""
    name = type(array).__module__.partition(".")[0]
    if name in ("numpy", DEVICE):
        return import_module(name)
    return array.__array_namespace__()  # type: ignore[attr-defined]


def distances_for(array: object) -> ModuleType:
    """The module that compares ensembles of the library of an array."""
    name = DISTANCES.get(type(array).__module__.partition(".")[0], "device.naive")
    return import_module(f"xrecal.arrays.{name}")


def to_host(array: Any) -> Any:
    """A NumPy copy of an array, for what is decided on the host."""
    if is_on_device(array):
        return import_module(DEVICE).asnumpy(array)
    return np.asarray(array)


def as_array(values: Any) -> Any:
    """An array of whatever is given; one on a device stays there."""
    return values if is_on_device(values) else np.asarray(values)


def contiguous(values: Any) -> Any:
    """An array whose rows follow each other in memory, where it is."""
    return namespace(values).ascontiguousarray(values)


def offered(name: str) -> Any:
    """A name of :mod:`xrecal.arrays`; AttributeError if it is not public."""
    if name not in HOME:
        raise AttributeError(f"module 'xrecal.arrays' has no attribute {name!r}")
    return _public(name)


@cache
def _public(name: str) -> Any:
    """A class, or a function that looks at the library of its arrays first."""
    public = getattr(import_module(f"xrecal.arrays.{HOME[name]}"), name)
    return public if isinstance(public, type) else by_library(public)


def by_library(function: Callable[..., Any]) -> Callable[..., Any]:
    """A public function that looks at the library of its arrays first.

    NumPy arrays go to the function itself. Those on a device go to the function of the same name
    for them; where there is none, and where host and device are mixed, the call raises TypeError
    and says what to copy.
    """
    name = function.__name__

    @wraps(function)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        if not any(on_device for _, on_device in _described(("", (*args, *kwargs.values())))):
            return function(*args, **kwargs)
        _refuse_mixture(function, args, kwargs)
        return device_function(name)(*args, **kwargs)

    # Where the object is found again when it is pickled.
    dispatched.__module__, dispatched.__qualname__ = "xrecal.arrays", name
    return dispatched


def _described(named: tuple[str, Any]) -> Described:
    """Name of each array in a value, which may be a tuple of arrays, and whether CuPy has it."""
    name, value = named
    if isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", (name,) * len(value))
        for pair in zip(fields, value, strict=True):
            yield from _described(pair)
    elif is_on_device(value):
        yield name, True
    elif isinstance(value, np.ndarray):
        yield name, False


def _refuse_mixture(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise TypeError if some arrays that hold data are on the host."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    data = (named for named in given.items() if named[0] not in DESCRIBING)
    held = [pair for named in data for pair in _described(named) if pair[0] not in DESCRIBING]
    host = [name for name, on_device in held if not on_device]
    if host:
        raise TypeError(mixture(function.__name__, host))


def mixture(what: str, host: list[str]) -> str:
    """Message on host and device arrays in one call."""
    names = ", ".join(host)
    return (
        f"{what} got arrays of NumPy ({names}) and of CuPy; bring them to one side first: "
        f"cupy.asarray({host[0]}), or cupy.asnumpy(x) of the others"
    )


def only_on_host(what: str) -> str:
    """Message on what no device can do."""
    return (
        f"{what} has no implementation for CuPy arrays; copy them to the host first: "
        "cupy.asnumpy(x), or data.as_numpy() of a DataArray or Dataset"
    )


@cache
def device_function(name: str) -> Callable[..., Any]:
    """The function of a name for arrays on a device; TypeError if there is none."""
    if name not in ON_DEVICE:
        raise TypeError(only_on_host(name))
    function = getattr(import_module(f"xrecal.arrays.{ON_DEVICE[name]}"), name)
    assert callable(function)
    return function  # type: ignore[no-any-return]
