"""What a CKME chooses at each location, as parameters of its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .base import Parameter
from .ckme_choices import CENTRES
from .ranges import ANY, NOT_NEGATIVE, POSITIVE, POSITIVE_OR_INFINITE

FEATURE, COEFFICIENT, RANK = "feature", "coefficient", "rank"
"""Dimensions of the state."""


def kept_parameters(
    n_features: int,
    *,
    support: bool,
    beside: bool,
    half_life: bool,
    landmarks: Callable[[int], int] | None,
) -> Mapping[str, Parameter]:
    """Parameters of the state, with those of a choice of support, half-life or landmarks.

    ``beside``: with those of errors to which past observations give way.

    ``landmarks`` gives the room for these from the number of slots.
    """
    parameters = {
        "ridge": Parameter("ridge of the kernel regression", within=POSITIVE),
        "bandwidth": Parameter(
            "bandwidth of the energy distance kernel", True, within=POSITIVE_OR_INFINITE
        ),
    }
    if n_features:
        parameters["strength"] = Parameter(
            "strength of the covariates, 0 where they do not count", within=NOT_NEGATIVE
        )
        parameters["precision"] = Parameter(
            "weight of each feature in the distance of covariates", dims={FEATURE: n_features}
        )
    if support:
        parameters["support"] = Parameter("what members are", dtype=np.int8, flags=CENTRES)
        parameters["centre"] = Parameter(
            "coefficients of centre and spread", dims={COEFFICIENT: 4 + 2 * n_features}
        )
        parameters["lower"] = Parameter("lower bound", True, within=ANY)
        parameters["upper"] = Parameter("upper bound", True, within=ANY)
    if beside:
        parameters["beside"] = Parameter(
            "errors to which past observations give way, where these are chosen",
            dtype=np.int8,
            flags=("none", *CENTRES[1:]),
        )
        parameters["beside_centre"] = Parameter(
            "coefficients of centre and spread of these errors",
            dims={COEFFICIENT: 4 + 2 * n_features},
        )
    if half_life:
        parameters["half_life"] = Parameter(
            "half-life of the cases in days", within=POSITIVE_OR_INFINITE
        )
    if landmarks is not None:
        parameters["landmark"] = Parameter(
            "cases that represent all others; -1 for none, or an exact solution",
            dtype=np.int32,
            dims={RANK: landmarks},
            of_slots=True,
        )
    return parameters
