"""The forecast as it was issued, as a method."""

import numpy as np
import pytest

import xrecal
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases, NewCases
from xrecal.methods.covariates import Covariates

LEVELS = (np.arange(200) + 0.5) / 200


def nothing(n):
    return Covariates(np.zeros((1, n, 0)))


@pytest.mark.parametrize("scale", [None, 0.7])
def test_quantiles_of_the_forecast(rng, scale):
    loc = rng.normal(size=(1, 30, 4))
    forecasts = Forecasts(loc, None if scale is None else np.full_like(loc, scale))
    cases = Cases(forecasts, loc[..., 0], nothing(30), CaseAxis())
    raw = xrecal.Raw()
    fitted = raw.fit_locations(cases, 20)
    found = raw.predict_locations(NewCases(forecasts, nothing(30)), cases, fitted)
    np.testing.assert_allclose(found.weights, 1 / 200)
    if scale is None:
        expected = np.quantile(loc, LEVELS, axis=-1, method="inverted_cdf").transpose(1, 2, 0)
        np.testing.assert_allclose(found.members, expected)
    else:
        np.testing.assert_allclose(found.members.mean(-1), loc.mean(-1), atol=0.02)
