"""The benchmark of streams: honest delays, what is chosen elsewhere, and its verdicts."""

import numpy as np
from scipy.stats import norm

import xrecal
from benchmarks.streams import experts
from benchmarks.streams.streams import Stream
from tests.arrays.online.reference import expected_corrections
from xrecal.arrays import Forecasts
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases
from xrecal.methods.covariates import Covariates


def stream(days, lag):
    days = np.asarray(days, float)
    n = days.size
    rng = np.random.default_rng(0)
    cases = Cases(
        Forecasts(rng.normal(size=(1, n, 5))),
        rng.normal(size=(1, n)),
        Covariates(np.zeros((1, n, 0))),
        CaseAxis(days=days),
    )
    return Stream("made up", "nowhere", None, None, cases, lag)


def test_a_case_is_known_when_it_has_verified():
    np.testing.assert_array_equal(stream(range(6), 2.0).known, [0, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(stream([0, 3, 7, 10], 5.0).known, [0, 0, 1, 2])


def test_the_warm_up_is_at_most_half_of_the_hindcast():
    assert (stream(range(1000), 1.0).first, stream(range(1000), 1.0).warm_up) == (400, 220)
    assert (stream(range(100), 1.0).first, stream(range(100), 1.0).warm_up) == (40, 20)


def test_blocks_share_a_number_from_the_first_case_on():
    found = experts.blocks(np.array([0, 0, 1, 1, 1, 3]), 1)
    assert [part.tolist() for part in found] == [[1], [2, 3, 4], [5]]


def test_experts_fitted_once_are_the_methods_of_the_package():
    one = stream(range(80), 1.0)
    past, new = one.cases.select(np.arange(60)), np.arange(60, 80)
    said = dict(experts.fitted_once(past, one, new))
    # Without a season to tell, the plain CKME stands in the place of the seasonal one.
    assert set(said) == {"EMOS + season", "pool", *experts.POOLED} - {"ckme"}
    emos = xrecal.EMOS()
    fitted = emos.fit_locations(past, experts.FEWEST)
    expected = emos.predict_locations(one.cases.as_new(new), past, fitted)
    np.testing.assert_array_equal(said["EMOS + season"], expected.quantile(experts.LEVELS))
    for quantiles in said.values():
        assert quantiles.shape == (1, 20, experts.J)
        assert (np.diff(quantiles) >= 0).all()


def test_corrected_experts_know_the_errors_that_had_verified():
    one = stream(range(60), 4.0)
    fitted = np.full((1, 60, len(experts.FITTED), experts.J), np.nan)
    scores = norm.ppf(experts.LEVELS)
    for label in ("pool", "CKME recent"):
        at = experts.FITTED.index(label)
        fitted[0, 20:, at] = one.cases.forecasts.loc[0, 20:].mean(-1)[:, np.newaxis] + scores
    whole = experts.with_corrected(one, fitted)
    moved, both, recent = whole[0, :, len(experts.FITTED) :].transpose(1, 0, 2)
    assert np.isnan(whole[0, :20, len(experts.FITTED) :]).all()
    np.testing.assert_array_equal(both[20:], recent[20:])
    members, observed = one.cases.forecasts.loc[0], one.cases.observations[0]

    def known_of(case):
        mean, last = members[case].mean(), one.known[case] - 1
        return [mean - observed[last], mean - members[last].mean(), members[case].std()]

    case = 50
    past = np.arange(20, one.known[case])
    rank = [(fitted[0, c, -1] < observed[c]).sum() for c in past]
    expected = expected_corrections(
        norm.ppf((np.array(rank) + 0.5) / 101),
        np.maximum(one.known[past] - 20, 0),
        [known_of(c) for c in past],
        [known_of(case)],
    )[0]
    mean = members[case].mean()
    np.testing.assert_allclose(moved[case], mean + expected[0] + scores, atol=1e-6)
    np.testing.assert_allclose(
        both[case], mean + expected[0] + np.exp(expected[1]) * scores, atol=1e-6
    )
