"""Probabilistic recalibration of ensemble forecasts for xarray."""
