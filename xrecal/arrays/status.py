"""Status of a location: the sum of the numbers below that apply; 0 means ok."""

from __future__ import annotations

TOO_FEW = 1
"""A location has fewer complete cases than ``min_samples``: all results there are NaN."""

IDENTICAL = 2
"""All forecasts that the fit learns from are equal: the result is climatology, conditional on the
covariates if there are some."""

RIDGE_EDGE = 4
"""The best ridge is the smallest or the largest ridge that the fit tried. If it is the largest
ridge, 1, forecasts have almost no skill."""

INVALID = 8
"""The fit left out cases with infinite values, negative weights or negative scales."""

NOT_CONVERGED = 16
"""The search for the best parameters, as in EMOS, stopped before it had found them."""

BOUNDS = 32
"""Observations lie beyond bounds that the user gave; at such a location the fit ignores these
bounds."""

CONSTANT = 64
"""A covariate is constant over all cases, so it has no effect."""

FILL = 1024
"""Some members or observations are more than a million times as large as all others; these values
count as missing."""

MEANINGS = {
    TOO_FEW: "too_few_cases",
    IDENTICAL: "identical_forecasts",
    RIDGE_EDGE: "ridge_at_edge_of_search",
    INVALID: "invalid_values_left_out",
    NOT_CONVERGED: "not_converged",
    BOUNDS: "bounds_violated",
    CONSTANT: "constant_covariate",
    FILL: "fill_values_taken_as_missing",
}

FEWEST, ENOUGH = 2, 10
"""Two numbers of cases. A diagnostic is NaN if it has fewer cases than the first number. Its status
is ``FEW`` if it has fewer cases than the second number."""

FEW = 128
"""There are fewer than ten complete cases: results are uncertain."""

NO_SPREAD = 256
"""All observations are equal, so no bandwidth follows from their distances: all results are NaN."""

REFUSED = 512
"""Weights or scales are negative or infinite, or weights do not sum to one: all results are NaN."""

DEPENDENT = 2048
"""The test assumes that cases are independent, but successive cases depend on each other."""

NOT_TOLD = 4096
"""There are too few cases for a test with so strong an autocorrelation: the p-value is NaN."""

SEASONAL = 8192
"""The annual cycle explains most of the variance of the forecasts, so the test subtracts it."""

NO_EVENT = 16384
"""An event or category occurs in no case, or in all cases: its skill and ROC area are unknown."""

EVIDENCE_MEANINGS = {
    TOO_FEW: "too_few_cases",
    IDENTICAL: "identical_forecasts",
    INVALID: "invalid_values_left_out",
    FEW: "few_cases",
    NO_SPREAD: "constant_observations",
    REFUSED: "weights_or_scales_refused",
    DEPENDENT: "successive_cases_depend",
    NOT_TOLD: "too_few_cases_for_their_dependence",
    SEASONAL: "relative_to_the_season",
    NO_EVENT: "event_or_category_in_none_or_all_cases",
}
"""Name of each status of tests and diagnostics. For these, ``TOO_FEW`` means fewer than two
cases."""
