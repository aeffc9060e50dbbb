"""The conditional kernel mean embedding (CKME): solvers, search, fit, projections, weights."""
