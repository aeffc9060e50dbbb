import numpy as np
import pytest

import xrecal
from xrecal import arrays

from .of_arrays import FORMS, as_cases, as_new, covariates_of, forms


def make_cases(rng, kind="ensemble"):
    forecasts, covariates = forms(rng, (2, 50))[kind], covariates_of(rng, 2, 50)
    observations = forecasts.loc.mean(-1) + covariates.values[..., 1] + rng.normal(size=(2, 50))
    return as_cases(forecasts, observations, covariates)


def mean_of(forecasts):
    loc, _, weights = forecasts
    return np.average(loc, axis=-1, weights=weights)


@pytest.mark.parametrize("kind", FORMS)
def test_the_index_is_the_mean_of_the_forecast(kind, rng):
    cases, new = make_cases(rng, kind), forms(rng, (2, 7))[kind]
    method = xrecal.IDR()
    fitted = method.fit_locations(cases, 20)
    np.testing.assert_array_equal(fitted["index_coefficient"], [[0, 1]] * 2)
    found = method.predict_locations(as_new(new), cases, fitted)
    expected = arrays.idr_weights(mean_of(new), mean_of(cases.forecasts), cases.observations)
    np.testing.assert_allclose(found.weights, expected, atol=1e-12)
    assert found.members is cases.observations


def test_with_covariates_it_is_a_regression(rng):
    cases, new = make_cases(rng), forms(rng, (2, 7))["ensemble"]
    new_covariates = covariates_of(rng, 2, 7)
    method = xrecal.IDR(condition_on=("season", "lead"))
    fitted = method.fit_locations(cases, 20)
    of = cases.covariates.features(method.covariates).values
    new_of = new_covariates.features(method.covariates, cases.covariates).values
    expected = arrays.fit_index(mean_of(cases.forecasts), cases.observations, of)
    np.testing.assert_allclose(fitted["index_coefficient"], expected, rtol=1e-9, atol=1e-12)
    assert (np.abs(expected[:, 4] - 1) < 0.5).all()  # how the observations were made
    found = method.predict_locations(as_new(new, new_covariates), cases, fitted)
    index = arrays.index_of(fitted["index_coefficient"], mean_of(new), new_of)
    weights = arrays.idr_weights(index, fitted["index"], cases.observations)
    np.testing.assert_allclose(found.weights, weights, atol=1e-12)
    new_covariates.values[1, 2, 1] = np.nan
    found = method.predict_locations(as_new(new, new_covariates), cases, fitted)
    assert np.isfinite(found.weights[1]).all()


def test_equal_means_stay_equal(rng):
    cases = make_cases(rng)
    cases.forecasts.loc[:, ::2] = 280.1
    fitted = xrecal.IDR().fit_locations(cases, 20)
    assert np.unique(fitted["index"][0, ::2]).size == 1
