"""The conditional kernel mean embedding as a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from xrecal import arrays
from xrecal.dims import CaseAxis
from xrecal.typing import FloatArray, IntArray

from .base import Output, Parameter, State, is_positive

if TYPE_CHECKING:
    from xrecal.arrays.distributions import Distribution
    from xrecal.arrays.forms import Forecasts

BLOCKS = 5
YEARS_FOR_YEAR_FOLDS = 5

_CHOICES = {
    "kernel": ("gaussian", "laplace"),
    "loss": ("crps", "laplace"),
    "folds": ("auto", "year", "block", "random"),
    "projection": ("euclidean", "energy"),
}


@dataclass(frozen=True)
class CKME:
    """Conditional kernel mean embedding with the Energy Distance Kernel.

    The recalibrated forecast is a weighted ensemble of the past observations. Observations count
    that verified forecasts similar to the new one, so it is calibrated given the forecast.

    Parameters
    ----------
    kernel : {"gaussian", "laplace"}
        Similarity of two forecasts at squared energy distance D²: exp(-D²/s) or exp(-D/s).
    bandwidth : "median" or float
        s: the median over pairs of different forecasts, or a number in the unit of the variable
        (of its root for the Laplace kernel).
    ridge : "cv" or float
        Regularisation λ of (K + λ n I)⁻¹, chosen by cross-validation or given.
    loss : {"crps", "laplace"}
        What cross-validation minimises: the held-out CRPS, or the distance between the forecast
        and the observation in the space of a Laplace kernel.
    folds : {"auto", "year", "block", "random"}
        Cases held out together: calendar years, five contiguous blocks, or five random parts
        (which leak through serial correlation). "auto" takes years from five years on, blocks
        otherwise.
    gap : int
        Cases left out of training on either side of those held out.
    projection : {"euclidean", "energy"}
        Signed weights to probabilities: nearest weights, or nearest distribution.
    """

    kernel: Literal["gaussian", "laplace"] = "gaussian"
    bandwidth: Literal["median"] | float = "median"
    ridge: Literal["cv"] | float = "cv"
    loss: Literal["crps", "laplace"] = "crps"
    folds: Literal["auto", "year", "block", "random"] = "auto"
    gap: int = 0
    projection: Literal["euclidean", "energy"] = "euclidean"

    parameters: ClassVar[Mapping[str, Parameter]] = {
        "ridge": Parameter("ridge of the kernel regression"),
        "bandwidth": Parameter("bandwidth of the energy distance kernel", True),
    }
    keeps_cases: ClassVar[bool] = True
    output: ClassVar[Output] = "weighted"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(
                    f"CKME: {name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
                )
        for name, automatic in (("bandwidth", "median"), ("ridge", "cv")):
            value = getattr(self, name)
            if not (is_positive(value) or (isinstance(value, str) and value == automatic)):
                raise ValueError(
                    f"CKME: {name} must be {automatic!r} or a positive number, got {value!r}"
                )
        if self.ridge != "cv" and self.ridge < arrays.SMALLEST_RIDGE:
            raise ValueError(
                f"CKME: ridge must be at least {arrays.SMALLEST_RIDGE:g}, got {self.ridge!r}"
            )
        whole = isinstance(self.gap, (int, np.integer)) and not isinstance(self.gap, bool)
        if not whole or self.gap < 0:
            raise ValueError(f"CKME: gap must be a number of cases, 0 or more, got {self.gap!r}")
        if self.gap and self.folds == "random":
            raise ValueError("CKME: random folds have no neighbours; use gap=0 or folds='block'")

    @property
    def needs_season(self) -> bool:
        """No date is needed."""
        return False

    def check(self, axis: CaseAxis, n_cases: int) -> None:
        """Raise ValueError if year folds are asked for and cannot be made."""
        if self.folds != "year":
            return
        if axis.year is None:
            raise ValueError(
                "CKME: folds='year' needs dates along the calibration dimension (datetime64, "
                "cftime, or years from 1000 to 9999); use folds='block'"
            )
        if np.unique(axis.year).size < 2:
            raise ValueError(
                f"CKME: folds='year' needs two years, but all cases are from {axis.year[0]}; "
                "use folds='block'"
            )

    def fold_groups(self, axis: CaseAxis, n_cases: int) -> tuple[IntArray, int]:
        """What folds are made of (n,), and the number of blocks; 0: each group is a fold."""
        by_year = self.folds == "year" or (
            self.folds == "auto"
            and axis.year is not None
            and np.unique(axis.year).size >= YEARS_FOR_YEAR_FOLDS
        )
        if by_year and axis.year is not None:
            return axis.year, 0
        if self.folds == "random":  # one shuffle for all locations, so chunks cannot matter
            return np.random.default_rng(0).permutation(n_cases), BLOCKS
        return np.arange(n_cases), BLOCKS

    def fit_locations(
        self, cases: Forecasts, observations: FloatArray, axis: CaseAxis, min_samples: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Bandwidth and ridge at each location; see :func:`xrecal.arrays.fit_ckme`."""
        groups, blocks = self.fold_groups(axis, observations.shape[1])
        fitted = arrays.fit_ckme(
            cases,
            observations,
            groups=groups,
            blocks=blocks,
            gap=self.gap,
            kernel=self.kernel,
            bandwidth=None if self.bandwidth == "median" else self.bandwidth,
            ridge=None if self.ridge == "cv" else self.ridge,
            loss=self.loss,
            projection=self.projection,
            min_samples=min_samples,
        )
        fields: Mapping[str, npt.NDArray[Any]] = fitted._asdict()
        return fields

    def predict_locations(
        self, forecasts: Forecasts, state: State, axis: CaseAxis, season: FloatArray | None
    ) -> Distribution:
        """Weights of the past observations; see :func:`xrecal.arrays.ckme_weights`."""
        from xrecal.arrays.distributions import Empirical

        assert state.cases is not None
        weights = arrays.ckme_weights(
            forecasts,
            state.cases,
            state.observations,
            state.parameters["bandwidth"],
            state.parameters["ridge"],
            kernel=self.kernel,
            projection=self.projection,
        )
        return Empirical(state.observations, weights)
