"""Distances, moments, quantiles, members and mixtures of distributions of every form."""
