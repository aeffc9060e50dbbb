"""Fits: fitted models, how they are fitted, held-out distributions, and updates with more cases."""
