"""Distributions of every form: distances, moments, quantiles, members, mixtures."""
