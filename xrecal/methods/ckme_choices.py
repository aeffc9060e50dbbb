"""Allowed settings of :class:`~xrecal.methods.ckme.CKME`, and parameters of its fits."""

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
"""Allowed values of the setting ``support``, the kind of members: past observations, one or several
kinds of past errors, or "auto"."""

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
"""Allowed values of settings."""

PLAIN = ("regression_plain", "standardised_plain")
"""Kinds of errors from a centre that does not use predictors. A centre is a value computed from the
forecast; predictors are covariates other than season and place."""

ERRORS = ("mean", "regression", "standardised", "ratio", *PLAIN)
"""All kinds of errors."""

SUPPORTS = {
    "errors": ERRORS,
    "auto": ("observations", *ERRORS),
    "standardised_both": ("standardised", "standardised_plain"),
    **{support: (support,) for support in ("observations", *ERRORS)},
}
"""Kinds of members from which the fit chooses, for each value of the setting ``support``."""

OF_SHAPES = ("standardised", "ratio", "standardised_plain")
"""Kinds of members that are allowed if the kernel compares shapes, which are forecasts without
their means. Members of these kinds restore the mean."""

STRENGTHS = (0.0, 0.25, 1.0, 4.0)
"""Candidates for the exponent of the kernel that compares covariates. With 0, covariates have no
effect."""

WIDE = ((1, 0), (1, 1), (4, 0), (4, 0.25), (4, 1), (16, 0.0625), (16, 0.25))
"""Candidates with ``bandwidth="cv"``: pairs of a factor of the median bandwidth and an exponent of
the kernel that compares covariates."""

WIDE_OF_SHAPES = ((1, 0), (1, 1), (4, 1), (16, 0.25))
"""Candidates with ``bandwidth="cv"`` if the kernel compares shapes, as pairs like :data:`WIDE`."""

WIDE_ALONE = ((1, 0), (4, 0), (16, 0))
"""Candidates with ``bandwidth="cv"`` and without covariates, as pairs like :data:`WIDE`."""

KERNELS = {
    (None, False): ((1.0, 0.0),),
    (None, True): tuple((1.0, strength) for strength in STRENGTHS),
    ("forecasts", False): WIDE_ALONE,
    ("forecasts", True): WIDE,
    ("shapes", False): WIDE_ALONE,
    ("shapes", True): WIDE_OF_SHAPES,
}
"""Candidates as pairs like :data:`WIDE`, for each combination of settings. With ``bandwidth="cv"``,
the first part of a key is the setting ``compare``; otherwise it is None. The second part is true if
there are covariates."""

CENTRES = (
    "observations",
    "errors_around_mean",
    "errors_around_regression",
    "errors_in_units_of_emos_spread",
    "ratios_to_mean",
    "errors_around_regression_without_predictors",
    "errors_in_units_of_emos_spread_without_predictors",
)
"""Names of the kinds of members. The state (the arrays of a model) stores the position of a name in
this tuple."""

FEATURE, COEFFICIENT, RANK = "feature", "coefficient", "rank"
"""Names of dimensions of parameters: features of covariates, coefficients of a centre and its
spread, and landmarks."""


_OF_FEATURES, _OF_COEFFICIENTS, _OF_LANDMARKS = {FEATURE: 0}, {COEFFICIENT: 0}, {RANK: 0}

KEPT = {
    "ridge": Parameter("ridge of the kernel regression", within=POSITIVE),
    "bandwidth": Parameter(
        "bandwidth of the energy distance kernel", True, within=POSITIVE_OR_INFINITE
    ),
    "strength": Parameter(
        "strength of the covariates, 0 where they have no effect", within=NOT_NEGATIVE
    ),
    "precision": Parameter(
        "weight of each feature in the distance of covariates", dims=_OF_FEATURES
    ),
    "support": Parameter("kind of members", dtype=np.int8, flags=CENTRES),
    "centre": Parameter("coefficients of centre and spread", dims=_OF_COEFFICIENTS),
    "lower": Parameter("lower bound", True, within=ANY),
    "upper": Parameter("upper bound", True, within=ANY),
    "beside": Parameter(
        "kind of errors that replace past observations, if members are observations",
        dtype=np.int8,
        flags=("none", *CENTRES[1:]),
    ),
    "beside_centre": Parameter(
        "coefficients of centre and spread of these errors", dims=_OF_COEFFICIENTS
    ),
    "half_life": Parameter("half-life of the cases in days", within=POSITIVE_OR_INFINITE),
    "landmark": Parameter(
        "cases that represent all others; -1 means no case, as in exact solutions",
        dtype=np.int32,
        dims=_OF_LANDMARKS,
        of_slots=True,
    ),
}
"""Parameters of a CKME in the state. A size of 0 is a placeholder; settings and cases determine the
size."""
