"""Scores of forecasts, tests of differences of scores, and decompositions of scores."""
