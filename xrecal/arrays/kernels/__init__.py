"""Squared energy distances to similarities, times a kernel on covariates."""
