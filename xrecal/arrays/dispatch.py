"""Table that gives the module of each public function, for NumPy and for CuPy arrays.

The type of the arrays in a call selects the function. CuPy arrays are on a device (GPU), and NumPy
arrays are on the host (CPU). This module moves no array between host and device. It imports CuPy
only after a call with a CuPy array.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

DEVICE = "cupy"
"""Name of the library whose arrays are on a GPU."""

_PUBLIC = {
    "distributions.forms": "Forecasts find_bounds",
    "distributions.circular": "circular_crps circular_mean circular_members circular_std on_circle",
    "distributions.distance": "squared_energy_distance pairwise_distances",
    "distributions.vectors": "spread_of_observations vector_energy_distance",
    "distributions.normal": (
        "normal_squared_energy_distance normal_crps normal_exceedance normal_mean_std "
        "normal_quantile normal_skewness"
    ),
    "distributions.members": (
        "equal_members shuffled_members reordered_members systematic_draws whole_weights"
    ),
    "distributions.weighted": (
        "weighted_cdf weighted_exceedance weighted_mean weighted_quantile weighted_skewness "
        "weighted_std category_probabilities"
    ),
    "distributions.normal_thresholds": "normal_threshold_crps censored_threshold_crps",
    "distributions.censored": (
        "censored_normal_crps censored_normal_exceedance censored_normal_mean_std "
        "censored_normal_quantile censored_normal_skewness"
    ),
    "distributions.draws": "hash_uniform uniform_at",
    "distributions.between_levels": "quantile_pit",
    "distributions.pool": "pool_weights",
    "kernels.kernel": "median_bandwidth similarity Features features",
    "ckme.embedding": "Choices FittedCKME Settings",
    "ckme.weights": "ckme_novelty ckme_weights ckme_weights_of_both",
    "ckme.ckme": "choose_ckme fit_ckme fit_ckme_family",
    "ckme.vector_ckme": "Vectors choose_vector_ckme fit_vector_ckme vector_ckme_weights",
    "ckme.ridges": "ridge_losses",
    "ckme.simplex": "project_energy project_simplex",
    "baselines.climatology": "climatology_quantiles climatology_weights in_window",
    "baselines.idr": "fit_index idr_weights index_of",
    "baselines.conformal": "conformal_levels conformal_margins",
    "baselines.pit_recalibration": "pit_values recalibrated_members",
    "baselines.emos": "fit_emos predict_emos",
    "scores.crps": "crps fair_crps threshold_weighted_crps",
    "scores.log_score": "log_score quantile_log_score normal_log_score censored_normal_log_score",
    "scores.quantile_scores": "quantile_score quantile_weighted_crps",
    "scores.event_scores": "brier_score ranked_probability_score",
    "scores.discrimination": (
        "Discrimination RocArea economic_value generalised_discrimination roc_area roc_curve"
    ),
    "scores.correlation": "Correlation anomaly_correlation",
    "scores.error_spread": "error_spread",
    "scores.multivariate": "energy_score variogram_score",
    "scores.significance": "Skill skill_score diebold_mariano standard_error adjusted_p_values",
    "scores.decomposition": "Decomposition decompose half_squared_distance",
    "scores.intervals": "interval_coverage interval_score weighted_interval_score",
    "scores.sequential": "score_e_values",
    "scores.spread": "spread_skill",
    "calibration.expectations": "laplace_expectations target_bandwidth",
    "calibration.skce": (
        "case_matrix skce_biased skce_blocks skce_matrix skce_unbiased block_p_value skce_test "
        "skce_block_length"
    ),
    "calibration.monitoring": "calibration_changes calibration_e_values",
    "calibration.montecarlo": "montecarlo_test",
    "calibration.skce_locations": "SkceEstimates SkceSettings skce_locations",
    "calibration.uniformity": "UniformTest pit_counts serial_uniform_test uniform_test",
    "calibration.ranks": "flatness_test observation_ranks rank_counts",
    "calibration.reliability": "corp quantile_reliability",
    "splitting": "Split splits",
}
"""Public names of :mod:`xrecal.arrays` in each module, for NumPy arrays."""

_FOR_DEVICES = {
    "device.ckme": "choose_ckme fit_ckme",
    "device.weights": "ckme_novelty ckme_weights ckme_weights_of_both",
    "device.ensembles": "squared_energy_distance",
    "kernels.kernel": "features",
}
"""Functions for arrays on a device (GPU), in each module. They fit and apply the CKME, or compute
its distances and features."""


def _by_name(modules: dict[str, str]) -> dict[str, str]:
    """Return the module of each name."""
    return {name: module for module, names in modules.items() for name in names.split()}


HOME, ON_DEVICE = _by_name(_PUBLIC), _by_name(_FOR_DEVICES)
"""Module of each public name, and module of each function for arrays on a device."""

DISTANCES = {DEVICE: "xrecal.arrays.device.distance_cuda"}
"""Module that computes distances between ensembles, for each array library."""

DESCRIBING = frozenset({"choices", "circular", "days", "groups", "predictors", "step"})
"""Names of arguments that describe cases but hold no data; such arguments stay on the host."""

Described = Iterator[tuple[str, bool]]


def is_on_device(array: object) -> bool:
    """Return True for a CuPy array."""
    return type(array).__module__.partition(".")[0] == DEVICE


def namespace(array: object) -> Any:
    """Return the module of functions for an array, such as numpy or cupy."""
    name = type(array).__module__.partition(".")[0]
    if name in ("numpy", DEVICE):
        return import_module(name)
    return array.__array_namespace__()  # type: ignore[attr-defined]


def distances_for(array: object) -> ModuleType:
    """Return the module that computes distances between ensembles, for the library of an array."""
    return import_module(DISTANCES[type(array).__module__.partition(".")[0]])


def to_host(array: Any) -> Any:
    """Return an array as a NumPy array; an array on a device is copied to the host."""
    if is_on_device(array):
        return import_module(DEVICE).asnumpy(array)
    return np.asarray(array)


def as_array(values: Any) -> Any:
    """Convert values to a NumPy array; an array on a device stays on the device."""
    return values if is_on_device(values) else np.asarray(values)


def contiguous(values: Any) -> Any:
    """Return an array with contiguous rows; an array on a device stays there."""
    return namespace(values).asarray(values, order="C")


def offered(name: str) -> Any:
    """Return the object with a public name of :mod:`xrecal.arrays`, or raise AttributeError."""
    if name not in HOME:
        raise AttributeError(f"module 'xrecal.arrays' has no attribute {name!r}")
    return _public(name)


@cache
def _public(name: str) -> Any:
    """Return a class, or a function that selects the library of its arrays."""
    public = getattr(import_module(f"xrecal.arrays.{HOME[name]}"), name)
    return public if isinstance(public, type) else by_library(public)


def by_library(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a public function so that it selects the library of its arrays.

    A call with NumPy arrays calls the function itself. A call with arrays on a device calls the
    function for devices that has the same name. The call raises TypeError if there is no such
    function, or if some arrays are on the host and others on the device. The error names the arrays
    to copy.
    """
    name = function.__name__

    @wraps(function)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        # As long as nobody has imported the library, no array can belong to it.
        if sys.modules.get(DEVICE) is None or not _any_on_device((*args, *kwargs.values())):
            return function(*args, **kwargs)
        _refuse_mixture(function, args, kwargs)
        return device_function(name)(*args, **kwargs)

    # Pickle finds the wrapped function by this name.
    dispatched.__module__, dispatched.__qualname__ = "xrecal.arrays", name
    return dispatched


def _any_on_device(values: tuple[Any, ...]) -> bool:
    """Return True if at least one of the arrays is on a device."""
    return any(on_device for _, on_device in _described(("", values)))


def _described(named: tuple[str, Any]) -> Described:
    """Yield the name of each array in a value or tuple, and True if the array is on a device."""
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
    """Raise TypeError if an array with data is on the host, although others are on the device."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    data = (named for named in given.items() if named[0] not in DESCRIBING)
    held = [pair for named in data for pair in _described(named) if pair[0] not in DESCRIBING]
    host = [name for name, on_device in held if not on_device]
    if host:
        raise TypeError(mixture(function.__name__, host))


def mixture(what: str, host: list[str]) -> str:
    """Return the text of an error about a call that mixes arrays on host and device."""
    names = ", ".join(host)
    return (
        f"{what} got arrays of NumPy ({names}) and of CuPy; use one library for all arrays: "
        f"cupy.asarray({host[0]}), or cupy.asnumpy(x) for each CuPy array x"
    )


def only_on_host(what: str) -> str:
    """Return the text of an error about a function without an implementation for devices."""
    return (
        f"{what} has no implementation for CuPy arrays; copy them to the host first: "
        "cupy.asnumpy(x), or data.as_numpy() of a DataArray or Dataset"
    )


@cache
def device_function(name: str) -> Callable[..., Any]:
    """Return the function for arrays on a device by its name; raise TypeError if there is none."""
    if name not in ON_DEVICE:
        raise TypeError(only_on_host(name))
    function = getattr(import_module(f"xrecal.arrays.{ON_DEVICE[name]}"), name)
    assert callable(function)
    return function  # type: ignore[no-any-return]
