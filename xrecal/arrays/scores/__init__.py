"""Scores of forecasts, differences of scores and what they are made of."""
