"""Candidates of the settings of :class:`~xrecal.methods.ckme.CKME`, and parameters of its fits."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from .base import ANY, NOT_NEGATIVE, POSITIVE, POSITIVE_OR_INFINITE, Parameter

Support: TypeAlias = Literal[
    "observations",
    "errors",
    "auto",
    "mean",
    "regression",
    "standardised",
    "ratio",
    "regression_plain",
    "standardised_plain",
    "standardised_both",
]
"""Positions of members: past observations, errors of any kind or of one kind, or the best."""

CHOICES = {
    "kernel": ("gaussian", "laplace"),
    "loss": ("crps", "laplace"),
    "folds": ("auto", "year", "block", "random"),
    "projection": ("euclidean", "energy"),
    "solver": ("auto", "exact", "lowrank"),
    "support": get_args(Support),
    "compare": ("forecasts", "shapes"),
    "tails": ("auto", None),
    "novelty": ("auto", None),
}
"""Allowed names of settings."""

PLAIN = ("regression_plain", "standardised_plain")
"""Kinds of errors around a centre, without predictors."""

ERRORS = ("mean", "regression", "standardised", "ratio", *PLAIN)

SUPPORTS = {
    "errors": ERRORS,
    "auto": ("observations", *ERRORS),
    "standardised_both": ("standardised", "standardised_plain"),
    **{support: (support,) for support in ("observations", *ERRORS)},
}
"""Kinds of support of the array layer for each setting."""

OF_SHAPES = ("standardised", "ratio", "standardised_plain")
"""Kinds of support if forecasts are compared without their means: the support restores the mean."""

STRENGTHS = (0.0, 0.25, 1.0, 4.0)
"""Exponents of the kernel on covariates to try."""

WIDE = ((1, 0), (1, 1), (4, 0), (4, 0.25), (4, 1), (16, 0.0625), (16, 0.25))
"""Factors of the bandwidth, and exponents, to try with ``bandwidth="cv"``."""

WIDE_OF_SHAPES = ((1, 0), (1, 1), (4, 1), (16, 0.25))
"""Factors and exponents to try with ``bandwidth="cv"`` if shapes are compared."""

WIDE_ALONE = ((1, 0), (4, 0), (16, 0))
"""Factors of the bandwidth to try with ``bandwidth="cv"`` without covariates."""

KERNELS = {
    (None, False): ((1.0, 0.0),),
    (None, True): tuple((1.0, strength) for strength in STRENGTHS),
    ("forecasts", False): WIDE_ALONE,
    ("forecasts", True): WIDE,
    ("shapes", False): WIDE_ALONE,
    ("shapes", True): WIDE_OF_SHAPES,
}
"""Factors of the bandwidth and exponents to try. The first key is what ``bandwidth="cv"`` compares,
None for other bandwidths. The second key is true if there are covariates."""

CENTRES = (
    "observations",
    "errors_around_mean",
    "errors_around_regression",
    "errors_in_units_of_emos_spread",
    "ratios_to_mean",
    "errors_around_regression_without_predictors",
    "errors_in_units_of_emos_spread_without_predictors",
)
"""Names of the supports in the state."""

FEATURE, COEFFICIENT, RANK = "feature", "coefficient", "rank"
"""Dimensions of the state."""


_OF_FEATURES, _OF_COEFFICIENTS, _OF_LANDMARKS = {FEATURE: 0}, {COEFFICIENT: 0}, {RANK: 0}

KEPT = {
    "ridge": Parameter("ridge of the kernel regression", within=POSITIVE),
    "bandwidth": Parameter(
        "bandwidth of the energy distance kernel", True, within=POSITIVE_OR_INFINITE
    ),
    "strength": Parameter(
        "strength of the covariates, 0 where they do not count", within=NOT_NEGATIVE
    ),
    "precision": Parameter(
        "weight of each feature in the distance of covariates", dims=_OF_FEATURES
    ),
    "support": Parameter("what members are", dtype=np.int8, flags=CENTRES),
    "centre": Parameter("coefficients of centre and spread", dims=_OF_COEFFICIENTS),
    "lower": Parameter("lower bound", True, within=ANY),
    "upper": Parameter("upper bound", True, within=ANY),
    "beside": Parameter(
        "errors that replace past observations, where observations are chosen",
        dtype=np.int8,
        flags=("none", *CENTRES[1:]),
    ),
    "beside_centre": Parameter(
        "coefficients of centre and spread of these errors", dims=_OF_COEFFICIENTS
    ),
    "half_life": Parameter("half-life of the cases in days", within=POSITIVE_OR_INFINITE),
    "landmark": Parameter(
        "cases that represent all others; -1 for none, or an exact solution",
        dtype=np.int32,
        dims=_OF_LANDMARKS,
        of_slots=True,
    ),
}
"""Parameters of the state; settings and cases determine the sizes of their dimensions."""
