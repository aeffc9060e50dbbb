"""Other pools than that of the package: what they are, and how they are judged."""

import numpy as np
import pytest
import xarray as xr

import xrecal
from benchmarks.left_out import choose, of_all, of_sources
from benchmarks.skill import choices, scoring
from benchmarks.skill.sets import by_share

DAYS = {"time": np.datetime64("2001-01-01", "ns") + np.arange(60) * np.timedelta64(1, "D")}
METHODS = xrecal.LinearPool(condition_on="season").mixed


def changed(name):
    pool = xrecal.LinearPool(condition_on="season")
    return choices.CHOICES[name](pool)


def two_models(n=60):
    """Forecasts of a good model, named first, and of one that knows nothing."""
    rng = np.random.default_rng(1)
    truth = rng.normal(size=n)
    members = np.stack([truth + 0.3 * rng.normal(size=n), rng.normal(size=n)], axis=-1)
    coords = DAYS | {"member": ["good", "poor"]}
    return xr.DataArray(members, coords, ("time", "member")), xr.DataArray(truth, DAYS)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("without IDR", "IDR"), ("without climatology", "Climatology"), ("without raw", "Raw")],
)
def test_one_method_is_left_out_and_the_others_stay_as_they_are(name, left_out):
    kept = tuple(m for m in METHODS if type(m).__name__ != left_out)
    assert changed(name).mixed == kept
    assert len(kept) == len(METHODS) - 1


def test_the_model_that_knows_more_has_the_larger_weight():
    hindcast, observed = two_models()
    weights = choices.weights_by_name(hindcast, observed)
    assert weights.sel(member="good") > 3 * weights.sel(member="poor") >= 0
    one = by_share("Two", hindcast, observed, "time", season=False, named=True)
    moved = choices.weighted(one)
    own = choices.weights_by_name(one.hindcast, observed)
    xr.testing.assert_allclose(
        moved.forecast.mean("member"),
        one.forecast.mean("member") * (1 - own.sum()) + (one.forecast * own).sum("member"),
    )
    spread = [each.forecast.std("member") for each in (moved, one)]
    xr.testing.assert_allclose(*spread)


def test_a_row_has_the_ratio_of_each_choice(monkeypatch):
    monkeypatch.setattr(
        scoring, "methods", lambda given: {"EMOS": xrecal.EMOS(), "LinearPool": xrecal.EMOS()}
    )
    monkeypatch.setattr(choices, "methods", scoring.methods)
    monkeypatch.setattr(
        choices, "CHOICES", dict.fromkeys(choices.CHOICES, lambda pool: xrecal.Climatology())
    )
    hindcast, observed = two_models()
    (row,) = choices.score_set(
        by_share("Two", hindcast, observed, "time", season=False), "somewhere"
    )
    assert (row["set"], row["source"]) == ("Two", "somewhere")
    assert row[choices.PRESENT] == row[choices.NAMED] == 1.0
    assert row["without raw"] > 1
    assert row[choices.HINDSIGHT] <= min(1, row[choices.HALVES])


def test_weights_of_the_other_half_tell_nothing_where_that_is_another_system():
    times = {"time": np.arange(40)}
    levels = {"quantile": scoring.LEVELS}
    y = xr.DataArray(np.random.default_rng(0).normal(size=40), times, "time")
    right = y.expand_dims(levels, axis=1)
    first = np.arange(40) * 10 // 40 % 2 == 0
    swapped = [right + 1.0 * xr.DataArray(part, times, "time") for part in (first, ~first)]
    whole, halves = choices.in_hindsight(swapped, y, "time")
    assert whole == pytest.approx(0.5, abs=1e-6)
    assert halves == pytest.approx(1.0, abs=1e-6)


def test_what_is_chosen_elsewhere_is_what_counts():
    ratios = np.array([[1.0, 1.0, 1.0, 0.9], [0.9, 0.9, 0.9, 1.0]])
    within, left_out = choose(ratios, ["a", "a", "a", "b"], of_all)
    assert within == 1
    np.testing.assert_array_equal(left_out, [1.0, 1.0, 1.0, 1.0])
    assert choose(ratios, ["a", "a", "a", "b"], of_sources).within == 0  # equal, so the first
    mean = of_sources(ratios, np.array(["a", "a", "a", "b"]))
    np.testing.assert_allclose(mean, np.sqrt([0.9, 0.9]))  # of two sources
