import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xrecal
from xrecal import arrays
from xrecal.arrays.distributions.forms import Forecasts
from xrecal.methods.conformal import ABOVE
from xrecal.methods.covariates import Covariates

from .of_arrays import as_cases, as_new, covariates_of, forms


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, np.nan, None, "0.1", True], ids=str)
def test_alpha_is_a_probability(alpha):
    with pytest.raises(ValueError, match=r"ConformalPrediction: alpha must be in \(0, 1\), got "):
        xrecal.ConformalPrediction(alpha=alpha)


def make_cases(rng, kind="ensemble", n=50):
    forecasts = forms(rng, (2, n))[kind]
    observations = forecasts.loc.mean(-1) + rng.normal(size=(2, n))
    observations[0, 4] = np.nan
    return as_cases(forecasts, observations, covariates_of(rng, 2, n))


@pytest.mark.parametrize("kind", ["normal", "mixture"])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_ends_of_normal_forecasts_are_quantiles_at_the_conformal_levels(kind, alpha, rng):
    cases, new = make_cases(rng, kind), forms(rng, (2, 7))[kind]
    method = xrecal.ConformalPrediction(alpha)
    fitted = method.fit_locations(cases, 20)
    found = method.predict_locations(as_new(new), cases, fitted)
    levels = arrays.conformal_levels(fitted["pit"], alpha)
    levels[:, 1] = np.minimum(levels[:, 1] + ABOVE, 1)
    np.testing.assert_array_equal(found.members, arrays.recalibrated_members(new, levels))
    np.testing.assert_array_equal(found.weights, 0.5)
    np.testing.assert_array_equal(method.slots(50)[0], [-1, -1])


def margin_reference(missed, alpha):
    """The smallest margin within which the share of all cases and the next one lies."""
    known = np.sort(missed[np.isfinite(missed)])
    return known[min(int(np.ceil((1 - alpha) * (known.size + 1) - 1e-9)), known.size) - 1]


def own_ends(forecasts, cell, alpha):
    """Central interval of each ensemble by itself."""
    weights = None if forecasts.weights is None else forecasts.weights[cell]
    q = np.array([alpha / 2, 1 - alpha / 2 + ABOVE])
    return arrays.weighted_quantile(forecasts.loc[cell], q, weights).T


@pytest.mark.parametrize("kind", ["ensemble", "weighted"])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_ends_of_ensembles_are_their_own_moved_by_margins(kind, alpha, rng):
    cases, new = make_cases(rng, kind), forms(rng, (2, 7))[kind]
    method = xrecal.ConformalPrediction(alpha)
    found = method.predict_locations(as_new(new), cases, method.fit_locations(cases, 20))
    for cell in range(2):
        own, old = (own_ends(x, cell, alpha) for x in (new, cases.forecasts))
        y = cases.observations[cell]
        low = own[0] - margin_reference(old[0] - y, alpha / 2)
        high = own[1] + margin_reference(y - old[1], alpha / 2)
        middle = (low + high) / 2
        np.testing.assert_allclose(found.members[cell, :, 0], np.minimum(low, middle))
        np.testing.assert_allclose(found.members[cell, :, 1], np.maximum(high, middle))


def weighted_reference(pit, weights, alpha):
    """Smallest distance from ½ within which 1 - alpha of the weight lies, the new case's too."""
    apart, n = np.abs(pit - 0.5), np.isfinite(pit).sum()
    for q in np.sort(apart[np.isfinite(apart)]):
        if weights[apart <= q].sum() * n >= (1 - alpha) * (n + 1) - 1e-9:
            return q
    return 0.5


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_similar_cases_count_more(alpha, rng):
    cases, new = make_cases(rng, "normal"), forms(rng, (2, 7))["normal"]
    new_covariates = covariates_of(rng, 2, 7)
    new_covariates.values[1, 3, 1] = np.nan
    method = xrecal.ConformalPrediction(alpha, condition_on=("lead", "season"))
    fitted = method.fit_locations(cases, 20)
    found = method.predict_locations(as_new(new, new_covariates), cases, fitted)
    of = cases.covariates.features(method.covariates)
    new_of = new_covariates.features(method.covariates, cases.covariates)
    weights = arrays.climatology_weights(fitted["pit"], 7, features=of, new_features=new_of)
    for cell in range(2):
        for t in range(7):
            q = weighted_reference(fitted["pit"][cell], weights[cell, t], alpha)
            one = Forecasts(*(part[cell : cell + 1, t : t + 1] for part in new[:2]))
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


def test_similar_cases_tell_the_margins_of_ensembles(rng):
    """Misses are large where the covariate is, and intervals wide there alone."""
    covariate = np.linspace(0.0, 1.0, 200)[np.newaxis]
    x = rng.normal(size=(1, 200, 5))
    y = x.mean(-1) + np.where(covariate > 0.5, 5.0, 0.5) * rng.normal(size=(1, 200))
    given_ = Covariates(covariate[..., np.newaxis], ("lead",), (None,))
    method = xrecal.ConformalPrediction(0.2, condition_on="lead")
    cases = as_cases(Forecasts(x), y, given_)
    new_given = Covariates(np.array([[[0.05], [0.95]]]), ("lead",), (None,))
    new = as_new(Forecasts(x[:, [10, 190]]), new_given)
    ends = method.predict_locations(new, cases, method.fit_locations(cases, 20)).members[0]
    calm, wild = np.diff(ends, axis=-1)[:, 0]
    assert wild > 1.5 * calm


def test_ends_stay_within_a_bound_of_the_variable(rng):
    x = np.maximum(rng.normal(size=(1, 100, 8)), 0.0)
    y = np.maximum(2.0 * rng.normal(size=(1, 100)), 0.0)
    cases = as_cases(Forecasts(x), y)
    method = xrecal.ConformalPrediction(0.1)
    found = method.predict_locations(as_new(Forecasts(x)), cases, method.fit_locations(cases, 20))
    low, high = found.members[0].T
    assert low.min() == 0.0
    assert high.max() > x.max()
    assert ((low <= y[0]) & (y[0] <= high)).mean() >= 0.9


def coverage(seed, *, alpha, n, m, spread, bias, kind, n_locations=400, n_new=20):
    """Share of new observations within intervals that were learned at each of many locations."""
    rng = np.random.default_rng(seed)
    signal, noise = rng.normal(size=(2, n_locations, n + n_new))
    x = signal[..., np.newaxis] + bias + spread * rng.normal(size=(*signal.shape, m))
    y = signal + noise
    of_kind = {
        "ensemble": Forecasts(x),
        "weighted": Forecasts(x, None, rng.uniform(0.2, 1.0, x.shape)),
        "normal": Forecasts(x[..., :1], np.full_like(x[..., :1], spread)),
    }[kind]
    past, new = (of_kind.take((slice(None), at)) for at in (slice(n), slice(n, None)))
    cases, method = as_cases(past, y[:, :n]), xrecal.ConformalPrediction(alpha)
    ends = method.predict_locations(as_new(new), cases, method.fit_locations(cases, 20)).members
    return np.mean((ends[..., 0] <= y[:, n:]) & (y[:, n:] <= ends[..., 1]))


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.sampled_from([0.1, 0.2, 0.5]),
    n=st.integers(20, 120),
    m=st.integers(1, 30),
    spread=st.floats(0.1, 2.0),
    bias=st.floats(-3.0, 3.0),
    kind=st.sampled_from(["ensemble", "weighted", "normal"]),
)
def test_exchangeable_forecasts_cover_as_asked_whatever_they_are(seed, alpha, n, **forecasts):
    found = coverage(seed, alpha=alpha, n=n, **forecasts)
    # As many draws of the cases as locations, and of the new ones in each.
    error = np.sqrt(alpha * (1 - alpha) * (1 / (400 * 20) + 1 / (400 * n)))
    assert found >= 1 - alpha - 5 * error
    assert found <= 1 - alpha + 2 / (n + 1) + 5 * error
