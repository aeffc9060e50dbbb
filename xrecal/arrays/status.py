"""Status of a location: a sum of bits, which a fit or a test reports; 0 means ok."""

from __future__ import annotations

TOO_FEW = 1
"""A location has fewer complete cases than ``min_samples``: all results there are NaN."""

IDENTICAL = 2
"""All calibration forecasts are equal: the result is climatology, conditional on the covariates if
there are some."""

RIDGE_EDGE = 4
"""The best ridge is the smallest or the largest of those that the fit tried. If it is the largest
(1), forecasts have almost no skill."""

INVALID = 8
"""The fit left out cases with infinite values, negative weights or negative scales."""

NOT_CONVERGED = 16
"""The optimiser of a parametric method stopped before its tolerance."""

BOUNDS = 32
"""Observations lie beyond bounds that the user gave; the fit ignores these bounds there."""

CONSTANT = 64
"""A covariate is constant over all cases, so it has no effect."""

FILL = 1024
"""Some members or observations are at least a million times larger than all others; they count as
missing."""

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
"""Numbers of cases: a diagnostic with fewer cases than the first number is NaN; with fewer cases
than the second number, its status is ``FEW``."""

FEW = 128
"""There are fewer than ten complete cases: results are uncertain."""

NO_SPREAD = 256
"""All observations are equal, so no bandwidth fits their kernel: all results are NaN."""

REFUSED = 512
"""Weights or scales are negative or infinite, or weights do not sum to one: all results are NaN."""

DEPENDENT = 2048
"""Successive cases depend on each other, but the test assumes independence."""

NOT_TOLD = 4096
"""The autocorrelation is too strong for the number of cases: the p-value is NaN."""

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
"""Names of the status bits of tests and diagnostics. For them, ``TOO_FEW`` means fewer than two
cases."""
