"""Status of a location: a sum of bits that a fit or a test reports; 0 means ok."""

from __future__ import annotations

TOO_FEW = 1
"""Fewer complete cases than ``min_samples``: everything is NaN there."""

IDENTICAL = 2
"""All calibration forecasts are equal: the result is climatology, given any covariates."""

RIDGE_EDGE = 4
"""The best ridge is the smallest or largest one tried. The largest (1) means almost no skill."""

INVALID = 8
"""Cases with infinite values, negative weights or negative scales were left out."""

NOT_CONVERGED = 16
"""The optimiser of a parametric method stopped before its tolerance."""

BOUNDS = 32
"""Observations lie beyond given bounds; such bounds are not applied there."""

CONSTANT = 64
"""A covariate is constant over all cases, so it has no effect."""

FILL = 1024
"""Members or observations that are at least a million times all others count as missing."""

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
"""Two numbers of cases: a diagnostic with fewer cases is NaN, or is flagged as uncertain."""

FEW = 128
"""Fewer than ten complete cases: values are given, but uncertain."""

NO_SPREAD = 256
"""All observations are equal, so the kernel on them has no bandwidth: everything is NaN."""

REFUSED = 512
"""Weights or scales are negative or infinite, or weights do not sum to one: everything is NaN."""

DEPENDENT = 2048
"""Successive cases depend on each other, but the test assumes independence."""

NOT_TOLD = 4096
"""Too few cases for their dependence: the p-value is NaN."""

SEASONAL = 8192
"""Forecasts are compared relative to their season, which explains most of their variance."""

NO_EVENT = 16384
"""An event or category occurs in none or all of the cases: its skill and ROC area are unknown."""

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
"""Bits of a test of calibration; ``TOO_FEW`` there means fewer than two cases."""
