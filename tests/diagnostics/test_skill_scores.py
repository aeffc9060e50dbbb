import numpy as np
import pytest
import xarray as xr
import xskillscore

import xrecal
from tests.strategies import points
from xrecal import arrays
from xrecal.arrays.status import NO_EVENT, TOO_FEW

from .calls import FORMS, THRESHOLDS, hindcast

ENSEMBLE, TRUTH = hindcast(n=24)
HALF = hindcast(n=24, step=0.5)
CLIMATE = TRUTH.rename(time="member").drop_vars("member").expand_dims(time=TRUTH.time)
KNOWN = ("skill", "skill_error", "p_value")


def by_skill(scores, reference, dim="time"):
    found = xrecal.skill(scores, reference, dim)
    return [found[name] for name in KNOWN]


@pytest.mark.parametrize("form", FORMS)
def test_brier_skill_against_each_reference(form):
    forecast = FORMS[form](ENSEMBLE)
    scores = forecast.recal.brier_score(TRUTH, THRESHOLDS)
    found = forecast.recal.brier_skill_score(TRUTH, THRESHOLDS, reference=CLIMATE)
    expected = by_skill(scores, CLIMATE.recal.brier_score(TRUTH, THRESHOLDS))
    for name, value in zip(KNOWN, expected, strict=True):
        np.testing.assert_allclose(found[name], value.transpose(*found[name].dims), rtol=1e-10)
    assert list(found.threshold) == THRESHOLDS
    # The climatology of these cases is the share of events in them.
    sample = forecast.recal.brier_skill_score(TRUTH, THRESHOLDS)
    xr.testing.assert_allclose(sample.skill, found.skill, rtol=1e-10)
    events = (TRUTH - xr.DataArray(THRESHOLDS, dims="threshold")) > 0
    fixed = forecast.recal.brier_skill_score(TRUTH, THRESHOLDS, reference=0.3)
    wanted = 1 - scores.mean("time") / ((events - 0.3) ** 2).mean("time")
    np.testing.assert_allclose(fixed.skill, wanted.transpose(*fixed.skill.dims), rtol=1e-10)


def test_ranked_skill_equals_xskillscore():
    edges = np.array(THRESHOLDS)
    found = ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS)
    assert found.attrs["score"] == "ranked probability score"
    given = {"category_edges": edges, "member_dim": "member", "dim": "time"}
    theirs = xskillscore.rps(TRUTH, ENSEMBLE, **given)
    reference = xskillscore.rps(TRUTH, CLIMATE, **given)
    np.testing.assert_allclose(found.skill, 1 - theirs / reference, atol=1e-12)
    np.testing.assert_allclose(ENSEMBLE.recal.rps(TRUTH, THRESHOLDS, "time"), theirs, atol=1e-12)
    other = ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS, reference=CLIMATE)
    xr.testing.assert_allclose(other.skill, found.skill)


def test_ranked_skill_against_odds():
    found = ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS, reference=[0.2, 0.5, 0.3])
    cumulated = ((t - TRUTH >= 0) - p for t, p in zip(THRESHOLDS, (0.2, 0.7), strict=True))
    odds = sum((c**2).mean("time") for c in cumulated)
    expected = 1 - ENSEMBLE.recal.rps(TRUTH, THRESHOLDS, "time") / odds
    np.testing.assert_allclose(found.skill, expected, rtol=1e-10)


def test_places_are_compared_with_their_own_climate():
    """Two climates far apart: knowing them is no skill."""
    shift = xr.DataArray([0.0, 30.0], dims="lat")
    climate = CLIMATE.isel(member=slice(None, None, 2)) + shift
    truth = (TRUTH + shift).assign_attrs(TRUTH.attrs)
    found = (
        climate.assign_attrs(TRUTH.attrs)
        .rename("t2m")
        .recal.brier_skill_score(
            truth, xr.DataArray([280.0, 310.0], {"lat": TRUTH.lat}), ["time", "lat"]
        )
    )
    assert (found.skill < 0.05).all()


def test_shares_of_places_are_not_mixed():
    """One threshold for cells of different means: the climatology of each cell has skill 0."""
    shift = xr.DataArray([0.0, 4.0], dims="lat")
    climate = (CLIMATE + shift).assign_attrs(TRUTH.attrs).rename("t2m")
    truth = (TRUTH + shift).assign_attrs(TRUTH.attrs)
    for dim in (["time"], ["time", "lat"], ...):
        for found in (
            climate.recal.brier_skill_score(truth, 282.0, dim),
            climate.recal.rpss(truth, [281.0, 283.0], dim),
        ):
            np.testing.assert_allclose(found.skill, 0, atol=1e-12)
    np.testing.assert_allclose(climate.recal.tercile_summary(truth, ...).rpss, 0, atol=1e-12)


def test_the_reference_of_each_date_does_not_know_its_outcome():
    """Over places alone, the climatology is still that of all dates at each place."""
    edges = [281.0, 283.0]
    found = ENSEMBLE.recal.rpss(TRUTH, edges, ["lat", "lon"])
    scores = ENSEMBLE.recal.rps(TRUTH, edges).mean(["lat", "lon"])
    happened = xr.concat([edge < TRUTH for edge in edges], "edge") * 1.0
    others = ((happened - happened.mean("time")) ** 2).sum("edge").mean(["lat", "lon"])
    np.testing.assert_allclose(found.skill, 1 - scores / others, rtol=1e-9)


def test_the_status_says_where_an_event_never_happened():
    for score in ("brier_skill_score", "roc", "economic_value"):
        found = getattr(ENSEMBLE.recal, score)(TRUTH, [100.0, 280.0, 500.0])
        flagged = found.status & NO_EVENT > 0
        np.testing.assert_array_equal(flagged.any(["lat", "lon"]), [True, False, True])
        assert "event_or_category_in_none_or_all_cases" in found.status.attrs["flag_meanings"]
        assert "units" not in found.status.attrs
        assert (getattr(ENSEMBLE.recal, score)(TRUTH, 500.0).status & NO_EVENT).all()
    assert np.isnan(ENSEMBLE.recal.brier_skill_score(TRUTH, 500.0).skill).all()
    assert (ENSEMBLE.recal.rpss(TRUTH, [280.0, 500.0]).status & NO_EVENT).all()
    assert (ENSEMBLE.recal.rpss(TRUTH, [500.0, 501.0]).status & NO_EVENT).all()
    assert not (ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS).status & NO_EVENT).any()
    summary = ENSEMBLE.recal.tercile_summary(TRUTH, edges=[280.0, 500.0])
    assert (summary.status & NO_EVENT).all()
    few = ENSEMBLE[:1].recal.brier_skill_score(TRUTH[:1], 280.0)
    assert (few.status == TOO_FEW).all()  # one case is all cases


def test_a_reference_in_another_order_and_a_dataset():
    expected = ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS, reference=CLIMATE)
    turned = ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS, reference=CLIMATE[::-1].sortby("time"))
    xr.testing.assert_identical(turned, expected)
    named = ENSEMBLE.to_dataset().recal.rpss(
        {"t2m": TRUTH}, THRESHOLDS, reference=CLIMATE.to_dataset(name="t2m")
    )
    np.testing.assert_allclose(named.skill, expected.skill)
    other = CLIMATE.chunk(lat=1)
    lazy = ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS, reference=other)
    assert lazy.chunks
    xr.testing.assert_allclose(lazy.compute(), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ENSEMBLE.recal.brier_skill_score(TRUTH, 280.0, reference=30.0),
            "reference must lie between 0 and 1, found 30",
        ),
        (
            lambda: ENSEMBLE.recal.brier_skill_score(TRUTH, 280.0, reference="climatology"),
            "reference must be a probability or a forecast, got 'climatology'",
        ),
        (
            lambda: ENSEMBLE.recal.rpss(TRUTH, THRESHOLDS, reference=[0.5, 0.5]),
            "or probabilities of 3 categories with the sum 1",
        ),
        (lambda: ENSEMBLE.recal.rpss(TRUTH, [2.0, 1.0]), "edges must be increasing numbers"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# terciles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_terciles_are_made_of_their_parts(form):
    forecast = FORMS[form](ENSEMBLE)
    found = forecast.recal.tercile_summary(TRUTH)
    edges = found.upper_edge.isel(category=[0, 1]).drop_vars(["category", "upper_edge"])
    edges = edges.drop_vars("lower_edge", errors="ignore").rename(category="edge")
    for point in points(TRUTH):
        expected = arrays.climatology_quantiles(TRUTH.isel(point).to_numpy(), [1 / 3, 2 / 3])
        np.testing.assert_array_equal(edges.isel(point), expected)
    probability = forecast.recal.categories(edges)
    if isinstance(probability, xr.Dataset):
        (probability,) = probability.values()
    np.testing.assert_allclose(found.probability, probability.transpose(*found.probability.dims))
    np.testing.assert_allclose(found.probability.sum("category"), 1)
    np.testing.assert_allclose(found.frequency, 1 / 3, atol=1e-12)
    odds = forecast.recal.rpss(TRUTH, edges, reference=[1 / 3] * 3)
    for name, own in zip(("rpss", "rpss_error", "p_value"), KNOWN, strict=True):
        np.testing.assert_allclose(found[name], odds[own], rtol=1e-8, atol=1e-12)
    upper = edges.isel(edge=1)
    above = found.sel(category="above_normal")
    roc = forecast.recal.roc(TRUTH, upper)
    np.testing.assert_allclose(above.roc_area, roc.area, atol=1e-9)
    np.testing.assert_allclose(above.roc_area_error, roc.area_error, atol=1e-9)
    reliability = forecast.recal.reliability(TRUTH, upper)
    for name in ("brier_score", "miscalibration", "discrimination", "uncertainty"):
        np.testing.assert_allclose(above[name], reliability[name], atol=1e-9)
    total = found.miscalibration - found.discrimination + found.uncertainty
    np.testing.assert_allclose(found.brier_score, total, atol=1e-9)


def test_fair_terciles_and_terciles_of_a_season():
    fair = ENSEMBLE.recal.tercile_summary(TRUTH, edges=THRESHOLDS, fair=True)
    expected = ENSEMBLE.recal.rps(TRUTH, THRESHOLDS, "time", fair=True)
    np.testing.assert_allclose(fair.rps, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="fair=True"):
        FORMS["normal"](ENSEMBLE).recal.tercile_summary(TRUTH, fair=True)
    season = TRUTH.groupby("time.season").quantile([1 / 3, 2 / 3], "time")
    found = ENSEMBLE.recal.tercile_summary(TRUTH, edges=season)
    at = season.sel(season=TRUTH.time.dt.season.values[5]).drop_vars("season")
    wanted = ENSEMBLE.isel(time=[5]).recal.categories(at)
    one = found.probability.isel(time=[5])
    np.testing.assert_allclose(one, wanted.transpose(*one.dims), atol=1e-12)
    with pytest.raises(ValueError, match=r"edges must be two numbers, .* got 3"):
        ENSEMBLE.recal.tercile_summary(TRUTH, edges=[1.0, 2.0, 3.0])


def test_terciles_lazy_and_pooled():
    expected = HALF[0].recal.tercile_summary(HALF[1])
    lazy = HALF[0].chunk(time=5, lat=1).recal.tercile_summary(HALF[1].chunk(lon=1))
    assert all(v.chunks for v in lazy.data_vars.values())
    xr.testing.assert_allclose(lazy.compute(), expected)
    alike = HALF[1].isel(lat=0, drop=True)
    assert HALF[0].recal.tercile_summary(alike).upper_edge.dims == ("lon", "category")
    pooled = HALF[0].recal.tercile_summary(HALF[1], ["time", "lat", "lon"])
    assert pooled.upper_edge.dims == ("lat", "lon", "category")  # each place has its own
    scores = HALF[0].recal.rps(HALF[1], pooled.upper_edge.isel(category=[0, 1]).drop_vars(
        ["category", "lower_edge", "upper_edge"]).rename(category="edge"), ...)  # fmt: skip
    np.testing.assert_allclose(pooled.rps, scores, rtol=1e-12)


CATEGORIES = {
    "edges of each place": lambda: ENSEMBLE.recal.categories(
        TRUTH.quantile([1 / 3, 2 / 3], "time")
    ),
    "edges of each fold": lambda: ENSEMBLE.recal.cross_validate(
        TRUTH, xrecal.EMOS(), by="block", output="categories", min_samples=5
    ),
    "edges in a list": lambda: ENSEMBLE.recal.categories(THRESHOLDS),
    "a second time": lambda: ENSEMBLE.assign_coords(
        valid_time=ENSEMBLE.time.variable
    ).recal.categories(TRUTH.quantile([1 / 3, 2 / 3], "time")),
    "after a model": lambda: (
        ENSEMBLE.recal.fit(TRUTH, xrecal.EMOS())
        .apply(ENSEMBLE)
        .recal.categories(TRUTH.quantile([1 / 3, 2 / 3], "time"))
    ),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_are_scored_as_they_come(name):
    given = CATEGORIES[name]()
    values = given["t2m"] if isinstance(given, xr.Dataset) else given
    (upper,) = (c for n, c in values.coords.items() if n.endswith("upper_edge"))
    edges = upper.isel(category=[0, 1]).rename(category="edge")
    edges = edges.drop_vars(
        [n for n, c in edges.coords.items() if n not in edges.dims or n == "edge"]
    )
    happened = (edges < TRUTH) * 1.0
    below = values.cumsum("category").isel(category=[0, 1]).rename(category="edge")
    squares = ((1 - below.drop_vars(below.coords) - happened.drop_vars(happened.coords)) ** 2).sum(
        "edge"
    )
    shares = ((happened - happened.mean("time")) ** 2).sum("edge")
    expected = 1 - squares.mean("time") / shares.mean("time").drop_vars(["lat", "lon"])
    found = given.recal.rpss(TRUTH)
    np.testing.assert_allclose(found.skill, expected.transpose("lat", "lon"), rtol=1e-9)
    turned = given.transpose("category", ...).recal.rpss(TRUTH)
    np.testing.assert_allclose(turned.skill.transpose("lat", "lon"), found.skill)
    xr.testing.assert_allclose(given.chunk(lat=1).recal.rpss(TRUTH).compute(), found)
    summary = given.recal.tercile_summary(TRUTH)
    np.testing.assert_allclose(summary.probability, values.transpose(*summary.probability.dims))
    np.testing.assert_allclose(summary.rps, squares.mean("time").transpose("lat", "lon"), rtol=1e-9)
    own = given.recal.rpss(TRUTH, reference=given)
    np.testing.assert_allclose(own.skill, 0, atol=1e-12)
    with pytest.raises(ValueError, match="the forecast of categories has edges of its own"):
        given.recal.rpss(TRUTH, THRESHOLDS)


def test_other_forecasts_need_edges():
    with pytest.raises(ValueError, match=r"edges are needed, such as edges=\[0.0, 5.0\]"):
        ENSEMBLE.recal.rpss(TRUTH)


# error-spread score -------------------------------------------------------------------------------


def test_error_spread_of_other_forms():
    for form in ("percentile", "normal"):
        forecast = FORMS[form](ENSEMBLE)
        mean, std = (getattr(forecast.recal, name)() for name in ("mean", "std"))
        skewness = 0.0
        if form == "percentile":
            masses = np.array([0.175, 0.225, 0.2, 0.2, 0.2])
            members = ENSEMBLE.transpose("time", "lat", "lon", "member").to_numpy()
            skewness = arrays.weighted_skewness(members, masses)
        else:
            mean, std = mean["t2m"], std["t2m"]
        mean, std = (moment.transpose(*TRUTH.dims) for moment in (mean, std))
        expected = arrays.error_spread(TRUTH, mean, std, skewness)
        found = forecast.recal.error_spread(TRUTH)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


# ties ---------------------------------------------------------------------------------------------

SEASONS = np.random.default_rng(3).random((2, 60))
RECORDS = {
    "dry": np.where(SEASONS[0] < 0.8, 0.0, 9 * SEASONS[1]),
    "half dry": np.where(SEASONS[0] < 0.5, 0.0, 9 * SEASONS[1]),
    "full": np.where(SEASONS[0] < 0.6, 1.0, SEASONS[1]),
    "continuous": SEASONS[1],
}


@pytest.mark.parametrize("record", RECORDS)
def test_climatology_has_no_skill_against_itself(record):
    values = RECORDS[record]
    truth = xr.DataArray(values, dims="time", name="rain")
    climatology = xr.DataArray(
        np.broadcast_to(values, (60, 60)), dims=("time", "member"), name="rain"
    )
    edges = truth.quantile([1 / 3, 2 / 3], "time", method="inverted_cdf")
    found = [
        climatology.recal.tercile_summary(truth).rpss,
        climatology.recal.tercile_summary(truth, edges=edges).rpss,
        climatology.recal.rpss(truth, edges).skill,
    ]
    if edges[0] == edges[1]:  # equal odds contradict these
        found.append(climatology.recal.rpss(truth, edges, reference=[1 / 3] * 3).skill)
    np.testing.assert_allclose(found, 0.0, atol=1e-12)


def test_the_sum_of_a_reference_is_told():
    truth = xr.DataArray(SEASONS[1], dims="time")
    forecast = truth.expand_dims(member=3)
    with pytest.raises(ValueError, match=r"whose sum is 0\.9"):
        forecast.recal.rpss(truth, [0.3, 0.6], reference=[0.3, 0.3, 0.3])
