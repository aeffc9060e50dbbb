"""What every method provides: settings, state per location, fit and predict on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from xrecal.dims import CaseAxis
from xrecal.typing import FloatArray

if TYPE_CHECKING:
    from xrecal.arrays.distributions import Distribution
    from xrecal.arrays.forms import Forecasts


Output: TypeAlias = Literal["weighted", "normal"]
"""Form of the recalibrated forecast."""


@dataclass(frozen=True)
class Parameter:
    """A number that a method chooses at each location."""

    long_name: str
    in_units_of_variable: bool = False
    dtype: type = np.float64


@dataclass(frozen=True)
class State:
    """Fitted state at L locations, as arrays."""

    observations: FloatArray
    """(L, n), NaN in unused slots."""
    cases: Forecasts | None
    """Calibration forecasts (L, n, m), for methods that keep them."""
    parameters: Mapping[str, npt.NDArray[Any]]
    """(L,) each, ``status`` among them."""


class Method(Protocol):
    """Protocol of all methods. Settings are frozen dataclasses of names and numbers."""

    parameters: ClassVar[Mapping[str, Parameter]]
    keeps_cases: ClassVar[bool]
    output: ClassVar[Output]

    @property
    def needs_season(self) -> bool:
        """Whether the dates of cases and forecasts are needed."""

    def check(self, axis: CaseAxis, n_cases: int) -> None:
        """Raise ValueError if the settings do not fit what is known of the cases."""

    def fit_locations(
        self, cases: Forecasts, observations: FloatArray, axis: CaseAxis, min_samples: int
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Parameters, ``n_cases`` and ``status`` (L,) from cases (L, n, m) and what verified.

        ``observations`` (L, n) are NaN in slots that cannot be learned from.
        """

    def predict_locations(
        self, forecasts: Forecasts, state: State, axis: CaseAxis, season: FloatArray | None
    ) -> Distribution:
        """Recalibrated forecasts for new ones (L, T, m); ``season`` (T,) are their dates."""


def missing_forecasts(forecasts: Forecasts) -> npt.NDArray[np.bool_]:
    """Where forecasts (L, T, m) have no member that counts, or an invalid one, (L, T)."""
    from xrecal.arrays.forms import VALID, verdicts

    return np.asarray(verdicts(forecasts) != VALID)


def is_positive(value: object) -> bool:
    """Whether a setting is a positive, finite number."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return number and 0 < value < np.inf  # type: ignore[operator]
