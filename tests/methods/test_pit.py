import numpy as np
import pytest

import xrecal
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.methods.pit import SEED

from .of_arrays import FORMS, as_cases, as_new, covariates_of, forms


def make_cases(rng, kind="ensemble", n=50):
    forecasts = forms(rng, (2, n))[kind]
    observations = forecasts.loc.mean(-1) + 1 + 0.3 * rng.normal(size=(2, n))
    observations[0, 4] = np.nan
    return as_cases(forecasts, observations, covariates_of(rng, 2, n))


@pytest.mark.parametrize("kind", FORMS)
def test_quantiles_at_the_levels_that_past_observations_had(kind, rng):
    cases, new = make_cases(rng, kind), forms(rng, (2, 7))[kind]
    method = xrecal.PITRecalibration()
    fitted = method.fit_locations(cases, 20)
    uniform = np.broadcast_to(arrays.hash_uniform(SEED, np.zeros(1, int), 50), (2, 50))
    pit = arrays.pit_values(cases.forecasts, cases.observations, uniform)
    np.testing.assert_array_equal(fitted["pit"], pit)
    np.testing.assert_array_equal(fitted["n_cases"], [49, 50])
    found = method.predict_locations(as_new(new), cases, fitted)
    np.testing.assert_array_equal(found.members, arrays.recalibrated_members(new, pit))
    np.testing.assert_array_equal(found.weights[0, :, 4], 0)
    np.testing.assert_allclose(np.delete(found.weights[0], 4, axis=-1), 1 / 49)
    np.testing.assert_allclose(found.weights[1], 1 / 50)


def test_the_past_is_flat_after_recalibration(rng):
    cases = make_cases(rng, "normal", 400)
    method = xrecal.PITRecalibration()
    found = method.predict_locations(
        as_new(cases.forecasts), cases, method.fit_locations(cases, 20)
    )
    deciles = found.quantile(np.arange(0.1, 1, 0.1))
    below = (cases.observations[1][:, np.newaxis] <= deciles[1] + 1e-9).mean(0)
    np.testing.assert_allclose(below, np.arange(0.1, 1, 0.1), atol=0.01)


def test_the_same_case_draws_the_same_number_wherever_it_is(rng):
    loc = np.tile(rng.normal(size=(1, 30, 4)), (3, 1, 1))  # observations outside the ensembles
    observations = np.repeat([[-9.0], [9.0], [9.0]], 30, axis=1)
    cases = as_cases(Forecasts(loc), observations)
    pit = xrecal.PITRecalibration().fit_locations(cases, 20)["pit"]
    np.testing.assert_array_equal(pit[1], pit[2])
    alone = xrecal.PITRecalibration().fit_locations(cases.take(slice(2, 3)), 20)["pit"]
    np.testing.assert_array_equal(alone[0], pit[2])


def test_past_levels_count_by_covariates(rng):
    cases, new = make_cases(rng), forms(rng, (2, 7))["ensemble"]
    new_covariates = covariates_of(rng, 2, 7)
    new_covariates.values[1, 3, 1] = np.nan
    method = xrecal.PITRecalibration(condition_on=("lead", "season"))
    fitted = method.fit_locations(cases, 20)
    found = method.predict_locations(as_new(new, new_covariates), cases, fitted)
    of = cases.covariates.features(method.covariates)
    new_of = new_covariates.features(method.covariates, cases.covariates)
    expected = arrays.climatology_weights(fitted["pit"], 7, features=of, new_features=new_of)
    np.testing.assert_array_equal(found.weights, expected)
    assert np.isfinite(found.weights[1]).all()
