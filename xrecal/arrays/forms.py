"""The two forms in which a forecast reaches the array layer: points with weights, or normals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xrecal.typing import FloatArray

from ._compiled import kernel

VALID, INVALID_FORECAST = 1, 2  # verdicts on a forecast; 0 is one without members


class Forecasts(NamedTuple):
    """Forecasts over locations and cases, arrays of shape (L, n, m).

    Without ``scale`` they are ensembles: members ``loc`` with ``weights`` (equal if None). With
    it they are mixtures of m normal distributions. NaN marks a missing member or component.
    """

    loc: FloatArray
    scale: FloatArray | None = None
    weights: FloatArray | None = None

    def check(self, name: str, ndim: int) -> tuple[int, ...]:
        """Shape of the forecasts; raises ValueError unless all parts share it."""
        shape = self.loc.shape
        if len(shape) != ndim:
            raise ValueError(f"{name} need {ndim} axes (location, case, member), got {shape}")
        for part, array in {"scale": self.scale, "weights": self.weights}.items():
            if array is not None and array.shape != shape:
                raise ValueError(f"{part} of {name} has shape {array.shape}, but loc has {shape}")
        return shape

    def as_compiled(self) -> Forecasts:
        """Arrays of one floating type, contiguous and writable, as compiled code wants them.

        Other layouts would each be compiled for anew. Copies only what has another.
        """
        dtype = np.result_type(*(part for part in self if part is not None))
        loc, scale, weights = (
            None if part is None else np.require(part, dtype, requirements=["C", "W"])
            for part in self
        )
        assert loc is not None
        return Forecasts(loc, scale, weights)


@kernel
def valid_forecasts(loc: Any, scale: Any, weights: Any, cell: int) -> Any:
    """Verdict on each forecast of a location: 0 without members, 1 valid, 2 invalid.

    Invalid is an infinite value, a negative weight or a negative scale in a member that counts.
    """
    verdict = np.empty(loc.shape[1], dtype=np.int64)
    for i in range(loc.shape[1]):
        verdict[i] = 0
        for j in range(loc.shape[2]):
            value = loc[cell, i, j]
            weight = 1.0
            if weights is not None:
                weight = weights[cell, i, j]
            spread = 0.0
            if scale is not None:
                spread = scale[cell, i, j]
            if np.isnan(value) or np.isnan(weight) or np.isnan(spread) or weight == 0:
                continue
            if np.isinf(value) or np.isinf(weight) or np.isinf(spread) or weight < 0 or spread < 0:
                verdict[i] = INVALID_FORECAST
                break
            verdict[i] = VALID
    return verdict


def usable_observations(
    cases: Forecasts, observations: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Observations that can be learned from.

    Parameters
    ----------
    cases : Forecasts
        Arrays (L, n, m).
    observations : array of float, shape (L, n)
        What verified.

    Returns
    -------
    usable : array, shape (L, n), type of ``observations``
        Observations, NaN where they or the forecast are missing or invalid.
    invalid : array of bool, shape (L,)
        Whether a location holds an invalid value: an infinite one, a negative weight or scale.
    """
    usable = np.array(observations, order="C")
    invalid = np.zeros(usable.shape[0], dtype=bool)
    _mark_unusable(*cases.as_compiled(), usable, invalid)
    return usable, invalid


@kernel
def _mark_unusable(loc: Any, scale: Any, weights: Any, observations: Any, invalid: Any) -> None:
    for cell in range(loc.shape[0]):
        verdict = valid_forecasts(loc, scale, weights, cell)
        for i in range(verdict.size):
            if verdict[i] == INVALID_FORECAST or np.isinf(observations[cell, i]):
                invalid[cell] = True
            if verdict[i] != VALID or np.isinf(observations[cell, i]):
                observations[cell, i] = np.nan


def sort_members(forecasts: Forecasts) -> Forecasts:
    """Ensembles with ascending members, NaN last; mixtures as they are."""
    loc, scale, weights = forecasts
    if scale is not None:
        return forecasts
    if weights is None:
        return Forecasts(np.sort(loc, axis=-1))
    order = np.argsort(loc, axis=-1)
    return Forecasts(
        np.take_along_axis(loc, order, axis=-1), None, np.take_along_axis(weights, order, axis=-1)
    )
