"""Kernels: similarities from squared energy distances and covariates."""
