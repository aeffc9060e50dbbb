"""The experiments of the paper behind CKME, with xrecal: python -m benchmarks.paper.

data.py        sets of features and targets, split into training, calibration and test
models/        base models: density networks, Bayesian network, forest
forecasts.py   what they forecast, kept in a folder
recalibration.py   methods that recalibrate, by label
gp_beta.py     the paper's parametric baseline, in JAX
ridges.py      smaller ridges than the library searches
experiments/   scores and tests, ablations, a kernel on features, run times
tables.py      rows of results, added one by one
report.py      REPORT.md from the rows, beside the values that the paper prints
opening.py     its first ten lines
"""
