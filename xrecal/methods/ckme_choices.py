"""What the settings of :class:`~xrecal.methods.ckme.CKME` choose among."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Support: TypeAlias = Literal[
    "observations", "errors", "auto", "mean", "regression", "standardised", "ratio"
]
"""Where members may lie: past observations, errors of any kind or of one, or the best of all."""

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
"""Values of settings that are names."""

SUPPORTS = {
    "observations": ("observations",),
    "errors": ("mean", "regression", "standardised", "ratio"),
    "auto": ("observations", "mean", "regression", "standardised", "ratio"),
    "mean": ("mean",),
    "regression": ("regression",),
    "standardised": ("standardised",),
    "ratio": ("ratio",),
}
"""Kinds of support of the array layer among which a setting chooses."""

OF_SHAPES = ("standardised", "ratio")
"""Kinds of support where forecasts are compared without their means: they bring the mean back."""

STRENGTHS = (0.0, 0.25, 1.0, 4.0)
"""Exponents of the kernel on covariates that are tried."""

WIDE = ((1, 0), (1, 1), (4, 0), (4, 0.25), (4, 1), (16, 0.0625), (16, 0.25))
"""Factors of the bandwidth, and exponents, that are tried with ``bandwidth="cv"``."""

WIDE_OF_SHAPES = ((1, 0), (1, 1), (4, 1), (16, 0.25))
"""The same where shapes are compared."""

WIDE_ALONE = ((1, 0), (4, 0), (16, 0))
"""Factors of the bandwidth that are tried with ``bandwidth="cv"`` without covariates."""

KERNELS = {
    (None, False): ((1.0, 0.0),),
    (None, True): tuple((1.0, strength) for strength in STRENGTHS),
    ("forecasts", False): WIDE_ALONE,
    ("forecasts", True): WIDE,
    ("shapes", False): WIDE_ALONE,
    ("shapes", True): WIDE_OF_SHAPES,
}
"""Factors of the bandwidth and exponents that are tried: by what is compared with
``bandwidth="cv"``, None without; and by whether there are covariates."""

CENTRES = (
    "observations",
    "errors_around_mean",
    "errors_around_regression",
    "errors_in_units_of_emos_spread",
    "ratios_to_mean",
)
"""Names of the supports in the state."""
