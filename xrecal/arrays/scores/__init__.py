"""Scores of forecasts, differences of scores, and their decomposition."""
