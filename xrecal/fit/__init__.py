"""Fits, fitted models, held-out distributions, and updates with more cases."""
