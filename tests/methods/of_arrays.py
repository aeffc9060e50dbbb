"""Cases and forecasts of the array layer for tests of methods, covariates and dates included."""

import numpy as np

from xrecal.arrays.distributions.forms import Forecasts
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases, NewCases
from xrecal.methods.covariates import Covariates

PERIODS = {"season": 1.0, "lead": None, "calendar_day": 1.0}
"""Covariates of all cases, and their periods."""


def axis_of(n):
    """Dates of n cases, 30 days apart."""
    days = 30.0 * np.arange(n)
    return CaseAxis((2000 + days // 365.25).astype(int), days / 365.25 % 1, days)


def covariates_of(rng, n_locations, n):
    season, lead = rng.uniform(size=(n_locations, n)), rng.normal(size=(n_locations, n))
    values = np.stack([season, lead, season], -1)
    return Covariates(values, tuple(PERIODS), tuple(PERIODS.values()))


def none_of(n_locations, n):
    return Covariates(np.zeros((n_locations, n, 0)))


def as_cases(forecasts, observations, covariates=None, axis=None):
    covariates = none_of(*observations.shape) if covariates is None else covariates
    return Cases(forecasts, observations, covariates, CaseAxis() if axis is None else axis)


def as_new(forecasts, covariates=None):
    covariates = none_of(*forecasts.loc.shape[:2]) if covariates is None else covariates
    return NewCases(forecasts, covariates)


def forms(rng, shape, m=4):
    """Forecasts of each form."""
    loc = rng.normal(size=(*shape, m))
    scale, weights = rng.uniform(0.2, 1, loc.shape), rng.uniform(0.2, 1, loc.shape)
    return {
        "ensemble": Forecasts(loc),
        "weighted": Forecasts(loc, None, weights),
        "normal": Forecasts(loc, scale),
        "mixture": Forecasts(loc, scale, weights),
    }


FORMS = ("ensemble", "weighted", "normal", "mixture")
