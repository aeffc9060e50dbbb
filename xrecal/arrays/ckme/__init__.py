"""The conditional kernel mean embedding: solvers, search, fit, projections, new weights."""
