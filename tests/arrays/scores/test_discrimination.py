from itertools import combinations

import numpy as np
import pytest
import scores.probability
import xarray as xr
import xskillscore
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as drawn
from scipy.stats import kendalltau, somersd
from sklearn.metrics import roc_auc_score

from xrecal.arrays import (
    economic_value,
    generalised_discrimination,
    roc_area,
    roc_curve,
    standard_error,
)

tenths = st.integers(0, 10).map(lambda v: v / 10)
LEVELS = np.arange(11) / 10


def cases(rng, n=60, rows=()):
    """Probabilities with many ties, and events that are more frequent where these are high."""
    p = rng.integers(0, 11, (*rows, n)) / 10
    return p, (rng.random(p.shape) < 0.2 + 0.6 * p).astype(float)


# ROC ---------------------------------------------------------------------------------------------


def area_by_pairs(p, events):
    """The definition: pairs of a case with and one without the event."""
    yes, no = p[events == 1], p[events == 0]
    both = [(a > b) + 0.5 * (a == b) for a in yes for b in no]
    return np.mean(both) if both else np.nan


def test_area_equals_peers(rng):
    for _ in range(5):
        p, events = cases(rng)
        found = roc_area(p, events)
        assert found.area == pytest.approx(roc_auc_score(events, p), abs=1e-13)
        assert found.area == pytest.approx(area_by_pairs(p, events), abs=1e-13)
        labelled = xr.DataArray(p, dims="case"), xr.DataArray(events, dims="case")
        assert found.area == pytest.approx(float(scores.probability.roc_auc(*labelled)), abs=1e-12)
        continuous = xskillscore.roc(*labelled[::-1], bin_edges="continuous", dim="case")
        assert found.area == pytest.approx(float(continuous), abs=1e-12)
        assert found.n_events == events.sum()


def test_curve_equals_peers(rng):
    p, events = cases(rng, 80)
    found = roc_curve(p, events, LEVELS)
    labelled = xr.DataArray(p, dims="case"), xr.DataArray(events, dims="case")
    theirs = scores.probability.roc_curve_data(*labelled, LEVELS)
    for rate, name in zip(found, ("POD", "POFD"), strict=True):
        # Theirs goes on to a level that nobody reaches.
        np.testing.assert_allclose(rate, theirs[name][:-1], atol=1e-12)
    # All probabilities are among the levels: the area is that under the points, and (0, 0).
    hits, alarms = (np.append(rate, 0.0)[::-1] for rate in found)
    assert roc_area(p, events).area == pytest.approx(np.trapezoid(hits, alarms), abs=1e-13)


def test_standard_error_is_that_of_delong(rng):
    p, events = cases(rng, 90)
    yes, no = p[events == 1], p[events == 0]
    placed = (yes[:, np.newaxis] > no) + 0.5 * (yes[:, np.newaxis] == no)
    delong = np.var(placed.mean(1), ddof=1) / yes.size + np.var(placed.mean(0), ddof=1) / no.size
    influence = roc_area(p, events).influence
    assert influence.mean() == pytest.approx(0.0, abs=1e-13)
    assert influence.std() / np.sqrt(90) == pytest.approx(np.sqrt(delong), rel=2 / 90)
    assert standard_error(influence, lag=0) == pytest.approx(np.sqrt(delong), rel=2 / 90)


@given(drawn(np.float64, st.integers(1, 12), elements=tenths), st.data())
def test_laws_of_the_area(p, data):
    events = data.draw(drawn(np.float64, p.shape, elements=st.sampled_from([0.0, 1.0])))
    found = roc_area(p, events)
    np.testing.assert_allclose(found.area, area_by_pairs(p, events), atol=1e-13)
    np.testing.assert_allclose(roc_area(np.exp(3 * p), events).area, found.area, atol=1e-13)
    np.testing.assert_allclose(roc_area(-p, events).area, 1 - found.area, atol=1e-13)
    np.testing.assert_allclose(roc_area(-p, 1 - events).area, found.area, atol=1e-13)
    order = data.draw(st.permutations(range(p.size)))
    again = roc_area(p[order], events[order])
    np.testing.assert_allclose(again.influence, found.influence[order], atol=1e-12)


# economic value ----------------------------------------------------------------------------------


def test_value_equals_peers(rng):
    p, events = cases(rng, 70)
    ratios = np.array([0.1, 0.3, 0.5, 0.65, 0.9])
    found = economic_value(p, events, ratios)
    theirs = scores.probability.relative_economic_value(
        xr.DataArray(p, dims="case"),
        xr.DataArray(events, dims="case"),
        cost_loss_ratios=ratios.tolist(),
        probability_thresholds=[*LEVELS.tolist()],
        generate_maximum_rev=True,
    )
    # Never acting is a choice of our best, but no threshold of theirs.
    np.testing.assert_allclose(found[1], np.maximum(theirs["maximum"], 0), atol=1e-12)
    for k, ratio in enumerate(ratios):
        own = scores.probability.relative_economic_value(
            xr.DataArray((p >= ratio).astype(float), dims="case"),
            xr.DataArray(events, dims="case"),
            cost_loss_ratios=[ratio],
        )
        assert found[0][k] == pytest.approx(float(own.squeeze()), abs=1e-12)


@given(drawn(np.float64, st.integers(2, 15), elements=tenths), st.data())
def test_laws_of_the_value(p, data):
    events = data.draw(drawn(np.float64, p.shape, elements=st.sampled_from([0.0, 1.0])))
    ratios = np.array([0.2, 0.45, 0.8])
    value, best = economic_value(p, events, ratios)
    if 0 < events.sum() < events.size:
        assert (value <= best + 1e-12).all()
        assert ((best >= -1e-12) & (best <= 1 + 1e-12)).all()
        # Expenses of who acts from each probability on, counted case by case.
        base = events.mean()
        spent = [[np.where(p >= t, a, events).mean() for t in (*np.unique(p), 2.0)] for a in ratios]
        usual = np.minimum(ratios, base)
        expected = (usual - np.min(spent, axis=1)) / (usual - base * ratios)
        np.testing.assert_allclose(best, np.maximum(expected, 0), atol=1e-10)
        perfect, _ = economic_value(events, events, ratios)
        np.testing.assert_allclose(perfect, 1.0)
    else:
        assert np.isnan([value, best]).all()


# generalised discrimination ----------------------------------------------------------------------


def share_of_pairs(y, members, weights=None):
    """The definition, pair by pair and member by member."""
    weights = np.ones(members.shape) if weights is None else weights
    right, n = 0.0, 0
    for i, j in combinations(range(y.size), 2):
        if y[i] == y[j]:
            continue
        i, j = (i, j) if y[i] > y[j] else (j, i)
        a, b = members[i][:, np.newaxis], members[j]
        mass = weights[i][:, np.newaxis] * weights[j]
        odds = (mass * ((a > b) + 0.5 * (a == b))).sum() / mass.sum() - 0.5
        right += 0.5 if abs(odds) < 1e-12 else float(odds > 0)
        n += 1
    return right / n if n else np.nan


def test_discrimination_by_pairs(rng):
    y, members = rng.integers(0, 9, 25) / 2, rng.integers(0, 9, (25, 4)) / 2
    weights = rng.integers(0, 3, members.shape) + (members == members[:, :1])
    for w in (None, weights.astype(float)):
        found = generalised_discrimination(y, members, w)
        assert found.score == pytest.approx(share_of_pairs(y, members, w), abs=1e-13)
        assert found.influence.mean() == pytest.approx(0.0, abs=1e-12)
    gaps = np.where(rng.random(members.shape) < 0.3, np.nan, members)
    gaps[3], y[5] = np.nan, np.inf
    kept = np.delete(np.arange(25), [3, 5])
    expected = share_of_pairs(y[kept], np.nan_to_num(gaps[kept]), ~np.isnan(gaps[kept]))
    found = generalised_discrimination(y, gaps)
    assert found.score == pytest.approx(expected, abs=1e-13)
    assert list(np.flatnonzero(np.isnan(found.influence))) == [3, 5]


def test_discrimination_of_single_values_is_a_rank_correlation(rng):
    y, x = rng.integers(0, 9, 40) / 2, rng.integers(0, 9, 40) / 2
    found = generalised_discrimination(y, x[:, np.newaxis]).score
    assert found == pytest.approx((somersd(y, x).statistic + 1) / 2, abs=1e-12)
    y, x = rng.normal(size=(2, 40))  # Mason & Weigel (2009), eq. 22
    found = generalised_discrimination(y, x[:, np.newaxis]).score
    assert found == pytest.approx((kendalltau(x, y).statistic + 1) / 2, abs=1e-12)


@given(drawn(np.float64, st.tuples(st.integers(2, 6), st.integers(1, 4)), elements=tenths))
def test_laws_of_discrimination(members):
    y = np.arange(len(members), dtype=float)
    found = generalised_discrimination(y, members).score
    np.testing.assert_allclose(generalised_discrimination(y, np.exp(members) + 9).score, found)
    np.testing.assert_allclose(generalised_discrimination(-y, members).score, 1 - found)
    np.testing.assert_allclose(found, share_of_pairs(y, members))
    assert generalised_discrimination(y, y[:, np.newaxis] + 0 * members).score == 1.0
    assert np.isnan(generalised_discrimination(0 * y, members).score)


# arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: roc_area(np.ones(3), np.ones(2)), r"same shape .*probabilities \(3,\)"),
        (lambda: roc_area(np.ones(2), np.full(2, 0.5)), "events must be 0, 1 or NaN, found 0.5"),
        (lambda: roc_curve(np.ones(2), np.full(2, 2.0), [0.5]), "events must be 0, 1 or NaN"),
        (lambda: economic_value(np.full(2, 50.0), np.ones(2), [0.5]), "between 0 and 1, found 50"),
        (lambda: economic_value(np.ones(2), np.ones(2), [0.0]), "cost_loss must hold ratios"),
        (lambda: economic_value(np.ones(2), np.ones(2), 0.5), "cost_loss must hold ratios"),
        (lambda: generalised_discrimination(np.ones(2), np.ones((3, 2))), r"members have shape"),
        (
            lambda: generalised_discrimination(np.ones(2), np.ones((2, 2)), -np.ones((2, 2))),
            "weights must not be negative",
        ),
        (
            lambda: generalised_discrimination(np.ones(2), np.ones((2, 2)), np.ones((2, 3))),
            r"weights have shape \(2, 3\), members have \(2, 2\)",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_discrimination_of_an_event_is_the_area(rng):
    p, events = cases(rng, 50, (3,))
    found = generalised_discrimination(events, p[..., np.newaxis])
    area = roc_area(p, events)
    np.testing.assert_allclose(found.score, area.area, atol=1e-13)
    np.testing.assert_allclose(found.influence, area.influence, atol=1e-10)


def test_no_cases():
    none = np.empty((2, 0))
    assert np.isnan(roc_area(none, none).area).all()
    assert np.isnan(economic_value(none, none, [0.5])).all()
    assert np.isnan(generalised_discrimination(none, np.empty((2, 0, 3))).score).all()
