"""The benchmark of streams: honest delays, what is chosen elsewhere, and its verdicts."""

import numpy as np
import pytest
from scipy.stats import norm

import xrecal
from benchmarks.streams import experts, table
from benchmarks.streams.scoring import CHOICES, DEFAULT
from benchmarks.streams.streams import Stream
from tests.arrays.online.reference import expected_corrections
from xrecal.arrays import Forecasts
from xrecal.inputs.dates import CaseAxis
from xrecal.methods.base import Cases, Covariates


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


def row(name, **numbers):
    return {"stream": name, "source": name[0], "scored": 5, "best": "raw"} | {
        column: numbers.get(column.replace(" ", "_").replace(",", ""), np.nan)
        for column in table.SHOWN
    }


def test_a_case_is_known_when_it_has_verified():
    np.testing.assert_array_equal(stream(range(6), 2.0).known, [0, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(stream([0, 3, 7, 10], 5.0).known, [0, 0, 1, 2])


def test_the_warm_up_is_at_most_half_of_the_hindcast():
    assert (stream(range(1000), 1.0).first, stream(range(1000), 1.0).warm_up) == (400, 220)
    assert (stream(range(100), 1.0).first, stream(range(100), 1.0).warm_up) == (40, 20)


def test_blocks_share_a_number_from_the_first_case_on():
    found = experts.blocks(np.array([0, 0, 1, 1, 1, 3]), 1)
    assert [part.tolist() for part in found] == [[1], [2, 3, 4], [5]]


def test_raw_is_the_forecast_as_it_was_issued():
    one = stream(range(4), 1.0)
    members = one.cases.forecasts.loc[0, 2]
    assert set(experts.raw(one)[0, 2]) == set(members)


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


def test_the_first_candidate_of_each_constant_is_that_of_the_package():
    for candidates in CHOICES.values():
        assert next(iter(candidates.values())) == DEFAULT
        assert len(set(candidates.values())) == len(candidates)


def test_a_constant_chosen_elsewhere_is_not_the_one_that_suits_a_source():
    compared = {"thing": {"now": np.array([1.0, 1.0, 0.9]), "other": np.array([0.9, 0.9, 1.0])}}
    (line,) = table.of_choices(compared, ["a", "b", "c"])
    assert "as it is 1.0000, chosen within 0.9000 (other)" in line
    assert "chosen on other sources 1.0000" in line  # a and b see one of each; c sees the others


@pytest.mark.parametrize(("median", "told"), [(0.96, "holds"), (0.98, "MISSED")])
def test_verdicts_name_the_worst_stream(median, told):
    rows = [
        row("a", over_best=median, over_pool=1.0, over_raw_late=0.5),
        row("b", over_best=median, over_pool=1.1),
        row("c", over_best=1.02, over_pool=0.9, over_raw_late=1.0),
    ]
    lines = list(table.verdicts(rows))
    assert lines[0].startswith(f"budget {told}: median")
    assert lines[1] == "budget MISSED: worst over the best simple expert, c: 1.0200 (<= 1.01)"
    assert lines[2] == "budget MISSED: worst over the static pool, b: 1.1000 (<= 1.005)"
    assert lines[3] == "budget holds: worst over raw, late, c: 1.0000 (<= 1.01)"


def test_nothing_is_said_of_raw_where_no_stream_is_long_enough():
    assert len(list(table.verdicts([row("a", over_best=0.9, over_pool=1.0)]))) == 3


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
