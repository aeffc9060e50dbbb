import numpy as np
import pytest

import xrecal
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.arrays.status import TOO_FEW
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases, Covariates, NewCases
from xrecal.methods.conformal import ABOVE

from .of_arrays import FORMS, as_cases, as_new, covariates_of, forms


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, np.nan, None, "0.1", True], ids=str)
def test_alpha_is_a_probability(alpha):
    with pytest.raises(ValueError, match=r"ConformalPrediction: alpha must be in \(0, 1\), got "):
        xrecal.ConformalPrediction(alpha=alpha)


def make_cases(rng, kind="ensemble", n=50):
    forecasts = forms(rng, (2, n))[kind]
    observations = forecasts.loc.mean(-1) + rng.normal(size=(2, n))
    observations[0, 4] = np.nan
    return as_cases(forecasts, observations, covariates_of(rng, 2, n))


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_ends_are_quantiles_at_the_conformal_levels(kind, alpha, rng):
    cases, new = make_cases(rng, kind), forms(rng, (2, 7))[kind]
    method = xrecal.ConformalPrediction(alpha)
    fitted = method.fit_locations(cases, 20)
    found = method.predict_locations(as_new(new), cases, fitted)
    levels = arrays.conformal_levels(fitted["pit"], alpha)
    levels[:, 1] = np.minimum(levels[:, 1] + ABOVE, 1)
    np.testing.assert_array_equal(found.members, arrays.recalibrated_members(new, levels))
    np.testing.assert_array_equal(found.weights, 0.5)
    np.testing.assert_array_equal(method.slots(50)[0], [-1, -1])


def weighted_reference(pit, weights, alpha):
    """Smallest distance from ½ within which 1 - alpha of the weight lies, the new case's too."""
    apart, n = np.abs(pit - 0.5), np.isfinite(pit).sum()
    for q in np.sort(apart[np.isfinite(apart)]):
        if weights[apart <= q].sum() * n >= (1 - alpha) * (n + 1) - 1e-9:
            return q
    return 0.5


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_similar_cases_count_more(alpha, rng):
    cases, new = make_cases(rng), forms(rng, (2, 7))["ensemble"]
    new_covariates = covariates_of(rng, 2, 7)
    new_covariates.values[1, 3, 1] = np.nan
    method = xrecal.ConformalPrediction(alpha, condition_on=("lead", "season"))
    fitted = method.fit_locations(cases, 20)
    found = method.predict_locations(as_new(new, new_covariates), cases, fitted)
    of, new_of = (c.features(method.covariates) for c in (cases.covariates, new_covariates))
    weights = arrays.climatology_weights(fitted["pit"], 7, features=of, new_features=new_of)
    for cell in range(2):
        for t in range(7):
            if (cell, t) == (1, 3):
                assert np.isnan(found.members[cell, t]).all()
                continue
            q = weighted_reference(fitted["pit"][cell], weights[cell, t], alpha)
            one = Forecasts(new.loc[cell : cell + 1, t : t + 1])
            expected = arrays.recalibrated_members(
                one, np.array([[0.5 - q, min(0.5 + q + ABOVE, 1)]])
            )
            np.testing.assert_allclose(found.members[cell, t], expected[0, 0])


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.99])
def test_a_constant_covariate_gives_the_plain_interval(alpha, rng):
    cases, new = make_cases(rng), forms(rng, (2, 7))["ensemble"]
    plain = xrecal.ConformalPrediction(alpha)
    fitted = plain.fit_locations(cases, 20)
    expected = plain.predict_locations(as_new(new), cases, fitted)
    same = (Covariates(np.full((2, n, 1), 3.0), ("lead",), (None,)) for n in (50, 7))
    cases = as_cases(cases.forecasts, cases.observations, next(same))
    found = xrecal.ConformalPrediction(alpha, condition_on="lead").predict_locations(
        as_new(new, next(same)), cases, fitted
    )
    np.testing.assert_array_equal(found.members, expected.members)


def test_intervals_hold_the_observation_as_often_as_promised(rng):
    """Over many locations, as if each were another sample of exchangeable cases."""
    loc = rng.normal(size=(2000, 21, 1))
    forecasts = Forecasts(loc, np.full_like(loc, 0.5))  # overconfident
    truth = loc[..., 0] + rng.normal(size=(2000, 21))
    past, new = (Forecasts(*(p[:, at] for p in forecasts[:2])) for at in (slice(20), slice(20, 21)))
    cases = as_cases(past, truth[:, :20])
    method = xrecal.ConformalPrediction(alpha=0.3)
    low, high = (
        method.predict_locations(as_new(new), cases, method.fit_locations(cases, 20))
        .members[:, 0]
        .T
    )
    inside = (low <= truth[:, 20]) & (truth[:, 20] <= high)
    assert 0.67 < inside.mean() < 0.78  # promised: 15 of 21 cases


def test_few_cases(rng):
    cases = make_cases(rng)
    cases.observations[0, 19:] = np.nan
    method = xrecal.ConformalPrediction()
    fitted = method.fit_locations(cases, 20)
    np.testing.assert_array_equal(fitted["status"], [TOO_FEW, 0])
    found = method.predict_locations(as_new(cases.forecasts), cases, fitted)
    for part in found:
        np.testing.assert_array_equal(np.isnan(part).all((1, 2)), [True, False])


def test_intervals_of_a_calibrated_ensemble_cover_as_promised_within_its_range():
    rng = np.random.default_rng(3)
    loc = rng.normal(size=(1, 4000, 10))
    observed = rng.normal(size=(1, 4000))
    none = Covariates(np.zeros((1, 4000, 0)))
    cases = Cases(Forecasts(loc), observed, none, CaseAxis())
    method = xrecal.ConformalPrediction(0.5)
    fitted = method.fit_locations(cases, 20)
    low, high = (
        method.predict_locations(NewCases(cases.forecasts, none), cases, fitted).members[0].T
    )
    assert np.mean((observed[0] >= low) & (observed[0] <= high)) >= 0.5
