"""What a fitted CKME keeps of its choices, and the values of those that it did not make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xrecal.arrays.dispatch import namespace

from .base import Parameter

if TYPE_CHECKING:
    from xrecal.arrays.ckme.embedding import FittedCKME

FEATURE, COEFFICIENT, RANK = "feature", "coefficient", "rank"
"""Dimensions of the state."""

CENTRES = (
    "observations",
    "errors_around_mean",
    "errors_around_regression",
    "errors_in_units_of_emos_spread",
    "ratios_to_mean",
)
"""Names of the supports in the state."""


def kept_parameters(
    n_features: int,
    *,
    support: bool,
    half_life: bool,
    landmarks: Callable[[int], int] | None,
) -> Mapping[str, Parameter]:
    """Parameters of the state; with a choice of the support, of a half-life, and of landmarks.

    ``landmarks`` gives the room for these from the number of slots.
    """
    found = {
        "ridge": Parameter("ridge of the kernel regression"),
        "bandwidth": Parameter("bandwidth of the energy distance kernel", True),
    }
    if n_features:
        found["strength"] = Parameter("strength of the covariates, 0 where they do not count")
        found["precision"] = Parameter(
            "weight of each feature in the distance of covariates", dims={FEATURE: n_features}
        )
    if support:
        found["support"] = Parameter("what members are", dtype=np.int8, flags=CENTRES)
        found["centre"] = Parameter(
            "coefficients of centre and spread", dims={COEFFICIENT: 4 + 2 * n_features}
        )
        found["lower"] = Parameter("lower bound", True)
        found["upper"] = Parameter("upper bound", True)
    if half_life:
        found["half_life"] = Parameter("half-life of the cases in days")
    if landmarks is not None:
        found["landmark"] = Parameter(
            "cases that represent all others; -1 for none, or an exact solution",
            dtype=np.int32,
            dims={RANK: landmarks},
            of_slots=True,
        )
    return found


def complete_fit(fitted: Mapping[str, npt.NDArray[Any]], n_features: int) -> FittedCKME:
    """What the array layer needs, with the values of all that the settings do not choose."""
    from xrecal.arrays.ckme.embedding import FittedCKME

    ridge = fitted["ridge"]
    xp = namespace(ridge)
    plain = xp.zeros((ridge.size, 4 + 2 * n_features))
    plain[:, 2] = 1.0
    default: dict[str, npt.NDArray[Any]] = {
        "strength": xp.zeros(ridge.size),
        "precision": xp.zeros((ridge.size, n_features)),
        "support": xp.zeros(ridge.size, dtype=np.int8),
        "centre": plain,
        "lower": xp.full(ridge.size, -np.inf),
        "upper": xp.full(ridge.size, np.inf),
        "half_life": xp.full(ridge.size, np.inf),
        "loss": xp.full(ridge.size, np.nan),
        "n_cases": xp.zeros(ridge.size, dtype=np.int32),
        "status": xp.zeros(ridge.size, dtype=np.int8),
        "landmark": xp.full((ridge.size, 1), -1, dtype=np.int32),
    }
    known = {name: fitted[name] for name in FittedCKME._fields if name in fitted}
    return FittedCKME(**{**default, **known})
